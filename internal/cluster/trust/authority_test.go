package trust

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

var (
	start   = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	cluster = uuid.MustParse("0b5ac9f4-3a8f-4e0c-9d5e-2f6a3a3c1b11")
	another = uuid.MustParse("7e1f0d3c-52a4-4c57-8a0b-91f1f1c1d222")
)

func newCluster(t testing.TB, id uuid.UUID) *Authority {
	t.Helper()
	a, err := New(id, start)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAuthorityIsStoredAndLoaded(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir, cluster, nil); !errors.Is(err, ErrMissing) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: %v, want ErrMissing", err)
	}
	made, err := Create(dir, cluster, start, nil)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, FileName)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v; want mode 0600", info, err)
	}
	loaded, err := Load(dir, cluster, nil)
	if err != nil || !bytes.Equal(loaded.PEM(), made.PEM()) || loaded.Fingerprint() != made.Fingerprint() || loaded.Cluster() != cluster {
		t.Errorf("loaded %v, %v; want what was made", loaded, err)
	}
	if _, err := Create(dir, cluster, start, nil); !errors.Is(err, ErrExists) {
		t.Errorf("a second one: %v, want ErrExists", err)
	}
	again, err := Load(dir, cluster, nil)
	if err != nil || again.Fingerprint() != made.Fingerprint() {
		t.Errorf("after the second Create: %v; want the first authority", err)
	}
	_, err = Load(dir, another, nil)
	if foreign, ok := errors.AsType[*Foreign](err); !ok || foreign.Cluster != cluster || foreign.Want != another || !strings.Contains(err.Error(), dir) {
		t.Errorf("of another cluster: %v, want a *Foreign", err)
	}
}

func TestDamagedAuthorities(t *testing.T) {
	dir := t.TempDir()
	a, b := newCluster(t, cluster), newCluster(t, cluster)
	good := a.PEM()
	certOf := func(a *Authority) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.pairs[0].cert.Raw})
	}
	keyOf := func(a *Authority) []byte { return bytes.TrimPrefix(a.PEM(), certOf(a)) }
	leaf, err := a.issue("n1", start)
	if err != nil {
		t.Fatal(err)
	}
	next, err := a.WithNext(start)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"empty":               nil,
		"half":                good[:len(good)/2],
		"a bit":               good[:len(good)-1],
		"a changed bit":       bytes.Replace(good, []byte("M"), []byte("N"), 1),
		"no key":              certOf(a),
		"key of another":      append(certOf(a), keyOf(b)...),
		"key first":           append(keyOf(a), certOf(a)...),
		"text before":         append([]byte("hello\n"), good...),
		"text after":          append(bytes.Clone(good), "hello\n"...),
		"the same twice":      append(bytes.Clone(good), good...),
		"three":               append(next.PEM(), b.PEM()...),
		"a node's":            newAuthority(cluster, leaf).PEM(),
		"no certificate":      append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), keyOf(a)...),
		"a key that is none":  append(certOf(a), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})...),
		"zeros after a crash": make([]byte, 900),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(dir, FileName), content, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(dir, cluster, nil)
			if damaged, ok := errors.AsType[*Damaged](err); !ok || damaged.Path != filepath.Join(dir, FileName) || damaged.Err == nil {
				t.Errorf("got %v, want a *Damaged with the path", err)
			} else if strings.Contains(err.Error(), "PRIVATE") {
				t.Errorf("the error quotes the file: %v", err)
			}
		})
	}
}

func TestReplacementOfTheAuthority(t *testing.T) {
	old := newCluster(t, cluster)
	if _, err := old.Switched(); !errors.Is(err, ErrReplacement) {
		t.Errorf("a switch to nothing: %v", err)
	}
	both, err := old.WithNext(start)
	if err != nil {
		t.Fatal(err)
	}
	if both.Fingerprint() != old.Fingerprint() {
		t.Error("the next certificate signs already")
	}
	if _, err := both.WithNext(start); !errors.Is(err, ErrReplacement) {
		t.Errorf("a third certificate: %v", err)
	}
	received, err := Parse(both.PEM(), cluster) // as every other member
	if err != nil {
		t.Fatal(err)
	}
	switched, err := received.Switched()
	if err != nil {
		t.Fatal(err)
	}
	if switched.Fingerprint() == old.Fingerprint() {
		t.Error("the old certificate signs still")
	}
	dir := t.TempDir()
	if err := switched.Save(dir, nil); err != nil {
		t.Fatal(err)
	}
	if stored, err := Load(dir, cluster, nil); err != nil || stored.Fingerprint() != switched.Fingerprint() {
		t.Errorf("stored after the switch: %v", err)
	}
	alone := switched.Alone()
	if alone.Fingerprint() != switched.Fingerprint() || len(alone.pairs) != 1 {
		t.Error("the next authority is not alone")
	}
	if abandoned := both.Alone(); !bytes.Equal(abandoned.PEM(), old.PEM()) {
		t.Error("an abandoned replacement leaves something")
	}
}

func TestNodeIDs(t *testing.T) {
	for _, id := range []NodeID{"a", "n1", "node-1.eu_west", NodeID(strings.Repeat("x", 64)), NodeID(uuid.NewString())} {
		if err := id.Check(); err != nil {
			t.Errorf("%q: %v", id, err)
		}
		if own, err := newCluster(t, cluster).issue(id, start); err != nil {
			t.Errorf("%q: %v", id, err)
		} else if c, got, err := namesOf(own.cert); c != cluster || got != id || err != nil {
			t.Errorf("%q: the certificate names %q of %s, %v", id, got, c, err)
		}
	}
	for _, id := range []NodeID{"", "-a", ".", "..", "a/b", "a b", "a%41", "ä", "a\n", NodeID(strings.Repeat("x", 65))} {
		if err := id.Check(); err == nil {
			t.Errorf("%q was accepted", id)
		}
		if _, err := NewIdentity(id, newCluster(t, cluster), nil); err == nil {
			t.Errorf("a node %q was accepted", id)
		}
	}
}

// The certificate of an authority signs nodes, and nothing below them.
func TestCertificatesAreNarrow(t *testing.T) {
	a := newCluster(t, cluster)
	node, err := a.issue("n1", start)
	if err != nil {
		t.Fatal(err)
	}
	if node.cert.IsCA || node.cert.KeyUsage != x509.KeyUsageDigitalSignature || !a.pairs[0].cert.MaxPathLenZero {
		t.Errorf("a node's certificate can sign")
	}
	if from, to := node.cert.NotBefore, node.cert.NotAfter; !from.Equal(start.Add(-24*time.Hour)) || !to.Equal(start.Add(30*24*time.Hour)) {
		t.Errorf("valid from %s to %s", from, to)
	}
	below, err := newAuthority(cluster, node).issue("n2", start) // the node signs another one
	if err != nil {
		t.Fatal(err)
	}
	if err := handshakeWith(t, a, below, node); !errors.Is(err, ErrUntrusted) {
		t.Errorf("signed by a node: %v, want ErrUntrusted", err)
	}
}

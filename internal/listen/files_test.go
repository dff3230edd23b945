package listen

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/listen/devca"
)

// writePair stores a fresh certificate and key as PEM and returns the certificate's serial number.
func writePair(t *testing.T, certPath, keyPath string) string {
	t.Helper()
	ca, err := devca.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ca.Certificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{
		certPath: {Type: "CERTIFICATE", Bytes: leaf.Certificate[0]},
		keyPath:  {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return leaf.Leaf.SerialNumber.String()
}

func TestChangedFilesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	certPath, keyPath := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := writePair(t, certPath, keyPath)
	f, err := LoadFiles(certPath, keyPath, quiet())
	if err != nil {
		t.Fatal(err)
	}
	serial := func() string {
		f.checkedAt = time.Time{} // as if the last check was long ago
		c, err := f.Certificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf.SerialNumber.String()
	}
	later := func() { // file systems may keep whole seconds only
		stamp := time.Now().Add(time.Hour)
		for _, p := range []string{certPath, keyPath} {
			if err := os.Chtimes(p, stamp, stamp); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := serial(); got != first {
		t.Errorf("serial %s, want %s", got, first)
	}
	second := writePair(t, certPath, keyPath)
	later()
	if got := serial(); got != second {
		t.Errorf("after a change: serial %s, want %s", got, second)
	}
	if err := os.WriteFile(certPath, []byte("half a fi"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := serial(); got != second {
		t.Errorf("after a broken change: serial %s, want still %s", got, second)
	}
}

func TestFilesThatDoNotBelongTogether(t *testing.T) {
	dir := t.TempDir()
	certPath, keyPath := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePair(t, certPath, keyPath)
	writePair(t, certPath, filepath.Join(dir, "other.pem"))
	if _, err := LoadFiles(certPath, keyPath, quiet()); err == nil {
		t.Error("a certificate with the key of another one was accepted")
	}
}

// The log says once a day that a certificate has expired or soon does, since clients only fail.
func TestFilesThatExpire(t *testing.T) {
	dir := t.TempDir()
	certPath, keyPath := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePair(t, certPath, keyPath)
	var text bytes.Buffer
	f, err := LoadFiles(certPath, keyPath, slog.New(slog.NewTextHandler(&text, nil)))
	if err != nil || text.Len() > 0 {
		t.Fatalf("loaded: %v, %s", err, &text)
	}
	end := f.current.Leaf.NotAfter
	life := end.Sub(f.current.Leaf.NotBefore)
	for _, x := range []struct {
		at   time.Time
		want string
	}{
		{end.Add(-life/4 - time.Second), ""},
		{end.Add(-2 * time.Second), "expires soon"},
		{end.Add(time.Second), ""}, // a line a day
		{end.Add(remindEvery), "has expired"},
	} {
		text.Reset()
		f.remind(x.at)
		if got := text.String(); !strings.Contains(got, x.want) || (got == "") != (x.want == "") {
			t.Errorf("%s before its end: got %q, want %q", end.Sub(x.at), got, x.want)
		}
	}
}

package datadir

import (
	"bytes"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/secretkey"
)

func newKey(t *testing.T) *secretkey.Key {
	t.Helper()
	k, err := secretkey.Create(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// nodeDir makes the directory of a node, with its two secrets, and returns the options that open it.
func nodeDir(t *testing.T, key *secretkey.Key) Options {
	t.Helper()
	o := Options{Dir: t.TempDir(), Program: "the test", Key: key}
	n, err := OpenNode(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trust.Create(o.Dir, n.Cluster(), time.Now(), key); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(n.Commit(), n.Close()); err != nil {
		t.Fatal(err)
	}
	return o
}

func secretsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	if err := eachSecret(dir, func(name, _ string, content []byte) error { files[name] = string(content); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(files) != len(secretFiles) {
		t.Fatalf("%d secret files, want %d", len(files), len(secretFiles))
	}
	return files
}

// opens reports whether a key decrypts both secrets of a node's directory, and these are unchanged.
func opens(t *testing.T, dir string, key *secretkey.Key, secret identity.CellSecret) bool {
	t.Helper()
	got, id, err := identity.ReadSecretFile(dir, key)
	if err == nil && got != secret {
		t.Error("the directory has another secret")
	}
	if err == nil {
		_, err = trust.Load(dir, id, key)
	}
	if _, wrong := errors.AsType[*secretkey.Wrong](err); err != nil && !wrong {
		t.Fatal(err)
	}
	return err == nil
}

// A directory gets a key, then another one, and then none. A crash between its files leaves a directory that neither key opens, and repeating the change completes it.
func TestChangeOfTheKey(t *testing.T) {
	first, second := newKey(t), newKey(t)
	for _, c := range []struct {
		name     string
		from, to *secretkey.Key
	}{{"to a key", nil, first}, {"to another key", first, second}, {"back to none", first, nil}} {
		for _, crash := range []string{"", string(Secret), trust.FileName} {
			o := nodeDir(t, c.from)
			secret, err := identity.ReadCellSecret(o.Dir, c.from)
			if err != nil {
				t.Fatal(err)
			}
			before := secretsOf(t, o.Dir)
			for name, content := range before {
				if secretkey.Sealed([]byte(content)) != (c.from != nil) {
					t.Fatalf("%s, %s before the change: encrypted %t", c.name, name, c.from == nil)
				}
			}
			if n, err := ChangeKey(o, c.to); n != 2 || err != nil {
				t.Fatalf("%s: %d files, %v", c.name, n, err)
			}
			want := 0
			if crash != "" { // before it has written this file
				if err := os.WriteFile(filepath.Join(o.Dir, crash), []byte(before[crash]), 0o600); err != nil {
					t.Fatal(err)
				}
				want = 1
			}
			if n, err := ChangeKey(o, c.to); n != want || err != nil || !opens(t, o.Dir, c.to, secret) {
				t.Errorf("%s, a crash before %q: %d files written, want %d, %v", c.name, crash, n, want, err)
			}
			if c.from != nil && c.to != nil && opens(t, o.Dir, c.from, secret) {
				t.Errorf("%s: the old key opens the directory still", c.name)
			}
		}
	}
}

// A process that was killed while it replaced a secret has left it under a temporary name. Encrypting the directory removes that.
func TestSecretsLeftByAKill(t *testing.T) {
	key := newKey(t)
	for name, encrypts := range map[string]func(o Options) error{
		"a change of the key": func(o Options) error { _, err := ChangeKey(o, key); return err },
		"a start with a key": func(o Options) error {
			o.Key = key
			n, err := OpenMember(o)
			if err != nil {
				return err
			}
			return errors.Join(n.Commit(), n.Close())
		},
	} {
		o := nodeDir(t, nil)
		var left []string
		for name, content := range secretsOf(t, o.Dir) {
			path := filepath.Join(o.Dir, "."+name+".123456")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			left = append(left, path)
		}
		if err := encrypts(o); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, path := range left {
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("after %s, %s: %v", name, filepath.Base(path), err)
			}
		}
	}
}

// Nothing is changed with a wrong key, or while the directory is open.
func TestRefusedChangeOfTheKey(t *testing.T) {
	right, wrong, next := newKey(t), newKey(t), newKey(t)
	o := nodeDir(t, right)
	before := secretsOf(t, o.Dir)
	for _, key := range []*secretkey.Key{nil, wrong} {
		given := o
		given.Key = key
		for _, to := range []*secretkey.Key{nil, next} {
			n, err := ChangeKey(given, to)
			if _, ok := errors.AsType[*secretkey.Wrong](err); !ok || n != 0 {
				t.Errorf("from %v to %v: %d files, %v", key, to, n, err)
			}
		}
		_, err := OpenNode(given, nil)
		if w, ok := errors.AsType[*secretkey.Wrong](err); !ok || w.Sealed != right.ID() {
			t.Errorf("opened with %v: %v", key, err)
		}
		if _, err := OpenMember(given); err == nil {
			t.Errorf("opened for a change with %v", key)
		}
	}
	n, err := OpenMember(o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = ChangeKey(o, next)
	if _, ok := errors.AsType[*embeddb.InUse](err); !ok {
		t.Errorf("while the directory is open: %v", err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(before, secretsOf(t, o.Dir)) {
		t.Error("a refused change has changed a file")
	}
	damaged := bytes.Clone([]byte(before[trust.FileName]))
	damaged[len(damaged)-1] ^= 1
	if err := os.WriteFile(filepath.Join(o.Dir, trust.FileName), damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := ChangeKey(o, next); n != 0 || !errors.Is(err, secretkey.ErrDamaged) {
		t.Errorf("with a damaged file: %d files, %v", n, err)
	}
	if _, err := ChangeKey(Options{Dir: t.TempDir(), Key: right}, next); !errors.Is(err, ErrNoSecrets) {
		t.Errorf("an empty directory: %v", err)
	}
}

// A directory whose secrets are not encrypted gets them encrypted by a start with a key, and a node that joins with its own key stores them with that.
func TestStartWithAKey(t *testing.T) {
	key := newKey(t)
	o := nodeDir(t, nil)
	secret, err := identity.ReadCellSecret(o.Dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(Options{Dir: o.Dir, Key: key, Log: slog.New(slog.DiscardHandler)}, &member{Complete: true})
	if err := n.Commit(); err != nil {
		t.Fatal(err)
	}
	if !opens(t, o.Dir, key, secret) || opens(t, o.Dir, nil, secret) {
		t.Error("the start has not encrypted the secrets")
	}

	joins := Options{Dir: t.TempDir(), Key: newKey(t)}
	j, err := OpenNode(joins, func(string) (uuid.UUID, identity.CellSecret, error) { return uuid.New(), secret, nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.ReadCellSecret(joins.Dir, nil); err == nil {
		t.Error("the node that joined has stored the secret without encryption")
	}
	if got, err := identity.ReadCellSecret(joins.Dir, joins.Key); err != nil || got != secret {
		t.Errorf("the secret of the node that joined: %v", err)
	}
}

// A lost key means a lost secret. Only the operator of a single machine may accept that.
func TestLostKey(t *testing.T) {
	dir := furnished(t)
	o := Options{Dir: dir, Program: "the test"}
	if _, err := ChangeKey(o, newKey(t)); err != nil {
		t.Fatal(err)
	}
	_, err := open(t, dir)
	if _, ok := errors.AsType[*secretkey.Wrong](err); !ok || !strings.Contains(err.Error(), "--accept-loss cell.secret") {
		t.Fatalf("without the key: %v", err)
	}
	if _, err := open(t, dir, Archive); err == nil {
		t.Error("the loss of another part was accepted")
	}
	h := mustOpen(t, dir, Secret)
	defer h.close()
	if h.keyWorks() || !h.finds("p0") {
		t.Errorf("with a new secret: the access key works: %t, the placement is found: %t", h.keyWorks(), h.finds("p0"))
	}
}

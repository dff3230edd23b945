package secretkey

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func create(t *testing.T) (*Key, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	k, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	return k, path
}

func TestSealAndOpen(t *testing.T) {
	k, path := create(t)
	again, err := Read(path, "")
	if err != nil || !again.Same(k) {
		t.Fatalf("read again: %v, %v", again, err)
	}
	content := []byte("the secret")
	sealed := k.Seal("a", content)
	if bytes.Contains(sealed, content) || !Sealed(sealed) || Sealed(content) {
		t.Fatalf("sealed: %q", sealed)
	}
	if bytes.Equal(sealed, k.Seal("a", content)) {
		t.Error("two seals of one content are equal: the nonce is not random")
	}
	if clear, err := again.Open("x", "a", sealed); err != nil || !bytes.Equal(clear, content) {
		t.Errorf("opened: %q, %v", clear, err)
	}
	if _, err := again.Open("x", "b", sealed); !errors.Is(err, ErrDamaged) {
		t.Errorf("opened under another name: %v", err)
	}
	other, _ := create(t)
	for _, wrong := range []*Key{nil, other} {
		_, err := wrong.Open("x", "a", sealed)
		if w, ok := errors.AsType[*Wrong](err); !ok || w.Sealed != k.ID() || w.Given != wrong.ID() {
			t.Errorf("opened with %v: %v", wrong, err)
		}
	}
	for _, any := range []*Key{nil, k} {
		if clear, err := any.Open("x", "a", content); err != nil || !bytes.Equal(clear, content) {
			t.Errorf("what is not encrypted: %q, %v", clear, err)
		}
	}
	if got := (*Key)(nil).Seal("a", content); !bytes.Equal(got, content) {
		t.Errorf("sealed without a key: %q", got)
	}
}

// Every changed byte and every truncated file is an error, and never yields other content.
func TestDamage(t *testing.T) {
	k, _ := create(t)
	sealed := k.Seal("a", []byte("the secret"))
	for i := range sealed {
		damaged := bytes.Clone(sealed)
		damaged[i] ^= 0x10
		if clear, err := k.Open("x", "a", damaged); err == nil && Sealed(damaged) {
			t.Errorf("byte %d: %q", i, clear)
		}
		if clear, err := k.Open("x", "a", sealed[:i]); err == nil && i >= len(magic) {
			t.Errorf("%d bytes: %q", i, clear)
		}
	}
}

func TestKeyFiles(t *testing.T) {
	digits := strings.Repeat("0a", keySize)
	for _, c := range []struct {
		name, content string
		mode          fs.FileMode
		want          string // in the error; empty: none
	}{
		{"as created", digits + "\n", 0o600, ""},
		{"of openssl rand -hex 32, of systemd", digits, 0o440, ""},
		{"upper case", strings.ToUpper(digits), 0o400, ""},
		{"readable by others", digits, 0o604, "chmod 600"},
		{"writable by its group", digits, 0o620, "chmod 600"},
		{"empty", "", 0o600, "0 characters"},
		{"short", digits[1:], 0o600, "63 characters"},
		{"huge", strings.Repeat("a", 1<<20), 0o600, "characters"},
		{"not hexadecimal", "xyzzy" + digits[5:], 0o600, "hexadecimal"},
	} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS == "windows" && c.mode&refusedBits != 0 {
			continue
		}
		_, err := Read(path, "")
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in the error", c.name, err, c.want)
		}
		if err != nil && (strings.Contains(err.Error(), "0a0a") || strings.Contains(err.Error(), "xyzzy")) {
			t.Errorf("%s: the error repeats the key: %v", c.name, err)
		}
	}
	if k, err := Read("", "data"); k != nil || err != nil {
		t.Errorf("no file: %v, %v", k, err)
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none"), ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestAKeyInTheDataDirectory(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "..key")
	if _, err := Create(inside); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(inside, link); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{inside, link} {
		if _, err := Read(path, dir); err == nil || !strings.Contains(err.Error(), "outside") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Read(inside, filepath.Join(dir, "none")); err != nil {
		t.Errorf("beside a directory that is not there yet: %v", err)
	}
	if _, err := Create(inside); err == nil || !strings.Contains(err.Error(), "only copy") {
		t.Errorf("over a key: %v", err)
	}
}

func TestNothingPrintsTheKey(t *testing.T) {
	k, path := create(t)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		if text := fmt.Sprintf(form, k); strings.Contains(text, string(content[:8])) || !strings.Contains(text, k.ID()) {
			t.Errorf("%s prints %s", form, text)
		}
	}
}

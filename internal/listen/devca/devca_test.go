package devca

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestAuthorityIsKept(t *testing.T) {
	dir := t.TempDir()
	first, err := Open(dir, "games.example", "192.0.2.7", "")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if string(first.PEM()) != string(again.PEM()) {
		t.Error("the second start made another authority, which no client trusts")
	}
	if info, err := os.Stat(filepath.Join(dir, keyFile)); err != nil {
		t.Error(err)
	} else if got := info.Mode().Perm(); runtime.GOOS != "windows" && got != 0o600 {
		t.Errorf("key file mode %o, want 600", got)
	}

	leaf, err := first.Certificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "games.example", "192.0.2.7"} {
		_, err := leaf.Leaf.Verify(x509.VerifyOptions{Roots: again.Pool(), DNSName: name})
		if err != nil {
			t.Errorf("certificate for %s: %v", name, err)
		}
	}
	if same, err := first.Certificate(nil); err != nil || same != leaf {
		t.Errorf("a second certificate was issued for no reason (%v)", err)
	}
}

func TestTrustTextNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir); err == nil {
		t.Error("Load made an authority; it must only show one")
	}
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if text := a.TrustText(); !strings.Contains(text, "SSL_CERT_FILE="+a.Path()) {
		t.Errorf("no SSL_CERT_FILE line for %s in:\n%s", a.Path(), text)
	}
}

package authorities

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func newAuthority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}, &x509.Certificate{}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// A file with a damaged certificate is refused as a whole, by its name and the position of the certificate.
func TestDamagedFiles(t *testing.T) {
	one, other := newAuthority(t), newAuthority(t)
	path := filepath.Join(t.TempDir(), "ca.pem")
	if _, err := Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
	for content, want := range map[string]string{
		string(one): "", string(one) + "# the next one\n" + string(other): "",
		string(one) + string(other[:100]):                                                                          "after number 1",
		string(bytes.Replace(one, []byte("MI"), []byte("!!"), 1)) + string(other):                                  "after number 0",
		string(slices.Concat(one, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), other)): "certificate 2",
		"":    "at least one certificate",
		"x\n": "at least one certificate",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		n, err := Add(pool, path)
		switch {
		case want == "" && (err != nil || n != strings.Count(content, "BEGIN")):
			t.Errorf("%d authorities, %v in %s", n, err, content)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) || !pool.Equal(x509.NewCertPool())):
			t.Errorf("%v, want %q, for %s", err, want, content)
		}
	}
}

// Package authorities reads certificate authorities from PEM files. It accepts a file as a whole or not at all: crypto/x509 skips what it cannot
// read, and a connection then fails much later, with an error that does not name the file.
package authorities

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
)

// Add adds the certificates of a file to a pool and returns their number. Its errors name the file, and the certificate by its position.
func Add(pool *x509.CertPool, path string) (n int, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	all, err := parse(content)
	if err != nil {
		return 0, fmt.Errorf("authorities %s: %w", path, err)
	}
	for _, authority := range all {
		pool.AddCert(authority)
	}
	return len(all), nil
}

// Read returns a pool with the certificates of a file alone. Its errors are those of Add.
func Read(path string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	_, err := Add(pool, path)
	return pool, err
}

func parse(content []byte) (all []*x509.Certificate, err error) {
	begin := []byte("-----BEGIN")
	n := 0
	for {
		block, rest := pem.Decode(content)
		if block == nil {
			break
		}
		if bytes.Count(content[:len(content)-len(rest)], begin) > 1 { // pem.Decode skips blocks that it cannot read
			return nil, fmt.Errorf("the certificate after number %d is damaged", n)
		}
		content = rest
		if block.Type != "CERTIFICATE" {
			continue
		}
		n++
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", n, err)
		}
		all = append(all, authority)
	}
	switch {
	case bytes.Contains(content, begin):
		return nil, fmt.Errorf("the certificate after number %d is damaged or cut off", n)
	case n == 0:
		return nil, errors.New("want at least one certificate in PEM")
	}
	return all, nil
}

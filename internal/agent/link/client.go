package link

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
)

// Trust reads certificate authorities from a PEM file and adds them to those of the system. Without a file it returns nil: those of the system alone.
func Trust(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a machine may have none of its own
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate; want one in PEM form", file)
	}
	return pool, nil
}

// TLS is the configuration of TLS for an agent's connections; nil: the defaults.
func TLS(trust *x509.CertPool) *tls.Config {
	if trust == nil {
		return nil
	}
	return &tls.Config{RootCAs: trust}
}

// Client is the HTTP client of an agent: it joins, signs in, uploads and fetches with it, and trusts what the link trusts.
func Client(trust *x509.CertPool) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = TLS(trust)
	return &http.Client{Transport: t}
}

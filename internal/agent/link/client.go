package link

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
)

// Trust reads certificate authorities from a PEM file and adds them to the system's. Without a file it returns nil, which means only the system's.
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
		pool = x509.NewCertPool() // the machine may have no system authorities
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate; want one in PEM form", file)
	}
	return pool, nil
}

// TLS returns the TLS configuration of an agent's connections; nil: the defaults.
func TLS(trust *x509.CertPool) *tls.Config {
	if trust == nil {
		return nil
	}
	return &tls.Config{RootCAs: trust}
}

// Client returns the agent's HTTP client, for joining, signing in, uploads and downloads. It trusts the same authorities as the link.
func Client(trust *x509.CertPool) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = TLS(trust)
	return &http.Client{Transport: t}
}

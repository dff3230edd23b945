package link

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"

	"github.com/musterhq/muster/internal/authorities"
)

// Trust reads certificate authorities from a PEM file and adds them to the system's. Without a file it returns nil, which means only the system's.
func Trust(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // the machine may have no system authorities
	}
	_, err = authorities.Add(pool, file)
	return pool, err
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

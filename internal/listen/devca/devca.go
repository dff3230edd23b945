// Package devca is a certificate authority for development machines: with it, game servers can use TLS with a service that
// was started a minute ago, without a purchase or configuration.
//
// C++ and Unreal game servers use TLS for every URL and verify nothing. The Go SDK verifies certificates and must be
// told to trust the authority; TrustText explains how.
package devca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/atomicfile"
)

const (
	certFile = "dev-ca.pem"
	keyFile  = "dev-ca-key.pem"

	// authorityLife is long because trusting it is manual work.
	authorityLife = 10 * 365 * 24 * time.Hour

	// leafLife stays under the 825 days beyond which Apple's verifier refuses certificates of private authorities.
	leafLife = 365 * 24 * time.Hour

	// leafRenew is how long before its expiry a leaf is replaced, for services that run for a year.
	leafRenew = 30 * 24 * time.Hour

	// backdate allows for clients whose clock is behind.
	backdate = time.Hour
)

// Authority signs certificates for this service's own names.
type Authority struct {
	certPath string
	certPEM  []byte
	cert     *x509.Certificate
	key      *ecdsa.PrivateKey
	names    []string // DNS names and IP addresses of the leaf

	mu   sync.Mutex
	leaf *tls.Certificate
}

// Open loads the authority from dir, or creates one there if there is none. Leaves are issued for the local machine and
// for the given hosts, which are names or IP addresses; empty ones are ignored.
func Open(dir string, hosts ...string) (*Authority, error) {
	a := &Authority{certPath: filepath.Join(dir, certFile), names: []string{"localhost", "127.0.0.1", "::1"}}
	for _, h := range hosts {
		if h != "" && !slices.Contains(a.names, h) {
			a.names = append(a.names, h)
		}
	}
	keyPath := filepath.Join(dir, keyFile)
	err := a.load(keyPath)
	if errors.Is(err, fs.ErrNotExist) {
		if err = a.create(keyPath); err == nil {
			err = a.load(keyPath)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("development certificate authority in %s: %w", dir, err)
	}
	return a, nil
}

// Load opens an existing authority in order to show it.
func Load(dir string) (*Authority, error) {
	a := &Authority{certPath: filepath.Join(dir, certFile)}
	if err := a.load(filepath.Join(dir, keyFile)); err != nil {
		return nil, fmt.Errorf("development certificate authority in %s (`muster serve --dev` makes it): %w", dir, err)
	}
	return a, nil
}

// Path returns the file of the authority's certificate, for programs that take a file.
func (a *Authority) Path() string { return a.certPath }

// PEM returns the authority's certificate without its key.
func (a *Authority) PEM() []byte { return slices.Clone(a.certPEM) }

// Pool returns a pool that trusts only this authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Certificate returns the service's certificate. It issues one on first use and before the last one expires. It ignores the
// requested name: the C++ SDK sends IP literals, others send nothing.
func (a *Authority) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if a.leaf != nil && now.Before(a.leaf.Leaf.NotAfter.Add(-leafRenew)) {
		return a.leaf, nil
	}
	leaf, err := a.issue(now)
	if err != nil {
		return nil, fmt.Errorf("issue development certificate: %w", err)
	}
	a.leaf = leaf
	return leaf, nil
}

func (a *Authority) issue(now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "Muster development service"},
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(leafLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range a.names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key, Leaf: parsed}, nil
}

func (a *Authority) load(keyPath string) error {
	certPEM, err := os.ReadFile(a.certPath)
	if err != nil {
		return err
	}
	keyPEM, err := os.ReadFile(keyPath)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return fmt.Errorf("%s: key is a %T, want ECDSA", keyPath, pair.PrivateKey)
	}
	if time.Now().After(pair.Leaf.NotAfter) {
		return fmt.Errorf("%s expired on %s; remove it and %s for a new one", a.certPath, pair.Leaf.NotAfter, keyPath)
	}
	a.certPEM, a.cert, a.key = certPEM, pair.Leaf, key
	return nil
}

// create writes the key first: if the certificate is missing, the next start creates both again.
func (a *Authority) create(keyPath string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := newSerial()
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "this machine" // only a label, for people with several such authorities in a trust store
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "Muster development CA on " + host},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(keyPath, encode("PRIVATE KEY", keyDER), 0o600); err != nil {
		return err
	}
	return atomicfile.Write(a.certPath, encode("CERTIFICATE", der), 0o644)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}

package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	// backdate is how long before its issue a certificate becomes valid, which tolerates nodes whose clock is behind.
	backdate = 24 * time.Hour

	// certificateLife is the validity of a node's certificate after its issue. The node replaces it after half of that.
	certificateLife = 30 * 24 * time.Hour

	scheme = "muster"
)

// never is the expiry of certificates that do not expire. RFC 5280, 4.1.2.5. If an authority expired, its cluster would fail on that day.
var never = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// Authority is what the members of a cluster trust. It is immutable; its methods return new ones.
type Authority struct {
	cluster uuid.UUID
	pairs   []pair // one, or two during a replacement; all are trusted, the first one signs
	pool    *x509.CertPool
}

type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Fingerprint is the SHA-256 of an authority's certificate.
type Fingerprint [sha256.Size]byte

// New creates the authority of a new cluster.
func New(cluster uuid.UUID, now time.Time) (*Authority, error) {
	first, err := newPair(cluster, now)
	if err != nil {
		return nil, fmt.Errorf("make the cluster's authority: %w", err)
	}
	return newAuthority(cluster, first), nil
}

func newAuthority(cluster uuid.UUID, pairs ...pair) *Authority {
	a := &Authority{cluster: cluster, pairs: pairs, pool: x509.NewCertPool()}
	for _, p := range pairs {
		a.pool.AddCert(p.cert)
	}
	return a
}

// Cluster returns the id of the cluster.
func (a *Authority) Cluster() uuid.UUID { return a.cluster }

// Fingerprint returns the fingerprint of the signing certificate.
func (a *Authority) Fingerprint() Fingerprint { return sha256.Sum256(a.pairs[0].cert.Raw) }

// Fingerprints returns those of all trusted certificates, the signing one first.
func (a *Authority) Fingerprints() (all []Fingerprint) {
	for _, p := range a.pairs {
		all = append(all, sha256.Sum256(p.cert.Raw))
	}
	return all
}

// String returns the fingerprint in hexadecimal.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// Replacement is the progress of replacing an authority.
type Replacement int

const (
	NotReplaced Replacement = iota // one certificate is trusted, and signs
	NextTrusted                    // the next one is trusted, too
	NextSigns                      // and signs; certificates of the one before are still trusted
)

// Replacing returns the progress of replacing the authority.
func (a *Authority) Replacing() Replacement {
	switch {
	case len(a.pairs) == 1:
		return NotReplaced
	case a.pairs[0].cert.NotBefore.Before(a.pairs[1].cert.NotBefore):
		return NextTrusted
	}
	return NextSigns
}

// ErrReplacement is returned for a step of a replacement that is not the next one.
var ErrReplacement = errors.New("wrong step in the replacement of the cluster's authority")

// WithNext also trusts a new certificate: the first step of a replacement.
func (a *Authority) WithNext(now time.Time) (*Authority, error) {
	if len(a.pairs) > 1 {
		return nil, fmt.Errorf("%w: another replacement has begun; finish or abandon it", ErrReplacement)
	}
	// The next certificate must be later than this one, whatever the clocks of the nodes that made them, because Replacing compares them.
	// Certificates have a resolution of one second.
	if first := a.pairs[0].cert.NotBefore.Add(backdate + time.Second); now.Before(first) {
		now = first
	}
	next, err := newPair(a.cluster, now)
	if err != nil {
		return nil, fmt.Errorf("make the next authority of the cluster: %w", err)
	}
	return newAuthority(a.cluster, a.pairs[0], next), nil
}

// Switched signs with the other certificate: the second step.
func (a *Authority) Switched() (*Authority, error) {
	if len(a.pairs) == 1 {
		return nil, fmt.Errorf("%w: there is no next authority", ErrReplacement)
	}
	return newAuthority(a.cluster, a.pairs[1], a.pairs[0]), nil
}

// Alone trusts only the certificate that signs: the third step.
func (a *Authority) Alone() *Authority { return newAuthority(a.cluster, a.pairs[0]) }

func newPair(cluster uuid.UUID, now time.Time) (pair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "Muster cluster " + cluster.String()},
		URIs:                  []*url.URL{{Scheme: scheme, Host: cluster.String()}},
		NotBefore:             now.Add(-backdate),
		NotAfter:              never,
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	return sign(template, nil)
}

// issue signs the certificate of a node.
func (a *Authority) issue(node NodeID, now time.Time) (pair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: string(node), Organization: []string{"Muster cluster " + a.cluster.String()}},
		URIs:                  []*url.URL{{Scheme: scheme, Host: a.cluster.String(), Path: "/" + string(node)}},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(certificateLife),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	return sign(template, &a.pairs[0])
}

// sign generates a key and its certificate, signed by an authority, or self-signed without one.
func sign(template *x509.Certificate, by *pair) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	if by == nil {
		by = &pair{template, key}
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
	if err != nil {
		return pair{}, err
	}
	cert, err := x509.ParseCertificate(der)
	return pair{cert, key}, err
}

// NodeID identifies a node of a cluster permanently: no other node gets it later.
type NodeID string

const nodeIDMax = 64 // bytes

// Check returns what is wrong with an id: it has at most 64 letters, digits, '-', '_' and '.', and begins with a letter or digit.
func (id NodeID) Check() error {
	const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	if id == "" || len(id) > nodeIDMax || !strings.Contains(alphanumeric, string(id[:1])) || strings.Trim(string(id), alphanumeric+"-_.") != "" {
		return fmt.Errorf("node id %.80q: want 1 to %d letters, digits, '-', '_' and '.', a letter or digit first", string(id), nodeIDMax)
	}
	return nil
}

// namesOf returns the cluster and the node that a certificate names; the certificate of an authority names no node.
func namesOf(cert *x509.Certificate) (cluster uuid.UUID, node NodeID, err error) {
	if len(cert.URIs) != 1 {
		return uuid.Nil, "", fmt.Errorf("the certificate has %d URIs; want one", len(cert.URIs))
	}
	uri := cert.URIs[0].String()
	rest, ok := strings.CutPrefix(uri, scheme+"://")
	id, name, named := strings.Cut(rest, "/")
	if cluster, err = uuid.Parse(id); !ok || err != nil || cluster.String() != id {
		return uuid.Nil, "", fmt.Errorf("the certificate names %.80q; want %s://CLUSTER or %[2]s://CLUSTER/NODE", uri, scheme)
	}
	if node = NodeID(name); named {
		err = node.Check()
	}
	return cluster, node, err
}

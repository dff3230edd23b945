package clientcert

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/domain/access"
)

// Limits on the certificates of a client, before they are verified.
const (
	certificateBytesMax = 8 << 10 // of each, in DER
	chainMax            = 5       // intermediate certificates
	rsaBitsLeast        = 2048
	rsaBitsMost         = 8192 // verifying with a larger key would take too long
)

// Problem is the kind of mistake in a request.
type Problem uint8

// The problems that clients of Roles Anywhere distinguish.
const (
	Malformed    Problem = iota // the request is malformed
	Clock                       // its time is too far from now
	Untrusted                   // no authority signed the certificate for this purpose, or the certificate's key did not sign the request
	Expired                     // the certificate has expired, or is not valid yet
	Unauthorized                // the certificate is valid, but its names grant no role
)

// Refused is the error of a refused request. Its text is for the client.
type Refused struct {
	Problem Problem
	text    string
	cause   error
}

func (r *Refused) Error() string { return r.text }

// Unwrap returns the cause, which may be logged together with the text; nil: none.
func (r *Refused) Unwrap() error { return r.cause }

func refuse(problem Problem, format string, args ...any) error {
	return &Refused{problem, fmt.Sprintf(format, args...), nil}
}

// Machine is a backend that proved its identity with a certificate.
type Machine struct {
	Authority   string // name in the settings
	Subject     string // the name in the certificate, of the kind that the settings select
	Fingerprint string // SHA-256 of the certificate, in lower-case hexadecimal
	Serial      string // in lower-case hexadecimal
	Expires     time.Time
	Region      string // in the client's signature

	rules []*rule // that match
}

// Holder returns the machine's name as the holder of temporary credentials.
func (m *Machine) Holder() string { return m.Authority + "/" + m.Subject }

// May returns how long credentials with a role may be valid, and the machine's groups in it; 0: no rule grants this role. The first rule that grants the role decides.
func (m *Machine) May(role access.Role) (most time.Duration, groups []string) {
	for _, r := range m.rules {
		if r.Roles&access.Roles(role) != 0 {
			return r.Life, r.groups
		}
	}
	return 0, nil
}

// machine verifies a certificate and finds the rules that match it.
func (a *authority) machine(leaf *x509.Certificate, chain []*x509.Certificate, now time.Time) (*Machine, error) {
	switch {
	case leaf.IsCA:
		return nil, refuse(Untrusted, "The certificate is an authority's, want a client's.")
	case leaf.Version != 3:
		return nil, refuse(Untrusted, "The certificate has version %d, want 3.", leaf.Version)
	case leaf.KeyUsage != 0 && leaf.KeyUsage&x509.KeyUsageDigitalSignature == 0:
		return nil, refuse(Untrusted, "The certificate is not for digital signatures.")
	case !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth):
		return nil, refuse(Untrusted, "The certificate is not for client authentication.")
	}
	intermediates := x509.NewCertPool()
	for _, c := range chain {
		intermediates.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: a.roots.Pool(), Intermediates: intermediates, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return nil, &Refused{Expired, "The certificate, or one of its authorities, has expired or is not valid yet.", err}
	}
	if err != nil {
		return nil, &Refused{Untrusted, "The certificate was not issued by this authority for client authentication.", err}
	}
	names := a.kind.names(leaf)
	if len(names) != 1 {
		return nil, refuse(Unauthorized, "The certificate has %d names of the kind %s, want one.", len(names), a.kind)
	}
	sum := sha256.Sum256(leaf.Raw)
	m := &Machine{Authority: a.name, Subject: names[0], Fingerprint: hex.EncodeToString(sum[:]), Serial: leaf.SerialNumber.Text(16), Expires: leaf.NotAfter}
	if m.Subject == "" || len(m.Holder()) > access.HolderMax || !utf8.ValidString(m.Subject) || strings.ContainsFunc(m.Subject, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return nil, refuse(Unauthorized, "The name in the certificate is %.100q, want 1 to %d bytes that can be shown.", m.Subject, access.HolderMax-len(a.name)-1)
	}
	for n := range a.rules {
		if a.rules[n].matches(m.Subject, leaf) {
			m.rules = append(m.rules, &a.rules[n])
		}
	}
	return m, nil
}

// oidCommonName is the object identifier of a common name. Source: X.520.
const oidCommonName = "2.5.4.3"

// names returns all names of the kind in a certificate.
func (k nameKind) names(c *x509.Certificate) (all []string) {
	switch k {
	case dnsName:
		return c.DNSNames
	case emailName:
		return c.EmailAddresses
	case uriName:
		for _, u := range c.URIs {
			all = append(all, u.String())
		}
		return all
	}
	for _, x := range c.Subject.Names { // Subject.CommonName has only the last of them
		if name, ok := x.Value.(string); ok && x.Type.String() == oidCommonName {
			all = append(all, name)
		}
	}
	return all
}

// attributeOf has the attributes of a certificate's subject that rules can require.
var attributeOf = map[string]func(*x509.Certificate) []string{
	"O":  func(c *x509.Certificate) []string { return c.Subject.Organization },
	"OU": func(c *x509.Certificate) []string { return c.Subject.OrganizationalUnit },
}

// matches reports whether a rule applies to a certificate. If the certificate has an attribute several times, the rule must allow each value.
func (r *rule) matches(subject string, c *x509.Certificate) bool {
	for name, values := range r.attributes {
		has := attributeOf[name](c)
		if len(has) == 0 || slices.ContainsFunc(has, func(x string) bool { return !slices.Contains(values, x) }) {
			return false
		}
	}
	return r.Names(subject)
}

// parseCertificate parses a client's certificate. It refuses keys that would be expensive to verify with.
func parseCertificate(der []byte) (*x509.Certificate, error) {
	if len(der) > certificateBytesMax {
		return nil, refuse(Malformed, "A certificate has %d bytes, want at most %d.", len(der), certificateBytesMax)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, &Refused{Malformed, "A certificate cannot be read.", err}
	}
	switch key := c.PublicKey.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < rsaBitsLeast || bits > rsaBitsMost {
			return nil, refuse(Untrusted, "A certificate has an RSA key of %d bits, want %d to %d.", bits, rsaBitsLeast, rsaBitsMost)
		}
	case *ecdsa.PublicKey, ed25519.PublicKey:
	default:
		return nil, refuse(Untrusted, "A certificate has a key that is not one of RSA, ECDSA or Ed25519.")
	}
	return c, nil
}

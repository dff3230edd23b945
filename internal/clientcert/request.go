package clientcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/configfile"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/sigv4"
)

// The forms of a signed request. Source: the user guide of IAM Roles Anywhere, on the signing process of CreateSession.
const (
	Path = "/sessions"

	service      = "rolesanywhere"
	withRSA      = "AWS4-X509-RSA-SHA256"
	withECDSA    = "AWS4-X509-ECDSA-SHA256"
	headerOfCert = "X-Amz-X509"
	headerChain  = "X-Amz-X509-Chain"

	signedHeadersMax = 64
	signatureMax     = 2 * rsaBitsMost / 8 // hexadecimal digits
)

// authorization is a parsed Authorization header.
type authorization struct {
	sigv4.Authorization
	algorithm string
	signature []byte
}

func parseAuthorization(header string) (a authorization, err error) {
	algorithm, rest, _ := strings.Cut(header, " ")
	if algorithm != withRSA && algorithm != withECDSA {
		return a, refuse(Malformed, "The Authorization header begins with %s, want %s or %s.", excerpt.Short(algorithm), withRSA, withECDSA)
	}
	a.algorithm = algorithm
	var credential, signature string
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Credential":
			credential = value
		case "SignedHeaders":
			a.SignedHeaders = value
		case "Signature":
			signature = value
		}
	}
	var ok bool
	if a.Credential, ok = sigv4.ParseCredential(credential); !ok || !sigv4.PlainRegion(a.Region) || a.Service != service {
		return a, refuse(Malformed, "The Credential of the Authorization header is %s, want SERIAL/YYYYMMDD/REGION/%s/aws4_request.", excerpt.Short(credential), service)
	}
	if strings.Count(a.SignedHeaders, ";") >= signedHeadersMax {
		return a, refuse(Malformed, "The Authorization header signs more than %d headers.", signedHeadersMax)
	}
	if a.signature, err = hex.DecodeString(signature); err != nil || len(signature) == 0 || len(signature) > signatureMax {
		return a, refuse(Malformed, "The Signature of the Authorization header has %d characters, want up to %d hexadecimal digits.", len(signature), signatureMax)
	}
	return a, nil
}

// Verify returns the machine that signed a request. authority is the name of its authority in the settings. The error is a *Refused.
func (x *Authorities) Verify(r *http.Request, body []byte, authority string) (*Machine, error) {
	a, err := parseAuthorization(r.Header.Get("Authorization"))
	if err != nil {
		return nil, err
	}
	if err := x.checkHead(r, &a); err != nil {
		return nil, err
	}
	leaf, chain, err := certificates(r)
	if err != nil {
		return nil, err
	}
	if serial, ok := new(big.Int).SetString(a.KeyID, 10); len(a.KeyID) > 64 || !ok || serial.Cmp(leaf.SerialNumber) != 0 {
		return nil, refuse(Malformed, "The Credential names the serial number %s, want that of the certificate in decimal digits.", excerpt.Short(a.KeyID))
	}
	trusted := x.byName[authority]
	if trusted == nil {
		return nil, refuse(Untrusted, "There is no trust anchor %s.", excerpt.Short(authority))
	}
	m, err := trusted.machine(leaf, chain, x.now())
	if err != nil {
		return nil, err
	}
	if !a.signedBy(leaf.PublicKey, stringToSign(r, body, &a)) {
		return nil, refuse(Untrusted, "The request was not signed with the certificate's key.")
	}
	m.Region = a.Region
	return m, nil
}

// checkHead checks the values that a signature must cover. It refuses a request that was signed for another service, because its receiver there could forward it here.
func (x *Authorities) checkHead(r *http.Request, a *authorization) error {
	date := r.Header.Get("X-Amz-Date")
	signed, ok := sigv4.ParseTime(date)
	if !ok || a.Day != date[:8] {
		return refuse(Malformed, "The header X-Amz-Date is %s, want a time such as 20261126T120000Z on the day of the Credential.", excerpt.Short(date))
	}
	must := []string{"host", "x-amz-date", "x-amz-x509"}
	if r.Header.Get(headerChain) != "" {
		must = append(must, "x-amz-x509-chain")
	}
	for _, name := range must {
		if !a.Signs(name) {
			return refuse(Malformed, "The header %s is not signed.", name)
		}
	}
	if now := x.now(); signed.Before(now.Add(-sigv4.ClientSkew)) || signed.After(now.Add(sigv4.ClientSkew)) {
		return refuse(Clock, "The request was signed at %s, want a time within %v of %s.", date, sigv4.ClientSkew, now.UTC().Format(sigv4.TimeForm))
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if !slices.Contains(x.hosts, strings.ToLower(strings.Trim(host, "[]"))) {
		return refuse(Untrusted, "The request is signed for the host %s, want one of the hosts in the settings.", excerpt.Short(host))
	}
	return nil
}

// certificates reads the certificate of a request and its intermediate certificates.
func certificates(r *http.Request) (leaf *x509.Certificate, chain []*x509.Certificate, err error) {
	for _, name := range []string{headerOfCert, headerChain} {
		if len(r.Header.Values(name)) > 1 {
			return nil, nil, refuse(Malformed, "The request has several headers %s, want one.", name)
		}
	}
	if leaf, err = readHeader(r.Header.Get(headerOfCert)); err != nil {
		return nil, nil, err
	}
	text := r.Header.Get(headerChain)
	if text == "" {
		return leaf, nil, nil
	}
	if strings.Count(text, ",") >= chainMax {
		return nil, nil, refuse(Malformed, "The header %s has more than %d certificates.", headerChain, chainMax)
	}
	for part := range strings.SplitSeq(text, ",") {
		c, err := readHeader(strings.TrimSpace(part))
		if err != nil {
			return nil, nil, err
		}
		chain = append(chain, c)
	}
	return leaf, chain, nil
}

func readHeader(text string) (*x509.Certificate, error) {
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(der) == 0 {
		return nil, refuse(Malformed, "The header %s has no certificate in base64.", headerOfCert)
	}
	return parseCertificate(der)
}

// signedBy verifies the signature. The algorithm must fit the key, so that a signature of one kind is never checked as another.
func (a *authorization) signedBy(key crypto.PublicKey, text []byte) bool {
	digest := sha256.Sum256(text)
	switch key := key.(type) {
	case *rsa.PublicKey:
		return a.algorithm == withRSA && rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], a.signature) == nil
	case *ecdsa.PublicKey:
		return a.algorithm == withECDSA && ecdsa.VerifyASN1(key, digest[:], a.signature)
	}
	return false
}

func stringToSign(r *http.Request, body []byte, a *authorization) []byte {
	hash := sha256.Sum256(body)
	text := append(sigv4.AppendQuery([]byte(r.Method+"\n"+Path+"\n"), r.URL.RawQuery), '\n')
	for name := range strings.SplitSeq(a.SignedHeaders, ";") {
		text = append(append(text, name...), ':')
		text = append(sigv4.AppendHeader(text, r, name), '\n')
	}
	text = append(append(text, '\n'), a.SignedHeaders...)
	text = hex.AppendEncode(append(text, '\n'), hash[:])
	sum := sha256.Sum256(text)
	return []byte(a.algorithm + "\n" + r.Header.Get("X-Amz-Date") + "\n" + a.Scope + "\n" + hex.EncodeToString(sum[:]))
}

// Sign signs a request as a client does. chain is the certificate followed by its intermediate certificates; key is its key.
func Sign(r *http.Request, body []byte, key crypto.Signer, chain []*x509.Certificate, region string, at time.Time) error {
	a := authorization{algorithm: withRSA}
	switch key.Public().(type) {
	case *rsa.PublicKey:
	case *ecdsa.PublicKey:
		a.algorithm = withECDSA
	default:
		return errors.New("the key of the certificate cannot sign: want one of RSA or ECDSA")
	}
	encoded := make([]string, 0, len(chain))
	for _, c := range chain {
		encoded = append(encoded, base64.StdEncoding.EncodeToString(c.Raw))
	}
	at = at.UTC()
	r.Header.Set("X-Amz-Date", at.Format(sigv4.TimeForm))
	r.Header.Set(headerOfCert, encoded[0])
	a.SignedHeaders = "content-type;host;x-amz-date;x-amz-x509"
	if len(encoded) > 1 {
		r.Header.Set(headerChain, strings.Join(encoded[1:], ","))
		a.SignedHeaders += ";x-amz-x509-chain"
	}
	if r.Host == "" {
		r.Host = r.URL.Host
	}
	a.Credential = sigv4.NewCredential(chain[0].SerialNumber.String(), region, service, at)
	digest := sha256.Sum256(stringToSign(r, body, &a))
	signature, err := key.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", a.algorithm+" Credential="+a.Credential.String()+", SignedHeaders="+a.SignedHeaders+", Signature="+hex.EncodeToString(signature))
	return nil
}

// Named returns the name of a certificate for its revocation. text is a PEM file, a fingerprint, or authority and serial number. For a file it also returns when
// the certificate expires.
func Named(text string) (name string, expires time.Time, err error) {
	digits, fingerprint := strings.CutPrefix(text, "sha256:")
	content, err := os.ReadFile(text)
	if err != nil {
		authority, serial, ok := strings.Cut(text, "/")
		switch plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, ":", "")) }; {
		case fingerprint:
			return "sha256:" + plain(digits), expires, nil
		case ok && configfile.IsName(authority):
			return authority + "/" + strings.TrimLeft(plain(serial), "0"), expires, nil
		}
		return "", expires, err
	}
	block, _ := pem.Decode(content)
	if block == nil || block.Type != "CERTIFICATE" {
		return "", expires, fmt.Errorf("%s has no certificate, want one in PEM", text)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", expires, fmt.Errorf("%s: %w", text, err)
	}
	if c.IsCA {
		return "", expires, fmt.Errorf("%s begins with the certificate of an authority, %q: want that of a client", text, c.Subject)
	}
	sum := sha256.Sum256(c.Raw)
	return "sha256:" + hex.EncodeToString(sum[:]), c.NotAfter, nil
}

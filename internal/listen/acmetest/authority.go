// Package acmetest is a certificate authority for tests. It implements the part of ACME that clients need for one host. It checks signatures and nonces, and
// validates the host by TLS-ALPN-01. Sources: RFC 8555, RFC 8737.
package acmetest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Authority is a certificate authority on a loopback address.
type Authority struct {
	// Life is the validity of the next certificate: how long before and after now. Set it before requesting that certificate.
	Life [2]time.Duration
	// Forgetful makes it refuse every second signed request with an unknown nonce, as authorities may at any time. Set it before the first request.
	Forgetful bool

	t      testing.TB
	server *httptest.Server
	key    *ecdsa.PrivateKey
	root   *x509.Certificate

	mu      sync.Mutex
	address string // of every host
	down    bool
	signs   int // signed requests
	nonces  map[string]bool
	account *jose.JSONWebKey
	orders  []*order
	issued  int
	asked   []string // the hosts of all orders
}

type order struct {
	host, token string
	valid       bool
	why         string
	chain       []byte
}

// New starts an authority that ends with the test.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, Life: [2]time.Duration{time.Hour, 90 * 24 * time.Hour}, nonces: map[string]bool{}}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(365 * 24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err == nil {
		a.root, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.server.Close)
	return a
}

// Directory returns its URL.
func (a *Authority) Directory() string { return a.server.URL + "/directory" }

// Pool returns a pool that contains only its root certificate.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.root)
	return pool
}

// Resolve sets the address that it connects to for every host, instead of port 443 on the internet.
func (a *Authority) Resolve(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.address = address
}

// Down makes it answer 503 to every request, or stops that.
func (a *Authority) Down(down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = down
}

// Issued returns how many certificates it has issued.
func (a *Authority) Issued() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.issued
}

// Asked returns the hosts of all orders.
func (a *Authority) Asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string{}, a.asked...)
}

func (a *Authority) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	down := a.down
	nonce := base64.RawURLEncoding.EncodeToString([]byte(rand.Text()))
	a.nonces[nonce] = true
	a.mu.Unlock()
	w.Header().Set("Replay-Nonce", nonce)
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case down:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case r.URL.Path == "/directory":
		a.answer(w, http.StatusOK, map[string]any{
			"newNonce": a.server.URL + "/nonce", "newAccount": a.server.URL + "/account", "newOrder": a.server.URL + "/order",
			"revokeCert": a.server.URL + "/revoke", "keyChange": a.server.URL + "/change",
		})
	case r.URL.Path == "/nonce":
	default:
		a.signed(w, r)
	}
}

// signed serves a request that an account signed.
func (a *Authority) signed(w http.ResponseWriter, r *http.Request) {
	payload, err := a.verify(r)
	if err != nil {
		a.refuse(w, "malformed", err)
		return
	}
	a.mu.Lock()
	a.signs++
	forgotten := a.Forgetful && a.signs%2 == 1
	a.mu.Unlock()
	if forgotten {
		a.refuse(w, "badNonce", errors.New("the nonce is too old"))
		return
	}
	what, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if what == "account" {
		w.Header().Set("Location", a.server.URL+"/accounts/1")
		a.answer(w, http.StatusCreated, map[string]any{"status": "valid"})
		return
	}
	if what == "order" && rest == "" {
		a.newOrder(w, payload)
		return
	}
	a.mu.Lock()
	var at int
	var o *order
	if _, err := fmt.Sscan(rest, &at); err == nil && at < len(a.orders) {
		o = a.orders[at]
	}
	a.mu.Unlock()
	switch {
	case o == nil:
		a.refuse(w, "malformed", errors.New("no such "+what))
	case what == "order":
		a.answer(w, http.StatusOK, a.describe(at, o))
	case what == "authorization":
		a.answer(w, http.StatusOK, a.authorization(at, o))
	case what == "challenge":
		a.check(o)
		a.answer(w, http.StatusOK, a.challenge(at, o))
	case what == "finalize":
		if err := a.issue(o, payload); err != nil {
			a.refuse(w, "badCSR", err)
			return
		}
		w.Header().Set("Location", a.at("order", at))
		a.answer(w, http.StatusOK, a.describe(at, o))
	case what == "certificate":
		w.Header().Set("Content-Type", "application/pem-certificate-chain")
		_, _ = w.Write(o.chain)
	}
}

// verify checks the signature, and that the nonce was issued and not used yet.
func (a *Authority) verify(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	message, err := jose.ParseSignedJSON(string(body), []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return nil, err
	}
	header := message.Signatures[0].Protected
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.nonces[header.Nonce] {
		return nil, fmt.Errorf("nonce %q", header.Nonce)
	}
	delete(a.nonces, header.Nonce)
	if header.JSONWebKey != nil { // a new account
		a.account = header.JSONWebKey
	}
	if a.account == nil {
		return nil, errors.New("no account")
	}
	return message.Verify(a.account)
}

func (a *Authority) newOrder(w http.ResponseWriter, payload []byte) {
	var asked struct {
		Identifiers []struct{ Type, Value string }
	}
	if err := json.Unmarshal(payload, &asked); err != nil || len(asked.Identifiers) != 1 || asked.Identifiers[0].Type != "dns" {
		a.refuse(w, "malformed", fmt.Errorf("identifiers %v, %v", asked.Identifiers, err))
		return
	}
	o := &order{host: asked.Identifiers[0].Value, token: rand.Text()}
	a.mu.Lock()
	at := len(a.orders)
	a.orders, a.asked = append(a.orders, o), append(a.asked, o.host)
	a.mu.Unlock()
	w.Header().Set("Location", a.at("order", at))
	a.answer(w, http.StatusCreated, a.describe(at, o))
}

func (a *Authority) at(what string, order int) string {
	return fmt.Sprintf("%s/%s/%d", a.server.URL, what, order)
}

func (a *Authority) describe(at int, o *order) map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer := map[string]any{
		"status": "pending", "identifiers": []any{map[string]string{"type": "dns", "value": o.host}},
		"authorizations": []string{a.at("authorization", at)}, "finalize": a.at("finalize", at),
	}
	switch {
	case o.chain != nil:
		answer["status"], answer["certificate"] = "valid", a.at("certificate", at)
	case o.valid:
		answer["status"] = "ready"
	case o.why != "":
		answer["status"] = "invalid"
	}
	return answer
}

func (a *Authority) authorization(at int, o *order) map[string]any {
	c := a.challenge(at, o)
	return map[string]any{"status": c["status"], "identifier": map[string]string{"type": "dns", "value": o.host}, "challenges": []any{c}}
}

func (a *Authority) challenge(at int, o *order) map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := map[string]any{"type": "tls-alpn-01", "url": a.at("challenge", at), "token": o.token, "status": "pending"}
	switch {
	case o.valid:
		c["status"] = "valid"
	case o.why != "":
		c["status"], c["error"] = "invalid", map[string]any{"type": "urn:ietf:params:acme:error:unauthorized", "detail": o.why}
	}
	return c
}

// check connects to the host. RFC 8737, 3.
func (a *Authority) check(o *order) {
	a.mu.Lock()
	address, account := a.address, a.account
	a.mu.Unlock()
	err := prove(address, o.host, o.token, account)
	a.mu.Lock()
	defer a.mu.Unlock()
	if o.valid = err == nil; err != nil {
		o.why = err.Error()
	}
}

// acmeIdentifier is the extension of certificates that answer a challenge.
var acmeIdentifier = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 31}

func prove(address, host, token string, account *jose.JSONWebKey) error {
	conn, err := tls.Dial("tcp", address, &tls.Config{ServerName: host, NextProtos: []string{"acme-tls/1"}, InsecureSkipVerify: true}) // verified below
	if err != nil {
		return err
	}
	defer conn.Close()
	state := conn.ConnectionState()
	if state.NegotiatedProtocol != "acme-tls/1" {
		return fmt.Errorf("the protocol is %q", state.NegotiatedProtocol)
	}
	leaf := state.PeerCertificates[0]
	if len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != host {
		return fmt.Errorf("the certificate is for %v", leaf.DNSNames)
	}
	thumbprint, err := account.Thumbprint(crypto.SHA256)
	if err != nil {
		return err
	}
	want := sha256.Sum256([]byte(token + "." + base64.RawURLEncoding.EncodeToString(thumbprint)))
	for _, x := range leaf.Extensions {
		var got []byte
		if !x.Id.Equal(acmeIdentifier) {
			continue
		}
		if _, err := asn1.Unmarshal(x.Value, &got); err != nil || !x.Critical || string(got) != string(want[:]) {
			return fmt.Errorf("the extension is %x, %v", got, err)
		}
		return nil
	}
	return errors.New("the certificate answers no challenge")
}

func (a *Authority) issue(o *order, payload []byte) error {
	var asked struct{ CSR string }
	if err := json.Unmarshal(payload, &asked); err != nil {
		return err
	}
	der, err := base64.RawURLEncoding.DecodeString(asked.CSR)
	if err != nil {
		return err
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err == nil {
		err = csr.CheckSignature()
	}
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !o.valid || len(csr.DNSNames) != 1 || csr.DNSNames[0] != o.host {
		return fmt.Errorf("the request is for %v, proven %t", csr.DNSNames, o.valid)
	}
	now := time.Now()
	leaf, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(int64(1000 + a.issued)), Subject: pkix.Name{CommonName: o.host}, DNSNames: csr.DNSNames,
		NotBefore: now.Add(-a.Life[0]), NotAfter: now.Add(a.Life[1]), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.root, csr.PublicKey, a.key)
	if err != nil {
		return err
	}
	a.issued++
	a.Life = [2]time.Duration{time.Hour, 90 * 24 * time.Hour} // for the next
	for _, der := range [][]byte{leaf, a.root.Raw} {
		o.chain = append(o.chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return nil
}

func (a *Authority) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails if the client has gone
}

func (a *Authority) refuse(w http.ResponseWriter, kind string, err error) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "urn:ietf:params:acme:error:" + kind, "detail": err.Error(), "status": http.StatusBadRequest})
}

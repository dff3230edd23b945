// Package hostproof is how a host proves which one it is: each connection request carries a claim, which is signed with the key pair that the host made when it
// joined. The service has the public key only.
package hostproof

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// JoinPath is where machines join, below the URL of the service; the agent protocol is at AgentPath.
const (
	AgentPath = "/agent"
	JoinPath  = AgentPath + "/join"
)

// StatusRevoked is the HTTP status with which the service refuses a connection that a host signed which was revoked: no other refusal has it.
const StatusRevoked = http.StatusGone

const (
	scheme = "Muster-Host "
	// HeaderMax bounds the header, in bytes.
	HeaderMax = 4 << 10
	// domain keeps these signatures apart from others with the same key.
	domain = "muster host connection 1\n"
)

// Claim is what a host signs.
type Claim struct {
	Host   string `json:"host"` // its id
	At     int64  `json:"at"`   // the host's clock, in milliseconds since 1970; later than in its claim before
	Method string `json:"method"`
	Path   string `json:"path"`
	Server string `json:"server"`        // host and port of the URL that it connects to
	IP     string `json:"ip,omitempty"`  // where players reach the host
	DNS    string `json:"dns,omitempty"` // in place of it
}

// Sign returns the value of the header Authorization for a claim.
func Sign(key ed25519.PrivateKey, c Claim) string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // a Claim consists of texts and a number
	}
	payload := base64.RawURLEncoding.EncodeToString(text)
	return scheme + payload + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(domain+payload)))
}

// Proof is a signed claim that has not been checked.
type Proof struct {
	Claim
	payload   string
	signature []byte
}

// Present reports whether a request carries a proof.
func Present(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Authorization"), scheme)
}

var errForm = errors.New("the header Authorization: want Muster-Host, a claim and its signature, both in base64url")

// Read reads the proof of a request. Its claim is not to be believed before Signed.
func Read(r *http.Request) (p Proof, err error) {
	text := r.Header.Get("Authorization")
	if len(text) > HeaderMax {
		return p, fmt.Errorf("the header Authorization has %d bytes; want at most %d", len(text), HeaderMax)
	}
	payload, signature, ok := strings.Cut(strings.TrimPrefix(text, scheme), ".")
	if !ok {
		return p, errForm
	}
	p.payload = payload
	if p.signature, err = base64.RawURLEncoding.DecodeString(signature); err != nil {
		return p, errForm
	}
	claim, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil || json.Unmarshal(claim, &p.Claim) != nil {
		return p, errForm
	}
	return p, nil
}

// Signed reports whether the owner of a public key has signed the claim.
func (p *Proof) Signed(public []byte) bool {
	return len(public) == ed25519.PublicKeySize && ed25519.Verify(public, []byte(domain+p.payload), p.signature)
}

// For reports whether the claim is for a request: its method, and the server and path as the request has them, or as the service is known outside, since a proxy may
// change both.
func (p *Proof) For(r *http.Request, server, path string) bool {
	return p.Method == r.Method && (p.Server == r.Host && p.Path == r.URL.Path || p.Server == server && p.Path == path)
}

// Join is the body of the request with which a machine joins.
type Join struct {
	Token    string `json:"token"`
	Name     string `json:"name"`
	Location string `json:"location,omitempty"` // empty: the token's
	Fleet    string `json:"fleet,omitempty"`    // empty: the token's
	Key      []byte `json:"publicKey"`          // Ed25519
}

// Joined is the answer.
type Joined struct {
	Host     string `json:"host"` // id
	Name     string `json:"name"`
	Location string `json:"location"`
	Fleet    string `json:"fleet,omitempty"` // empty: any fleet of a build
}

package people

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/identity"
)

// Names of cookies. Over TLS they have a prefix with which browsers accept them only from this host over TLS. Connections without TLS, which are only for this
// machine, use no prefix.
const (
	hostPrefix    = "__Host-"
	sessionCookie = "muster-sign-in"
	signingCookie = "muster-signing-in"
)

// signingLife is how long a person has for a sign-in.
const signingLife = 10 * time.Minute

// signing is a sign-in in progress, in the form of the browser's cookie.
type signing struct {
	Provider string `json:"p,omitempty"`
	State    string `json:"s,omitempty"`
	Nonce    string `json:"n,omitempty"`
	Verifier string `json:"v,omitempty"`
	Back     string `json:"b,omitempty"`
	Expires  int64  `json:"e"` // Unix milliseconds, by the time of the cluster: another node may finish the sign-in

	Challenge json.RawMessage `json:"c,omitempty"` // of a passkey: what its answer must match
	Issued    domain.Time     `json:"i,omitempty"` // when the challenge was issued
	Enrol     string          `json:"l,omitempty"` // id of the person who registers a passkey
}

func newSigning(provider, back string, now time.Time) signing {
	return signing{Provider: provider, State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Back: back, Expires: now.Add(signingLife).UnixMilli()}
}

// sealed returns the signed text of a sign-in. It contains only secrets of the browser's own person.
func (d *Door) sealed(s *signing) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // texts and numbers
	}
	return d.signed("signing-in", text)
}

// signed returns a text with a signature. The signature covers its purpose, so that texts for different purposes cannot be confused.
func (d *Door) signed(what string, text []byte) string {
	encoded := base64.RawURLEncoding.EncodeToString(text)
	return encoded + "." + base64.RawURLEncoding.EncodeToString(d.config.Secret.SignInSignature(what+"\x00"+encoded))
}

// opened returns a signed text if its signature is valid.
func (d *Door) opened(what, value string) (text []byte, ok bool) {
	encoded, signature, _ := strings.Cut(value, ".")
	sent, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	if err != nil || !d.config.Secret.Accepts("cookie of a sign-in", func(g identity.CellSecret) bool {
		return subtle.ConstantTimeCompare(sent, g.SignInSignature(what+"\x00"+encoded)) == 1
	}) {
		return nil, false
	}
	text, err = base64.RawURLEncoding.Strict().DecodeString(encoded)
	return text, err == nil
}

// unsealed returns the sign-in that a browser began.
func (d *Door) unsealed(r *http.Request) (s signing, ok bool) {
	text, ok := d.opened("signing-in", d.cookieOf(r, signingCookie))
	if !ok || json.Unmarshal(text, &s) != nil || d.engine.Now().UnixMilli() >= s.Expires {
		return signing{}, false
	}
	return s, true
}

// cookie returns a cookie for this host. It is Lax because a provider's page leads back here, and links from other sites must work.
func (d *Door) cookie(r *http.Request, name, value string, maxAge int) *http.Cookie {
	c := &http.Cookie{Name: hostPrefix + name, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode}
	if !d.config.Secure(r) {
		c.Name, c.Secure = name, false
	}
	return c
}

func (d *Door) cookieOf(r *http.Request, name string) string {
	if d.config.Secure(r) {
		name = hostPrefix + name // a sibling host or a page without TLS may have set one without the prefix
	}
	c, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// sessionOf returns the id of the session that a browser's cookie names.
func (d *Door) sessionOf(r *http.Request) (id string, ok bool) {
	text, ok := d.opened("session", d.cookieOf(r, sessionCookie))
	if !ok {
		return "", false
	}
	_, err := domain.ParseID[people.SignInID](string(text))
	return string(text), err == nil
}

func short(text string) string { return people.Short(text, 200) }

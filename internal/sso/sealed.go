package sso

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"time"

	"github.com/musterhq/muster/internal/domain/wire"
	"github.com/musterhq/muster/internal/identity"
)

// A token is a version, a kind, claims and a signature, in URL-safe base64. docs/formats/identity.md#sign-in-tokens.
const (
	sealVersion = 1
	macBytes    = 16
)

// kind is the purpose of a token. A token of another kind is refused. Tokens contain the numbers, so they must not change.
type kind byte

const (
	clientKind  kind = iota + 1 // id of a client
	deviceKind                  // code of a device
	codeKind                    // authorization code
	accessKind                  // access token
	refreshKind                 // refresh token
	formKind                    // proves that a form is one of this service's pages, for one person
	loginKind                   // authorization code of aws login
	renewKind                   // refresh token of aws login
)

func (k kind) String() string {
	switch k {
	case clientKind:
		return "registration of a sign-in client"
	case refreshKind, renewKind:
		return "refresh token of a sign-in client"
	case accessKind:
		return "access token of a sign-in client"
	}
	return "code of a sign-in"
}

// Lengths of tokens, in characters.
const (
	clientIDMax = 2048
	tokenMax    = 1024
)

func (d *Door) seal(k kind, claims wire.Message) string {
	text := wire.Append([]byte{sealVersion, byte(k)}, claims)
	return base64.RawURLEncoding.EncodeToString(append(text, d.config.Secret.SignInMAC(text)[:macBytes]...))
}

// open verifies and decodes a token of a kind that this cell has issued, with a maximum length in characters. The caller must check its expiry.
func (d *Door) open(k kind, token string, most int, claims wire.Message) bool {
	if len(token) > most {
		return false
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(text) < 2+macBytes || text[0] != sealVersion || text[1] != byte(k) {
		return false
	}
	text, mac := text[:len(text)-macBytes], text[len(text)-macBytes:]
	proven := d.config.Secret.Accepts(k.String(), func(g identity.CellSecret) bool {
		return subtle.ConstantTimeCompare(mac, g.SignInMAC(text)[:macBytes]) == 1
	})
	return proven && wire.Unmarshal(text[2:], claims) == nil
}

// client is a registered program.
type client struct {
	Name      string
	Grants    grants
	Renews    bool     // may get refresh tokens
	Redirects []string // of the authorization code grant
	Expires   time.Time
}

func (x *client) Fields(c *wire.Codec) {
	c.String(1, &x.Name)
	wire.Int(c, 2, &x.Grants)
	c.Bool(3, &x.Renews)
	c.Strings(4, &x.Redirects)
	instant(c, 5, &x.Expires)
}

// instant encodes a time in whole milliseconds.
func instant(c *wire.Codec, n uint32, t *time.Time) {
	ms := t.UnixMilli()
	wire.Int(c, n, &ms)
	*t = time.UnixMilli(ms)
}

// clientSecret returns the secret with which a client proves that it was registered under an id.
func clientSecret(by identity.CellSecret, id string) string {
	return base64.RawURLEncoding.EncodeToString(by.SignInMAC([]byte("client-secret\x00" + id)))
}

// isClientSecret reports whether secret is the secret of the client with an id.
func (d *Door) isClientSecret(secret, id string) bool {
	return d.config.Secret.Accepts(clientKind.String(), func(g identity.CellSecret) bool { return identity.Equal(secret, clientSecret(g, id)) })
}

// short returns the name of a client in other tokens and in the state.
func short(clientID string) string { return hex.EncodeToString(digest(clientID)[:16]) }

func digest(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// deviceCode is the code with which a device asks for its tokens.
type deviceCode struct {
	ID      string // random
	Client  string
	Expires time.Time
}

func (x *deviceCode) Fields(c *wire.Codec) {
	c.String(1, &x.ID)
	c.String(2, &x.Client)
	instant(c, 3, &x.Expires)
}

// authCode is an authorization code.
type authCode struct {
	ID        string // random
	SignIn    string
	Client    string
	Redirect  []byte // digest of the redirect URI
	Challenge []byte // SHA-256 of the verifier
	Expires   time.Time
}

func (x *authCode) Fields(c *wire.Codec) {
	c.String(1, &x.ID)
	c.String(2, &x.SignIn)
	c.String(3, &x.Client)
	c.Bytes(4, &x.Redirect)
	c.Bytes(5, &x.Challenge)
	instant(c, 6, &x.Expires)
}

// grant is an access token, or, without Expires, a refresh token.
type grant struct {
	SignIn  string
	Client  string
	Expires time.Time
}

func (x *grant) Fields(c *wire.Codec) {
	c.String(1, &x.SignIn)
	c.String(2, &x.Client)
	instant(c, 3, &x.Expires)
}

// form is the hidden field of a form.
type form struct {
	SignIn  string
	Of      []byte // digest of what the form is about
	Expires time.Time
}

func (x *form) Fields(c *wire.Codec) {
	c.String(1, &x.SignIn)
	c.Bytes(2, &x.Of)
	instant(c, 3, &x.Expires)
}

// newID returns a random id of 128 bits in 22 characters.
func newID() string {
	random := make([]byte, 16)
	rand.Read(random) // never fails: since Go 1.24 it ends the program instead
	return base64.RawURLEncoding.EncodeToString(random)
}

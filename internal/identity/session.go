package identity

import (
	"crypto/subtle"
	"encoding/base64"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain/wire"
)

// Session is the content of a session token: for whom temporary credentials were issued, and what they may do. The token contains all of it, and the secret of
// the credentials is derived from it, so every node of the cell can check them and none stores them. docs/formats/identity.md#session-tokens.
type Session struct {
	ID      string // access key id of the credentials, which begins with SessionPrefix
	Source  Source
	Holder  string // id of the access key, or provider and subject of the web identity or person, that they were issued to
	Name    string // of the session, chosen by the holder; empty: the holder's own name is used
	Role    Role
	Account string
	Issued  time.Time // whole milliseconds
	Expires time.Time // including the Grace; in Credentials without it
	SignIn  string    // id of a person's sign-in session, which ends the credentials when it ends; empty for other sources

	Certificate string   // fingerprint of the client certificate behind the credentials: SHA-256 in lower-case hexadecimal; empty for other sources
	Serial      string   // its serial number, in lower-case hexadecimal
	Groups      []string // of a machine, from its rules, for policies; never changed in place
}

// Source describes how the holder of temporary credentials proved its identity.
type Source uint8

// The sources. Tokens contain their numbers.
const (
	FromKey         Source = iota + 1 // by an access key, or by temporary credentials of one
	FromWebIdentity                   // by a token of an identity provider
	FromPerson                        // by a sign-in session
	FromCertificate                   // by a client certificate
)

func (s Source) String() string {
	switch s {
	case FromKey:
		return "access key"
	case FromWebIdentity:
		return "web identity"
	case FromPerson:
		return "person"
	case FromCertificate:
		return "certificate"
	}
	return "unknown"
}

// SessionPrefix begins the access key ids of temporary credentials, as at AWS.
const SessionPrefix = "ASIA"

const (
	tokenVersion  = 1
	tokenOfPerson = 2    // the version of tokens with the claim SignIn
	tokenOfCert   = 3    // the version of tokens with the claim Certificate
	tokenMAC      = 16   // bytes
	tokenBytesMax = 1536 // characters: far more than a Session needs
)

// Fields implements wire.Message.
func (s *Session) Fields(c *wire.Codec) {
	issued, expires := s.Issued.UnixMilli(), s.Expires.UnixMilli()
	c.String(1, &s.ID)
	wire.Int(c, 2, &s.Source)
	c.String(3, &s.Holder)
	c.String(4, &s.Name)
	wire.Int(c, 5, &s.Role)
	c.String(6, &s.Account)
	wire.Int(c, 7, &issued)
	wire.Int(c, 8, &expires)
	c.String(10, &s.SignIn)
	c.String(11, &s.Certificate)
	c.String(12, &s.Serial)
	c.Strings(13, &s.Groups)
	s.Issued, s.Expires = time.UnixMilli(issued), time.UnixMilli(expires)
}

// Principal returns the name of the session's principal in audit records and limits: the holder, followed by the name of the session if it has one.
func (s *Session) Principal() string {
	if s.Name == "" {
		return s.Holder
	}
	return s.Holder + ":" + s.Name
}

// ARN returns the session's name in AWS's form.
func (s *Session) ARN() string {
	if s.Name == "" {
		return UserARN(s.Account, s.Role, s.Holder)
	}
	return "arn:aws:sts::" + s.Account + ":assumed-role/" + s.Role.String() + "/" + s.Name
}

// UserARN returns the name of an access key in the form of AWS's name for a user.
func UserARN(account string, role Role, key string) string {
	return "arn:aws:iam::" + account + ":user/" + role.String() + "/" + key
}

// Credentials are temporary credentials in the form that a client receives.
type Credentials struct {
	Session
	Secret, Token string

	generation uint32 // of the cell's secret that signed the token
}

// NewSession issues temporary credentials. The caller has checked that the holder may have them.
func (s CellSecret) NewSession(x Session) Credentials {
	x.ID = newID(SessionPrefix)
	x.Issued, x.Expires = x.Issued.Truncate(time.Millisecond), x.Expires.Truncate(time.Millisecond)
	claims := wire.Append([]byte{x.version()}, &x)
	s = s.current() // the same generation for the secret and the token
	return Credentials{x, s.sessionSecret(claims), base64.RawURLEncoding.EncodeToString(append(claims, s.tokenMAC(claims)...)), s.Generation()}
}

// version returns the version of the session's token.
func (s *Session) version() byte {
	switch {
	case s.Certificate != "":
		return tokenOfCert
	case s.SignIn != "":
		return tokenOfPerson
	}
	return tokenVersion
}

// Machine reports whether the credentials belong to a machine that proved its identity with something other than an access key.
func (s *Session) Machine() bool { return s.Source == FromWebIdentity || s.Source == FromCertificate }

// certificates returns the names by which the certificate of a session can be revoked.
func (s *Session) certificates() [2]string {
	authority, _, _ := strings.Cut(s.Holder, "/")
	return [2]string{CertificatePrefix + s.Certificate, authority + "/" + s.Serial}
}

// CertificatePrefix precedes the fingerprint in the name of a certificate.
const CertificatePrefix = "sha256:"

func (s CellSecret) tokenMAC(claims []byte) []byte {
	return s.derive(append([]byte("session-token\x00"), claims...))[:tokenMAC]
}

func (s CellSecret) sessionSecret(claims []byte) string {
	return base64.StdEncoding.EncodeToString(s.derive(append([]byte("session-secret\x00"), claims...))[:30])
}

// readSession parses a token that this cell issued. Only a signature with the secret proves that a client has the credentials.
func (s CellSecret) readSession(token string) (c Credentials, ok bool) {
	if len(token) > tokenBytesMax {
		return c, false
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(text) <= 1+tokenMAC {
		return c, false
	}
	claims, mac := text[:len(text)-tokenMAC], text[len(text)-tokenMAC:]
	var by CellSecret
	proven := s.Accepts("temporary credentials", func(g CellSecret) bool {
		ok := subtle.ConstantTimeCompare(mac, g.tokenMAC(claims)) == 1
		if ok {
			by = g
		}
		return ok
	})
	if !proven || wire.Unmarshal(claims[1:], &c.Session) != nil || claims[0] != c.version() {
		return Credentials{}, false
	}
	c.Secret, c.Token, c.generation = by.sessionSecret(claims), token, by.Generation()
	return c, true
}

package trust

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Token is what a new node needs to join a cluster. Its text form is one line:
//
//	muster-join-1/ADDRESS[,ADDRESS…]/FINGERPRINT/ID/SECRET
type Token struct {
	Addresses   []string    // of the inviting node, host:port
	Fingerprint Fingerprint // of the authority
	ID          string      // identifies the token; 16 hexadecimal digits
	Secret      Secret
}

const (
	tokenPrefix   = "muster-join-1"
	tokenTextMax  = 4096 // bytes
	addressesMax  = 8
	tokenIDLength = 16
)

// NewToken returns a token with a new secret.
func NewToken(a *Authority, addresses ...string) (Token, error) {
	t := Token{Addresses: slices.Clone(addresses), Fingerprint: a.Fingerprint()}
	id := make([]byte, tokenIDLength/2)
	_, _ = rand.Read(id) // never fails
	_, _ = rand.Read(t.Secret[:])
	t.ID = hex.EncodeToString(id)
	return t, checkAddresses(addresses)
}

// Text returns the token as one line, including the secret.
func (t Token) Text() string {
	return strings.Join([]string{tokenPrefix, strings.Join(t.Addresses, ","), base64.RawURLEncoding.EncodeToString(t.Fingerprint[:]), t.ID, t.Secret.Text()}, "/")
}

// TokenError describes what is wrong with the text of a token. It repeats nothing of the text, because that contains a secret.
type TokenError struct {
	Part string // of the token: token, address, fingerprint, id or secret
	Err  error
}

func (e *TokenError) Error() string { return fmt.Sprintf("join token: %s: %v", e.Part, e.Err) }
func (e *TokenError) Unwrap() error { return e.Err }

// ParseToken parses the text of a token. Its error is a *TokenError.
func ParseToken(text string) (Token, error) {
	text = strings.TrimSpace(text)
	fail := func(part string, err error) (Token, error) { return Token{}, &TokenError{part, err} }
	if len(text) > tokenTextMax {
		return fail("token", fmt.Errorf("%d characters; want at most %d", len(text), tokenTextMax))
	}
	parts := strings.Split(text, "/")
	if parts[0] != tokenPrefix {
		return fail("token", fmt.Errorf("it does not begin with %s/", tokenPrefix))
	}
	if len(parts) != 5 {
		return fail("token", fmt.Errorf("%d parts; want 5: copy the whole line", len(parts)))
	}
	t := Token{Addresses: strings.Split(parts[1], ","), ID: parts[3]}
	if err := checkAddresses(t.Addresses); err != nil {
		return fail("address", err)
	}
	if err := decode(t.Fingerprint[:], parts[2]); err != nil {
		return fail("fingerprint", err)
	}
	if len(t.ID) != tokenIDLength || strings.Trim(t.ID, "0123456789abcdef") != "" {
		return fail("id", fmt.Errorf("want %d hexadecimal digits", tokenIDLength))
	}
	var err error
	if t.Secret, err = ParseSecret(parts[4]); err != nil {
		return fail("secret", err)
	}
	return t, nil
}

func checkAddresses(addresses []string) error {
	if n := len(addresses); n < 1 || n > addressesMax {
		return fmt.Errorf("%d addresses; want 1 to %d", n, addressesMax)
	}
	for i, address := range addresses {
		host, port, err := net.SplitHostPort(address)
		number, numberErr := strconv.ParseUint(port, 10, 16)
		if err != nil || numberErr != nil || number == 0 || host == "" || strings.ContainsFunc(address, notOfAddress) {
			return fmt.Errorf("number %d is not of the form host:port", i+1)
		}
	}
	return nil
}

// CheckAddress returns an error if a text is not an address of the form host:port.
func CheckAddress(address string) error { return checkAddresses([]string{address}) }

// notOfAddress reports whether a character is not allowed in an address, or has a meaning in a token.
func notOfAddress(r rune) bool { return r <= ' ' || r > '~' || r == '/' || r == ',' }

// decode fills `to` with the bytes of a base64 text.
func decode(to []byte, text string) error {
	if want := base64.RawURLEncoding.EncodedLen(len(to)); len(text) != want {
		return fmt.Errorf("%d characters; want %d", len(text), want)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != len(to) { // the decoder skips newlines
		return errors.New("a character does not belong to base64 for URLs")
	}
	copy(to, b)
	return nil
}

// Client returns the TLS configuration for a joining node. It verifies that the peer has a node certificate from the authority with
// the token's fingerprint, and presents no certificate. now is the clock; nil: time.Now. The caller adds the protocol.
func (t Token) Client(now func() time.Time) *tls.Config {
	if now == nil {
		now = time.Now
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		Time:               now,
		InsecureSkipVerify: true, // #nosec G402 -- no authority is known yet; VerifyConnection finds it by its fingerprint
		VerifyConnection: func(s tls.ConnectionState) error {
			for _, cert := range s.PeerCertificates {
				if sha256.Sum256(cert.Raw) != t.Fingerprint {
					continue
				}
				cluster, _, err := namesOf(cert)
				if err != nil {
					return fmt.Errorf("%w: %w", ErrUntrusted, err)
				}
				authority := x509.NewCertPool()
				authority.AddCert(cert)
				_, err = verifyPeer(s, authority, cluster, asServer, now())
				return err
			}
			return fmt.Errorf("%w: no certificate has the fingerprint of the token; the token may be from another cluster, or the authority has been replaced since", ErrUntrusted)
		},
	}
}

// Secret is the part of a token that admits its bearer. Only Text reveals it.
type Secret [32]byte

// Text returns the secret in its wire form.
func (s Secret) Text() string { return base64.RawURLEncoding.EncodeToString(s[:]) }

// ParseSecret parses the text of a secret. Its error repeats nothing of it.
func ParseSecret(text string) (s Secret, err error) { return s, decode(s[:], text) }

// Format keeps the secret out of logs and errors.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// MarshalText keeps it out of JSON.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

const hidden = "[secret]"

// Hash is the hash of a secret that the cluster stores. The secret is random, so a plain hash protects it.
type Hash [sha256.Size]byte

// Hash returns the secret's hash.
func (s Secret) Hash() Hash {
	return sha256.Sum256(slices.Concat([]byte("muster join secret\x00"), s[:]))
}

// Matches reports whether the hash is that of a secret, in constant time.
func (h Hash) Matches(s Secret) bool {
	other := s.Hash()
	return subtle.ConstantTimeCompare(h[:], other[:]) == 1
}

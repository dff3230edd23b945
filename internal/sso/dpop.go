package sso

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	domaingrants "github.com/musterhq/muster/internal/domain/grants"
	"github.com/musterhq/muster/internal/hostname"
)

// proofSkew is the tolerance for the clock of a client. proofMax bounds a proof, in characters.
const (
	proofSkew = 5 * time.Minute
	proofMax  = 2048
)

// proofHead and proofClaims are the parts of a proof that are checked. RFC 9449, section 4.2.
type proofHead struct {
	Type string `json:"typ"`
	Alg  string `json:"alg"`
	Key  struct {
		Type  string `json:"kty"`
		Curve string `json:"crv"`
		X     string `json:"x"`
		Y     string `json:"y"`
	} `json:"jwk"`
}

type proofClaims struct {
	Method string `json:"htm"`
	URL    string `json:"htu"`
	Issued int64  `json:"iat"`
	ID     string `json:"jti"`
}

// proof is what identifies a proof, and how long it will be accepted.
type proof struct {
	id   string
	left time.Duration
}

// spendProof refuses a proof that has already been used at any node.
func (d *Door) spendProof(r *http.Request, x proof, signIn string) *problem {
	err := d.config.Engine.Do(r.Context(), &domaingrants.UseCode{Kind: domaingrants.Proof, ID: x.id, SignIn: signIn, Expires: domaingrants.ExpiresIn(d.now(), x.left)})
	switch {
	case domain.IsRefused(err, domain.Conflict):
		return d.wrongLogin(r, loginInvalid, "DPoP: the proof was used before: want a new one with each request")
	case domain.IsRefused(err, domain.NotFound):
		return loginInvalid.because("DPoP: the proof is too old, or the clock is wrong")
	case domain.IsRefused(err, domain.LimitExceeded):
		return loginTooMany.because("Too many proofs of this sign-in session.")
	case err != nil:
		return d.failure("CreateOAuth2Token", loginFailed, err)
	}
	return nil
}

// prove returns the digest of the key with which a request's client has signed its DPoP proof: the DPoP header, a signature over the request's method
// and URL. AWS clients use a single curve and algorithm, so no others are accepted. The caller must spend the proof before it issues anything.
func (d *Door) prove(r *http.Request) (key []byte, used proof, err error) {
	text := r.Header.Get("DPoP")
	if len(r.Header.Values("DPoP")) != 1 || len(text) > proofMax {
		return nil, used, errors.New("want one DPoP header")
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return nil, used, errors.New("the proof is not a JWT")
	}
	var head proofHead
	var claims proofClaims
	if readPart(parts[0], &head) != nil || readPart(parts[1], &claims) != nil {
		return nil, used, errors.New("the proof is not a JWT")
	}
	public, ok := head.public()
	if head.Type != "dpop+jwt" || head.Alg != "ES256" || !ok {
		return nil, used, errors.New("the proof is not an ES256 JWT with its key")
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	signature, err := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err != nil || len(signature) != 64 || !ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		return nil, used, errors.New("the signature of the proof is wrong")
	}
	at, err := url.Parse(claims.URL)
	off := d.clock().Sub(time.Unix(claims.Issued, 0)) // not the time of the cluster, which may differ from all clocks
	switch {
	case claims.Method != r.Method || err != nil || at.Path != r.URL.Path || !d.isOurs(r, at.Host):
		return nil, used, errors.New("the proof is for another request")
	case off.Abs() > proofSkew:
		return nil, used, errors.New("the proof is too old, or the clock is wrong")
	case claims.ID == "":
		return nil, used, errors.New("the proof has no id")
	}
	key = digest(head.Key.X + "." + head.Key.Y)
	return key, proof{base64.RawURLEncoding.EncodeToString(digest(string(key) + claims.ID)), proofSkew + time.Second - off}, nil
}

func readPart(text string, into any) error {
	part, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return err
	}
	return json.Unmarshal(part, into)
}

// public returns the key of a proof. Some clients omit the leading zeros of a coordinate.
func (h *proofHead) public() (*ecdsa.PublicKey, bool) {
	const size = 32
	point := make([]byte, 1+2*size)
	point[0] = 4 // not compressed
	for i, text := range []string{h.Key.X, h.Key.Y} {
		part, err := base64.RawURLEncoding.Strict().DecodeString(text)
		if err != nil || len(part) > size {
			return nil, false
		}
		copy(point[1+(i+1)*size-len(part):], part)
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point) // refuses points that are not on the curve
	return key, err == nil && h.Key.Type == "EC" && h.Key.Curve == "P-256"
}

// loopbackPort returns the port of a loopback host; empty for other hosts.
func loopbackPort(host string) string {
	name, port, err := net.SplitHostPort(host)
	if err != nil || !hostname.IsLoopback(name) {
		return ""
	}
	return port
}

// isOurs reports whether a host is this service: the host of the request, or that of the public URL.
func (d *Door) isOurs(r *http.Request, host string) bool {
	if strings.EqualFold(host, r.Host) || loopbackPort(host) != "" && loopbackPort(host) == loopbackPort(r.Host) { // sign-in pages redirect from 127.0.0.1 to localhost
		return true
	}
	u, err := url.Parse(d.config.PublicURL)
	return err == nil && u.Host != "" && strings.EqualFold(host, u.Host)
}

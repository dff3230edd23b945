package connectiontoken

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// Signer signs the tokens of one cell and verifies them.
type Signer struct {
	key    ed25519.PrivateKey
	header string
	keyID  string
}

// New makes a signer with the key of the cell.
func New(key ed25519.PrivateKey) *Signer {
	sum := sha256.Sum256(key.Public().(ed25519.PublicKey))
	t := &Signer{key: key, keyID: hex.EncodeToString(sum[:8])}
	header, _ := json.Marshal(map[string]string{"alg": "EdDSA", "typ": "JWT", "kid": t.keyID})
	t.header = base64.RawURLEncoding.EncodeToString(header)
	return t
}

// Hasher lets the core compute the hashes of connection tokens without the key, for playerDataMode WRAP.
func Hasher(secret identity.CellSecret) cell.TokenHasher {
	return New(secret.ConnectionKey())
}

// TokenHash is the SHA-256 of a connection token, in hexadecimal digits.
func (t *Signer) TokenHash(player string, host *flow.Host) string {
	sum := sha256.Sum256([]byte(t.Sign(player, host)))
	return hex.EncodeToString(sum[:])
}

// Claims of a token: docs/spec/player-identity.md#connection-token.
type Claims struct {
	Audience string `json:"aud"` // the game session
	Subject  string `json:"sub"` // the player
	Session  string `json:"psid"`
	Instance string `json:"gi"`
	Attempt  int32  `json:"att"`
	Epoch    uint32 `json:"epoch"`
	ID       string `json:"jti"`
	Expires  int64  `json:"exp"`
}

// tokenLeeway is how long a token outlives its reservation, because the clocks of hosts differ.
const tokenLeeway = 30 * time.Second

// Sign makes the token of a player for a reservation.
func (t *Signer) Sign(player string, h *flow.Host) string {
	unique := sha256.Sum256([]byte(h.Session.String() + "\x00" + player))
	claims, _ := json.Marshal(Claims{
		Audience: objects.GameSessionARN(h.Region, h.GameSession), Subject: player, Session: objects.PlayerSessionID(h.Session), Instance: objects.GameInstanceID(h.Instance),
		Attempt: h.Attempt, Epoch: h.Epoch, ID: hex.EncodeToString(unique[:16]), Expires: cmp.Or(h.TokenUntil, h.ReserveBy).Add(tokenLeeway).Std().Unix(),
	})
	text := t.header + "." + base64.RawURLEncoding.EncodeToString(claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(t.key, []byte(text)))
}

// Verify reads a token of this cell. It accepts expired ones: the core knows whether the reservation still holds.
func (t *Signer) Verify(token string) (claims Claims, ok bool) {
	text, signature, found := cutLast(token, ".")
	header, body, found2 := strings.Cut(text, ".")
	if !found || !found2 || header != t.header {
		return claims, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !ed25519.Verify(t.key.Public().(ed25519.PublicKey), []byte(text), raw) {
		return claims, false
	}
	decoded, err := base64.RawURLEncoding.DecodeString(body)
	return claims, err == nil && json.Unmarshal(decoded, &claims) == nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// JWKS is the public key as a JWK set, which game servers fetch.
func (t *Signer) JWKS() []byte {
	type key struct {
		Type      string `json:"kty"`
		Curve     string `json:"crv"`
		ID        string `json:"kid"`
		Use       string `json:"use"`
		Algorithm string `json:"alg"`
		X         string `json:"x"`
	}
	body, _ := json.Marshal(map[string][]key{"keys": {{
		"OKP", "Ed25519", t.keyID, "sig", "EdDSA", base64.RawURLEncoding.EncodeToString(t.key.Public().(ed25519.PublicKey)),
	}}})
	return body
}

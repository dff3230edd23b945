package playerapi

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/identity"
)

// newSecret makes 256 random bits as text, and the hash under which the core knows them: it never sees the text, so neither
// the journal nor a backup holds anything that lets somebody in.
func newSecret(prefix string) (text string, hash domain.UUID) {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails: since Go 1.24 it ends the program instead
	text = prefix + base64.RawURLEncoding.EncodeToString(b)
	return text, hashOf(text)
}

// hashOf is the first half of the SHA-256.
func hashOf(secret string) domain.UUID {
	sum := sha256.Sum256([]byte(secret))
	return domain.UUID(sum[:16])
}

// newID makes an identifier. With a request id it is the same for each repeat of the request.
func newID() (u domain.UUID) {
	_, _ = rand.Read(u[:])
	return version4(u)
}

func version4(u domain.UUID) domain.UUID {
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}

// connectionTokens makes what players show to game servers: JWTs, signed with EdDSA. One for the same reservation is always
// the same, so nothing of it is stored.
type connectionTokens struct {
	key    ed25519.PrivateKey
	header string
	keyID  string
}

func newConnectionTokens(key ed25519.PrivateKey) *connectionTokens {
	sum := sha256.Sum256(key.Public().(ed25519.PublicKey))
	t := &connectionTokens{key: key, keyID: hex.EncodeToString(sum[:8])}
	header, _ := json.Marshal(map[string]string{"alg": "EdDSA", "typ": "JWT", "kid": t.keyID})
	t.header = base64.RawURLEncoding.EncodeToString(header)
	return t
}

// ConnectionTokens is how the core learns the hashes of connection tokens without the key: for playerDataMode WRAP.
func ConnectionTokens(secret identity.CellSecret) cell.TokenHasher {
	return newConnectionTokens(secret.ConnectionKey())
}

// TokenHash is the SHA-256 of a connection token, in hexadecimal digits.
func (t *connectionTokens) TokenHash(player string, host *flow.Host) string {
	sum := sha256.Sum256([]byte(t.sign(player, host)))
	return hex.EncodeToString(sum[:])
}

// connectionClaims of a token: docs/spec/player-identity.md#connection-token.
type connectionClaims struct {
	Audience string `json:"aud"` // the game session
	Subject  string `json:"sub"` // the player
	Session  string `json:"psid"`
	Instance string `json:"gi"`
	Attempt  int32  `json:"att"`
	Epoch    uint32 `json:"epoch"`
	ID       string `json:"jti"`
	Expires  int64  `json:"exp"`
}

// tokenLeeway is how long a token outlives its reservation: the clocks of hosts differ.
const tokenLeeway = 30 * time.Second

func (t *connectionTokens) sign(player string, h *flow.Host) string {
	unique := sha256.Sum256([]byte(h.Session.String() + "\x00" + player))
	claims, _ := json.Marshal(connectionClaims{
		Audience: gameSessionARN(h.Region, h.GameSession), Subject: player, Session: playerSessionID(h.Session), Instance: gameID(h.Instance),
		Attempt: h.Attempt, Epoch: h.Epoch, ID: hex.EncodeToString(unique[:16]), Expires: cmp.Or(h.TokenUntil, h.ReserveBy).Add(tokenLeeway).Std().Unix(),
	})
	text := t.header + "." + base64.RawURLEncoding.EncodeToString(claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(t.key, []byte(text)))
}

// verify reads a token of ours. What has expired is read as well: whether the reservation is good, the core knows.
func (t *connectionTokens) verify(token string) (claims connectionClaims, ok bool) {
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

// jwks is the public half, as game servers fetch it.
func (t *connectionTokens) jwks() []byte {
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

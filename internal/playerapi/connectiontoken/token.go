package connectiontoken

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// Signer signs the tokens of one cell and verifies them.
type Signer struct {
	jose   jose.Signer
	public jose.JSONWebKey
}

// New makes a signer with the key of the cell.
func New(key ed25519.PrivateKey) *Signer {
	public := key.Public().(ed25519.PublicKey)
	sum := sha256.Sum256(public)
	t := &Signer{public: jose.JSONWebKey{Key: public, KeyID: hex.EncodeToString(sum[:8]), Use: "sig", Algorithm: string(jose.EdDSA)}}
	var err error
	t.jose, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: key, KeyID: t.public.KeyID}}, new(jose.SignerOptions).WithType("JWT"))
	if err != nil {
		panic("connection tokens: no signer for an Ed25519 key: " + err.Error())
	}
	return t
}

// Hasher lets the core compute the hashes of connection tokens without the key, for playerDataMode WRAP.
func Hasher(secret identity.CellSecret) playerflow.TokenHasher {
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

// tokenLeeway is the time that a token is valid beyond its reservation, because the clocks of hosts differ.
const tokenLeeway = 30 * time.Second

// Sign makes the token of a player for a reservation.
func (t *Signer) Sign(player string, h *flow.Host) string {
	unique := sha256.Sum256([]byte(domain.UUID(h.Session).String() + "\x00" + player))
	claims, _ := json.Marshal(Claims{
		Audience: objects.GameSessionARN(h.Region, h.GameSession), Subject: player, Session: objects.ID(h.Session), Instance: objects.ID(h.Instance),
		Attempt: h.Attempt, Epoch: h.Epoch, ID: hex.EncodeToString(unique[:16]), Expires: cmp.Or(h.TokenUntil, h.ReserveBy).Add(tokenLeeway).Std().Unix(),
	})
	signed, err := t.jose.Sign(claims)
	if err != nil {
		panic("connection tokens: an Ed25519 key does not sign: " + err.Error())
	}
	text, _ := signed.CompactSerialize() // a signature of its own always has this form
	return text
}

// Verify reads a token of this cell. It accepts expired ones: the core knows whether the reservation still holds.
func (t *Signer) Verify(token string) (claims Claims, ok bool) {
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return claims, false
	}
	text, err := signed.Verify(t.public.Key)
	return claims, err == nil && json.Unmarshal(text, &claims) == nil
}

// JWKS is the public key as a JWK set, which game servers fetch.
func (t *Signer) JWKS() []byte {
	body, _ := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{t.public}}) // a public key always has this form
	return body
}

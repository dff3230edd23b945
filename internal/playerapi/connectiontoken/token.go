package connectiontoken

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// Signer signs the tokens of one cell and verifies them, with a key of each generation of the cell's secret.
type Signer struct {
	secret identity.CellSecret
	keys   sync.Map // *key by number of the generation
}

// key is the signing key of one generation.
type key struct {
	check  string // the generation's check value
	jose   jose.Signer
	public jose.JSONWebKey
}

// New makes a signer with the keys of the cell.
func New(secret identity.CellSecret) *Signer { return &Signer{secret: secret} }

// of returns the key of a generation.
func (t *Signer) of(secret identity.CellSecret) *key {
	check := secret.Check()
	if known, ok := t.keys.Load(secret.Generation()); ok && known.(*key).check == check {
		return known.(*key)
	}
	k := newKey(secret.ConnectionKey())
	k.check = check
	t.keys.Store(secret.Generation(), k)
	return k
}

func newKey(private ed25519.PrivateKey) *key {
	public := private.Public().(ed25519.PublicKey)
	sum := sha256.Sum256(public)
	k := &key{public: jose.JSONWebKey{Key: public, KeyID: hex.EncodeToString(sum[:8]), Use: "sig", Algorithm: string(jose.EdDSA)}}
	var err error
	k.jose, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: private, KeyID: k.public.KeyID}}, new(jose.SignerOptions).WithType("JWT"))
	if err != nil {
		panic("connection tokens: no signer for an Ed25519 key: " + err.Error())
	}
	return k
}

// Hasher lets the core compute the hashes of connection tokens without the key, for playerDataMode WRAP.
func Hasher(secret identity.CellSecret) playerflow.TokenHasher { return New(secret) }

// TokenHash returns the SHA-256 of a connection token, in hexadecimal digits.
func (t *Signer) TokenHash(player string, host *flow.Host) string {
	sum := sha256.Sum256([]byte(t.Sign(player, host)))
	return hex.EncodeToString(sum[:])
}

// Claims are the claims of a token: docs/spec/player-identity.md#connection-token.
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

// tokenLeeway is how long a token is valid beyond its reservation, because the clocks of hosts differ.
const tokenLeeway = 30 * time.Second

// Sign makes the token of a player for a reservation. The same reservation always gets the same token: the token's end determines which
// generation of the secret signs it.
func (t *Signer) Sign(player string, h *flow.Host) string {
	unique := sha256.Sum256([]byte(domain.UUID(h.Session).String() + "\x00" + player))
	end := cmp.Or(h.TokenUntil, h.ReserveBy).Add(tokenLeeway).Std()
	claims, _ := json.Marshal(Claims{
		Audience: objects.GameSessionARN(h.Region, h.GameSession), Subject: player, Session: objects.ID(h.Session), Instance: objects.ID(h.Instance),
		Attempt: h.Attempt, Epoch: h.Epoch, ID: hex.EncodeToString(unique[:16]), Expires: end.Unix(),
	})
	signed, err := t.of(t.secret.ForTokenUntil(end)).jose.Sign(claims)
	if err != nil {
		panic("connection tokens: an Ed25519 key does not sign: " + err.Error())
	}
	text, _ := signed.CompactSerialize() // cannot fail for a signature made here
	return text
}

// Verify reads a token of this cell. It accepts expired ones: the core knows whether the reservation still holds.
func (t *Signer) Verify(token string) (claims Claims, ok bool) {
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return claims, false
	}
	var text []byte
	proven := t.secret.Accepts("connection token of a player", func(g identity.CellSecret) bool {
		signedText, err := signed.Verify(t.of(g).public.Key)
		if err == nil {
			text = signedText
		}
		return err == nil
	})
	ok = proven && json.Unmarshal(text, &claims) == nil
	return claims, ok
}

// JWKS returns the public keys as a JWK set, which game servers fetch: all keys whose tokens are accepted, and one that will sign soon.
func (t *Signer) JWKS() []byte {
	var all jose.JSONWebKeySet
	for _, g := range t.secret.AcceptedGenerations() {
		all.Keys = append(all.Keys, t.of(g).public)
	}
	body, _ := json.Marshal(all) // cannot fail for a public key
	return body
}

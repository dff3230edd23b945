package connectiontoken

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/identity"
)

// A game server checks a connection token with any JWT library and the service's keys; a changed token is invalid.
func TestConnectionTokens(t *testing.T) {
	secret, err := identity.OpenCellSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tokens := New(secret)
	host := &flow.Host{Instance: flow.InstanceID{1}, GameSession: "fleet-1/home/gs", Region: "us-east-1", Session: domain.PlayerSessionID{2}, Attempt: 3, Epoch: 4, ReserveBy: 1_800_000_000_000}
	token := tokens.Sign("ann", host)
	if again := tokens.Sign("ann", host); again != token {
		t.Error("the same reservation has two tokens")
	}
	var keys jose.JSONWebKeySet
	if err := json.Unmarshal(tokens.JWKS(), &keys); err != nil || len(keys.Keys) != 1 {
		t.Fatalf("the keys: %v, %s", err, tokens.JWKS())
	}
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		t.Fatal(err)
	}
	payload, err := signed.Verify(keys.Key(signed.Signatures[0].Protected.KeyID)[0])
	if err != nil {
		t.Fatal(err)
	}
	var claims Claims
	if err := json.Unmarshal(payload, &claims); err != nil || claims.Subject != "ann" || claims.Audience != "arn:aws:gamelift:us-east-1::gamesession/fleet-1/home/gs" {
		t.Errorf("claims %+v, %v", claims, err)
	}
	if got, ok := tokens.Verify(token); !ok || got != claims {
		t.Errorf("verified as %+v, %t", got, ok)
	}
	parts := strings.Split(token, ".")
	other := strings.Split(tokens.Sign("bob", host), ".")
	for _, forged := range []string{parts[0] + "." + other[1] + "." + parts[2], parts[0] + "." + parts[1] + ".", parts[1] + "." + parts[2], "", "..", token + "x"} {
		if got, ok := tokens.Verify(forged); ok {
			t.Errorf("%q is taken as %+v", forged, got)
		}
	}
}

// The core writes the hash of the player's token into a wrapped PlayerData, and the two still match when a downtime has moved the end
// of the reservation.
func TestTokenHash(t *testing.T) {
	secret := identity.CellSecret{}
	hashes, tokens := Hasher(secret), New(secret)
	host := &flow.Host{GameSession: "fleet-1/here/g", Region: "us-east-1", Session: domain.PlayerSessionID{1}, Attempt: 1, ReserveBy: 60_000, TokenUntil: 60_000}
	token := tokens.Sign("ann", host)
	if sum := sha256.Sum256([]byte(token)); hashes.TokenHash("ann", host) != hex.EncodeToString(sum[:]) {
		t.Error("the hash is not that of the token")
	}
	moved := *host
	moved.ReserveBy += 20_000
	if tokens.Sign("ann", &moved) != token {
		t.Error("the token has changed with the reservation")
	}
	if moved.TokenUntil = 0; tokens.Sign("ann", &moved) == token {
		t.Error("a token with an unknown hash ends with the reservation")
	}
}

// Wrapped PlayerData in the journal has the hash of a token, so tokens are the same bytes in every release.
func TestTokensStayAsTheyAre(t *testing.T) {
	host := &flow.Host{Instance: flow.InstanceID{1}, GameSession: "fleet-1/home/gs", Region: "us-east-1", Session: domain.PlayerSessionID{2}, Attempt: 3, Epoch: 4, ReserveBy: 1_800_000_000_000}
	const want = "eyJhbGciOiJFZERTQSIsImtpZCI6IjI3MzNiYTdiMjJkNGM3YzYiLCJ0eXAiOiJKV1QifQ.eyJhdWQiOiJhcm46YXdzOmdhbWVsaWZ0OnVzLWVhc3QtMTo6Z2FtZXNlc3Npb24vZmxlZXQtMS9ob21lL2dzIiwic3ViIjoiYVx1MDAzY25uXHUwMDI2w6kiLCJwc2lkIjoicHNlc3MtMDIwMDAwMDAtMDAwMC0wMDAwLTAwMDAtMDAwMDAwMDAwMDAwIiwiZ2kiOiJnaS0wMTAwMDAwMC0wMDAwLTAwMDAtMDAwMC0wMDAwMDAwMDAwMDAiLCJhdHQiOjMsImVwb2NoIjo0LCJqdGkiOiJiZTY3Nzk4ZTM0YTg5YTNiMDhjOThhNmNmZTJlODQ0YiIsImV4cCI6MTgwMDAwMDAzMH0.bKVsidDP99M8Yhuvqvx59NwMlIZAPaVWb818Ech4DmECjrAYvsh7sOrgIq1grw8mDzNG53xo_czn0PJKC9PqBA"
	if got := New(identity.CellSecret{}).Sign("a<nn&é", host); got != want {
		t.Errorf("the token is\n%s, want\n%s", got, want)
	}
}

package playerapi

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/musterhq/muster/internal/playerapi/authentication"
)

// A signed token lets its player in once, and the repeat of that login.
func TestSignedTokenLogin(t *testing.T) {
	public, private, _ := ed25519.GenerateKey(rand.Reader)
	set, _ := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "ed"}}})
	path := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(path, set, 0o600); err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: private}, (&jose.SignerOptions{}).WithHeader("kid", "ed"))
	if err != nil {
		t.Fatal(err)
	}
	x := newLobby(t, func(c *Config) {
		keys, err := authentication.OpenLoginKeys(authentication.LoginKeysConfig{Path: path, Now: c.Engine.Now, Log: c.Log})
		if err != nil {
			t.Fatal(err)
		}
		c.LoginKeys = keys
	})
	login := func(jti string) string {
		claims, _ := json.Marshal(map[string]any{"sub": "ann", "jti": jti, "exp": x.clock().Add(time.Minute).Unix()})
		signed, err := signer.Sign(claims)
		if err != nil {
			t.Fatal(err)
		}
		token, _ := signed.CompactSerialize()
		body, _ := json.Marshal(map[string]string{"provider": "backend", "token": token})
		return string(body)
	}
	const id = "X-Request-Id"
	token := login("1")
	first := x.wants(200, "")(x.call("", "Session.Login", token, id, "r"))
	again := x.wants(200, "")(x.call("", "Session.Login", token, id, "r"))
	if again["access_token"] != first["access_token"] {
		t.Errorf("the repeat: %v", again)
	}
	x.wants(401, "UNAUTHENTICATED")(x.call("", "Session.Login", token))
	x.wants(401, "UNAUTHENTICATED")(x.call("", "Session.Login", login("1"), id, "r2"))
	x.wants(200, "")(x.call("", "Session.Login", login("2")))
	late := login("3")
	x.pass(2 * time.Minute)
	x.wants(401, "UNAUTHENTICATED")(x.call("", "Session.Login", late))
	x.wants(401, "UNAUTHENTICATED")(x.call("", "Session.Login", token))
}

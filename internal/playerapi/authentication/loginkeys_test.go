package authentication

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// studio signs tokens for its players.
type studio struct {
	path    string
	edwards ed25519.PrivateKey
	curve   *ecdsa.PrivateKey
	rsa     *rsa.PrivateKey
}

func newStudio(t *testing.T) *studio {
	t.Helper()
	s := &studio{path: filepath.Join(t.TempDir(), "keys.json")}
	_, s.edwards, _ = ed25519.GenerateKey(rand.Reader)
	s.curve, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.rsa, _ = rsa.GenerateKey(rand.Reader, 2048)
	s.publish(t, jose.JSONWebKey{Key: s.edwards.Public(), KeyID: "ed"}, jose.JSONWebKey{Key: s.curve.Public(), KeyID: "ec", Use: "sig"},
		jose.JSONWebKey{Key: s.rsa.Public(), KeyID: "rsa", Algorithm: "RS256"})
	return s
}

func (s *studio) publish(t *testing.T, keys ...jose.JSONWebKey) {
	t.Helper()
	content, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err == nil {
		err = os.WriteFile(s.path, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestSignedTokens(t *testing.T) {
	s := newStudio(t)
	now := time.Unix(1_800_000_000, 0)
	k, err := OpenLoginKeys(LoginKeysConfig{Path: s.path, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	good := func(change ...any) map[string]any {
		claims := map[string]any{"sub": "ann", "name": "Ann", "jti": "1", "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}
		for i := 0; i+1 < len(change); i += 2 {
			if change[i+1] == nil {
				delete(claims, change[i].(string))
			} else {
				claims[change[i].(string)] = change[i+1]
			}
		}
		return claims
	}
	for name, token := range map[string]string{
		"EdDSA":               sign(t, jose.EdDSA, s.edwards, "ed", good()),
		"ES256":               sign(t, jose.ES256, s.curve, "ec", good()),
		"RS256":               sign(t, jose.RS256, s.rsa, "rsa", good()),
		"without iat":         sign(t, jose.EdDSA, s.edwards, "ed", good("iat", nil)),
		"expired a blink ago": sign(t, jose.EdDSA, s.edwards, "ed", good("exp", now.Add(-time.Second).Unix())),
	} {
		if claim, err := k.Identify(t.Context(), token); err != nil || claim.Player != "ann" || claim.DisplayName != "Ann" || claim.Once.IsZero() || claim.Until == 0 {
			t.Errorf("%s: %+v, %v", name, claim, err)
		}
	}
	one, _ := k.Identify(t.Context(), sign(t, jose.ES256, s.curve, "ec", good()))
	same, _ := k.Identify(t.Context(), sign(t, jose.ES256, s.curve, "ec", good())) // with another signature
	two, _ := k.Identify(t.Context(), sign(t, jose.ES256, s.curve, "ec", good("jti", "2")))
	if one.Once != same.Once || one.Once == two.Once {
		t.Error("a token is known by something else than its key and jti")
	}
	stranger, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	public, _ := x509.MarshalPKIXPublicKey(s.rsa.Public())
	embedded, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: stranger, KeyID: "ec"}}, &jose.SignerOptions{EmbedJWK: true})
	if err != nil {
		t.Fatal(err)
	}
	payload, _ := json.Marshal(good())
	signed, _ := embedded.Sign(payload)
	jwk, _ := signed.CompactSerialize()
	for name, token := range map[string]string{
		"no signature":             "eyJhbGciOiJub25lIiwia2lkIjoiZWQifQ." + strings.Split(sign(t, jose.EdDSA, s.edwards, "ed", good()), ".")[1] + ".",
		"the public key as HS":     sign(t, jose.HS256, public, "rsa", good()),
		"a stranger's key":         sign(t, jose.ES256, stranger, "ec", good()),
		"a key of its own":         jwk,
		"another algorithm":        sign(t, jose.PS256, s.rsa, "rsa", good()),
		"another length":           sign(t, jose.RS384, s.rsa, "rsa", good()),
		"the key of another":       sign(t, jose.EdDSA, s.edwards, "ec", good()),
		"an unknown key":           sign(t, jose.EdDSA, s.edwards, "who", good()),
		"no key":                   sign(t, jose.EdDSA, s.edwards, "", good()),
		"expired":                  sign(t, jose.EdDSA, s.edwards, "ed", good("exp", now.Add(-signedLeeway).Unix())),
		"no end":                   sign(t, jose.EdDSA, s.edwards, "ed", good("exp", nil)),
		"an end that is a text":    sign(t, jose.EdDSA, s.edwards, "ed", good("exp", "soon")),
		"good for an hour":         sign(t, jose.EdDSA, s.edwards, "ed", good("exp", now.Add(time.Hour).Unix())),
		"good for an hour since":   sign(t, jose.EdDSA, s.edwards, "ed", good("iat", now.Add(-time.Hour).Unix())),
		"from the future":          sign(t, jose.EdDSA, s.edwards, "ed", good("iat", now.Add(time.Hour).Unix())),
		"not valid yet":            sign(t, jose.EdDSA, s.edwards, "ed", good("nbf", now.Add(time.Minute).Unix())),
		"no name":                  sign(t, jose.EdDSA, s.edwards, "ed", good("jti", nil)),
		"a long name":              sign(t, jose.EdDSA, s.edwards, "ed", good("jti", strings.Repeat("x", signedNameMax+1))),
		"no player":                sign(t, jose.EdDSA, s.edwards, "ed", good("sub", nil)),
		"a player who cannot be":   sign(t, jose.EdDSA, s.edwards, "ed", good("sub", "an n")),
		"a player who is a number": sign(t, jose.EdDSA, s.edwards, "ed", good("sub", 7)),
		"too long":                 sign(t, jose.EdDSA, s.edwards, "ed", good("more", strings.Repeat("x", TokenBytesMax))),
		"nonsense":                 "a.b.c",
	} {
		if claim, err := k.Identify(t.Context(), token); err == nil {
			t.Errorf("%s: taken as %+v", name, claim)
		}
	}
}

// A file that cannot be read is an error when the service starts.
func TestLoginKeysFile(t *testing.T) {
	if _, err := OpenLoginKeys(LoginKeysConfig{Path: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a file that is not there is taken")
	}
}

// A backend's key may sign for others as well: if this service has a name, a token's audience must contain it; without a name the service
// refuses tokens with an audience.
func TestSignedTokensAreForUs(t *testing.T) {
	s := newStudio(t)
	now := time.Unix(1_800_000_000, 0)
	token := func(iss, aud any) string {
		claims := map[string]any{"sub": "ann", "jti": "1", "exp": now.Add(time.Minute).Unix()}
		if iss != nil {
			claims["iss"] = iss
		}
		if aud != nil {
			claims["aud"] = aud
		}
		return sign(t, jose.EdDSA, s.edwards, "ed", claims)
	}
	names := []string{"muster", "https://muster.example.com"}
	for _, c := range []struct {
		name               string
		audiences, issuers []string
		iss, aud           any
		good               bool
	}{
		{"nothing said, nothing asked", nil, nil, nil, nil, true},
		{"an issuer that no setting requires", nil, nil, "lobby", nil, true},
		{"for a service, while this one has no name", nil, nil, nil, "chat", false},
		{"for no service, in a list", nil, nil, nil, []string{}, false},
		{"for us", names, nil, nil, "muster", true},
		{"for us by the other name", names, nil, nil, names[1], true},
		{"for us and others", names, nil, nil, []string{"chat", "muster"}, true},
		{"for others", names, nil, nil, []string{"chat", "shop"}, false},
		{"for a service with a longer name", names, nil, nil, "muster2", false},
		{"for us in capitals", names, nil, nil, "Muster", false},
		{"without an audience", names, nil, nil, nil, false},
		{"for a number", names, nil, nil, 7, false},
		{"for a list of no texts", names, nil, nil, []any{7, nil}, false},
		{"from our lobby", nil, []string{"lobby", "shop"}, "lobby", nil, true},
		{"from another issuer", nil, []string{"lobby"}, "chat", nil, false},
		{"without an issuer", nil, []string{"lobby"}, nil, nil, false},
		{"from a number", nil, []string{"lobby"}, 7, nil, false},
		{"from our lobby for us", names, []string{"lobby"}, "lobby", "muster", true},
		{"from our lobby for others", names, []string{"lobby"}, "lobby", "chat", false},
	} {
		k, err := OpenLoginKeys(LoginKeysConfig{
			Path: s.path, Audiences: c.audiences, Issuers: c.issuers, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		if claim, err := k.Identify(t.Context(), token(c.iss, c.aud)); (err == nil) != c.good {
			t.Errorf("%s: %+v, %v", c.name, claim, err)
		}
	}
}

// compact signs a header and a payload that no library would make.
func compact(key ed25519.PrivateKey, header, payload string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(text)))
}

// A correctly signed token is a login only if it is unambiguous: its type, its headers and its claims have only one reading.
func TestTokensThatAreSomethingElse(t *testing.T) {
	s := newStudio(t)
	x := startIssuer(t)
	x.keys.Keys = []jose.JSONWebKey{{Key: s.edwards.Public(), KeyID: "ed"}}
	now := time.Unix(1_800_000_000, 0)
	backend, err := OpenLoginKeys(LoginKeysConfig{
		Path: s.path, Audiences: []string{"game"}, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	oidc, err := NewOIDC(OIDCConfig{Issuer: x.URL, Audiences: []string{"game"}, Client: x.Client(), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	const header = `{"alg":"EdDSA","kid":"ed"}`
	claims := fmt.Sprintf(`{"iss":%q,"aud":"game","sub":"ann","jti":"1","iat":%d,"exp":%d}`, x.URL, now.Unix(), now.Add(time.Minute).Unix())
	plain := compact(s.edwards, header, claims)
	parts := strings.Split(plain, ".")
	typed := func(typ string) string { return compact(s.edwards, `{"alg":"EdDSA","kid":"ed","typ":`+typ+`}`, claims) }
	for _, c := range []struct {
		name, token   string
		backend, oidc bool
	}{
		{"a token", plain, true, true},
		{"its type", typed(`"JWT"`), true, true},
		{"its type in small letters", typed(`"jwt"`), true, true},
		{"its type as a media type", typed(`"application/jwt"`), true, true},
		{"an access token", typed(`"at+jwt"`), false, true},
		{"a logout", typed(`"logout+jwt"`), false, false},
		{"a proof of possession", typed(`"dpop+jwt"`), false, false},
		{"an event", typed(`"secevent+jwt"`), false, false},
		{"a type that is no text", typed(`7`), false, false},
		{"an empty type", typed(`""`), false, false},
		{"a header that must be understood", compact(s.edwards, `{"alg":"EdDSA","kid":"ed","crit":["exp"],"exp":1}`, claims), false, false},
		{"a payload that is not encoded", compact(s.edwards, `{"alg":"EdDSA","kid":"ed","crit":["b64"],"b64":false}`, claims), false, false},
		{"two algorithms", compact(s.edwards, `{"alg":"none","alg":"EdDSA","kid":"ed"}`, claims), false, false},
		{"two keys", compact(s.edwards, `{"alg":"EdDSA","kid":"ec","kid":"ed"}`, claims), false, false},
		{"an algorithm in small letters", compact(s.edwards, `{"alg":"eddsa","kid":"ed"}`, claims), false, false},
		{"a key elsewhere", compact(s.edwards, `{"alg":"EdDSA","kid":"who","jku":"https://evil.example/keys"}`, claims), false, false},
		{"two players", compact(s.edwards, header, strings.Replace(claims, `"sub"`, `"sub":"bob","sub"`, 1)), false, false},
		{"two players, one in capitals", compact(s.edwards, header, strings.Replace(claims, `"jti"`, `"SUB":"bob","jti"`, 1)), true, true}, // who is not looked at
		{"no player but one in capitals", compact(s.edwards, header, strings.Replace(claims, `"sub"`, `"SUB"`, 1)), false, false},
		{"a list", compact(s.edwards, header, "["+claims+"]"), false, false},
		{"two objects", compact(s.edwards, header, claims+claims), false, false},
		{"nothing", compact(s.edwards, header, ""), false, false},
		{"null", compact(s.edwards, header, "null"), false, false},
		{"a part too many", plain + ".x", false, false},
		{"no signature", parts[0] + "." + parts[1] + ".", false, false},
		{"the payload of another", parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(claims, "ann", "bob", 1))) + "." + parts[2], false, false},
		{"as an object", `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, false, false},
	} {
		for name, taken := range map[string]bool{"backend": c.backend, "oidc": c.oidc} {
			p := map[string]Provider{"backend": backend, "oidc": oidc}[name]
			claim, err := p.Identify(t.Context(), c.token)
			if (err == nil) != taken || err == nil && claim.Player != "ann" {
				t.Errorf("%s to %s: %+v, %v", c.name, name, claim, err)
			}
		}
	}
}

package authentication

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/musterhq/muster/internal/live"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
)

// issuer is an identity provider with keys that can be changed.
type issuer struct {
	*httptest.Server
	keys  jose.JSONWebKeySet
	asked int
	down  bool
}

func startIssuer(t *testing.T) *issuer {
	x := &issuer{}
	x.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case x.down:
			http.Error(w, "down", http.StatusServiceUnavailable)
		case strings.HasSuffix(r.URL.Path, "/openid-configuration"):
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, x.URL, x.URL+"/keys")
		default:
			x.asked++
			_ = json.NewEncoder(w).Encode(x.keys)
		}
	}))
	t.Cleanup(x.Close)
	return x
}

func (x *issuer) newKey(t *testing.T, id string) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	x.keys.Keys = append(x.keys.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: id, Algorithm: "ES256", Use: "sig"})
	return key
}

func sign(t *testing.T, algorithm jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", id))
	if err != nil {
		t.Fatal(err)
	}
	payload, _ := json.Marshal(claims)
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestOIDC(t *testing.T) {
	x := startIssuer(t)
	key := x.newKey(t, "one")
	now := time.Unix(1_800_000_000, 0)
	o, err := NewOIDC(OIDCConfig{
		Issuer: x.URL, Audiences: []string{"game"}, Prefix: "studio:", Required: map[string]string{"env": "prod"}, Client: x.Client(),
		Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	good := func(change ...any) map[string]any {
		claims := map[string]any{
			"iss": x.URL, "aud": []string{"other", "game"}, "sub": "ann", "name": "Ann", "env": "prod",
			"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		}
		for i := 0; i+1 < len(change); i += 2 {
			if change[i+1] == nil {
				delete(claims, change[i].(string))
			} else {
				claims[change[i].(string)] = change[i+1]
			}
		}
		return claims
	}
	claim, err := o.Identify(t.Context(), sign(t, jose.ES256, key, "one", good()))
	if err != nil || claim.Player != "studio:ann" || claim.DisplayName != "Ann" || claim.Insecure {
		t.Fatalf("a good token: %+v, %v", claim, err)
	}
	other, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	public, _ := x509.MarshalPKIXPublicKey(key.Public())
	none := "eyJhbGciOiJub25lIiwia2lkIjoib25lIn0." + strings.Split(sign(t, jose.ES256, key, "one", good()), ".")[1] + "."
	for name, token := range map[string]string{
		"no signature":            none,
		"the public key as HS":    sign(t, jose.HS256, public, "one", good()),
		"another key":             sign(t, jose.ES256, other, "one", good()),
		"another issuer":          sign(t, jose.ES256, key, "one", good("iss", "https://evil.example")),
		"another audience":        sign(t, jose.ES256, key, "one", good("aud", "other")),
		"expired":                 sign(t, jose.ES256, key, "one", good("exp", now.Add(-2*time.Minute).Unix())),
		"no end":                  sign(t, jose.ES256, key, "one", good("exp", nil)),
		"a start that is no time": sign(t, jose.ES256, key, "one", good("nbf", "tomorrow")),
		"not valid yet":           sign(t, jose.ES256, key, "one", good("nbf", now.Add(2*time.Minute).Unix())),
		"from the future":         sign(t, jose.ES256, key, "one", good("iat", now.Add(2*time.Minute).Unix())),
		"from long ago":           sign(t, jose.ES256, key, "one", good("iat", now.Add(-25*time.Hour).Unix())),
		"a required claim":        sign(t, jose.ES256, key, "one", good("env", "test")),
		"no player":               sign(t, jose.ES256, key, "one", good("sub", nil)),
		"a player who is a map":   sign(t, jose.ES256, key, "one", good("sub", map[string]any{"a": 1})),
		"too long":                sign(t, jose.ES256, key, "one", good("more", strings.Repeat("x", TokenBytesMax))),
		"nonsense":                "a.b.c",
	} {
		if claim, err := o.Identify(t.Context(), token); err == nil {
			t.Errorf("%s: taken as %+v", name, claim)
		}
	}
}

// Tokens of an RSA key that is too short to be safe are refused. The error, which the log has, names the key and the least size.
func TestOIDCRefusesShortKeys(t *testing.T) {
	x := startIssuer(t)
	o, err := NewOIDC(OIDCConfig{Issuer: x.URL, Audiences: []string{"game"}, Algorithms: []string{"RS256", "PS256"}, Client: x.Client()})
	if err != nil {
		t.Fatal(err)
	}
	keys := map[int]*rsa.PrivateKey{}
	for _, bits := range []int{1024, 2048} {
		if keys[bits], err = rsa.GenerateKey(rand.Reader, bits); err != nil {
			t.Fatal(err)
		}
		x.keys.Keys = append(x.keys.Keys, jose.JSONWebKey{Key: keys[bits].Public(), KeyID: fmt.Sprint("rsa-", bits)})
	}
	now := time.Now()
	claims := map[string]any{"iss": x.URL, "aud": "game", "sub": "ann", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	for _, algorithm := range []jose.SignatureAlgorithm{jose.RS256, jose.PS256} {
		if _, err := o.Identify(t.Context(), sign(t, algorithm, keys[2048], "rsa-2048", claims)); err != nil {
			t.Errorf("%s with 2048 bits: %v", algorithm, err)
		}
		_, err := o.Identify(t.Context(), sign(t, algorithm, keys[1024], "rsa-1024", claims))
		if want := `key "rsa-1024" is an RSA key of 1024 bits, want at least 2048`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s with 1024 bits: %v, want %s", algorithm, err, want)
		}
	}
}

// A new key is fetched when the first token with it arrives. Made-up keys cause only occasional requests to the provider. While the
// provider is down, its last keys stay valid for a day.
func TestOIDCKeysChange(t *testing.T) {
	x := startIssuer(t)
	first := x.newKey(t, "one")
	now := time.Unix(1_800_000_000, 0)
	o, err := NewOIDC(OIDCConfig{Issuer: x.URL, Audiences: []string{"game"}, Client: x.Client(), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	try := func(key *ecdsa.PrivateKey, id string) error {
		_, err := o.Identify(t.Context(), sign(t, jose.ES256, key, id, map[string]any{
			"iss": x.URL, "aud": "game", "sub": "ann", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		}))
		return err
	}
	if err := try(first, "one"); err != nil {
		t.Fatal(err)
	}
	second := x.newKey(t, "two")
	for range 100 {
		if try(second, "two") == nil {
			t.Fatal("the new key is known before the provider was asked")
		}
	}
	if x.asked != 1 {
		t.Errorf("asked %d times within 30 s", x.asked)
	}
	now = now.Add(30 * time.Second)
	if err := try(second, "two"); err != nil {
		t.Errorf("after 30 s the new key is not known: %v", err)
	}
	x.down = true
	now = now.Add(23 * time.Hour)
	if err := try(first, "one"); err != nil {
		t.Errorf("while the provider is down: %v", err)
	}
	now = now.Add(2 * time.Hour)
	if try(first, "one") == nil {
		t.Error("a day after the keys came they are good still")
	}
	for _, c := range []OIDCConfig{
		{Issuer: "http://plain.example", Audiences: []string{"game"}},
		{Issuer: "https://a.example"},
		{Issuer: "https://a.example", Audiences: []string{"game"}, Algorithms: []string{"HS256"}},
	} {
		if _, err := NewOIDC(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// An invalid player id is refused like a missing one.
func TestOIDCPlayerID(t *testing.T) {
	x := startIssuer(t)
	key := x.newKey(t, "one")
	now := time.Unix(1_800_000_000, 0)
	token := func(sub string) string {
		return sign(t, jose.ES256, key, "one", map[string]any{"iss": x.URL, "aud": "game", "sub": sub, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()})
	}
	o, err := NewOIDC(OIDCConfig{Issuer: x.URL, Audiences: []string{"game"}, Client: x.Client(), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"auth0|1", "an n", strings.Repeat("x", 129)} {
		if claim, err := o.Identify(t.Context(), token(sub)); err == nil {
			t.Errorf("sub %q: taken as %+v", sub, claim)
		}
	}
	if _, err := o.Identify(t.Context(), token("ann")); err != nil {
		t.Error(err)
	}
	if len(o.algorithms) != 3 {
		t.Errorf("algorithms: %v, want RS256, ES256 and EdDSA", o.algorithms)
	}
}

// A provider that does not answer is no reason to reject a token: the client is told to retry. The provider's answer about a key is.
func TestOIDCProviderIsDown(t *testing.T) {
	x := startIssuer(t)
	key := x.newKey(t, "one")
	now := time.Unix(1_800_000_000, 0)
	o, err := NewOIDC(OIDCConfig{Issuer: x.URL, Audiences: []string{"game"}, Client: x.Client(), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	a := &Authenticator{Config{Logins: live.Of(Logins{Providers: map[string]Provider{"oidc": o}})}}
	ctx := principal.With(t.Context(), &principal.Principal{})
	login := func(kid string) string {
		_, err := a.Login(ctx, "oidc", sign(t, jose.ES256, key, kid, map[string]any{"iss": x.URL, "aud": "game", "sub": "ann", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}))
		if p, ok := errors.AsType[*problem.Problem](err); ok {
			return string(p.Code)
		}
		return fmt.Sprint(err)
	}
	x.down = true
	if got := login("one"); got != "UNAVAILABLE" {
		t.Errorf("while the provider is down: %s", got)
	}
	x.down, now = false, now.Add(30*time.Second)
	if got := login("one"); got != "<nil>" {
		t.Errorf("when it is up again: %s", got)
	}
	now = now.Add(30 * time.Second)
	if got := login("none"); got != "UNAUTHENTICATED" {
		t.Errorf("a key that it does not have: %s", got)
	}
}

// While a provider is slow to answer about a made-up key, players with valid tokens can log in. Clients that wait for the same answer share one request.
func TestOIDCSlowProvider(t *testing.T) {
	x := startIssuer(t)
	key := x.newKey(t, "one")
	now := time.Unix(1_800_000_000, 0)
	o, err := NewOIDC(OIDCConfig{Issuer: x.URL, Audiences: []string{"game"}, Client: x.Client(), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	token := func(kid string) string {
		return sign(t, jose.ES256, key, kid, map[string]any{"iss": x.URL, "aud": "game", "sub": "ann", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()})
	}
	good, made, next := token("one"), token("made up"), token("two")
	if _, err := o.Identify(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	now = now.Add(30 * time.Second)
	asked, answer := make(chan struct{}), make(chan struct{})
	x.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-answer
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: append(x.keys.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: "two"})})
	})
	results := make(chan error)
	go func() {
		_, err := o.Identify(t.Context(), made)
		results <- err
	}()
	<-asked
	if _, err := o.Identify(t.Context(), good); err != nil {
		t.Errorf("a good token meanwhile: %v", err)
	}
	gone, stop := context.WithCancel(t.Context())
	stop()
	if _, err := o.Identify(gone, next); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that has gone: %v", err)
	}
	go func() {
		_, err := o.Identify(t.Context(), next)
		results <- err
	}()
	close(answer)
	one, two := <-results, <-results
	if (one == nil) == (two == nil) {
		t.Errorf("the key that came and the one that was made up: %v, %v", one, two)
	}
}

package authentication

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	exactjson "github.com/go-jose/go-jose/v4/json"

	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/tokenkeys"
)

// OIDCConfig is a studio's identity provider.
type OIDCConfig struct {
	Issuer     string // https; exactly as tokens name it
	Audiences  []string
	JWKS       string            // URL of the keys; empty: the one in the issuer's discovery document
	Claim      string            // the claim with the player's id; empty: sub
	NameClaim  string            // the claim with the display name; empty: name
	Prefix     string            // precedes the id, so that two issuers never produce the same player
	Required   map[string]string // claims that a token must have
	Algorithms []string          // empty: RS256, ES256, EdDSA
	MaxAge     time.Duration     // the maximum age of a token since it was issued; 0: 24 hours

	Client *http.Client     // nil: one with a time limit
	Now    func() time.Time // nil: the wall clock
}

const (
	oidcLeeway = time.Minute
	oidcMaxAge = 24 * time.Hour
)

// OIDC checks tokens of an identity provider: docs/spec/player-identity.md#oidc.
type OIDC struct {
	config     OIDCConfig
	algorithms []jose.SignatureAlgorithm
	keys       *tokenkeys.Provider
}

// NewOIDC checks the configuration. It makes no request, because a provider that is down must not prevent the service from starting.
func NewOIDC(c OIDCConfig) (*OIDC, error) {
	for name, address := range map[string]string{"issuer": c.Issuer, "jwks": c.JWKS} {
		u, err := url.Parse(address)
		if name == "jwks" && address == "" {
			continue
		}
		if err != nil || u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("oidc %s %q: want an https URL", name, address)
		}
	}
	if len(c.Audiences) == 0 {
		return nil, errors.New("oidc audience: empty; want at least one, or tokens for other services would be valid here")
	}
	o := &OIDC{}
	if len(c.Algorithms) == 0 {
		o.algorithms = tokenkeys.Algorithms
	}
	for _, a := range c.Algorithms {
		if a == "none" || strings.HasPrefix(a, "HS") {
			return nil, fmt.Errorf("oidc algorithm %s: want one with a public key", a)
		}
		o.algorithms = append(o.algorithms, jose.SignatureAlgorithm(a))
	}
	c.Claim = cmp.Or(c.Claim, "sub")
	c.NameClaim = cmp.Or(c.NameClaim, "name")
	c.MaxAge = cmp.Or(c.MaxAge, oidcMaxAge)
	if c.Now == nil {
		c.Now = time.Now
	}
	o.config = c
	o.keys = tokenkeys.NewProvider(tokenkeys.ProviderConfig{Issuer: c.Issuer, JWKS: c.JWKS, Client: c.Client, Now: c.Now})
	return o, nil
}

// Identify checks a token, in the order of docs/spec/player-identity.md#oidc.
func (o *OIDC) Identify(ctx context.Context, token string) (Claim, error) {
	if len(token) > TokenBytesMax {
		return Claim{}, fmt.Errorf("token has %d bytes, want at most %d", len(token), TokenBytesMax)
	}
	signed, err := jose.ParseSignedCompact(token, o.algorithms) // checks alg; the keys in jku, x5u and jwk are ignored
	if err != nil {
		return Claim{}, err
	}
	keyID := signed.Signatures[0].Protected.KeyID
	key, err := o.keys.Key(ctx, keyID)
	if err != nil {
		return Claim{}, err
	}
	if key.Algorithm != "" && key.Algorithm != signed.Signatures[0].Protected.Algorithm {
		return Claim{}, fmt.Errorf("key %.60q is for %s, the token says %s", keyID, key.Algorithm, signed.Signatures[0].Protected.Algorithm)
	}
	if err := tokenkeys.CheckType(signed.Signatures[0].Protected, "JWT", "at+jwt"); err != nil {
		return Claim{}, err
	}
	payload, err := signed.Verify(key)
	if err != nil {
		return Claim{}, err
	}
	if err := tokenkeys.CheckKeySize(signed); err != nil {
		return Claim{}, fmt.Errorf("issuer %s: %w", o.config.Issuer, err)
	}
	var claims map[string]any
	if err := exactjson.Unmarshal(payload, &claims); err != nil {
		return Claim{}, err
	}
	if err := o.check(claims); err != nil {
		return Claim{}, err
	}
	player, _ := claims[o.config.Claim].(string)
	if player == "" {
		return Claim{}, fmt.Errorf("claim %s is missing or not a string", o.config.Claim)
	}
	player = o.config.Prefix + player
	if err := playerflow.CheckPlayerID(player); err != nil {
		return Claim{}, fmt.Errorf("claim %s: %w", o.config.Claim, err)
	}
	name, _ := claims[o.config.NameClaim].(string)
	return Claim{Player: player, DisplayName: clip(name)}, nil
}

// clip shortens a display name.
func clip(name string) string {
	const most = 64
	letters := []rune(name)
	if len(letters) > most {
		return string(letters[:most])
	}
	return name
}

func (o *OIDC) check(claims map[string]any) error {
	if issuer, _ := claims["iss"].(string); issuer != o.config.Issuer {
		return fmt.Errorf("iss %.100q, want %q", issuer, o.config.Issuer)
	}
	if !slices.ContainsFunc(tokenkeys.Audiences(claims["aud"]), func(a string) bool { return slices.Contains(o.config.Audiences, a) }) {
		return fmt.Errorf("aud %v, want one of %q", claims["aud"], o.config.Audiences)
	}
	now := o.config.Now()
	expires, ok := tokenkeys.Instant(claims["exp"])
	if !ok || now.After(expires.Add(oidcLeeway)) {
		return fmt.Errorf("exp %v: expired or missing", claims["exp"])
	}
	if from, ok := tokenkeys.Instant(claims["nbf"]); claims["nbf"] != nil && (!ok || now.Add(oidcLeeway).Before(from)) {
		return fmt.Errorf("nbf %v: not valid yet", claims["nbf"])
	}
	issued, ok := tokenkeys.Instant(claims["iat"])
	if !ok || now.Add(oidcLeeway).Before(issued) || now.Sub(issued) > o.config.MaxAge+oidcLeeway {
		return fmt.Errorf("iat %v: missing, in the future, or more than %s ago", claims["iat"], o.config.MaxAge)
	}
	for name, want := range o.config.Required {
		if got, _ := claims[name].(string); got != want {
			return fmt.Errorf("claim %s: %v, want %q", name, claims[name], want)
		}
	}
	return nil
}

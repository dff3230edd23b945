package authentication

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	exactjson "github.com/go-jose/go-jose/v4/json" // matches names case-sensitively and rejects duplicates

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/tokenkeys"
)

const (
	signedLifeMax = 5 * time.Minute
	signedLeeway  = 30 * time.Second // the clocks of backends differ from ours
	signedNameMax = 128
)

// LoginKeys checks tokens that a studio's backend signs for players whom it has authenticated: JWTs that live for minutes and are valid
// for one login. The public keys are in a file, as a JWK set, which is read again when it changes. docs/spec/player-identity.md#backend.
type LoginKeys struct {
	LoginKeysConfig
	keys *tokenkeys.File
}

// LoginKeysConfig defines which tokens are accepted.
type LoginKeysConfig struct {
	Path      string
	Audiences []string         // a token must be for one of them; none: it must name no audience
	Issuers   []string         // and from one of them; none: the key alone decides
	Now       func() time.Time // the core's clock, by which the core also forgets used tokens
	Log       *slog.Logger
}

// OpenLoginKeys reads the file. It fails on a key that cannot be used.
func OpenLoginKeys(c LoginKeysConfig) (*LoginKeys, error) {
	keys, err := tokenkeys.OpenFile(c.Path, "login keys", c.Log)
	return &LoginKeys{c, keys}, err
}

// signedClaims are the claims of a token.
type signedClaims struct {
	Player    string   `json:"sub"`
	Name      string   `json:"name"`
	ID        string   `json:"jti"`
	Expires   *float64 `json:"exp"`
	Issued    *float64 `json:"iat"`
	NotBefore *float64 `json:"nbf"`
	Issuer    string   `json:"iss"`
	Audience  any      `json:"aud"`
}

// Identify checks a token.
func (k *LoginKeys) Identify(_ context.Context, token string) (Claim, error) {
	if len(token) > TokenBytesMax {
		return Claim{}, fmt.Errorf("token has %d bytes, want at most %d", len(token), TokenBytesMax)
	}
	signed, err := jose.ParseSignedCompact(token, tokenkeys.Algorithms) // jku, x5u and jwk are ignored
	if err != nil {
		return Claim{}, err
	}
	header := signed.Signatures[0].Protected
	key, ok := k.keys.Find(header.KeyID)
	if !ok || header.KeyID == "" {
		return Claim{}, fmt.Errorf("kid %.60q is not in the file of login keys", header.KeyID)
	}
	if header.Algorithm != string(key.Signs) {
		return Claim{}, fmt.Errorf("key %.60q is for %s, the token says %s", header.KeyID, key.Signs, header.Algorithm)
	}
	if err := tokenkeys.CheckType(header, "JWT"); err != nil {
		return Claim{}, err
	}
	payload, err := signed.Verify(key.Key)
	if err != nil {
		return Claim{}, err
	}
	var claims signedClaims
	if err := exactjson.Unmarshal(payload, &claims); err != nil {
		return Claim{}, err
	}
	if err := k.meant(&claims); err != nil {
		return Claim{}, err
	}
	until, err := claims.until(k.Now())
	if err != nil {
		return Claim{}, err
	}
	if err := playerflow.CheckPlayerID(claims.Player); err != nil {
		return Claim{}, fmt.Errorf("sub: %w", err)
	}
	if claims.ID == "" || len(claims.ID) > signedNameMax {
		return Claim{}, fmt.Errorf("jti has %d bytes, want 1 to %d", len(claims.ID), signedNameMax)
	}
	// The id and not the token's text identifies it, because some signatures have two encodings.
	once := Hash("signed-token\x00" + header.KeyID + "\x00" + claims.ID)
	return Claim{Player: claims.Player, DisplayName: clip(claims.Name), Once: once, Until: domain.TimeOf(until)}, nil
}

// meant checks that a token was made for this service. A backend's key may sign for other services, too, so an audience must contain this
// one; RFC 7519, 4.1.3.
func (k *LoginKeys) meant(claims *signedClaims) error {
	if len(k.Issuers) > 0 && !slices.Contains(k.Issuers, claims.Issuer) {
		return fmt.Errorf("iss %.100q, want one of %q", claims.Issuer, k.Issuers)
	}
	named := tokenkeys.Audiences(claims.Audience)
	switch {
	case len(k.Audiences) == 0 && claims.Audience == nil:
		return nil
	case len(k.Audiences) == 0:
		return fmt.Errorf("aud %.100q: want none, because no audience is configured", named)
	case !slices.ContainsFunc(named, func(a string) bool { return slices.Contains(k.Audiences, a) }):
		return fmt.Errorf("aud %.100q, want one of %q", named, k.Audiences)
	}
	return nil
}

// until returns the instant from which the service refuses a token, so that it may forget the token's use.
func (c *signedClaims) until(now time.Time) (time.Time, error) {
	expires, ok := numericDate(c.Expires)
	switch {
	case !ok:
		return expires, errors.New("exp is missing or not a time")
	case !now.Before(expires.Add(signedLeeway)):
		return expires, fmt.Errorf("exp %s: expired", expires)
	case expires.After(now.Add(signedLifeMax + signedLeeway)):
		return expires, fmt.Errorf("exp %s: want at most %s from now", expires, signedLifeMax)
	}
	if issued, ok := numericDate(c.Issued); ok {
		if issued.After(now.Add(signedLeeway)) || expires.Sub(issued) > signedLifeMax {
			return expires, fmt.Errorf("iat %s: in the future, or more than %s before exp", issued, signedLifeMax)
		}
	} else if c.Issued != nil {
		return expires, errors.New("iat is not a time")
	}
	if from, ok := numericDate(c.NotBefore); c.NotBefore != nil && (!ok || from.After(now.Add(signedLeeway))) {
		return expires, fmt.Errorf("nbf %s: not valid yet", from)
	}
	return expires.Add(signedLeeway), nil
}

func numericDate(seconds *float64) (time.Time, bool) {
	if seconds == nil {
		return time.Time{}, false
	}
	return tokenkeys.Instant(*seconds)
}

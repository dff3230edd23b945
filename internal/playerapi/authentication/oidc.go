package authentication

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	exactjson "github.com/go-jose/go-jose/v4/json"

	"github.com/musterhq/muster/internal/domain/playerflow"
)

// OIDCConfig is a studio's identity provider.
type OIDCConfig struct {
	Issuer     string // https; exactly as tokens name it
	Audiences  []string
	JWKS       string            // URL of the keys; empty: the one in the issuer's discovery document
	Claim      string            // that holds the player's id; empty: sub
	NameClaim  string            // that holds the name others see; empty: name
	Prefix     string            // before the id: different issuers must not make the same players
	Required   map[string]string // claims that a token must have
	Algorithms []string          // empty: RS256, ES256, EdDSA
	MaxAge     time.Duration     // since a token was issued; 0: 24 hours

	Client *http.Client     // nil: one with a time limit
	Now    func() time.Time // nil: the wall clock
}

const (
	oidcLeeway      = time.Minute
	oidcMaxAge      = 24 * time.Hour
	keysKept        = 10 * time.Minute // if the provider gives no lifetime
	keysKeptLeast   = time.Minute
	keysKeptMost    = 24 * time.Hour
	keysAskedEvery  = 30 * time.Second // for an unknown key: made-up ids must not cause a storm of requests
	keysGoodFor     = 24 * time.Hour   // while the provider is down
	documentBytes   = 1 << 20
	providerTimeout = 10 * time.Second
)

// OIDC checks tokens of an identity provider: docs/spec/player-identity.md#oidc.
type OIDC struct {
	config     OIDCConfig
	algorithms []jose.SignatureAlgorithm

	mu       sync.Mutex
	keys     jose.JSONWebKeySet // replaced as a whole
	fetched  time.Time          // when the keys were fetched
	asked    time.Time          // when they were asked for
	until    time.Time          // fresh until
	jwks     string
	fetching chan struct{} // closed when the fetch that is under way has ended; nil: none is
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
	if len(c.Algorithms) == 0 {
		c.Algorithms = []string{"RS256", "ES256", "EdDSA"}
	}
	o := &OIDC{jwks: c.JWKS}
	for _, a := range c.Algorithms {
		if a == "none" || strings.HasPrefix(a, "HS") {
			return nil, fmt.Errorf("oidc algorithm %s: want one with a public key", a)
		}
		o.algorithms = append(o.algorithms, jose.SignatureAlgorithm(a))
	}
	c.Claim = cmp.Or(c.Claim, "sub")
	c.NameClaim = cmp.Or(c.NameClaim, "name")
	c.MaxAge = cmp.Or(c.MaxAge, oidcMaxAge)
	c.Client = cmp.Or(c.Client, &http.Client{Timeout: providerTimeout, CheckRedirect: stayOnHost})
	if c.Now == nil {
		c.Now = time.Now
	}
	o.config = c
	return o, nil
}

// stayOnHost follows no redirect to another host, and none that gives up TLS.
func stayOnHost(r *http.Request, via []*http.Request) error {
	if r.URL.Host != via[0].URL.Host || r.URL.Scheme != "https" || len(via) > 3 {
		return http.ErrUseLastResponse
	}
	return nil
}

// Identify checks a token, in the order of docs/spec/player-identity.md#oidc.
func (o *OIDC) Identify(ctx context.Context, token string) (Claim, error) {
	if len(token) > TokenBytesMax {
		return Claim{}, fmt.Errorf("token has %d bytes, want at most %d", len(token), TokenBytesMax)
	}
	signed, err := jose.ParseSignedCompact(token, o.algorithms) // checks alg; the keys in jku, x5u and jwk are never looked at
	if err != nil {
		return Claim{}, err
	}
	keyID := signed.Signatures[0].Protected.KeyID
	key, err := o.key(ctx, keyID)
	if err != nil {
		return Claim{}, err
	}
	if key.Algorithm != "" && key.Algorithm != signed.Signatures[0].Protected.Algorithm {
		return Claim{}, fmt.Errorf("key %.60q is for %s, the token says %s", keyID, key.Algorithm, signed.Signatures[0].Protected.Algorithm)
	}
	if err := checkType(signed.Signatures[0].Protected, "JWT", "at+jwt"); err != nil {
		return Claim{}, err
	}
	payload, err := signed.Verify(key)
	if err != nil {
		return Claim{}, err
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
		return Claim{}, fmt.Errorf("claim %s is missing or no text", o.config.Claim)
	}
	player = o.config.Prefix + player
	if err := playerflow.CheckPlayerID(player); err != nil {
		return Claim{}, fmt.Errorf("claim %s: %w", o.config.Claim, err)
	}
	name, _ := claims[o.config.NameClaim].(string)
	return Claim{Player: player, DisplayName: clip(name)}, nil
}

// checkType keeps tokens that are signed with the same key for something else, such as a logout, from being logins; RFC 8725,
// 3.11. Most tokens have no type, or JWT.
func checkType(header jose.Header, good ...string) error {
	typ, given := header.ExtraHeaders[jose.HeaderType]
	if !given {
		return nil
	}
	name, _ := typ.(string)
	short := strings.TrimPrefix(strings.ToLower(name), "application/")
	if !slices.ContainsFunc(good, func(g string) bool { return strings.EqualFold(g, short) }) {
		return fmt.Errorf("typ %.60q, want %s, or none", fmt.Sprint(typ), strings.Join(good, ", "))
	}
	return nil
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
	if !slices.ContainsFunc(audiences(claims["aud"]), func(a string) bool { return slices.Contains(o.config.Audiences, a) }) {
		return fmt.Errorf("aud %v, want one of %q", claims["aud"], o.config.Audiences)
	}
	now := o.config.Now()
	expires, ok := instant(claims["exp"])
	if !ok || now.After(expires.Add(oidcLeeway)) {
		return fmt.Errorf("exp %v: expired or missing", claims["exp"])
	}
	if from, ok := instant(claims["nbf"]); claims["nbf"] != nil && (!ok || now.Add(oidcLeeway).Before(from)) {
		return fmt.Errorf("nbf %v: not good yet", claims["nbf"])
	}
	issued, ok := instant(claims["iat"])
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

func audiences(claim any) (all []string) {
	switch x := claim.(type) {
	case string:
		return []string{x}
	case []any:
		for _, a := range x {
			if s, ok := a.(string); ok {
				all = append(all, s)
			}
		}
	}
	return all
}

func instant(claim any) (time.Time, bool) {
	seconds, ok := claim.(float64)
	if !ok || seconds < 0 || seconds > 1<<40 {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}

// key finds a key by its id. An unknown one is asked for once in a while, and only those who need it wait for that; keys of a
// provider that is down stay good for a day.
func (o *OIDC) key(ctx context.Context, keyID string) (*jose.JSONWebKey, error) {
	now := o.config.Now()
	o.mu.Lock()
	found, fetching := o.known(keyID), o.fetching
	mayAsk := fetching == nil && (o.asked.IsZero() || now.Sub(o.asked) >= keysAskedEvery)
	var err error
	switch {
	case mayAsk && (found == nil || now.After(o.until)):
		done := make(chan struct{})
		o.asked, o.fetching = now, done
		o.mu.Unlock()
		err = o.fetch(context.WithoutCancel(ctx), now)
		o.mu.Lock()
		o.fetching = nil
		close(done)
	case found == nil && fetching != nil:
		o.mu.Unlock()
		select {
		case <-fetching:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		o.mu.Lock()
	}
	found, fetched := o.known(keyID), o.fetched
	o.mu.Unlock()
	switch {
	case found == nil && err != nil:
		return nil, fmt.Errorf("fetch keys: %w", err)
	case found == nil || now.Sub(fetched) > keysGoodFor:
		return nil, fmt.Errorf("key %.60q of issuer %s is not known", keyID, o.config.Issuer)
	}
	return found, nil
}

// known finds a key. The caller holds mu.
func (o *OIDC) known(keyID string) *jose.JSONWebKey {
	for i := range o.keys.Keys {
		k := &o.keys.Keys[i]
		if k.KeyID == keyID && keyID != "" && k.IsPublic() && (k.Use == "" || k.Use == "sig") {
			return k
		}
	}
	return nil
}

func (o *OIDC) fetch(ctx context.Context, now time.Time) error {
	o.mu.Lock()
	address := o.jwks
	o.mu.Unlock()
	if address == "" {
		var document struct {
			Issuer string `json:"issuer"`
			JWKS   string `json:"jwks_uri"`
		}
		if _, err := o.get(ctx, strings.TrimSuffix(o.config.Issuer, "/")+"/.well-known/openid-configuration", &document); err != nil {
			return err
		}
		if document.Issuer != o.config.Issuer {
			return fmt.Errorf("the discovery document is of issuer %.100q, want %q", document.Issuer, o.config.Issuer)
		}
		if u, err := url.Parse(document.JWKS); err != nil || u.Scheme != "https" {
			return fmt.Errorf("jwks_uri %.100q: want an https URL", document.JWKS)
		}
		address = document.JWKS
	}
	var keys jose.JSONWebKeySet
	header, err := o.get(ctx, address, &keys)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.jwks, o.keys, o.fetched, o.until = address, keys, now, now.Add(freshFor(header.Get("Cache-Control")))
	return nil
}

func (o *OIDC) get(ctx context.Context, address string, into any) (http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := o.config.Client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s", address, answer.Status)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, documentBytes))
	if err != nil {
		return nil, err
	}
	return answer.Header, json.Unmarshal(body, into)
}

// freshFor returns how long keys may be used before they are fetched again.
func freshFor(cacheControl string) time.Duration {
	for part := range strings.SplitSeq(cacheControl, ",") {
		var seconds int64
		if _, err := fmt.Sscanf(strings.TrimSpace(part), "max-age=%d", &seconds); err == nil {
			return min(max(time.Duration(seconds)*time.Second, keysKeptLeast), keysKeptMost)
		}
	}
	return keysKept
}

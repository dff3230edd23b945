package authentication

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	exactjson "github.com/go-jose/go-jose/v4/json" // takes names as they are written, and each once

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

const (
	loginKeysRecheck = 5 * time.Second // how often, at most, the file is looked at
	loginKeysBytes   = 1 << 20
	signedLifeMax    = 5 * time.Minute
	signedLeeway     = 30 * time.Second // the clocks of backends differ from ours
	signedNameMax    = 128
	rsaBitsMin       = 2048
)

// LoginKeys checks tokens that a studio's backend signs for players whom it has authenticated: JWTs that live for minutes and are valid
// for one login. The public keys are in a file, as a JWK set; a changed file is read again. docs/spec/player-identity.md#backend.
type LoginKeys struct {
	LoginKeysConfig

	mu      sync.Mutex
	keys    map[string]loginKey
	checked time.Time
	version fileVersion
}

// LoginKeysConfig says which tokens are accepted.
type LoginKeysConfig struct {
	Path      string
	Audiences []string         // a token must be for one of them; none: it must name no audience
	Issuers   []string         // and from one of them; none: the key alone decides
	Now       func() time.Time // of the core, which also forgets used tokens by it
	Log       *slog.Logger
}

type loginKey struct {
	jose.JSONWebKey
	algorithm jose.SignatureAlgorithm
}

type fileVersion struct {
	modified time.Time
	size     int64
}

// OpenLoginKeys reads the file. A key that cannot be used is an error here and now.
func OpenLoginKeys(c LoginKeysConfig) (*LoginKeys, error) {
	k := &LoginKeys{LoginKeysConfig: c, checked: time.Now()}
	version, err := k.look()
	if err == nil {
		err = k.load(version)
	}
	return k, err
}

func (k *LoginKeys) look() (fileVersion, error) {
	info, err := os.Stat(k.Path)
	if err != nil {
		return fileVersion{}, fmt.Errorf("login keys: %w", err)
	}
	return fileVersion{info.ModTime(), info.Size()}, nil
}

func (k *LoginKeys) load(version fileVersion) error {
	if version.size > loginKeysBytes {
		return fmt.Errorf("login keys %s: %d bytes, want at most %d", k.Path, version.size, loginKeysBytes)
	}
	content, err := os.ReadFile(k.Path)
	if err != nil {
		return fmt.Errorf("login keys: %w", err)
	}
	keys, err := readLoginKeys(content)
	if err != nil {
		return fmt.Errorf("login keys %s: %w", k.Path, err)
	}
	k.keys, k.version = keys, version
	return nil
}

func readLoginKeys(content []byte) (map[string]loginKey, error) {
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(content, &set); err != nil {
		return nil, fmt.Errorf("want a JWK set, {\"keys\": […]}: %w", err)
	}
	if len(set.Keys) == 0 {
		return nil, errors.New("want a JWK set with at least one key")
	}
	keys := map[string]loginKey{}
	for i, key := range set.Keys {
		algorithm, err := loginAlgorithm(key)
		if err == nil && keys[key.KeyID].Key != nil {
			err = fmt.Errorf("kid %q: want each once", key.KeyID)
		}
		if err != nil {
			return nil, fmt.Errorf("keys[%d]: %w", i, err)
		}
		keys[key.KeyID] = loginKey{key, algorithm}
	}
	return keys, nil
}

// loginAlgorithm is the one algorithm that a key is for. It follows from the key, so no token can choose another.
func loginAlgorithm(key jose.JSONWebKey) (algorithm jose.SignatureAlgorithm, err error) {
	switch x := key.Key.(type) {
	case ed25519.PublicKey:
		algorithm = jose.EdDSA
	case *ecdsa.PublicKey:
		if x.Curve != elliptic.P256() {
			return "", fmt.Errorf("crv %s: want P-256", x.Curve.Params().Name)
		}
		algorithm = jose.ES256
	case *rsa.PublicKey:
		if x.N.BitLen() < rsaBitsMin {
			return "", fmt.Errorf("n has %d bits, want at least %d", x.N.BitLen(), rsaBitsMin)
		}
		algorithm = jose.RS256
	default:
		return "", errors.New("want a public key for EdDSA, ES256 or RS256: a private or symmetric one does not belong here")
	}
	switch {
	case key.KeyID == "":
		return "", errors.New("kid is missing: tokens name their key by it")
	case key.Algorithm != "" && key.Algorithm != string(algorithm):
		return "", fmt.Errorf("alg %s: want %s for such a key, or none", key.Algorithm, algorithm)
	case key.Use != "" && key.Use != "sig":
		return "", fmt.Errorf("use %s: want sig, or none", key.Use)
	}
	return algorithm, nil
}

// find returns the key of a token. A changed file that is invalid leaves the old keys in force.
func (k *LoginKeys) find(keyID string) (loginKey, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); now.Sub(k.checked) >= loginKeysRecheck {
		k.checked = now
		version, err := k.look()
		if err == nil && version != k.version {
			if err = k.load(version); err == nil {
				k.Log.Info("login keys read again", "file", k.Path, "keys", len(k.keys))
			}
		}
		if err != nil {
			k.Log.Error("changed login keys not usable, the old ones stay in force", "error", err)
		}
	}
	key, ok := k.keys[keyID]
	return key, ok
}

// signedClaims of a token.
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
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA, jose.ES256, jose.RS256}) // jku, x5u and jwk are never looked at
	if err != nil {
		return Claim{}, err
	}
	header := signed.Signatures[0].Protected
	key, ok := k.find(header.KeyID)
	if !ok || header.KeyID == "" {
		return Claim{}, fmt.Errorf("kid %.60q is not in the file of login keys", header.KeyID)
	}
	if header.Algorithm != string(key.algorithm) {
		return Claim{}, fmt.Errorf("key %.60q is for %s, the token says %s", header.KeyID, key.algorithm, header.Algorithm)
	}
	if err := checkType(header, "JWT"); err != nil {
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
	// By its name and not as a text: some signatures can be written in two ways.
	once := Hash("signed-token\x00" + header.KeyID + "\x00" + claims.ID)
	return Claim{Player: claims.Player, DisplayName: clip(claims.Name), Once: once, Until: domain.TimeOf(until)}, nil
}

// meant checks that a token was made for this service. A backend's key may sign for other services, too, so an audience must contain this
// one; RFC 7519, 4.1.3.
func (k *LoginKeys) meant(claims *signedClaims) error {
	if len(k.Issuers) > 0 && !slices.Contains(k.Issuers, claims.Issuer) {
		return fmt.Errorf("iss %.100q, want one of %q", claims.Issuer, k.Issuers)
	}
	named := audiences(claims.Audience)
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

// until is when a token ends for us: from then on it is refused, so that its use may be forgotten.
func (c *signedClaims) until(now time.Time) (time.Time, error) {
	expires, ok := numericDate(c.Expires)
	switch {
	case !ok:
		return expires, errors.New("exp is missing or no time")
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
		return expires, errors.New("iat is no time")
	}
	if from, ok := numericDate(c.NotBefore); c.NotBefore != nil && (!ok || from.After(now.Add(signedLeeway))) {
		return expires, fmt.Errorf("nbf %s: not good yet", from)
	}
	return expires.Add(signedLeeway), nil
}

func numericDate(seconds *float64) (time.Time, bool) {
	if seconds == nil {
		return time.Time{}, false
	}
	return instant(*seconds)
}

package webidentity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	exactjson "github.com/go-jose/go-jose/v4/json" // matches names exactly and refuses duplicates

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/tokenkeys"
)

// TokenBytesMax is the maximum size of a token.
const TokenBytesMax = 16 << 10

const leeway = time.Minute // for differences between clocks

// Problem is the kind of mistake in a token.
type Problem uint8

// The problems that clients of STS distinguish.
const (
	Invalid     Problem = iota // no token from a known issuer for this service
	Expired                    // it is no longer valid
	Claims                     // the claims that its issuer signed are not acceptable now
	Unreachable                // its issuer's keys cannot be fetched
)

// Refused is the error of a refused token. Its text is for the client.
type Refused struct {
	Problem Problem
	text    string
	cause   error
}

func (r *Refused) Error() string { return r.text }

// Unwrap returns the cause, which may be logged together with the text; nil: none.
func (r *Refused) Unwrap() error { return r.cause }

func refuse(problem Problem, format string, args ...any) error {
	return &Refused{problem, fmt.Sprintf(format, args...), nil}
}

// Machine is a machine that proved its identity with a token.
type Machine struct {
	Provider string // name of the issuer in the settings
	Issuer   string // its URL
	Subject  string
	Audience string // the audience of the token that this service accepted

	rules []*rule // that match
}

// Holder returns the machine's name as the holder of temporary credentials.
func (m *Machine) Holder() string { return m.Provider + "/" + m.Subject }

// May returns how long credentials with a role may be valid; 0: no rule grants this role.
func (m *Machine) May(role access.Role) (most time.Duration) {
	for _, r := range m.rules {
		if r.Roles&access.Roles(role) != 0 {
			most = max(most, r.Life)
		}
	}
	return most
}

// Verify checks a token. Its error is a *Refused, or ctx's error.
func (x *Issuers) Verify(ctx context.Context, token string) (*Machine, error) {
	if len(token) > TokenBytesMax {
		return nil, refuse(Invalid, "the token has %d bytes, want at most %d", len(token), TokenBytesMax)
	}
	signed, err := jose.ParseSignedCompact(token, tokenkeys.Algorithms) // jku, x5u and jwk are ignored
	if err != nil {
		return nil, &Refused{Invalid, "The ID Token provided is not a valid JWT that is signed with RS256, ES256 or EdDSA.", err}
	}
	var unproven struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(signed.UnsafePayloadWithoutVerification(), &unproven); err != nil {
		return nil, refuse(Invalid, "The ID Token provided is not a valid JWT.")
	}
	i := x.byURL[unproven.Issuer]
	if i == nil {
		return nil, refuse(Invalid, "No OpenIDConnect provider found in your account for %.200s", unproven.Issuer)
	}
	header := signed.Signatures[0].Protected
	if err := tokenkeys.CheckType(header, "JWT"); err != nil {
		return nil, refuse(Invalid, "%s", err)
	}
	key, err := i.key(ctx, header.KeyID)
	if err != nil {
		return nil, err
	}
	if header.Algorithm != string(key.Signs) {
		return nil, refuse(Invalid, "The key %.60q is for %s, the token says %s.", header.KeyID, key.Signs, header.Algorithm)
	}
	payload, err := signed.Verify(key.JSONWebKey)
	if err != nil {
		return nil, &Refused{Invalid, "The signature of the token is wrong.", err}
	}
	var claims map[string]any
	if err := exactjson.Unmarshal(payload, &claims); err != nil {
		return nil, &Refused{Invalid, "The claims of the token are not one JSON object with each name once.", err}
	}
	return i.machine(claims, x.now())
}

func (i *issuer) key(ctx context.Context, id string) (tokenkeys.Key, error) {
	if i.provider == nil {
		key, ok := i.file.Find(id)
		if !ok {
			return key, refuse(Invalid, "The key %.60q of the token does not belong to its issuer.", id)
		}
		return key, nil
	}
	found, err := i.provider.Key(ctx, id)
	switch {
	case errors.Is(err, tokenkeys.ErrUnknown):
		return tokenkeys.Key{}, refuse(Invalid, "The key %.60q of the token does not belong to its issuer.", id)
	case err != nil && ctx.Err() != nil:
		return tokenkeys.Key{}, ctx.Err()
	case err != nil:
		return tokenkeys.Key{}, &Refused{Unreachable, "The keys of the issuer " + i.url + " cannot be fetched. The log says why.", err}
	}
	algorithm, err := tokenkeys.AlgorithmOf(*found)
	if err != nil {
		return tokenkeys.Key{}, &Refused{Invalid, "The key of the token does not fit RS256, ES256 or EdDSA.", fmt.Errorf("key %.60q of issuer %s: %w", id, i.url, err)}
	}
	return tokenkeys.Key{JSONWebKey: *found, Signs: algorithm}, nil
}

// machine checks the claims of a token that the issuer signed.
func (i *issuer) machine(claims map[string]any, now time.Time) (*Machine, error) {
	if issuer, _ := claims["iss"].(string); issuer != i.url {
		return nil, refuse(Invalid, "The claim iss is %.200q, want %q.", issuer, i.url)
	}
	m := &Machine{Provider: i.name, Issuer: i.url}
	for _, a := range tokenkeys.Audiences(claims["aud"]) {
		if slices.Contains(i.audiences, a) {
			m.Audience = a
			break
		}
	}
	if m.Audience == "" {
		return nil, refuse(Invalid, "Incorrect token audience")
	}
	if err := current(claims, now); err != nil {
		return nil, err
	}
	m.Subject, _ = claims["sub"].(string)
	if m.Subject == "" {
		return nil, refuse(Invalid, "Missing a required claim: sub")
	}
	if len(m.Holder()) > access.HolderMax || !utf8.ValidString(m.Subject) || strings.ContainsFunc(m.Subject, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return nil, refuse(Claims, "The claim sub is %.100q, want at most %d bytes that can be shown.", m.Subject, access.HolderMax-len(i.name)-1)
	}
	for n := range i.rules {
		if i.rules[n].matches(m.Subject, claims) {
			m.rules = append(m.rules, &i.rules[n])
		}
	}
	return m, nil
}

// current checks the times of a token.
func current(claims map[string]any, now time.Time) error {
	for _, name := range []string{"exp", "iat"} {
		if claims[name] == nil {
			return refuse(Invalid, "Missing a required claim: %s", name)
		}
	}
	expires, ok := tokenkeys.Instant(claims["exp"])
	switch {
	case !ok:
		return refuse(Invalid, "The claim exp is %.100v, want seconds since 1970.", claims["exp"])
	case !now.Before(expires.Add(leeway)):
		return refuse(Expired, "Token expired: current date/time %d must be before the expiration date/time %d", now.Unix(), expires.Unix())
	}
	for _, name := range []string{"iat", "nbf"} {
		from, ok := tokenkeys.Instant(claims[name])
		if claims[name] != nil && (!ok || from.After(now.Add(leeway))) {
			return refuse(Claims, "The claim %s is %.100v, want a time that has passed: it is %d.", name, claims[name], now.Unix())
		}
	}
	return nil
}

func (r *rule) matches(subject string, claims map[string]any) bool {
	for name, values := range r.claims {
		var got string
		switch x := claims[name].(type) {
		case string:
			got = x
		case bool:
			got = fmt.Sprint(x)
		default:
			return false
		}
		if !slices.Contains(values, got) {
			return false
		}
	}
	return r.Names(subject)
}

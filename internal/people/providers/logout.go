package providers

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	exactjson "github.com/go-jose/go-jose/v4/json" // matches names exactly and refuses duplicates
)

// LogoutTokenMax limits the length of a logout token, in characters.
const LogoutTokenMax = 16 << 10

const (
	// logoutEvent is the event of a logout token. Source: OpenID Connect Back-Channel Logout 1.0, section 2.4.
	logoutEvent = "http://schemas.openid.net/event/backchannel-logout"
	logoutType  = "logout+jwt"

	// logoutAge is the maximum age of a logout token, whatever its expiry. Providers are advised to make them valid for at most two minutes.
	logoutAge = 5 * time.Minute

	logoutsAtOnce = 2 // logout tokens that wait for the keys of one provider
)

// Logout is a provider's statement that a person, or one session of a person, has signed out there.
type Logout struct {
	Subject string    // empty: the person of the session
	Sid     string    // empty: all sessions of the person
	ID      string    // of the token, which works once
	Until   time.Time // by the clock of this machine
}

// Logout checks a logout token. It refuses ID tokens, which have a nonce and no event.
func (p *Provider) Logout(ctx context.Context, raw string) (x Logout, err error) {
	if len(raw) > LogoutTokenMax {
		return x, fmt.Errorf("logout_token: %d characters, want at most %d", len(raw), LogoutTokenMax)
	}
	if err := checkLogoutHead(raw); err != nil {
		return x, err
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), 2*answerTimeout)
	defer cancel()
	d, err := p.discovered(ctx)
	if err != nil {
		return x, err
	}
	now := p.now()
	check := logoutCheck{keys: d.logoutKeys}
	token, err := oidc.NewVerifier(p.Issuer, &check, &oidc.Config{ClientID: p.clientID, SupportedSigningAlgs: algorithms, Now: func() time.Time { return now.Add(-leeway) }}).Verify(ctx, raw)
	if err != nil {
		return x, fmt.Errorf("logout_token: %w", cmp.Or(check.err, err))
	}
	if err := checkKeySize(raw); err != nil {
		return x, fmt.Errorf("logout_token: %w", err)
	}
	parts := strings.Split(raw, ".") // the signature was verified above
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return x, fmt.Errorf("logout_token: %w", err)
	}
	var claims map[string]any
	if err := exactjson.Unmarshal(payload, &claims); err != nil {
		return x, fmt.Errorf("logout_token: %w", err)
	}
	events, _ := claims["events"].(map[string]any)
	_, isLogout := events[logoutEvent].(map[string]any)
	_, hasNonce := claims["nonce"]
	x.ID, _ = claims["jti"].(string)
	x.Sid, x.Subject = sidOf(claims), token.Subject
	switch {
	case !isLogout:
		return x, errors.New("logout_token: it has no logout event")
	case hasNonce:
		return x, errors.New("logout_token: it has a nonce, want none")
	case x.ID == "":
		return x, errors.New("logout_token: it has no jti")
	case x.Subject == "" && x.Sid == "":
		return x, errors.New("logout_token: it has neither sub nor sid")
	case token.IssuedAt.IsZero() || token.IssuedAt.Unix() == 0 || now.Sub(token.IssuedAt) > logoutAge || token.IssuedAt.After(now.Add(leeway)):
		return x, fmt.Errorf("logout_token: issued at %s, want a time within %v of now", token.IssuedAt.UTC().Format(time.RFC3339), logoutAge)
	}
	x.Until = token.IssuedAt.Add(logoutAge + leeway)
	return x, nil
}

// checkLogoutHead refuses a text that cannot be a logout token before any request to the provider.
func checkLogoutHead(raw string) error {
	head, _, _ := strings.Cut(raw, ".")
	text, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		return errors.New("logout_token: it is not a JWT")
	}
	var says map[string]any
	if err := exactjson.Unmarshal(text, &says); err != nil {
		return errors.New("logout_token: it is not a JWT")
	}
	kind, given := says["typ"].(string)
	kind = strings.TrimPrefix(strings.ToLower(kind), "application/")
	if given && kind != logoutType && kind != "jwt" {
		return fmt.Errorf("logout_token: typ %.60q, want %s", kind, logoutType)
	}
	return nil
}

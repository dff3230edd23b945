package providers

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/musterhq/muster/internal/tokenkeys"
)

// discovery is the provider's metadata.
type discovery struct {
	*oidc.Provider
	at     time.Time
	scopes []string // supported ones; none: not stated
	iss    bool     // its answers name the issuer

	logoutKeys *logoutKeys
}

// discovered returns the provider's metadata. It fetches them on demand: a provider that is down must not prevent the service from starting.
func (p *Provider) discovered(ctx context.Context) (*discovery, error) {
	for {
		p.mu.Lock()
		now := p.now()
		switch {
		case p.found != nil && now.Sub(p.found.at) < discoveryKept:
			defer p.mu.Unlock()
			return p.found, nil
		case p.discovering != nil:
			wait := p.discovering
			found := p.found
			p.mu.Unlock()
			if found != nil { // the old metadata are used until there are new ones
				return found, nil
			}
			select {
			case <-wait:
			case <-ctx.Done():
				return nil, fmt.Errorf("%w: discovery of %s: %w", ErrUnreachable, p.Issuer, ctx.Err())
			}
		case p.failed != nil && now.Sub(p.failedAt) < discoveryPause:
			defer p.mu.Unlock()
			if p.found != nil {
				return p.found, nil
			}
			return nil, p.failed
		default:
			done := make(chan struct{})
			p.discovering = done
			p.mu.Unlock()
			found, err := p.discover()
			p.mu.Lock()
			if err == nil {
				p.found, p.failed = found, nil
			} else {
				err = fmt.Errorf("%w: discovery of %s: %w", ErrUnreachable, p.Issuer, err)
				p.failed, p.failedAt = err, p.now() // the discovery may have taken longer than the pause
			}
			p.discovering = nil
			found = p.found
			p.mu.Unlock()
			close(done)
			if found != nil {
				return found, nil
			}
			return nil, err
		}
	}
}

func (p *Provider) discover() (*discovery, error) {
	ctx := oidc.ClientContext(context.Background(), p.client) // which the fetches of keys use, too; the client has a time limit
	provider, err := oidc.NewProvider(ctx, p.Issuer)
	if err != nil {
		return nil, err
	}
	d := &discovery{Provider: provider, at: p.now()}
	var says struct {
		Scopes []string `json:"scopes_supported"`
		Iss    bool     `json:"authorization_response_iss_parameter_supported"`
		Keys   string   `json:"jwks_uri"`
		Person string   `json:"userinfo_endpoint"`
	}
	if err := provider.Claims(&says); err != nil {
		return nil, err
	}
	d.scopes, d.iss, d.logoutKeys = says.Scopes, says.Iss, &logoutKeys{p: p, address: says.Keys}
	end := provider.Endpoint()
	for name, address := range map[string]string{"authorization_endpoint": end.AuthURL, "token_endpoint": end.TokenURL, "jwks_uri": says.Keys, "userinfo_endpoint": says.Person} {
		u, err := url.Parse(address)
		if name == "userinfo_endpoint" && address == "" {
			continue
		}
		if err != nil || u.Host == "" || u.Scheme != "https" && !(p.plain && tokenkeys.Private(u)) {
			return nil, fmt.Errorf("%s %.200q, want an https URL", name, address)
		}
	}
	return d, nil
}

// config returns the configuration of this client at the provider.
func (p *Provider) config(d *discovery, redirect string) (*oauth2.Config, error) {
	secret, err := p.secret()
	if err != nil {
		return nil, err
	}
	scopes := append([]string{oidc.ScopeOpenID}, p.scopes...)
	if len(p.scopes) == 0 {
		for _, s := range []string{"profile", "email", "groups", oidc.ScopeOfflineAccess} {
			if slices.Contains(d.scopes, s) {
				scopes = append(scopes, s)
			}
		}
	}
	return &oauth2.Config{ClientID: p.clientID, ClientSecret: secret, Endpoint: d.Endpoint(), RedirectURL: redirect, Scopes: slices.Compact(scopes)}, nil
}

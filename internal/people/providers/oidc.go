package providers

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"

	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/tokenkeys"
)

// Limits on the size of a provider's answers and on waiting for them.
const (
	answerBytesMax  = 1 << 20
	headerBytesMax  = 64 << 10
	answerTimeout   = 10 * time.Second
	discoveryKept   = 24 * time.Hour
	discoveryPause  = 5 * time.Second // after a failed one
	exchangesAtOnce = 16              // with one provider
	leeway          = time.Minute     // for the provider's clock
	futureMax       = 5 * time.Minute // how far ahead of this machine's clock a provider may be
)

// algorithms are those with a public key: tokens that are unsigned or signed with the client's secret are refused.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// signatures are the same algorithms for the JWS parser.
var signatures = func() (all []jose.SignatureAlgorithm) {
	for _, name := range algorithms {
		all = append(all, jose.SignatureAlgorithm(name))
	}
	return all
}()

// Provider is an identity provider.
type Provider struct {
	Name, Title, Issuer string
	Roles               Roles

	clientID, secretFile, secretEnv     string
	scopes                              []string
	groupsClaim, nameClaim, groupPrefix string
	parameters                          map[string]string
	plain                               bool // on this machine, without TLS
	client                              *http.Client
	now                                 func() time.Time

	busy    chan struct{} // has an element for each exchange; made by enter
	logouts chan struct{} // has an element for each logout token that waits for the keys; made by enterLogout

	logoutKeys logoutKeys

	mu          sync.Mutex
	found       *discovery
	failed      error
	failedAt    time.Time
	discovering chan struct{} // closed when the current discovery ends; nil: none is running
}

// discovery is the provider's metadata.
type discovery struct {
	*oidc.Provider
	at     time.Time
	scopes []string // supported ones; none: not stated
	iss    bool     // its answers name the issuer
	keys   string   // URL of its keys
}

// Person is a provider's statement about a person who signed in.
type Person struct {
	Subject, Name string
	Groups        []string
	GroupsSaid    bool   // false: the answer did not mention groups
	Sid           string // id of the session at the provider; empty: not stated
	Refresh       string // refresh token; empty: the provider issued none
}

// The errors of a sign-in.
var (
	// ErrGone means that the provider no longer confirms the person.
	ErrGone = errors.New("the provider no longer confirms the person")
	// ErrBusy means that too many sign-ins with the provider are in progress.
	ErrBusy = errors.New("too many people are signing in with this provider at the moment")
)

// newClient returns a client that follows no redirect to another host, and limits the size of answers.
func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes, t.MaxIdleConnsPerHost, t.MaxConnsPerHost = headerBytesMax, 4, 2*exchangesAtOnce
	t.DialContext = (&net.Dialer{Timeout: answerTimeout / 2}).DialContext
	return &http.Client{Timeout: answerTimeout, Transport: bounded{t}, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if r.Method != http.MethodGet || via[0].Method != http.MethodGet || r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme || len(via) > 3 {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// bounded fails the reading of an answer that exceeds answerBytesMax.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = &boundedBody{ReadCloser: answer.Body, left: answerBytesMax}
	}
	return answer, err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", answerBytesMax)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
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
				return nil, ctx.Err()
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
				p.failed, p.failedAt = err, now
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
		return nil, fmt.Errorf("discovery of %s: %w", p.Issuer, err)
	}
	d := &discovery{Provider: provider, at: p.now()}
	var says struct {
		Scopes []string `json:"scopes_supported"`
		Iss    bool     `json:"authorization_response_iss_parameter_supported"`
		Keys   string   `json:"jwks_uri"`
		Person string   `json:"userinfo_endpoint"`
	}
	if err := provider.Claims(&says); err != nil {
		return nil, fmt.Errorf("discovery of %s: %w", p.Issuer, err)
	}
	d.scopes, d.iss, d.keys = says.Scopes, says.Iss, says.Keys
	end := provider.Endpoint()
	for name, address := range map[string]string{"authorization_endpoint": end.AuthURL, "token_endpoint": end.TokenURL, "jwks_uri": says.Keys, "userinfo_endpoint": says.Person} {
		u, err := url.Parse(address)
		if name == "userinfo_endpoint" && address == "" {
			continue
		}
		if err != nil || u.Host == "" || u.Scheme != "https" && !(p.plain && tokenkeys.Private(u)) {
			return nil, fmt.Errorf("discovery of %s: %s %.200q, want an https URL", p.Issuer, name, address)
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

// Request has the values that bind a provider's answer to the browser that sent the request.
type Request struct{ Redirect, State, Nonce, Verifier string }

// AuthURL returns the address at which a browser requests a code from the provider.
func (p *Provider) AuthURL(ctx context.Context, r Request) (string, error) {
	d, err := p.discovered(ctx)
	if err != nil {
		return "", err
	}
	c, err := p.config(d, r.Redirect)
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{oidc.Nonce(r.Nonce), oauth2.S256ChallengeOption(r.Verifier)}
	for name, value := range p.parameters {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	return c.AuthCodeURL(r.State, options...), nil
}

// CheckIssuer refuses an answer from another provider than the one that was asked, against mix-up attacks: RFC 9207.
func (p *Provider) CheckIssuer(ctx context.Context, query url.Values) error {
	d, err := p.discovered(ctx)
	if err != nil {
		return err
	}
	switch iss := query["iss"]; {
	case len(iss) == 0 && d.iss:
		return fmt.Errorf("the answer names no issuer, although answers of %s must", p.Issuer)
	case len(iss) > 1, len(iss) == 1 && iss[0] != p.Issuer:
		return fmt.Errorf("the answer is from issuer %.200q, want %s", iss, p.Issuer)
	}
	return nil
}

// enter takes one of the slots for exchanges with the provider.
func (p *Provider) enter() (leave func(), err error) {
	p.mu.Lock()
	if p.busy == nil {
		p.busy = make(chan struct{}, exchangesAtOnce)
	}
	busy := p.busy
	p.mu.Unlock()
	select {
	case busy <- struct{}{}:
		return func() { <-busy }, nil
	default:
		return nil, ErrBusy
	}
}

// Exchange exchanges a code for the provider's statement about the person.
func (p *Provider) Exchange(ctx context.Context, r Request, code string) (Person, error) {
	leave, err := p.enter()
	if err != nil {
		return Person{}, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), 2*answerTimeout)
	defer cancel()
	d, err := p.discovered(ctx)
	if err != nil {
		return Person{}, err
	}
	c, err := p.config(d, r.Redirect)
	if err != nil {
		return Person{}, err
	}
	token, err := c.Exchange(ctx, code, oauth2.VerifierOption(r.Verifier))
	if err != nil {
		return Person{}, fmt.Errorf("exchange the code: %w", plainer(err))
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return Person{}, errors.New("the provider gave no id_token")
	}
	id, err := p.verify(ctx, d, raw, token.AccessToken)
	if err != nil {
		return Person{}, err
	}
	if r.Nonce == "" || subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(r.Nonce)) != 1 {
		return Person{}, errors.New("id_token: the nonce is not the one of this sign-in")
	}
	return p.person(ctx, d, id, token)
}

// Refresh asks the provider whether it still confirms a person. The error is ErrGone if it does not.
func (p *Provider) Refresh(ctx context.Context, refresh, subject string) (Person, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), 2*answerTimeout)
	defer cancel()
	d, err := p.discovered(ctx)
	if err != nil {
		return Person{}, err
	}
	c, err := p.config(d, "")
	if err != nil {
		return Person{}, err
	}
	token, err := c.TokenSource(ctx, &oauth2.Token{RefreshToken: refresh}).Token()
	if failed, ok := errors.AsType[*oauth2.RetrieveError](err); ok && failed.ErrorCode == "invalid_grant" {
		return Person{}, ErrGone
	}
	if err != nil {
		return Person{}, fmt.Errorf("refresh: %w", plainer(err))
	}
	var id *oidc.IDToken
	if raw, _ := token.Extra("id_token").(string); raw != "" {
		if id, err = p.verify(ctx, d, raw, token.AccessToken); err != nil {
			return Person{}, err
		}
		if id.Subject != subject {
			return Person{}, fmt.Errorf("refresh: the id_token is for subject %.100q, want %.100q", id.Subject, subject)
		}
	} else {
		id = &oidc.IDToken{Subject: subject}
	}
	return p.person(ctx, d, id, token)
}

// plainer removes the body of the answer, which may contain tokens, from an error of oauth2.
func plainer(err error) error {
	failed, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return err
	}
	status := 0
	if failed.Response != nil {
		status = failed.Response.StatusCode
	}
	return fmt.Errorf("the provider answered %d %s %s", status, people.Short(failed.ErrorCode, 100), people.Short(failed.ErrorDescription, 200))
}

func (p *Provider) verify(ctx context.Context, d *discovery, raw, accessToken string) (*oidc.IDToken, error) {
	verifier := d.VerifierContext(oidc.ClientContext(ctx, p.client), &oidc.Config{
		ClientID: p.clientID, SupportedSigningAlgs: algorithms, Now: func() time.Time { return p.now().Add(-leeway) }, // which the check of exp subtracts; nbf has a leeway of 5 minutes
	})
	id, err := verifier.Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("id_token: %w", err)
	}
	var also struct {
		Party string `json:"azp"`
	}
	if err := id.Claims(&also); err != nil {
		return nil, fmt.Errorf("id_token: %w", err)
	}
	switch {
	case id.Subject == "":
		return nil, errors.New("id_token: it has no sub")
	case also.Party != "" && also.Party != p.clientID, also.Party == "" && len(id.Audience) > 1:
		return nil, fmt.Errorf("id_token: it is for %.100q (azp), want %.100q", also.Party, p.clientID)
	case id.IssuedAt.After(p.now().Add(futureMax)):
		return nil, fmt.Errorf("id_token: issued at %s, in the future", id.IssuedAt.UTC().Format(time.RFC3339))
	}
	if id.AccessTokenHash != "" {
		if err := id.VerifyAccessToken(accessToken); err != nil {
			return nil, fmt.Errorf("id_token: at_hash: %w", err)
		}
	}
	return id, nil
}

// person reads the claims. It requests groups that are not in the ID token from the provider's userinfo endpoint.
func (p *Provider) person(ctx context.Context, d *discovery, id *oidc.IDToken, token *oauth2.Token) (Person, error) {
	claims := map[string]any{}
	if id.Issuer != "" {
		if err := id.Claims(&claims); err != nil {
			return Person{}, fmt.Errorf("id_token: %w", err)
		}
	}
	groups, found, err := p.groups(claims)
	if err != nil {
		return Person{}, err
	}
	name, said := p.nameIn(claims), id.Issuer != ""
	if (!found || name == "") && d.UserInfoEndpoint() != "" {
		info, err := d.UserInfo(oidc.ClientContext(ctx, p.client), oauth2.StaticTokenSource(token))
		if err != nil {
			return Person{}, fmt.Errorf("userinfo: %w", err)
		}
		if info.Subject != id.Subject { // OpenID Connect Core, 5.3.2: otherwise it may belong to another person
			return Person{}, fmt.Errorf("userinfo: it is about subject %.100q, want %.100q", info.Subject, id.Subject)
		}
		said = true
		more := map[string]any{}
		if err := info.Claims(&more); err != nil {
			return Person{}, fmt.Errorf("userinfo: %w", err)
		}
		if !found {
			if groups, _, err = p.groups(more); err != nil {
				return Person{}, err
			}
		}
		if name == "" {
			name = p.nameIn(more)
		}
	}
	sid, _ := claims["sid"].(string)
	if len(sid) > people.SidMax {
		sid = "" // a logout must then name the subject
	}
	return Person{Subject: id.Subject, Name: name, Groups: groups, GroupsSaid: said, Refresh: token.RefreshToken, Sid: sid}, nil
}

// groups reads the groups claim: a list of texts, or one text.
func (p *Provider) groups(claims map[string]any) (groups []string, found bool, err error) {
	if elsewhere, ok := claims["_claim_names"].(map[string]any); ok && elsewhere[p.groupsClaim] != nil {
		return nil, false, fmt.Errorf("the provider left the claim %s out because the person is in too many groups: let it send only the groups that are assigned to this application", p.groupsClaim)
	}
	value, found := claimAt(claims, p.groupsClaim)
	if !found {
		return nil, false, nil
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, x := range list {
		g, ok := x.(string)
		if !ok {
			return nil, false, fmt.Errorf("claim %s: %.60v, want strings", p.groupsClaim, x)
		}
		if g != "" {
			groups = append(groups, p.groupPrefix+g)
		}
	}
	return groups, true, nil
}

// claimAt finds a claim by its name, or by a path of names separated by dots.
func claimAt(claims map[string]any, name string) (any, bool) {
	if value, ok := claims[name]; ok {
		return value, value != nil
	}
	first, rest, deeper := strings.Cut(name, ".")
	if inner, ok := claims[first].(map[string]any); ok && deeper {
		return claimAt(inner, rest)
	}
	return nil, false
}

func (p *Provider) nameIn(claims map[string]any) string {
	names := []string{"email", "preferred_username", "name"}
	if p.nameClaim != "" {
		names = []string{p.nameClaim}
	}
	for _, name := range names {
		if value, ok := claimAt(claims, name); ok {
			if text, ok := value.(string); ok && text != "" {
				return people.Short(text, people.NameMax)
			}
		}
	}
	return ""
}

package providers

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
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

	busy    chan struct{} // has an element for each exchange
	logouts chan struct{} // has an element for each logout token that waits for the keys, so that forged ones cannot keep people from signing in

	secretInBody atomic.Bool // the provider has last accepted the client's secret in the body of a request, not in the header

	mu          sync.Mutex
	found       *discovery
	failed      error
	failedAt    time.Time
	discovering chan struct{} // closed when the current discovery ends; nil: none is running
}

// The errors of a sign-in.
var (
	// ErrGone means that the provider no longer confirms the person.
	ErrGone = errors.New("the provider no longer confirms the person")
	// ErrUnreachable means that the provider does not answer, or not as it should: its answer says nothing about the person.
	ErrUnreachable = errors.New("the identity provider cannot be used")
	// ErrBusy means that too many sign-ins with the provider are in progress.
	ErrBusy = errors.New("too many people are signing in with this provider at the moment")
)

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

// enter takes one of the slots, or fails with ErrBusy.
func enter(slots chan struct{}) (leave func(), err error) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	default:
		return nil, ErrBusy
	}
}

// Exchange exchanges a code for the provider's statement about the person.
func (p *Provider) Exchange(ctx context.Context, r Request, code string) (Person, error) {
	leave, err := enter(p.busy)
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
	token, err := p.token(c, func() (*oauth2.Token, error) { return c.Exchange(ctx, code, oauth2.VerifierOption(r.Verifier)) })
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

// Refresh asks the provider whether it still confirms a person. The error is ErrGone if it does not. With another error, the result may have a refresh token, and nothing
// else: it replaces the one that the request has used up.
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
	token, err := p.token(c, func() (*oauth2.Token, error) { return c.TokenSource(ctx, &oauth2.Token{RefreshToken: refresh}).Token() })
	if failed, ok := errors.AsType[*oauth2.RetrieveError](err); ok && failed.ErrorCode == "invalid_grant" {
		return Person{}, ErrGone
	}
	if err != nil {
		return Person{}, fmt.Errorf("refresh: %w", plainer(err))
	}
	person, err := p.refreshed(ctx, d, token, subject)
	if err != nil {
		return Person{Refresh: token.RefreshToken}, err
	}
	return person, nil
}

// refreshed reads what the provider states about the subject with a new token.
func (p *Provider) refreshed(ctx context.Context, d *discovery, token *oauth2.Token, subject string) (person Person, err error) {
	id := &oidc.IDToken{Subject: subject}
	if raw, _ := token.Extra("id_token").(string); raw != "" {
		if id, err = p.verify(ctx, d, raw, token.AccessToken); err != nil {
			return Person{}, err
		}
		if id.Subject != subject {
			return Person{}, fmt.Errorf("refresh: the id_token is for subject %.100q, want %.100q", id.Subject, subject)
		}
	}
	return p.person(ctx, d, id, token)
}

// token asks for a token in the form in which the provider accepts the client's secret: in the header or in the body of the request. Its metadata list the forms that
// it knows, not the one that it has registered for this client, so the one that it accepted last is tried first. Package oauth2 would try both with each request of a new
// Config and return only the second answer: an invalid_grant in the first one would be lost, and people would stay signed in.
func (p *Provider) token(c *oauth2.Config, ask func() (*oauth2.Token, error)) (*oauth2.Token, error) {
	in := func(body bool) (*oauth2.Token, error) {
		if c.Endpoint.AuthStyle = oauth2.AuthStyleInHeader; body {
			c.Endpoint.AuthStyle = oauth2.AuthStyleInParams
		}
		return ask()
	}
	if c.ClientSecret == "" {
		return in(true) // a public client sends only its id
	}
	body := p.secretInBody.Load()
	token, err := in(body)
	if !clientRefused(err) {
		return token, err
	}
	other, failed := in(!body)
	if clientRefused(failed) {
		return nil, err
	}
	if failed == nil {
		p.secretInBody.Store(!body)
	}
	return other, failed
}

// clientRefused reports whether a provider may have refused the form of a client's secret.
func clientRefused(err error) bool {
	failed, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return false
	}
	switch failed.ErrorCode {
	case "invalid_client", "invalid_request", "unauthorized_client":
		return true
	}
	return failed.ErrorCode == "" && failed.Response.StatusCode/100 == 4 // in a form of its own
}

// plainer removes the body of the answer, which may contain tokens, from an error of oauth2.
func plainer(err error) error {
	if _, failed := errors.AsType[*url.Error](err); failed {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	failed, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return err
	}
	status := 0
	if failed.Response != nil {
		status = failed.Response.StatusCode
	}
	err = fmt.Errorf("the provider answered %d %s %s", status, people.Short(failed.ErrorCode, 100), people.Short(failed.ErrorDescription, 200))
	if status >= http.StatusInternalServerError {
		err = fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return err
}

// checkKeySize refuses a verified token of a short key, which oidc accepts.
func checkKeySize(verified string) error {
	token, err := jose.ParseSignedCompact(verified, signatures)
	if err != nil {
		return err
	}
	return tokenkeys.CheckKeySize(token)
}

// withoutKeys begins the verifier's error for a token whose keys cannot be fetched. The verifier keeps only the text of the cause.
const withoutKeys = "failed to verify signature: fetching keys"

func (p *Provider) verify(ctx context.Context, d *discovery, raw, accessToken string) (*oidc.IDToken, error) {
	verifier := d.VerifierContext(oidc.ClientContext(ctx, p.client), &oidc.Config{
		ClientID: p.clientID, SupportedSigningAlgs: algorithms, Now: func() time.Time { return p.now().Add(-leeway) }, // which the check of exp subtracts; nbf has a leeway of 5 minutes
	})
	id, err := verifier.Verify(ctx, raw)
	if err != nil && strings.HasPrefix(err.Error(), withoutKeys) {
		return nil, fmt.Errorf("%w: id_token: %w", ErrUnreachable, err)
	}
	if err != nil {
		return nil, fmt.Errorf("id_token: %w", err)
	}
	if err := checkKeySize(raw); err != nil {
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

package ssoclient

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssooidc"
	"github.com/aws/aws-sdk-go-v2/service/ssooidc/types"

	"github.com/musterhq/muster/internal/terminal"
)

const (
	clientName   = "muster"
	callbackPath = "/oauth/callback"
	codeGrant    = "authorization_code"
	refreshGrant = "refresh_token"
	deviceGrant  = "urn:ietf:params:oauth:grant-type:device_code"

	// patience bounds the wait for the person.
	patience = 10 * time.Minute

	// awayMost is the longest pause before the next request to a service that does not answer. The SDK has then made three attempts.
	awayMost = 10 * time.Second
)

// Login is a sign-in of a person at a terminal.
type Login struct {
	Profile Profile
	Home    string
	Client  *http.Client
	Out     io.Writer              // of what the person should do
	Open    func(url string) error // opens a browser; nil: the person does
}

func (l *Login) oidc() *ssooidc.Client {
	return ssooidc.New(ssooidc.Options{BaseEndpoint: &l.Profile.Endpoint, Region: l.Profile.Region, HTTPClient: l.Client})
}

// registered is this program as the service has registered it.
type registered struct {
	id, secret *string
	expires    time.Time
}

func (l *Login) register(ctx context.Context, api *ssooidc.Client) (x registered, err error) {
	out, err := api.RegisterClient(ctx, &ssooidc.RegisterClientInput{
		ClientName: aws.String(clientName + " " + l.Profile.Session), ClientType: aws.String("public"), Scopes: []string{accountScope},
		GrantTypes: []string{codeGrant, refreshGrant, deviceGrant}, RedirectUris: []string{"http://127.0.0.1" + callbackPath}, IssuerUrl: &l.Profile.StartURL,
	})
	if err != nil {
		return x, fmt.Errorf("register with %s: %w", l.Profile.Endpoint, err)
	}
	return registered{out.ClientId, out.ClientSecret, time.Unix(out.ClientSecretExpiresAt, 0)}, nil
}

// keep stores the tokens where AWS clients look for them.
func (l *Login) keep(x registered, out *ssooidc.CreateTokenOutput) error {
	return l.Profile.store(l.Home, Token{
		StartURL: l.Profile.StartURL, Region: l.Profile.Region, AccessToken: aws.ToString(out.AccessToken), RefreshToken: aws.ToString(out.RefreshToken),
		ExpiresAt: instant(time.Now().Add(time.Duration(out.ExpiresIn) * time.Second)), ClientID: *x.id, ClientSecret: *x.secret, RegistrationExpires: instant(x.expires),
	})
}

// WithBrowser signs in by a browser on this machine: it comes back to a port of this program with a code, which is worth nothing to others.
func (l *Login) WithBrowser(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	api := l.oidc()
	x, err := l.register(ctx, api)
	if err != nil {
		return err
	}
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the browser: %w; --use-device-code needs no browser on this machine", err)
	}
	back := callback{state: rand.Text(), answers: make(chan url.Values, 1)}
	server := &http.Server{Handler: &back, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(port) //nolint:errcheck // it ends with shut
	defer shut(server)
	verifier := rand.Text() + rand.Text()
	sum := sha256.Sum256([]byte(verifier))
	redirect := "http://" + port.Addr().String() + callbackPath
	at := strings.TrimSuffix(l.Profile.Endpoint, "/") + "/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {*x.id}, "redirect_uri": {redirect}, "state": {back.state}, "scopes": {accountScope},
		"code_challenge_method": {"S256"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])},
	}.Encode()
	fmt.Fprintf(l.Out, "Sign in with your browser at\n\n%s\n\nWithout a browser on this machine: --use-device-code\n", at)
	l.open(at)
	var answer url.Values
	select {
	case answer = <-back.answers:
	case <-ctx.Done():
		return fmt.Errorf("the browser has not come back: %w", ctx.Err())
	}
	if problem := answer.Get("error"); problem != "" {
		return fmt.Errorf("the sign-in was refused: %s", problem)
	}
	out, err := api.CreateToken(ctx, &ssooidc.CreateTokenInput{
		ClientId: x.id, ClientSecret: x.secret, GrantType: aws.String(codeGrant), Code: aws.String(answer.Get("code")), RedirectUri: &redirect, CodeVerifier: &verifier,
	})
	if err != nil {
		return fmt.Errorf("exchange the code: %w", err)
	}
	return l.keep(x, out)
}

// shut ends a server that may still be writing its page to the browser.
func shut(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		server.Close()
	}
}

func (l *Login) open(at string) {
	if l.Open == nil {
		return
	}
	if err := l.Open(at); err != nil {
		fmt.Fprintf(l.Out, "No browser was opened: %v\n", err)
	}
}

// callback waits for the browser, once. What does not have its state is of another page, and ignored.
type callback struct {
	state   string
	answers chan url.Values
}

func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if r.Method != http.MethodGet || r.URL.Path != callbackPath || q.Get("state") != c.state {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	text := "You are signed in. Close this page and go back to the terminal.\n"
	if q.Get("error") != "" {
		text = "The sign-in was refused. Close this page and go back to the terminal.\n"
	}
	io.WriteString(w, text) //nolint:errcheck // the browser has gone if it fails
	select {
	case c.answers <- q:
	default:
	}
}

// WithDevice signs in by a browser anywhere: the person types the code there that this program shows.
func (l *Login) WithDevice(ctx context.Context) error {
	api := l.oidc()
	x, err := l.register(ctx, api)
	if err != nil {
		return err
	}
	waits, err := api.StartDeviceAuthorization(ctx, &ssooidc.StartDeviceAuthorizationInput{ClientId: x.id, ClientSecret: x.secret, StartUrl: &l.Profile.StartURL})
	if err != nil {
		return fmt.Errorf("ask for a code: %w", err)
	}
	shown := func(text *string) string { return terminal.Printable(aws.ToString(text)) }
	fmt.Fprintf(l.Out, "Open\n\n%s\n\nin any browser, and confirm there that the code is\n\n%s\n\nThe address with the code in it: %s\n", shown(waits.VerificationUri), shown(waits.UserCode), shown(waits.VerificationUriComplete))
	l.open(aws.ToString(waits.VerificationUriComplete))
	every, until := max(1, time.Duration(waits.Interval))*time.Second, time.Now().Add(time.Duration(waits.ExpiresIn)*time.Second)
	for {
		out, err := api.CreateToken(ctx, &ssooidc.CreateTokenInput{ClientId: x.id, ClientSecret: x.secret, GrantType: aws.String(deviceGrant), DeviceCode: waits.DeviceCode})
		if err == nil {
			return l.keep(x, out)
		}
		switch {
		case isA[*types.SlowDownException](err):
			every += 5 * time.Second // RFC 8628, section 3.5
		case isA[*types.AuthorizationPendingException](err):
		case isA[*types.ExpiredTokenException](err):
			return errors.New("the code was not confirmed in time")
		case isA[*types.AccessDeniedException](err):
			return errors.New("the sign-in was refused")
		case (isA[*url.Error](err) || isA[*types.InternalServerException](err)) && time.Now().Before(until): // the service restarts, while the person confirms the code
			every = max(every, min(2*every, awayMost))
		default:
			return fmt.Errorf("ask for the tokens: %w", err)
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

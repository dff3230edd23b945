package sso

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/fair"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/jsonbody"
	"github.com/musterhq/muster/internal/rate"
	"github.com/musterhq/muster/internal/signin"
)

// Limits of requests.
const (
	bodyMax  = 16 << 10
	depthMax = 3
	// valuesMax is far more than clients send: RegisterClient has seven members, three of which are lists.
	valuesMax = 100
)

// Rate limits. All but the last one are for unauthenticated requests.
var (
	registerRate = rate.Every(time.Second, 30)             // registrations and requests of devices, by address
	tokenRate    = rate.Every(time.Second/20, 200)         // by address: a studio behind one address may have many waiting devices
	pollRate     = rate.Every(pollInterval*time.Second, 5) // by device: the CLI asks twice before it waits
	typedRate    = rate.Every(10*time.Second, 10)          // by sign-in session: codes of devices that a person types
)

// pollInterval is how many seconds a device should wait between polls for its tokens, as at AWS.
const pollInterval = 1

// Engine is what the door needs of the engine.
type Engine interface {
	Do(ctx context.Context, cmd kernel.Command) error
	Read(ctx context.Context, f func(v *cell.View) error) error
	ReadHere(ctx context.Context, f func(v *cell.View) error) error
	Now() time.Time
}

// Config is what a Door needs.
type Config struct {
	Engine Engine
	People People
	Secret identity.CellSecret
	// PublicURL is the URL at which browsers reach this service; empty: the one at which the client has reached it.
	PublicURL string
	Secure    func(*http.Request) bool // reports whether a request came over TLS
	Private   func(*http.Request) bool // reports whether an answer cannot be read on the way
	Proxies   *clientaddress.Proxies
	Signins   *signin.Door
	Style     string           // path of the style sheet of pages
	Calls     *callstats.Calls // nil: calls are not counted
	Log       *slog.Logger
}

// Door serves sign-in clients, and the browsers of the people who use them.
type Door struct {
	config                        Config
	calls                         *callstats.Door
	registers, asks, polls, typed *fair.Rate
	clock                         func() time.Time // this machine's, for times from other machines
}

// call is an operation that programs call.
type call struct {
	name   string
	method string
	do     func(*Door, http.ResponseWriter, *http.Request) (any, *problem)
}

// operations are the operations for programs by path.
var operations = map[string]call{
	"/client/register":        {"RegisterClient", http.MethodPost, (*Door).registerClient},
	"/device_authorization":   {"StartDeviceAuthorization", http.MethodPost, (*Door).startDeviceAuthorization},
	"/token":                  {"CreateToken", http.MethodPost, (*Door).createToken},
	"/federation/credentials": {"GetRoleCredentials", http.MethodGet, byBearer((*Door).getRoleCredentials)},
	"/assignment/accounts":    {"ListAccounts", http.MethodGet, byBearer((*Door).listAccounts)},
	"/assignment/roles":       {"ListAccountRoles", http.MethodGet, byBearer((*Door).listAccountRoles)},
	"/logout":                 {"Logout", http.MethodPost, byBearer((*Door).logout)},
	loginTokenPath:            {"CreateOAuth2Token", http.MethodPost, (*Door).createLoginToken},
}

// Paths of pages.
const (
	authorizePath = "/authorize"
	devicePath    = "/device"
)

var (
	pagePaths   = map[string]bool{authorizePath: true, devicePath: true, loginAuthorizePath: true}
	portalPaths = map[string]bool{"/federation/credentials": true, "/assignment/accounts": true, "/assignment/roles": true, "/logout": true}
)

// NewDoor returns a Door.
func NewDoor(c Config) *Door {
	var names []string
	for _, x := range operations {
		names = append(names, x.name)
	}
	now := time.Now
	return &Door{config: c, calls: c.Calls.Door("sso", names...),
		registers: fair.NewRate(registerRate, now), asks: fair.NewRate(tokenRate, now), polls: fair.NewRate(pollRate, now), typed: fair.NewRate(typedRate, now), clock: now}
}

// Serves reports whether a path belongs to this door.
func Serves(path string) bool {
	_, ok := operations[path]
	return ok || pagePaths[path]
}

func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case authorizePath:
		d.page(w, r, d.showAuthorize, d.answerAuthorize)
		return
	case loginAuthorizePath:
		d.page(w, r, d.showLogin, d.answerLogin)
		return
	case devicePath:
		d.page(w, r, d.showDevice, d.answerDevice)
		return
	}
	began := time.Now()
	x := operations[r.URL.Path]
	if r.Method != x.method {
		w.Header().Set("Allow", x.method)
		http.Error(w, x.name+" is "+x.method+" "+r.URL.Path, http.StatusMethodNotAllowed)
		return
	}
	answer, p := d.perform(x, w, r)
	d.calls.Done(x.name, callstats.Heard(r.Context(), outcome(p)), began)
	if p != nil {
		writeProblem(w, p)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

func (d *Door) perform(x call, w http.ResponseWriter, r *http.Request) (any, *problem) {
	if !d.config.Private(r) {
		of := invalidRequest
		switch {
		case portalPaths[r.URL.Path]:
			of = badRequest
		case r.URL.Path == loginTokenPath:
			of = loginInvalid
		}
		return nil, of.because("The answer contains a secret that others on the network could read: use https.")
	}
	return x.do(d, w, r)
}

// read decodes the body of an SSO-OIDC call.
func (d *Door) read(w http.ResponseWriter, r *http.Request, into any) *problem {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		p := invalidRequest
		p.status = http.StatusRequestEntityTooLarge
		return p.because("The body has more than " + strconv.FormatInt(tooLarge.Limit, 10) + " bytes.")
	}
	if err == nil {
		err = jsonbody.Bounds{Depth: depthMax, Values: valuesMax}.Check(body)
	}
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return invalidRequest.because("The body is not the JSON that this operation takes.")
	}
	return nil
}

func (d *Door) from(r *http.Request) string { return d.config.Proxies.Of(r) }

func (d *Door) now() time.Time { return d.config.Engine.Now() }

// base returns the URL of this service for a browser.
func (d *Door) base(r *http.Request) string {
	if d.config.PublicURL != "" {
		return strings.TrimSuffix(d.config.PublicURL, "/")
	}
	scheme := "http"
	if d.config.Secure(r) {
		scheme = "https"
	}
	return (&url.URL{Scheme: scheme, Host: r.Host}).String()
}

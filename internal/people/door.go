package people

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/fair"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/live"
	"github.com/musterhq/muster/internal/people/providers"
	"github.com/musterhq/muster/internal/signin"
)

// Path is where people sign in. Every path of this door is this one or below it.
const Path = "/signin"

// Serves reports whether a path is this door's.
func Serves(path string) bool { return path == Path || strings.HasPrefix(path, Path+"/") }

// Bounds of requests.
const (
	bodyMax = 64 << 10
	backMax = 2048 // bytes of the path that a browser goes back to
)

// Keys publishes the sign-in sessions, and issues temporary credentials. *keyring.Ring implements it.
type Keys interface {
	identity.Finder
	SignIn(id string) (identity.SignIn, bool)
	Issue(x identity.Session, valid time.Duration) identity.Credentials
	// Await returns once an entry of the journal is in force at this node.
	Await(ctx context.Context, number uint64) error
}

// Config is what a Door needs.
type Config struct {
	Engine  *engine.Engine
	Secret  identity.CellSecret
	Keys    Keys
	URL     string                   // public URL of the service, http or https, without a path
	File    *providers.File          // at the start; see SetFile
	Private func(*http.Request) bool // reports whether a request could not be read on the way
	Secure  func(*http.Request) bool // reports whether it came over TLS
	Proxies *clientaddress.Proxies
	Signins *signin.Door
	Audit   *audit.Log // for refused attempts; nil: they are not recorded
	Log     *slog.Logger
}

// Door is the pages at which people sign in.
type Door struct {
	config   Config
	engine   *engine.Engine
	file     live.Value[file]
	passkeys *webauthn.WebAuthn // nil: the cell has no people of its own, or no name that passkeys could be bound to
	why      string             // there are none
	routes   http.ServeMux
	uses     uses
	logouts  *fair.Rate    // of providers that sign people out
	looks    chan struct{} // holds an element for each look for a session
	log      *slog.Logger
}

// NewDoor makes a Door. Close it before the engine.
func NewDoor(c Config) (*Door, error) {
	d := &Door{config: c, engine: c.Engine, looks: make(chan struct{}, looksMax), logouts: fair.NewRate(logoutRate, time.Now), log: cmp.Or(c.Log, slog.New(slog.DiscardHandler))}
	d.SetFile(c.File)
	var err error
	if d.config.URL, err = byName(c.URL); err != nil {
		return nil, err
	}
	d.openPasskeys()
	d.routes.HandleFunc("GET "+Path, d.showSignIn)
	d.routes.HandleFunc("GET "+Path+"/static/{file}", d.serveStatic)
	d.routes.HandleFunc("GET "+Path+"/start/{provider}", d.start)
	d.routes.HandleFunc("GET "+Path+"/callback/{provider}", d.callback)
	d.routes.HandleFunc("POST "+Path+"/logout/{provider}", d.backchannelLogout)
	d.routes.HandleFunc("POST "+Path+"/out", d.signOut)
	d.routes.HandleFunc("POST "+Path+"/passkey/begin", d.forScripts(d.beginPasskey))
	d.routes.HandleFunc("POST "+Path+"/passkey/finish", d.forScripts(d.finishPasskey))
	d.routes.HandleFunc("GET "+Path+"/enrol", d.showEnrol)
	d.routes.HandleFunc("POST "+Path+"/enrol/begin", d.forScripts(d.beginEnrol))
	d.routes.HandleFunc("POST "+Path+"/enrol/finish", d.forScripts(d.finishEnrol))
	d.uses.start(d)
	return d, nil
}

// file is the file of providers that is in force.
type file struct {
	*providers.File
	byName map[string]*providers.Provider
}

// SetFile replaces the file of providers. Sessions that people have go on until they are checked the next time, which is by the new file.
func (d *Door) SetFile(f *providers.File) {
	x := file{f, map[string]*providers.Provider{}}
	for _, p := range f.Providers {
		x.byName[p.Name] = p
	}
	d.file.Set(x)
}

// byName returns a URL without a path. An address of this machine becomes localhost: browsers have passkeys for names alone.
func byName(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("public URL %q: want one such as https://muster.example.com", address)
	}
	host := u.Host
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsLoopback() {
		host = strings.TrimSuffix("localhost:"+u.Port(), ":")
	}
	return u.Scheme + "://" + host, nil
}

// Close ends the work of the door in the background.
func (d *Door) Close() { d.uses.close() }

func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer") // the code of a provider is in the URL of one page
	h.Set("Cache-Control", "no-store")
	d.routes.ServeHTTP(w, r)
}

// showSignIn is the page from which a person chooses how to sign in.
func (d *Door) showSignIn(w http.ResponseWriter, r *http.Request) {
	if d.atAnotherName(w, r) {
		return
	}
	back := backOf(r.URL.Query().Get("back"))
	if _, ok := d.Browser(r); ok {
		http.Redirect(w, r, back, http.StatusSeeOther)
		return
	}
	d.writeSignIn(w, r, http.StatusOK, back, "")
}

// atAnotherName sends a browser to the public URL that has come by another name of this host: providers lead back there, and passkeys are bound to it. It does so
// once, because a proxy may hide the name that the browser has used.
func (d *Door) atAnotherName(w http.ResponseWriter, r *http.Request) bool {
	const here = "here"
	query := r.URL.Query()
	u, err := url.Parse(d.config.URL)
	if err != nil || strings.EqualFold(r.Host, u.Host) || query.Has(here) {
		return false
	}
	query.Set(here, "1")
	http.Redirect(w, r, d.config.URL+r.URL.EscapedPath()+"?"+query.Encode(), http.StatusSeeOther)
	return true
}

// Way is one of the ways to sign in.
type Way struct {
	Title string
	Path  string // where a browser begins; empty: with a passkey, by a script
}

// Ways are the providers, in the order of the settings. back is a path of this service to go to afterwards.
func (d *Door) Ways(back string) (all []Way) {
	for _, p := range d.file.Get().Providers {
		all = append(all, Way{p.Title, Path + "/start/" + p.Name + "?back=" + url.QueryEscape(backOf(back))})
	}
	return all
}

// Passkeys reports whether people of the cell's own can sign in here.
func (d *Door) Passkeys() bool { return d.passkeys != nil && !d.file.Get().NoOwn }

func (d *Door) writeSignIn(w http.ResponseWriter, r *http.Request, status int, back, problem string) {
	d.write(w, r, status, "sign-in", &page{Title: "Sign in", Ways: d.Ways(back), Passkeys: d.Passkeys(), Why: d.why, Back: back, Problem: problem})
}

// start sends a browser to a provider.
func (d *Door) start(w http.ResponseWriter, r *http.Request) {
	if d.atAnotherName(w, r) {
		return
	}
	back := backOf(r.URL.Query().Get("back"))
	p := d.file.Get().byName[r.PathValue("provider")]
	switch {
	case p == nil:
		d.writeSignIn(w, r, http.StatusNotFound, back, "There is no such provider.")
		return
	case !d.config.Private(r):
		d.writeSignIn(w, r, http.StatusForbidden, back, "This connection is not encrypted, so others on the way could sign in with what the provider sends: use https.")
		return
	}
	s := newSigning(p.Name, back, time.Now())
	to, err := p.AuthURL(r.Context(), d.request(p, &s))
	if err != nil {
		d.log.Warn("identity provider cannot be asked: a person cannot sign in", "provider", p.Name, "error", err)
		d.writeSignIn(w, r, http.StatusBadGateway, back, p.Title+" does not answer as it should. The log of the service has the cause. Try again, or sign in another way.")
		return
	}
	http.SetCookie(w, d.cookie(r, signingCookie, d.sealed(&s), int(signingLife/time.Second)))
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (d *Door) request(p *providers.Provider, s *signing) providers.Request {
	return providers.Request{Redirect: d.config.URL + Path + "/callback/" + p.Name, State: s.State, Nonce: s.Nonce, Verifier: s.Verifier}
}

// callback is where a provider sends a browser back to. Whoever has made the browser come here: only the one that has begun a sign-in with this provider, with this state, goes on.
func (d *Door) callback(w http.ResponseWriter, r *http.Request) {
	p := d.file.Get().byName[r.PathValue("provider")]
	query := r.URL.Query()
	s, ok := d.unsealed(r)
	http.SetCookie(w, d.cookie(r, signingCookie, "", -1)) // it works once
	back := backOf(s.Back)
	refuse := func(status int, reason signin.Reason, cause error, problem string) {
		if slow := d.config.Signins.Fail(signin.Failure{From: d.config.Proxies.Of(r), Reason: reason, Cause: cause}); slow != nil {
			w.Header().Set("Retry-After", strconv.Itoa(slow.Seconds()))
			status, problem = http.StatusTooManyRequests, slow.Error()
		}
		d.writeSignIn(w, r, status, back, problem)
	}
	switch {
	case p == nil:
		refuse(http.StatusNotFound, signin.Malformed, nil, "There is no such provider.")
		return
	case !d.config.Private(r):
		refuse(http.StatusForbidden, signin.Malformed, nil, "This connection is not encrypted, so others on the way may have what the provider has sent: use https.")
		return
	case !ok || s.Provider != p.Name || !identity.Equal(s.State, query.Get("state")):
		refuse(http.StatusBadRequest, signin.Expired, nil, "This browser has not begun this sign-in, or it took longer than "+signingLife.String()+", or another one was begun since. Sign in again.")
		return
	}
	if err := p.CheckIssuer(r.Context(), query); err != nil {
		refuse(http.StatusBadRequest, signin.WrongToken, err, "The answer is not of the provider that was asked. Sign in again.")
		return
	}
	if code := query.Get("error"); code != "" {
		d.log.Info("identity provider refused a sign-in", "provider", p.Name, "reason", short(code), "detail", short(query.Get("error_description")))
		d.writeSignIn(w, r, http.StatusForbidden, back, p.Title+" has refused: "+short(cmp.Or(query.Get("error_description"), code)))
		return
	}
	person, err := p.Exchange(r.Context(), d.request(p, &s), query.Get("code"))
	switch {
	case errors.Is(err, providers.ErrBusy):
		w.Header().Set("Retry-After", "1")
		d.writeSignIn(w, r, http.StatusServiceUnavailable, back, "Too many people sign in at the moment. Try again.")
		return
	case err != nil:
		refuse(http.StatusBadRequest, signin.WrongToken, err, p.Title+" has not confirmed this sign-in. Sign in again; if that fails, the log of the service has the cause.")
		return
	}
	d.begin(w, r, p, person, back)
}

// begin starts the session of a person whom a provider has confirmed.
func (d *Door) begin(w http.ResponseWriter, r *http.Request, p *providers.Provider, person providers.Person, back string) {
	roles := p.Roles.Of(person.Groups)
	if roles == 0 {
		d.config.Audit.RefusedAs(d.origin(r, p.Name+"/"+person.Subject, "SignIn"), "NoRole")
		d.log.Info("person without a role cannot sign in", "provider", p.Name, "subject", short(person.Subject), "groups", len(person.Groups))
		d.writeSignIn(w, r, http.StatusForbidden, back, "You are "+cmp.Or(person.Name, person.Subject)+" at "+p.Title+", and none of your groups there gives a role here. Ask who runs this service.")
		return
	}
	err := d.enter(w, r, entry{provider: p.Name, subject: person.Subject, name: person.Name, groups: person.Groups, roles: roles, refresh: person.Refresh, sid: person.Sid})
	if err != nil {
		status, problem := d.problem(err)
		d.writeSignIn(w, r, status, back, problem)
		return
	}
	// A redirect would be one of the provider's page, with which browsers send no cookies that are for this site alone.
	d.write(w, r, http.StatusOK, "back", &page{Title: "Signed in", Back: back})
}

// problem says to a person why something failed.
func (d *Door) problem(err error) (status int, text string) {
	if refused, ok := errors.AsType[*domain.Refusal](err); ok {
		status = http.StatusBadRequest
		if refused.Reason == domain.LimitExceeded || refused.Reason == domain.Overloaded {
			status = http.StatusServiceUnavailable
		}
		return status, refused.Detail
	}
	d.log.Error("a sign-in failed inside the service", "error", err)
	return http.StatusServiceUnavailable, "Signing in failed inside the service; the log has the cause. Try again."
}

// signOut ends the session of a browser.
func (d *Door) signOut(w http.ResponseWriter, r *http.Request) {
	if !d.OwnPage(r) {
		d.writeSignIn(w, r, http.StatusForbidden, "/", "A page of another site sent this form.")
		return
	}
	d.SignOut(w, r)
	http.Redirect(w, r, Path+"?back="+url.QueryEscape(backOf(r.URL.Query().Get("back"))), http.StatusSeeOther)
}

// OwnPage reports whether a form was sent by a page of this service. Every browser of the last years says so in a header that pages cannot set.
func (d *Door) OwnPage(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin":
		return true
	case "":
		origin, err := url.Parse(r.Header.Get("Origin"))
		return err == nil && origin.Host != "" && strings.EqualFold(origin.Host, r.Host) && (origin.Scheme == "https" || !d.config.Secure(r))
	}
	return false
}

// backOf returns a path of this service to go to: a link must not lead a person elsewhere, and not in a circle.
func backOf(to string) string {
	u, err := url.Parse(to)
	if err != nil || len(to) > backMax || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") ||
		u.Scheme != "" || u.Host != "" || u.User != nil || Serves(u.Path) || strings.HasPrefix(u.Path, "//") {
		return home
	}
	return u.RequestURI()
}

// home is where a person goes who comes from nowhere.
const home = "/console/"

func (d *Door) origin(r *http.Request, principal, operation string) audit.Origin {
	return audit.Origin{Principal: principal, Door: audit.DoorSignIn, Address: d.config.Proxies.Of(r), Agent: r.UserAgent(), Operation: operation}
}

// proven says that the connection of a request belongs to somebody who is known.
func proven(r *http.Request) { connlimit.Prove(r.Context()) }

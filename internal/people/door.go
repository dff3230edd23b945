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

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/fair"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/live"
	"github.com/musterhq/muster/internal/people/providers"
	"github.com/musterhq/muster/internal/rate"
	"github.com/musterhq/muster/internal/signin"
)

// Path is the sign-in page. All other paths of this door are below it.
const Path = "/signin"

// Serves reports whether a path is this door's.
func Serves(path string) bool { return path == Path || strings.HasPrefix(path, Path+"/") }

// Bounds of requests.
const (
	bodyMax = 64 << 10
	backMax = 2048 // bytes of the path that a browser returns to
)

// Limit on log lines of one kind that strangers can cause.
const (
	linesMost   = 5
	linesWithin = time.Minute
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
	Private func(*http.Request) bool // reports whether others on the network could not read a request
	Secure  func(*http.Request) bool // reports whether it came over TLS
	Proxies *clientaddress.Proxies
	Signins *signin.Door
	Audit   *audit.Log // for refused attempts; nil: not recorded
	Log     *slog.Logger
}

// Door serves the pages at which people sign in.
type Door struct {
	config    Config
	engine    *engine.Engine
	file      live.Value[file]
	passkeys  *relyingParty // nil: passkeys do not work with the public URL
	why       string        // why passkeys is nil
	routes    http.ServeMux
	uses      uses
	logouts   *fair.Rate    // of logout requests from providers
	unreached lines         // about providers that cannot be used
	refusals  lines         // about providers that refused a sign-in
	looks     chan struct{} // holds an element for each lookup of an unknown session
	log       *slog.Logger
}

// lines are log lines of one kind.
type lines struct{ rate.Lines }

func newLines() lines { return lines{rate.Lines{Most: linesMost, Period: linesWithin}} }

func (l *lines) log(log *slog.Logger, level slog.Level, what string, attributes ...any) {
	if write, unlogged := l.Note(time.Now()); write {
		log.Log(context.Background(), level, what, append(attributes, "unlogged", unlogged)...)
	}
}

// NewDoor makes a Door. Close it before the engine.
func NewDoor(c Config) (*Door, error) {
	d := &Door{config: c, engine: c.Engine, looks: make(chan struct{}, looksMax), logouts: fair.NewRate(logoutRate, time.Now), unreached: newLines(), refusals: newLines(), log: cmp.Or(c.Log, slog.New(slog.DiscardHandler))}
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
	d.routePasskeys()
	d.uses.start(d)
	return d, nil
}

// file is the file of providers that is in force.
type file struct {
	*providers.File
	byName map[string]*providers.Provider
}

// SetFile replaces the file of providers. Existing sessions continue until their next check, which uses the new file.
func (d *Door) SetFile(f *providers.File) {
	x := file{f, map[string]*providers.Provider{}}
	for _, p := range f.Providers {
		x.byName[p.Name] = p
	}
	d.file.Set(x)
}

// byName returns a URL without a path. It replaces a loopback address with localhost, because browsers allow passkeys only for names.
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

// Close ends the door's background work.
func (d *Door) Close() { d.uses.close() }

func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer") // the code of a provider is in the URL of one page
	h.Set("Cache-Control", "no-store")
	d.routes.ServeHTTP(w, r)
}

// showSignIn serves the page on which a person chooses how to sign in.
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

// atAnotherName redirects a browser that used another name of this host to the public URL: providers return there, and passkeys are bound to it. It does so only
// once, because a proxy may hide the name that the browser used.
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
	Path  string // first page of the sign-in; empty: a script signs in with a passkey
}

// Ways returns the providers in the order of the settings. back is the path of this service to return to.
func (d *Door) Ways(back string) (all []Way) {
	for _, p := range d.file.Get().Providers {
		all = append(all, Way{p.Title, Path + "/start/" + p.Name + "?back=" + url.QueryEscape(backOf(back))})
	}
	return all
}

// Passkeys reports whether the cell's own people can sign in here.
func (d *Door) Passkeys() bool { return d.passkeys != nil && !d.file.Get().NoOwn }

func (d *Door) writeSignIn(w http.ResponseWriter, r *http.Request, status int, back, problem string) {
	d.write(w, r, status, "sign-in", &page{Title: "Sign in", Ways: d.Ways(back), Passkeys: d.Passkeys(), Why: d.WhyNoPasskeys(), Back: back, Problem: problem})
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
		d.writeSignIn(w, r, http.StatusForbidden, back, "This connection is not encrypted, so others on the network could intercept the sign-in: use https.")
		return
	}
	s := newSigning(p.Name, back, d.engine.Now())
	to, err := p.AuthURL(r.Context(), d.request(p, &s))
	if err != nil {
		d.unreachable(w, r, p, back, err)
		return
	}
	http.SetCookie(w, d.cookie(r, signingCookie, d.sealed(&s), int(signingLife/time.Second)))
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// unreachable answers a sign-in whose provider cannot be used.
func (d *Door) unreachable(w http.ResponseWriter, r *http.Request, p *providers.Provider, back string, err error) {
	d.unreached.log(d.log, slog.LevelWarn, "a sign-in failed at the identity provider", "provider", p.Name, "error", err)
	d.writeSignIn(w, r, http.StatusBadGateway, back, p.Title+" did not answer as expected. The service's log has the cause. Try again, or sign in another way.")
}

func (d *Door) request(p *providers.Provider, s *signing) providers.Request {
	return providers.Request{Redirect: d.config.URL + Path + "/callback/" + p.Name, State: s.State, Nonce: s.Nonce, Verifier: s.Verifier}
}

// callback serves browsers that return from a provider. Another site may have sent the browser here, so only a browser that began a sign-in with this provider and
// this state may continue.
func (d *Door) callback(w http.ResponseWriter, r *http.Request) {
	p := d.file.Get().byName[r.PathValue("provider")]
	query := r.URL.Query()
	s, ok := d.unsealed(r)
	http.SetCookie(w, d.cookie(r, signingCookie, "", -1)) // the cookie works once
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
		refuse(http.StatusForbidden, signin.Malformed, nil, "This connection is not encrypted, so others on the network may have intercepted the provider's answer: use https.")
		return
	case !ok || s.Provider != p.Name || !identity.Equal(s.State, query.Get("state")):
		refuse(http.StatusBadRequest, signin.Expired, nil, "This browser did not begin this sign-in, the sign-in took longer than "+signingLife.String()+", or another one has begun since. Sign in again.")
		return
	}
	err := p.CheckIssuer(r.Context(), query)
	switch {
	case errors.Is(err, providers.ErrUnreachable):
		d.unreachable(w, r, p, back, err)
		return
	case err != nil:
		refuse(http.StatusBadRequest, signin.WrongToken, err, "The answer is not from the provider that was asked. Sign in again.")
		return
	}
	if code := query.Get("error"); code != "" {
		d.refusals.log(d.log, slog.LevelInfo, "identity provider refused a sign-in", "provider", p.Name, "reason", short(code), "detail", short(query.Get("error_description")))
		d.writeSignIn(w, r, http.StatusForbidden, back, p.Title+" refused the sign-in: "+short(cmp.Or(query.Get("error_description"), code)))
		return
	}
	person, err := p.Exchange(r.Context(), d.request(p, &s), query.Get("code"))
	switch {
	case errors.Is(err, providers.ErrBusy):
		w.Header().Set("Retry-After", "1")
		d.writeSignIn(w, r, http.StatusServiceUnavailable, back, "Too many people are signing in at the moment. Try again.")
		return
	case errors.Is(err, providers.ErrUnreachable):
		d.unreachable(w, r, p, back, err)
		return
	case err != nil:
		refuse(http.StatusBadRequest, signin.WrongToken, err, p.Title+" did not confirm this sign-in. Sign in again; if that fails, the service's log has the cause.")
		return
	}
	d.begin(w, r, p, person, back)
}

// begin starts the session of a person whom a provider confirmed.
func (d *Door) begin(w http.ResponseWriter, r *http.Request, p *providers.Provider, person providers.Person, back string) {
	roles := p.Roles.Of(person.Groups)
	if roles == 0 {
		d.config.Audit.RefusedAs(d.origin(r, p.Name+"/"+person.Subject, "SignIn"), "NoRole")
		d.log.Info("person without a role cannot sign in", "provider", p.Name, "subject", short(person.Subject), "groups", len(person.Groups))
		d.writeSignIn(w, r, http.StatusForbidden, back, "You are "+cmp.Or(person.Name, person.Subject)+" at "+p.Title+", but none of your groups there gives you a role here. Ask the operator of this service.")
		return
	}
	err := d.enter(w, r, entry{provider: p.Name, subject: person.Subject, name: person.Name, groups: person.Groups, roles: roles, refresh: person.Refresh, sid: person.Sid})
	if err != nil {
		status, problem := d.problem(err)
		d.writeSignIn(w, r, status, back, problem)
		return
	}
	// A redirect would still belong to the navigation from the provider's page, with which browsers send no SameSite=Strict cookies.
	d.write(w, r, http.StatusOK, "back", &page{Title: "Signed in", Back: back})
}

// problem explains to a person why something failed.
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
		d.writeSignIn(w, r, http.StatusForbidden, "/", "Another site's page sent this form.")
		return
	}
	back := r.URL.Query().Get("back")
	if d.SignOut(w, r) != nil {
		d.writeSignIn(w, r, http.StatusServiceUnavailable, backOf(back), NotEnded)
		return
	}
	d.SignIn(w, r, back)
}

// OwnPage reports whether a page of this service sent a form. Current browsers state that in a header that pages cannot set.
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

// backOf returns the path of this service to return to: a link must not lead a person to another site, nor back to the sign-in page.
func backOf(to string) string {
	u, err := url.Parse(to)
	if err != nil || len(to) > backMax || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") ||
		u.Scheme != "" || u.Host != "" || u.User != nil || Serves(u.Path) || strings.HasPrefix(u.Path, "//") {
		return home
	}
	return u.RequestURI()
}

// home is the page for a person who started at the sign-in page.
const home = "/console/"

func (d *Door) origin(r *http.Request, principal, operation string) audit.Origin {
	return audit.Origin{Principal: principal, Door: audit.DoorSignIn, Address: d.config.Proxies.Of(r), Agent: r.UserAgent(), Operation: operation}
}

// proven marks the connection of a request as belonging to a known person.
func proven(r *http.Request) { connlimit.Prove(r.Context()) }

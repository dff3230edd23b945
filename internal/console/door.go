package console

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/people"
	"github.com/musterhq/muster/internal/rehearsal"
	"github.com/musterhq/muster/internal/series"
	"github.com/musterhq/muster/internal/settings"
	"github.com/musterhq/muster/internal/signin"
)

// Prefix is the prefix of every path of this door.
const Prefix = "/console"

// Serves reports whether a path is this door's.
func Serves(path string) bool { return path == Prefix || strings.HasPrefix(path, Prefix+"/") }

// Config configures a Door.
type Config struct {
	Engine  *engine.Engine
	Secret  identity.CellSecret
	Keys    identity.Finder
	Dev     bool                     // people need not sign in
	Private func(*http.Request) bool // reports whether a request was protected in transit
	Secure  func(*http.Request) bool // reports whether it came over TLS
	Proxies *clientaddress.Proxies
	Signins *signin.Door

	// Explain returns the operators' API's answer about an object: its JSON document, with the output of its server process if the viewer may read that.
	Explain func(ctx context.Context, kind, id string, mayReadOutput bool) (document []byte, err error)
	// Feed returns the operators' API's answer about the events of an object: its JSON document, including audit log entries if the caller may read
	// them.
	Feed func(ctx context.Context, query url.Values, mayAudit bool) (document []byte, err error)
	// Output answers with the output of a server process, as the operators' API does.
	Output    func(w http.ResponseWriter, r *http.Request, by identity.Principal, id string)
	Attention *attention.Finder // finds the problems that the overview shows first
	// Series holds the kept metrics; nil: none are kept.
	Series   *series.Store
	Keyring  *keyring.Ring
	RolesOf  keyring.RolesOf           // for explanations
	People   *people.Door              // where people sign in; nil: only with access keys
	Settings func() []settings.Setting // in force
	// API executes most actions.
	API API
	// Cluster is this node of a cluster; nil: a single machine.
	Cluster Cluster
	// Audit records refused attempts; nil: they are not recorded.
	Audit *audit.Log

	Version string
	Log     *slog.Logger
}

// Door answers browsers.
type Door struct {
	config Config
	engine *engine.Engine
	routes http.ServeMux
	live   *live
	shared shared // pages shared between viewers
	log    *slog.Logger

	zipped   sync.Map      // gzipped static files, by name
	drawings chan struct{} // holds one element per request that reads kept metrics
	exports  chan struct{} // holds one element per export of a list

	stage *rehearsal.Stage // for trials of rule sets

	changing sync.Mutex // held from checking what an action depends on until the action's end, such as that a new fleet's name is free, or that a queue is still as its form shows it
}

// NewDoor makes a Door. Close it before the engine.
func NewDoor(c Config) *Door {
	if c.Settings == nil {
		c.Settings = func() []settings.Setting { return nil }
	}
	d := &Door{config: c, engine: c.Engine, log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)), drawings: make(chan struct{}, drawingsAtOnce), exports: make(chan struct{}, exportsAtOnce), stage: rehearsal.NewStage()}
	d.live = newLive(d.engine.Applied)
	d.routes.HandleFunc("GET "+Prefix+"/static/{file}", d.serveStatic)
	d.routes.HandleFunc("GET "+Prefix+"/sign-in", d.showSignIn)
	d.routes.HandleFunc("POST "+Prefix+"/sign-in", d.signIn)
	d.routes.HandleFunc("POST "+Prefix+"/sign-out", d.signOut)
	d.routes.HandleFunc("GET "+linkPath, d.showLink)
	d.routes.HandleFunc("POST "+linkPath, d.useLink)
	d.routes.HandleFunc("GET "+livePath, d.signedIn(d.serveLive))
	d.routes.HandleFunc("GET "+Prefix+"/find", d.signedIn(d.find))
	d.routes.HandleFunc("GET "+Prefix+"/find.json", d.signedIn(d.findAsJSON))
	d.page("", d.overview)
	d.page("fleets/{id}", d.fleet)
	d.page("player/{player...}", d.player)
	d.page("party/{id...}", d.party)
	d.page("game-session/{id...}", d.gameSession)
	d.page("queues/{name}", d.queue)
	d.page("matchmaking/{name}", d.configuration)
	d.listPages()
	d.page("output/{id...}", d.output)
	d.routes.HandleFunc("GET "+Prefix+"/output.txt/{id...}", d.signedIn(d.serveOutput))
	d.page("rule-sets", d.ruleSets)
	d.page("policies/{name}", d.policyPage)
	d.page("access", d.access)
	d.routes.HandleFunc("POST "+Prefix+"/policies/check", d.signedIn(d.checkPolicy))
	d.editorPages()
	d.routes.HandleFunc("GET "+Prefix+"/matchmaking/{name}/arrivals.jsonl", d.signedIn(d.serveArrivals))
	d.routes.HandleFunc("GET "+Prefix+"/events/{kind}/{id...}", d.signedIn(d.eventsOf))
	d.graphPages("health", d.health)
	d.graphPages("fleets/{id}/metrics", d.fleetMetrics)
	d.graphPages("queues/{name}/metrics", d.queueMetrics)
	d.graphPages("matchmaking/{name}/metrics", d.configurationMetrics)
	for _, kind := range explained {
		if kind == "party" || kind == "game-session" { // these have pages of their own
			continue
		}
		d.page(kind+"/{id...}", func(r *http.Request) (*content, error) { return d.explanation(r, kind) })
	}
	d.actionPages()
	// A path without a page, with any method: strangers get the same answer as for a page.
	d.routes.HandleFunc(Prefix+"/{path...}", d.signedIn(func(w http.ResponseWriter, r *http.Request, by identity.AccessKey) {
		d.show(w, r, by, func(*http.Request) (*content, error) {
			return nil, domain.Refuse(domain.NotFound, "The console has no page at this address.")
		})
	}))
	return d
}

// Close ends all streams.
func (d *Door) Close() { d.live.close() }

func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if r.URL.Path == Prefix {
		http.Redirect(w, r, Prefix+"/", http.StatusSeeOther)
		return
	}
	d.routes.ServeHTTP(w, r)
}

// page registers a page for people who have signed in.
func (d *Door) page(path string, build func(*http.Request) (*content, error)) {
	pattern := "GET " + Prefix + "/" + path
	if path == "" {
		pattern += "{$}"
	}
	d.routes.HandleFunc(pattern, d.signedIn(func(w http.ResponseWriter, r *http.Request, by identity.AccessKey) { d.show(w, r, by, build) }))
}

// show answers with a page, or with one that says why the page cannot be shown.
func (d *Door) show(w http.ResponseWriter, r *http.Request, by identity.AccessKey, build func(*http.Request) (*content, error)) {
	if isRefresh(r) {
		d.refresh(w, r, by, build)
		return
	}
	at := d.engine.Applied() // before the page is built: it may show later changes, but misses none up to here
	c, err := build(r)
	status := http.StatusOK
	if err != nil {
		status, c = d.refusal(r, err)
	}
	c.At = at
	d.write(w, r, status, c, by)
}

// refuse answers with a page that says why a request failed.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, err error, by identity.AccessKey) {
	status, c := d.refusal(r, err)
	d.write(w, r, status, c, by)
}

// refusal returns the page to show instead.
func (d *Door) refusal(r *http.Request, err error) (status int, c *content) {
	refused, ok := errors.AsType[*domain.Refusal](err)
	why, denies := errors.AsType[denied](err)
	status, text := http.StatusInternalServerError, "The request failed inside the service; the log has the cause."
	switch {
	case denies:
		status, text = http.StatusForbidden, why.Error()
	case ok && refused.Reason == domain.NotFound:
		status, text = http.StatusNotFound, refused.Detail
	case ok && refused.Reason == domain.Overloaded:
		status, text = http.StatusServiceUnavailable, refused.Detail
	case ok:
		status, text = http.StatusBadRequest, refused.Detail
	case errors.Is(err, engine.ErrStopped), errors.Is(err, engine.ErrNotLeading):
		status, text = http.StatusServiceUnavailable, "This node cannot answer for the cluster at the moment: "+err.Error()
	case r.Context().Err() == nil:
		d.log.Error("a page of the console failed", "path", r.URL.Path, "error", err)
	}
	c = &content{Title: http.StatusText(status), page: "refusal", Data: text}
	if past, ok := errors.AsType[*past](err); ok {
		c.Past = &past.events
	}
	return status, c
}

// past is the error for the page of an object that no longer exists, or never did. Its events may still be known.
type past struct {
	error
	events link
}

func (p *past) Unwrap() error { return p.error }

// gone adds to the refusal of an unknown object where to find its events.
func gone(err error, kind, id string) error {
	if domain.IsRefused(err, domain.NotFound) {
		return &past{err, link{"What is known of its past", eventsLink(kind, id).URL}}
	}
	return err
}

// denied is the error for a page that the role or policies deny to the person.
type denied string

func (why denied) Error() string { return string(why) }

// forAdmins refuses a page to other roles, and to administrators whose policies do not allow the action.
func (d *Door) forAdmins(r *http.Request, page, action string) error {
	key, _, _ := d.session(r)
	if key.Role != identity.Admin {
		return denied("Only access keys of the role admin may see the " + page + ".")
	}
	by := key.Principal(d.config.Proxies.Of(r))
	if err := by.MayCall(action); err != nil {
		return denied(err.Error())
	}
	return nil
}

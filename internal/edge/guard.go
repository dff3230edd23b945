package edge

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/rate"
)

// Config says what a Guard lets pass.
type Config struct {
	Transport Transport

	RequireTLS bool     // refuse requests that are not Private
	Plain      []string // paths that are answered without TLS all the same: health, which load balancers ask for

	// StrictTransport tells browsers to use TLS from now on, with answers to requests that did.
	StrictTransport bool

	Pages *Pages // nil outside development mode: there a page has no credentials

	// Refuse answers a request that may not pass with status 403, in the form that the client understands.
	Refuse func(w http.ResponseWriter, r *http.Request, message string)
	Log    *slog.Logger
}

// Guard stands in front of the doors of one port.
type Guard struct {
	config Config
	next   http.Handler
	told   rate.Lines
}

// The lines about refused requests that the log gets within a time.
const (
	toldMax    = 10
	toldWithin = 10 * time.Second
)

// NewGuard makes a Guard.
func NewGuard(c Config, next http.Handler) *Guard {
	return &Guard{config: c, next: next, told: rate.Lines{Most: toldMax, Period: toldWithin}}
}

// strictTransport is for a year. Other hosts of the domain are not ours to decide about.
var strictTransport = []string{"max-age=31536000"}

func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &g.config
	if c.StrictTransport && c.Transport.Secure(r) {
		w.Header()["Strict-Transport-Security"] = strictTransport
	}
	if c.Pages != nil {
		if problem := c.Pages.check(r); problem != "" {
			g.refuse(w, r, problem)
			return
		}
	}
	if c.RequireTLS && !c.Transport.Private(r) && !slices.Contains(c.Plain, r.URL.Path) {
		g.refuse(w, r, g.withoutTLS(r))
		return
	}
	g.next.ServeHTTP(w, r)
}

// withoutTLS says what is wrong and what to do, to those who call and to those who operate.
func (g *Guard) withoutTLS(r *http.Request) string {
	message := "This service takes requests from other machines over TLS only, because keys and tokens that are sent in the clear can be read " +
		"on the way: use https:// or wss://."
	peer, _ := peerOf(r)
	switch said, _ := schemeSaid(r); {
	case said && g.config.Transport.Trusts(peer):
		message += " The proxy at " + peer.String() + " says that its client used plain HTTP."
	case said || r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Forwarded") != "":
		message += " If " + peer.String() + " is your proxy and ends TLS, name it in --trusted-proxies."
	}
	if scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "Basic") {
		message += " The key or token that was sent with this request may be known to others now: revoke it."
	}
	return message
}

func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, message string) {
	if write, silent := g.told.Note(time.Now()); write {
		g.config.Log.Warn("request refused", "address", r.RemoteAddr, "method", r.Method, "path", cut(r.URL.Path), "reason", message, "unlogged", silent)
	}
	w.Header().Set("Connection", "close") // what follows on this connection would be refused as well
	w.Header().Set("Cache-Control", "no-store")
	g.config.Refuse(w, r, message)
}

func cut(text string) string {
	const most = 100
	if len(text) > most {
		return text[:most]
	}
	return text
}

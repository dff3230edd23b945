package edge

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/live"
	"github.com/musterhq/muster/internal/rate"
)

// Config has the rules of a Guard.
type Config struct {
	Transport Transport

	RequireTLS *live.Value[bool] // refuse requests that are not Private
	Plain      []string          // paths that are answered without TLS, too: health checks of load balancers

	// StrictTransport tells browsers to use TLS from now on, with answers to requests that did.
	StrictTransport bool

	Pages *Pages // nil outside development mode: there a page has no credentials

	// Refuse answers a refused request with status 403, in the form of the client's protocol.
	Refuse func(w http.ResponseWriter, r *http.Request, message string)
	Log    *slog.Logger
}

// Guard checks every request of one port before its door does.
type Guard struct {
	config Config
	next   http.Handler
	told   rate.Lines
}

// Bound of the log lines about refused requests: toldMax in each toldWithin.
const (
	toldMax    = 10
	toldWithin = 10 * time.Second
)

// NewGuard makes a Guard.
func NewGuard(c Config, next http.Handler) *Guard {
	return &Guard{config: c, next: next, told: rate.Lines{Most: toldMax, Period: toldWithin}}
}

// strictTransport is valid for a year, and not for other hosts of the domain.
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
	if c.RequireTLS.Get() && !c.Transport.Private(r) && !slices.Contains(c.Plain, r.URL.Path) {
		g.refuse(w, r, g.withoutTLS(r))
		return
	}
	g.next.ServeHTTP(w, r)
}

// withoutTLS is the message about a request without TLS: for callers and operators, it says what is wrong and what to do.
func (g *Guard) withoutTLS(r *http.Request) string {
	message := "This service accepts requests from other machines over TLS only, because keys and tokens that are sent without it can be read " +
		"on the network: use https:// or wss://."
	peer, _ := peerOf(r)
	switch said, _ := schemeSaid(r); {
	case said && g.config.Transport.Trusts(peer):
		message += " The proxy at " + peer.String() + " says that its client used plain HTTP."
	case said || r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Forwarded") != "":
		message += " If " + peer.String() + " is your proxy and terminates TLS, name it in --trusted-proxies."
	}
	if scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "Basic") {
		message += " The key or token of this request may have been read on the network: revoke it."
	}
	return message
}

func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, message string) {
	if write, silent := g.told.Note(time.Now()); write {
		g.config.Log.Warn("request refused", "address", r.RemoteAddr, "method", r.Method, "path", cut(r.URL.Path), "reason", message, "unlogged", silent)
	}
	w.Header().Set("Connection", "close") // further requests on this connection would be refused as well
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

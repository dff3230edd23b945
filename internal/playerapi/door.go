package playerapi

import (
	"cmp"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/edge"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/live"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/playerapi/calls"
	"github.com/musterhq/muster/internal/playerapi/connectiontoken"
	"github.com/musterhq/muster/internal/playerapi/feeds"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/operators"
	"github.com/musterhq/muster/internal/playerapi/partners"
	"github.com/musterhq/muster/internal/playerapi/penalties"
	"github.com/musterhq/muster/internal/playerapi/players"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/playerapi/rates"
	"github.com/musterhq/muster/internal/playerapi/state"
	"github.com/musterhq/muster/internal/playerapi/streams"
	"github.com/musterhq/muster/internal/playerhooks"
	"github.com/musterhq/muster/internal/playerrates"
	"github.com/musterhq/muster/internal/tracing"
	"github.com/musterhq/muster/internal/webhook"
)

// Config has the dependencies and settings of the door.
type Config struct {
	Engine    *engine.Engine
	Secret    identity.CellSecret                // source of partner and connection tokens
	Keys      identity.Finder                    // service accounts of partners and operators
	Hooks     *playerhooks.Hooks                 // nil: no hooks
	Providers map[string]authentication.Provider // identity providers of players, by the name in Login; "backend" always exists
	LoginKeys *authentication.LoginKeys          // of backends that sign tokens for their players; nil: they fetch login tickets only
	Dev       bool                               // partners and operators need no credentials
	Transport edge.Transport                     // reports which requests came over TLS; its proxies are trusted for X-Forwarded-For as well
	Origins   []string                           // of web pages that may call as players; AnyOrigin: all

	Webhooks webhook.Targets // where subscriptions may have their events posted

	Signins authentication.Signins
	Audit   *audit.Log // for refused attempts of operators; nil: they are not recorded

	// Node returns the id under which this node currently takes connections; nil: a single node. Once it returns another id, streams under
	// the previous id count as lost, and DropStreams must be called.
	Node func() domain.UUID

	Ready func() error // returns the reason why clients should use another node; nil: there is no other

	LoginsPerAddress int                // a minute; 0: no limit
	Rates            []playerrates.Kind // of calls; nil: the defaults
	PublicURL        string             // where players' clients reach the stream; empty: where they sent Login
	Panics           *panics.Guard
	Calls            *callstats.Calls // nil: calls are not counted
	Tracing          *tracing.Tracer  // nil: calls are not traced
	Log              *slog.Logger

	now func() time.Time // for the rates; nil: the wall clock
}

// Door answers all three realms and carries the event streams.
type Door struct {
	config  Config
	origins live.Value[[]string]
	state   *state.State
	auth    *authentication.Authenticator
	tokens  *connectiontoken.Signer
	buckets *rates.Buckets
	logins  *rates.LoginQueue
	streams *streams.Streams
	feeds   *feeds.Feeds
	desk    *penalties.Desk

	player, partner, operator *calls.Realm
}

// NewDoor opens the door. Close it before the engine.
func NewDoor(c Config) *Door {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.now == nil {
		c.now = time.Now
	}
	d := &Door{config: c, tokens: connectiontoken.New(c.Secret), buckets: rates.New(c.now, c.Rates, c.LoginsPerAddress), logins: rates.NewLoginQueue(time.Now)}
	d.origins.Set(c.Origins)
	d.state = state.Open(c.Engine, objects.Translator{Sign: d.tokens.Sign}, c.Log, func(x *flow.Config) { d.logins.SetRate(x.Logins.PerSecond) })
	d.auth = &authentication.Authenticator{Config: authentication.Config{
		State: d.state, Secret: c.Secret, Keys: c.Keys, Logins: live.Of(authentication.Logins{Providers: c.Providers, Keys: c.LoginKeys}), Dev: c.Dev, Transport: c.Transport, Signins: c.Signins, ReadCalls: readCalls,
	}}
	d.streams = streams.Open(streams.Config{Node: c.Node, State: d.state, Auth: d.auth, Buckets: d.buckets, Allows: d.allowsStream, Panics: c.Panics})
	d.desk = penalties.Open(penalties.Config{State: d.state, Hooks: c.Hooks, Panics: c.Panics})
	d.feeds = feeds.Open(feeds.Config{State: d.state, Auth: d.auth, Buckets: d.buckets, Webhooks: live.Of(c.Webhooks), Panics: c.Panics})

	d.player = calls.New(d.state, principal.PlayerRealm, "Muster player flow: players")
	players.Declare(d.player, players.Config{
		State: d.state, Auth: d.auth, Hooks: c.Hooks, Streams: d.streams, Buckets: d.buckets, Logins: d.logins, PublicURL: c.PublicURL,
	})
	d.partner = calls.New(d.state, principal.PartnerRealm, "Muster player flow: trusted servers")
	partners.Declare(d.partner, partners.Config{State: d.state, Auth: d.auth, Tokens: d.tokens, Feeds: d.feeds})
	d.operator = calls.New(d.state, principal.OperatorRealm, "Muster player flow: operators")
	operators.Declare(d.operator, operators.Config{State: d.state, Streams: d.streams, Audit: c.Audit})
	d.player.Count(c.Calls, c.Tracing, "players")
	d.partner.Count(c.Calls, c.Tracing, "partners")
	d.operator.Count(c.Calls, c.Tracing, "player_operators")
	return d
}

// Changeable is the part of a Config that can change while the door is open.
type Changeable struct {
	Origins          []string
	Webhooks         webhook.Targets
	Logins           authentication.Logins
	LoginsPerAddress int
	Rates            []playerrates.Kind
}

// Change puts new settings in force for later requests.
func (d *Door) Change(c Changeable) {
	d.origins.Set(c.Origins)
	d.feeds.SetWebhooks(c.Webhooks)
	d.auth.Logins.Set(c.Logins)
	d.buckets.Set(c.Rates, c.LoginsPerAddress)
}

// DropStreams disconnects the streams of all clients, game servers and backends, which reconnect to this node or another.
func (d *Door) DropStreams() {
	streams, feeds := d.streams.Drop(), d.feeds.Drop()
	d.state.Log.Info("the streams of players and partners were closed", "players", streams, "partners", feeds)
}

// Lead starts what only the leader does: webhooks of subscriptions, and questions about penalties.
func (d *Door) Lead() {
	d.desk.Lead()
	d.feeds.Lead()
}

// Rest stops what Lead started.
func (d *Door) Rest() {
	d.desk.Rest()
	d.feeds.Rest()
}

// Close tells players' clients that the service is stopping, closes their streams, and waits until all goroutines of the door have ended.
func (d *Door) Close() {
	d.desk.Close()
	d.streams.Close()
	d.feeds.Close()
	d.state.Close()
}

// Collectors returns the metrics of the door.
func (d *Door) Collectors() []prometheus.Collector {
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "muster_flow_" + name, Help: help}, func() float64 { return float64(value()) })
	}
	return slices.Concat(d.state.Collectors(), d.streams.Collectors(), []prometheus.Collector{
		d.feeds,
		gauge("logins_waiting", "Players who have a place in the login queue.", d.logins.Waiting),
		gauge("rate_buckets", "Callers whose rate of calls is remembered.", d.buckets.Count),
	})
}

// Player, Partner and Operator return the handlers of the realms, for separate listeners.
func (d *Door) Player() http.Handler   { return d.guarded(d.servePlayer) }
func (d *Door) Partner() http.Handler  { return d.guarded(d.servePartner) }
func (d *Door) Operator() http.Handler { return d.guarded(d.serveOperator) }

// All returns a handler for all three realms, for development on one machine.
func (d *Door) All() http.Handler { return d.guarded(d.ServeHTTP) }

func (d *Door) guarded(h http.HandlerFunc) http.Handler {
	return d.config.Panics.Handler(state.PanicDoor, h)
}

// ServeHTTP serves all realms, for development on one machine.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, objects.PartnerPrefix):
		d.servePartner(w, r)
	case strings.HasPrefix(r.URL.Path, objects.OperatorPrefix):
		d.serveOperator(w, r)
	default:
		d.servePlayer(w, r)
	}
}

func (d *Door) servePlayer(w http.ResponseWriter, r *http.Request) {
	if d.crossOrigin(w, r) {
		return
	}
	switch {
	case r.URL.Path == objects.StreamPath:
		d.streams.ServeHTTP(w, r)
		return
	case r.URL.Path == objects.KeysPath || r.URL.Path == objects.ReadyPath || d.player.IsDocument(r.URL.Path):
		d.servePage(w, r)
		return
	}
	w, answered := d.player.Begin(w, r)
	defer answered()
	class, refused := d.player.Check(r, d.elsewhere)
	by := d.auth.Stranger(r)
	if refused == nil && class != rates.Login {
		refused = d.authenticatePlayer(w, r, by, class)
	}
	if refused != nil {
		problem.Write(w, refused)
		return
	}
	d.player.Serve(w, r, by)
}

// authenticatePlayer writes into by the player who makes a call, if the player may make it now.
func (d *Door) authenticatePlayer(w http.ResponseWriter, r *http.Request, by *principal.Principal, c rates.Class) *problem.Problem {
	l, err := d.auth.Player(r, by.Address)
	if err != nil {
		return d.state.Problem(r.Context(), err, "")
	}
	by.Player, by.LoginSessionID = l.Player, l.ID
	if wait, ok := d.buckets.TakeFor(c, by.Player, w.Header()); !ok {
		refused := problem.Later(flow.RateLimited, wait, "too many calls of this kind")
		refused.Flow = d.state.StandNow(r.Context(), by.Player)
		return refused
	}
	return nil
}

func (d *Door) servePartner(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case objects.ServerStreamPath:
		d.feeds.ServeGameServer(w, r)
	case objects.EventsPath:
		d.feeds.ServeSubscription(w, r)
	default:
		d.serveTrusted(w, r, d.partner)
	}
}

func (d *Door) serveOperator(w http.ResponseWriter, r *http.Request) {
	d.serveTrusted(w, r, d.operator)
}

// serveTrusted answers the calls of trusted servers or operators.
func (d *Door) serveTrusted(w http.ResponseWriter, r *http.Request, to *calls.Realm) {
	if to.IsDocument(r.URL.Path) {
		to.ServeDocument(w, r)
		return
	}
	w, answered := to.Begin(w, r)
	defer answered()
	_, refused := to.Check(r, d.elsewhere)
	by := d.auth.Stranger(r)
	if refused == nil && r.URL.Path != exchangePath {
		refused = d.auth.Trusted(r, by, to.Name)
	}
	if refused == nil {
		if wait, ok := d.buckets.TakeFor(rates.Partner, cmp.Or(by.Holder(), by.Address), w.Header()); !ok {
			refused = problem.Later(flow.RateLimited, wait, "too many calls with one credential")
		}
	}
	if refused != nil {
		problem.Write(w, refused)
		return
	}
	ctx, cancel := by.Within(r.Context()) // a waiting call ends when the access key is revoked
	defer cancel()
	to.Serve(w, r.WithContext(ctx), by)
}

// readCalls has the calls that access keys of the role readonly may make as well.
var readCalls = []string{
	objects.OperatorPrefix + "Operator.Audit", objects.OperatorPrefix + "Operator.ExplainStuck", objects.OperatorPrefix + "Operator.GetConfig",
	objects.OperatorPrefix + "Operator.GetPlayer", objects.OperatorPrefix + "Operator.ListPlayers", objects.PartnerPrefix + "Flow.GetPlayers",
}

// exchangePath is the call of game servers that have no token yet.
const exchangePath = objects.PartnerPrefix + "Server.Exchange"

// servePage answers requests that need no credential.
func (d *Door) servePage(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		problem.Write(w, calls.WrongMethod(r.Method, "GET, HEAD"))
	case r.URL.Path == objects.KeysPath:
		w.Header().Set("Cache-Control", "max-age=600")
		problem.WriteJSON(w, "application/jwk-set+json", http.StatusOK, d.tokens.JWKS())
	case r.URL.Path == objects.ReadyPath:
		d.serveReady(w)
	default:
		d.player.ServeDocument(w, r)
	}
}

// serveReady tells load balancers whether to send players here.
func (d *Door) serveReady(w http.ResponseWriter) {
	refused := d.streams.Draining()
	if d.state.Err() != nil || d.config.Ready != nil && d.config.Ready() != nil {
		refused = problem.Later(flow.Unavailable, problem.Again, "the service is not available")
	}
	if refused != nil {
		problem.Write(w, refused)
		return
	}
	problem.WriteJSON(w, "application/json", http.StatusOK, []byte(`{"ready":true}`))
}

// Count returns the number of attached player streams.
func (d *Door) Count() int { return d.streams.Count() }

// Refuse answers a request that may not reach the door.
func Refuse(w http.ResponseWriter, message string) {
	problem.Write(w, problem.New(flow.PermissionDenied, "%s", message))
}

// elsewhere names the listener of a call that this one does not serve.
func (d *Door) elsewhere(path string) string {
	for _, x := range []struct {
		realm  *calls.Realm
		listen string
	}{{d.partner, "--partner-listen"}, {d.operator, "--operator-listen"}, {d.player, "--listen"}} {
		if _, ok := x.realm.Classes()[path]; ok {
			return " here; it is served at " + x.listen
		}
	}
	return ""
}

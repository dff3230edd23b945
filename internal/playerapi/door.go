package playerapi

import (
	"cmp"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/edge"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/playerapi/connectiontoken"
	"github.com/musterhq/muster/internal/playerhooks"
	"github.com/musterhq/muster/internal/playerrates"
	"github.com/musterhq/muster/internal/rate"
	"github.com/musterhq/muster/internal/webhook"
)

// Config is what the door needs.
type Config struct {
	Engine    *engine.Engine
	Secret    identity.CellSecret                // what partner and connection tokens are derived from
	Keys      identity.Finder                    // service accounts of partners and operators
	Hooks     *playerhooks.Hooks                 // nil: the studio is asked nothing
	Providers map[string]authentication.Provider // who says who a player is, by the name in Login; "backend" is always there
	LoginKeys *authentication.LoginKeys          // of backends that sign tokens for their players; nil: they fetch login tickets only
	Dev       bool                               // partners and operators need no credentials
	Transport edge.Transport                     // tells which requests nobody could read on the way; X-Forwarded-For of its proxies is believed, too
	Origins   []string                           // of web pages that may call as players; AnyOrigin: all

	Webhooks webhook.Targets // where subscriptions may have their events posted

	Signins Signins

	LoginsPerAddress int                // a minute; 0: no limit
	Rates            []playerrates.Kind // of calls; nil: the defaults
	PublicURL        string             // where players' clients reach the stream; empty: where they sent Login to
	Panics           *panics.Guard
	Calls            *callstats.Calls // nil: calls are not counted
	Log              *slog.Logger
}

// panicDoor is what panics of this door are counted under.
const panicDoor = "playerapi"

// Door answers all three realms and carries the event streams.
type Door struct {
	config  Config
	state   *State
	auth    *Authenticator
	tokens  *connectiontoken.Signer
	buckets *buckets
	logins  *loginQueue
	streams *Streams
	feeds   *Feeds
	desk    *PenaltyDesk

	player, partner, operator *Realm
}

// NewDoor opens the door. Close it before the engine.
func NewDoor(c Config) *Door {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	d := &Door{config: c, tokens: connectiontoken.New(c.Secret.ConnectionKey()), buckets: newBuckets(time.Now), logins: newLoginQueue(time.Now)}
	if c.Rates != nil {
		d.buckets.rates = ratesOf(c.Rates)
	}
	if n := c.LoginsPerAddress; n > 0 {
		d.buckets.rates[classLoginAddress] = rate.Limit{Every: time.Minute / time.Duration(n), Burst: max(5, n/6)}
	}
	d.state = openState(c.Engine, Translator{d.tokens.Sign}, c.Log, func(x *flow.Config) { d.logins.setRate(x.Logins.PerSecond) })
	d.auth = &Authenticator{AuthConfig{
		State: d.state, Secret: c.Secret, Keys: c.Keys, Providers: c.Providers, LoginKeys: c.LoginKeys, Dev: c.Dev, Transport: c.Transport, Signins: c.Signins,
	}}
	d.streams = openStreams(StreamsConfig{State: d.state, Auth: d.auth, Buckets: d.buckets, Allows: d.allowsStream, Panics: c.Panics})
	d.desk = openPenaltyDesk(PenaltyConfig{State: d.state, Hooks: c.Hooks, Panics: c.Panics})
	d.feeds = openFeeds(FeedsConfig{State: d.state, Auth: d.auth, Buckets: d.buckets, Webhooks: c.Webhooks, Panics: c.Panics})

	d.player = newRealm(d.state, playerRealm, "Muster player flow: players")
	declarePlayers(d.player, PlayersConfig{
		State: d.state, Auth: d.auth, Hooks: c.Hooks, Streams: d.streams, Buckets: d.buckets, Logins: d.logins, PublicURL: c.PublicURL,
	})
	d.partner = newRealm(d.state, partnerRealm, "Muster player flow: trusted servers")
	declarePartners(d.partner, PartnersConfig{State: d.state, Auth: d.auth, Tokens: d.tokens, Feeds: d.feeds})
	d.operator = newRealm(d.state, operatorRealm, "Muster player flow: operators")
	declareOperators(d.operator, OperatorsConfig{State: d.state, Streams: d.streams})
	d.player.Count(c.Calls, "players")
	d.partner.Count(c.Calls, "partners")
	d.operator.Count(c.Calls, "player_operators")
	return d
}

// Close tells players' clients that the service stops, closes their streams, and waits until nothing of the door runs.
func (d *Door) Close() {
	d.desk.Close()
	d.streams.Close()
	d.feeds.Close()
	d.state.Close()
}

// Collectors are the metrics of the door.
func (d *Door) Collectors() []prometheus.Collector {
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "muster_flow_" + name, Help: help}, func() float64 { return float64(value()) })
	}
	return slices.Concat(d.state.Collectors(), d.streams.Collectors(), []prometheus.Collector{
		d.feeds,
		gauge("logins_waiting", "Players who have a place in the line of logins.", d.logins.waiting),
		gauge("rate_buckets", "Callers whose rate of calls is remembered.", d.buckets.count),
	})
}

// Player, Partner and Operator are the realms, for listeners of their own.
func (d *Door) Player() http.Handler   { return d.guarded(d.servePlayer) }
func (d *Door) Partner() http.Handler  { return d.guarded(d.servePartner) }
func (d *Door) Operator() http.Handler { return d.guarded(d.serveOperator) }

// All is all three at once, for development on one machine.
func (d *Door) All() http.Handler { return d.guarded(d.ServeHTTP) }

func (d *Door) guarded(h http.HandlerFunc) http.Handler { return d.config.Panics.Handler(panicDoor, h) }

// ServeHTTP serves all realms at once, for development on one machine.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, PartnerPrefix):
		d.servePartner(w, r)
	case strings.HasPrefix(r.URL.Path, OperatorPrefix):
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
	case r.URL.Path == StreamPath:
		d.streams.ServeHTTP(w, r)
		return
	case r.URL.Path == KeysPath || r.URL.Path == ReadyPath || d.player.IsDocument(r.URL.Path):
		d.servePage(w, r)
		return
	}
	w, answered := d.player.Begin(w, r)
	defer answered()
	class, problem := d.player.Check(r, d.elsewhere)
	by := d.auth.Stranger(r)
	if problem == nil && class != classLogin {
		problem = d.authenticatePlayer(w, r, by, class)
	}
	if problem != nil {
		writeProblem(w, problem)
		return
	}
	d.player.Serve(w, r, by)
}

// authenticatePlayer writes into by which player makes a call, if the player may make it now.
func (d *Door) authenticatePlayer(w http.ResponseWriter, r *http.Request, by *Principal, c class) *Problem {
	l, err := d.auth.Player(r, by.Address)
	if err != nil {
		return d.state.Problem(r.Context(), err, "")
	}
	by.Player, by.LoginSessionID = l.Player, l.ID
	if wait, ok := d.buckets.takeFor(c, by.Player, w.Header()); !ok {
		problem := later(flow.RateLimited, wait, "too many calls of this kind")
		problem.Flow = d.state.StandNow(r.Context(), by.Player)
		return problem
	}
	return nil
}

func (d *Door) servePartner(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case ServerStreamPath:
		d.feeds.ServeGameServer(w, r)
	case EventsPath:
		d.feeds.ServeSubscription(w, r)
	default:
		d.serveTrusted(w, r, d.partner)
	}
}

func (d *Door) serveOperator(w http.ResponseWriter, r *http.Request) {
	d.serveTrusted(w, r, d.operator)
}

// serveTrusted answers the calls of trusted servers or operators.
func (d *Door) serveTrusted(w http.ResponseWriter, r *http.Request, to *Realm) {
	if to.IsDocument(r.URL.Path) {
		to.ServeDocument(w, r)
		return
	}
	w, answered := to.Begin(w, r)
	defer answered()
	_, problem := to.Check(r, d.elsewhere)
	by := d.auth.Stranger(r)
	if problem == nil && r.URL.Path != exchangePath {
		problem = d.auth.Trusted(r, by, to.Name)
	}
	if problem == nil {
		if wait, ok := d.buckets.takeFor(classPartner, cmp.Or(by.ID, by.Address), w.Header()); !ok {
			problem = later(flow.RateLimited, wait, "too many calls with one credential")
		}
	}
	if problem != nil {
		writeProblem(w, problem)
		return
	}
	ctx, cancel := by.Within(r.Context()) // a call that waits ends when the access key is revoked
	defer cancel()
	to.Serve(w, r.WithContext(ctx), by)
}

// exchangePath is the call of game servers that have no token yet.
const exchangePath = PartnerPrefix + "Server.Exchange"

// servePage answers requests that need no credential.
func (d *Door) servePage(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		writeProblem(w, wrongMethod(r.Method, "GET, HEAD"))
	case r.URL.Path == KeysPath:
		w.Header().Set("Cache-Control", "max-age=600")
		writeJSON(w, "application/jwk-set+json", http.StatusOK, d.tokens.JWKS())
	case r.URL.Path == ReadyPath:
		d.serveReady(w)
	default:
		d.player.ServeDocument(w, r)
	}
}

// serveReady tells load balancers whether to send players here.
func (d *Door) serveReady(w http.ResponseWriter) {
	problem := d.streams.Draining()
	if d.state.Err() != nil {
		problem = later(flow.Unavailable, again, "the service cannot do its work")
	}
	if problem != nil {
		writeProblem(w, problem)
		return
	}
	writeJSON(w, "application/json", http.StatusOK, []byte(`{"ready":true}`))
}

// Count is how many players' streams are attached.
func (d *Door) Count() int { return d.streams.Count() }

// Refuse answers a request that does not reach the door.
func Refuse(w http.ResponseWriter, message string) {
	writeProblem(w, refusal(flow.PermissionDenied, "%s", message))
}

// elsewhere says of a call that another listener has where that is.
func (d *Door) elsewhere(path string) string {
	for _, x := range []struct {
		realm  *Realm
		listen string
	}{{d.partner, "--partner-listen"}, {d.operator, "--operator-listen"}, {d.player, "--listen"}} {
		if x.realm.Has(path) {
			return " here; it is served at " + x.listen
		}
	}
	return ""
}

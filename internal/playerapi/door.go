package playerapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
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

// Prefix is where every path of this door begins.
const Prefix = "/playerflow/v1/"

// The paths of the realms, and what lies beside them.
const (
	PlayerPrefix   = Prefix + "player/"
	PartnerPrefix  = Prefix + "partner/"
	OperatorPrefix = Prefix + "operator/"
	StreamPath     = PlayerPrefix + "stream"
	KeysPath       = Prefix + "keys"
)

// Config is what the door needs.
type Config struct {
	Engine    *engine.Engine
	Secret    identity.CellSecret                // what partner and connection tokens are derived from
	Keys      KeyFinder                          // service accounts of partners and operators
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

// KeyFinder finds access keys that work. *identity.Keys is one.
type KeyFinder interface {
	Find(id string) (identity.AccessKey, bool)
}

// Door answers all three realms and carries the event streams.
type Door struct {
	config  Config
	engine  asking
	numbers *numbers
	log     *slog.Logger
	tokens  *connectiontoken.Signer
	buckets *buckets
	logins  *loginQueue
	gate    *gate

	configTurn sync.Mutex // for one change of inForce at a time
	inForce    atomic.Pointer[flow.Config]
	unfollow   func()

	streams *streams
	feeds   *feeds
	desk    *penaltyDesk // nil unless the studio decides about penalties

	player, partner, operator *realm
}

// NewDoor opens the door. Close it before the engine.
func NewDoor(c Config) *Door {
	setUpHuma()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	counted := newNumbers()
	d := &Door{
		config: c, engine: asking{c.Engine, counted}, numbers: counted, log: c.Log, tokens: connectiontoken.New(c.Secret.ConnectionKey()),
		buckets: newBuckets(time.Now), logins: newLoginQueue(time.Now), gate: newGate(),
	}
	d.unfollow = d.followConfig()
	if c.Rates != nil {
		d.buckets.rates = ratesOf(c.Rates)
	}
	if n := c.LoginsPerAddress; n > 0 {
		d.buckets.rates[classLoginAddress] = rate.Limit{Every: time.Minute / time.Duration(n), Burst: max(5, n/6)}
	}
	d.player = newRealm(d, "player", "Muster player flow: players")
	d.partner = newRealm(d, "partner", "Muster player flow: trusted servers")
	d.operator = newRealm(d, operatorRealm, "Muster player flow: operators")
	d.declareSession()
	d.declareParty()
	d.declareMatchmaking()
	d.declareGames()
	d.declarePartner()
	d.declareServers()
	d.declareBackfill()
	d.declareEvents()
	d.declareOperator()
	d.declareConfig()
	d.declareDrain()
	d.player.count(c.Calls, "players")
	d.partner.count(c.Calls, "partners")
	d.operator.count(c.Calls, "player_operators")
	d.streams = newStreams(d)
	d.desk = newPenaltyDesk(d)
	d.feeds = newFeeds(d)
	return d
}

// Close tells players' clients that the service goes, drops their streams, and waits until nothing of the door runs.
func (d *Door) Close() {
	d.desk.close()
	d.streams.close()
	d.feeds.close()
	d.unfollow()
}

// Player, Partner and Operator are the realms, for listeners of their own.
func (d *Door) Player() http.Handler   { return d.guarded(d.servePlayer) }
func (d *Door) Partner() http.Handler  { return d.guarded(d.servePartner) }
func (d *Door) Operator() http.Handler { return d.guarded(d.serveOperator) }

// All is all three at once, for development on one machine.
func (d *Door) All() http.Handler { return d.guarded(d.ServeHTTP) }

func (d *Door) guarded(h http.HandlerFunc) http.Handler { return d.config.Panics.Handler(panicDoor, h) }

// Document is the OpenAPI document of a realm: "player", "partner" or "operator".
func (d *Door) Document(name string) ([]byte, error) {
	x, err := d.realmNamed(name)
	if err != nil {
		return nil, err
	}
	newest, _, err := x.documents()
	return newest, err
}

// Document30 is the same in OpenAPI 3.0.3, for generators that do not read 3.1.
func (d *Door) Document30(name string) ([]byte, error) {
	x, err := d.realmNamed(name)
	if err != nil {
		return nil, err
	}
	_, older, err := x.documents()
	return older, err
}

func (d *Door) realmNamed(name string) (*realm, error) {
	x, ok := map[string]*realm{"player": d.player, "partner": d.partner, "operator": d.operator}[name]
	if !ok {
		return nil, errors.New("realm " + name + ": want player, partner or operator")
	}
	return x, nil
}

// realm is one set of calls with a document of its own.
type realm struct {
	name    string
	mux     *http.ServeMux
	api     huma.API
	classes map[string]class // of the calls of players, by path

	documents func() (newest, older []byte, err error) // made when they are first asked for: the calls are declared by then
	calls     *callstats.Door
}

// The names of a realm's documents, in OpenAPI 3.1 and 3.0.
const (
	documentName   = "openapi.json"
	document30Name = "openapi-3.0.json"
)

// isDocument reports whether a path is that of a document of a realm.
func isDocument(path, prefix string) bool {
	return path == prefix+documentName || path == prefix+document30Name
}

const operatorRealm = "operator"

func newRealm(d *Door, name, title string) *realm {
	c := huma.DefaultConfig(title, "1")
	c.CreateHooks = nil // no links to schemas in answers
	c.Formats = strictly
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	r := &realm{name: name, mux: http.NewServeMux(), classes: map[string]class{}}
	r.api = humago.New(r.mux, c)
	r.documents = onceDocuments(r.api, name)
	for file, document := range map[string]func(string) ([]byte, error){documentName: d.Document, document30Name: d.Document30} {
		r.mux.HandleFunc("GET "+Prefix+name+"/"+file, func(w http.ResponseWriter, _ *http.Request) {
			text, err := document(name)
			if err != nil {
				writeProblem(w, later(flow.Unavailable, again, "%s", err))
				return
			}
			writeJSON(w, "application/openapi+json", http.StatusOK, text)
		})
	}
	return r
}

// count counts the calls that the realm has, once all are declared.
func (r *realm) count(calls *callstats.Calls, door string) {
	var names []string
	for path := range r.classes {
		names = append(names, r.nameOf(path))
	}
	r.calls = calls.Door(door, names...)
}

// nameOf is the name of the call at a path.
func (r *realm) nameOf(path string) string { return strings.TrimPrefix(path, Prefix+r.name+"/") }

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

// whoKey is where the context of a request holds its who.
type whoKey struct{}

// who is who asks.
type who struct {
	door    *Door
	address string
	host    string // by which the client reached us
	tls     bool
	answer  http.Header // of the answer; of a call only

	player  string      // of a player
	session domain.UUID // the login session

	realm    string          // that was asked
	partner  string          // of a partner or an operator: the access key
	life     context.Context // of that access key; nil for a game server, and with --dev
	instance domain.UUID     // of a game server: the only game instance that it may speak for
}

func whoOf(ctx context.Context) *who { return ctx.Value(whoKey{}).(*who) }

// bodyMax bounds a request.
const bodyMax = 64 << 10

func (d *Door) servePlayer(w http.ResponseWriter, r *http.Request) {
	if d.crossOrigin(w, r) {
		return
	}
	switch {
	case r.URL.Path == StreamPath:
		d.serveStream(w, r)
		return
	case r.URL.Path == KeysPath || r.URL.Path == ReadyPath || isDocument(r.URL.Path, PlayerPrefix):
		d.servePage(w, r)
		return
	}
	w, answered := d.player.calls.Note(w, d.player.nameOf(r.URL.Path))
	defer answered()
	echo(w, r)
	class, known := d.player.classes[r.URL.Path]
	if problem := d.wrongCall(r, known); problem != nil {
		writeProblem(w, problem)
		return
	}
	x := d.stranger(r)
	if class != classLogin {
		l, err := d.loginOf(r)
		if err != nil {
			writeProblem(w, d.spell(r.Context(), d.refusedToken(x.address, err), ""))
			return
		}
		x.player, x.session = l.Player, l.ID
		if wait, ok := d.buckets.takeFor(class, x.player, w.Header()); !ok {
			problem := later(flow.RateLimited, wait, "too many calls of this kind")
			problem.Flow = d.standOf(r.Context(), x.player)
			writeProblem(w, problem)
			return
		}
	}
	d.player.serve(w, r, x)
}

// servePage serves what everybody may read.
func (d *Door) servePage(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		writeProblem(w, wrongMethod(r, "GET, HEAD"))
	case r.URL.Path == KeysPath:
		w.Header().Set("Cache-Control", "max-age=600")
		writeJSON(w, "application/jwk-set+json", http.StatusOK, d.tokens.JWKS())
	case r.URL.Path == ReadyPath:
		d.serveReady(w)
	default:
		d.player.mux.ServeHTTP(w, r)
	}
}

// wrongCall refuses what is no call.
func (d *Door) wrongCall(r *http.Request, known bool) *Problem {
	switch {
	case !known:
		p := refusal(flow.InvalidArgument, "there is no call %.100q%s", r.URL.Path, d.elsewhere(r.URL.Path))
		p.status = http.StatusNotFound
		return p
	case r.Method != http.MethodPost:
		return wrongMethod(r, http.MethodPost)
	}
	return checkMedia(r)
}

// checkMedia wants a body to be called JSON. A web page that calls it so has to ask for permission first (a CORS preflight),
// which only the pages in Config.Origins are given.
func checkMedia(r *http.Request) *Problem {
	said := r.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(said); said == "" && r.ContentLength == 0 || err == nil && media == "application/json" {
		return nil
	}
	p := refusal(flow.InvalidArgument, "Content-Type %.100q, want application/json", said)
	p.status = http.StatusUnsupportedMediaType
	return p
}

// Refuse answers a request that does not reach the door.
func Refuse(w http.ResponseWriter, message string) {
	writeProblem(w, refusal(flow.PermissionDenied, "%s", message))
}

func wrongMethod(r *http.Request, want string) *Problem {
	p := refusal(flow.InvalidArgument, "method %.20q, want %s", r.Method, want)
	p.status, p.headers = http.StatusMethodNotAllowed, http.Header{"Allow": {want}}
	return p
}

// elsewhere says of a call that another listener has where that is.
func (d *Door) elsewhere(path string) string {
	for _, x := range []struct {
		realm  *realm
		listen string
	}{{d.partner, "--partner-listen"}, {d.operator, "--operator-listen"}, {d.player, "--listen"}} {
		if _, ok := x.realm.classes[path]; ok {
			return " here; it is served at " + x.listen
		}
	}
	return ""
}

func (d *Door) stranger(r *http.Request) *who {
	return &who{door: d, address: d.proxies().Of(r), host: r.Host, tls: d.config.Transport.Secure(r)}
}

func (r *realm) serve(w http.ResponseWriter, request *http.Request, x *who) {
	request.Header.Set("Content-Type", "application/json") // also of no body
	request.Header.Set("Accept", "application/json")
	request.Body = orEmptyObject(http.MaxBytesReader(callstats.Unwrapped(w), request.Body, bodyMax+1))
	w.Header().Set("Cache-Control", "no-store")
	x.realm, x.answer = r.name, w.Header()
	r.mux.ServeHTTP(w, request.WithContext(context.WithValue(request.Context(), whoKey{}, x)))
}

// What a request is known by.
const (
	requestIDHeader = "X-Request-Id"
	requestIDMax    = 64
)

// echo sends the name of a request back, so that logs on the way can be put together.
func echo(w http.ResponseWriter, r *http.Request) {
	if id := r.Header.Get(requestIDHeader); id != "" && len(id) <= requestIDMax {
		w.Header().Set(requestIDHeader, id)
	}
}

// orEmptyObject makes {} of a body without anything in it, whose length may not have been announced.
func orEmptyObject(body io.Reader) io.ReadCloser {
	b := bufio.NewReader(body)
	if _, err := b.Peek(1); err == io.EOF {
		return io.NopCloser(strings.NewReader("{}"))
	}
	return io.NopCloser(b) // the server closes the body itself
}

// bearer is the token of a request.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// loginOf finds the login session of a request.
func (d *Door) loginOf(r *http.Request) (l flow.Login, err error) {
	token := bearer(r)
	if token == "" {
		return l, refusal(flow.Unauthenticated, "the Authorization header is missing; want Bearer and the access token of Login")
	}
	return d.loginByToken(r.Context(), token)
}

func (d *Door) loginByToken(ctx context.Context, token string) (l flow.Login, err error) {
	var stale, ok bool
	err = d.engine.Read(ctx, func(v *cell.View) error {
		l, stale, ok = v.LoginByToken(authentication.Hash(token), domain.TimeOf(d.engine.Now()))
		return nil
	})
	switch {
	case err != nil:
		return l, err
	case !ok:
		return l, refusal(flow.SessionNotFound, "the login session of this access token has ended, or there never was one")
	case l.State != flow.LoginLive:
		p := refusal(flow.SessionReplaced, "a later login of the player has taken over")
		p.Flow = d.standOf(ctx, l.Player)
		return l, p
	case stale:
		return l, refusal(flow.TokenExpired, "the access token was replaced by a newer one")
	}
	connlimit.Prove(ctx)
	return l, nil
}

// in is a call: its headers and its body.
type in[B any] struct {
	RequestID string `header:"X-Request-Id" maxLength:"64" doc:"A repeat with the same one within ten minutes changes nothing and gets the answer of the first."`
	IfRev     string `header:"X-If-Rev" pattern:"^[0-9]{0,19}$" doc:"Refused with REV_CONFLICT if the flow record has another revision."`
	Body      B      `required:"false"`
}

// partnerIn is a call of a trusted server.
type partnerIn[B any] struct {
	RequestID string `header:"X-Request-Id" maxLength:"64"`
	Body      B      `required:"false"`
}

type out[B any] struct{ Body *B }

// playerCall declares one call of players.
func playerCall[B, A any](d *Door, name string, c class, summary string, f func(ctx context.Context, by *cell.Caller, body *B) (*A, error)) {
	path := PlayerPrefix + name
	d.player.classes[path] = c
	huma.Register(d.player.api, operation(path, name, summary), func(ctx context.Context, call *in[B]) (*out[A], error) {
		x := whoOf(ctx)
		by := cell.Caller{Player: x.player, Session: x.session, Request: call.RequestID}
		if call.IfRev != "" {
			rev, err := strconv.ParseUint(call.IfRev, 10, 64)
			if err != nil {
				return nil, d.spell(ctx, refusal(flow.InvalidArgument, "X-If-Rev: %s, want a revision", call.IfRev), x.player)
			}
			by.IfRev = &rev
		}
		answer, err := f(ctx, &by, &call.Body)
		if err != nil {
			return nil, d.spell(ctx, err, x.player)
		}
		return &out[A]{answer}, nil
	})
}

// partnerCall declares one call of trusted servers or operators.
func partnerCall[B, A any](d *Door, r *realm, name, summary string, f func(ctx context.Context, request string, body *B) (*A, error)) {
	path := Prefix + r.name + "/" + name
	r.classes[path] = classPartner
	huma.Register(r.api, operation(path, name, summary), func(ctx context.Context, call *partnerIn[B]) (*out[A], error) {
		answer, err := f(ctx, call.RequestID, &call.Body)
		if err != nil {
			return nil, d.spell(ctx, err, "")
		}
		return &out[A]{answer}, nil
	})
}

// withoutToken are the calls that ask for no token: what they take is the proof.
var withoutToken = map[string]bool{"Session.Login": true, "Server.Exchange": true}

func operation(path, name, summary string) huma.Operation {
	service, _, _ := strings.Cut(name, ".")
	security := []map[string][]string{{"token": {}}}
	if withoutToken[name] {
		security = []map[string][]string{}
	}
	return huma.Operation{
		OperationID: name, Method: http.MethodPost, Path: path, Summary: summary, Tags: []string{service}, MaxBodyBytes: bodyMax + 1,
		BodyReadTimeout: -1, DefaultStatus: http.StatusOK, Security: security,
	}
}

func writeProblem(w http.ResponseWriter, p *Problem) {
	body, _ := json.Marshal(p)
	w.Header().Set("Cache-Control", "no-store")
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	writeJSON(w, "application/json", p.status, body)
}

func writeJSON(w http.ResponseWriter, contentType string, status int, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client has gone if it fails
}

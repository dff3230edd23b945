package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/fair"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/quotas"
	"github.com/musterhq/muster/internal/secretrotation"
	"github.com/musterhq/muster/internal/tracing"
)

// Prefix is the prefix of every path of this door.
const Prefix = "/operator/v1/"

// Config configures a Door.
type Config struct {
	Engine *engine.Engine
	// Authenticate returns the principal that has signed a request with this body, or the HTTP status and text of the refusal.
	Authenticate func(r *http.Request, body []byte) (by identity.Principal, status int, refused error)
	Keys         *keyring.Ring
	Secrets      *secretrotation.Rotator
	People       People                   // nil: people do not sign in here
	Private      func(*http.Request) bool // reports whether a request was protected in transit
	Searches     Searches                 // nil: this process runs no matchers
	Attention    *attention.Finder        // has the reasons of troubles
	// AskLeader sends a question to the leader, which answers it with AnswerLeader. nil: there is no other node.
	AskLeader func(ctx context.Context, question []byte) (answer []byte, err error)
	// Reports returns the latest reports of the agents connected to this node. nil: there are none.
	Reports func() []*agentproto.Report
	Audit   *audit.Log      // for refused attempts; nil: they are not recorded
	Output  Output          // of server processes whose agents are connected to this node
	Nodes   Nodes           // the other nodes of a cluster; nil: a single node
	Tracing *tracing.Tracer // nil: requests are not traced
	// RolesOf returns the roles that may take an action, for explanations.
	RolesOf keyring.RolesOf
	// ConsoleLink creates a link with which one browser can sign in to the console with an access key.
	ConsoleLink   func(ctx context.Context, key string) (path string, expires time.Time, err error)
	Calls         *callstats.Calls                   // at all doors; nil: calls are not counted
	SupportBundle SupportBundle                      // nil: there are none
	Reload        Reload                             // nil: the settings cannot be read again
	Cluster       func(ctx context.Context) *Cluster // returns what this node knows of the others; nil: a single node
	Log           *slog.Logger
}

// Door answers operators over HTTP in JSON.
type Door struct {
	engine   *engine.Engine
	config   Config
	searches Searches
	log      *slog.Logger
	routes   http.ServeMux
	actions  map[string]named // by pattern
	counters prometheus.Gatherer
	explains map[string]func(context.Context, string) (*Explanation, error) // by kind
	readers  *fair.Pool                                                     // of the output of processes
}

// NewDoor makes a Door.
func NewDoor(c Config) *Door {
	d := &Door{actions: map[string]named{}, config: c, engine: c.Engine, searches: c.Searches, counters: countersOf(&c), log: c.Log, readers: fair.NewPool(math.MaxInt64, readersOfHolder)}
	d.explains = map[string]func(context.Context, string) (*Explanation, error){
		"fleet": d.explainFleet, "alias": d.explainAlias, "compute": d.explainCompute, "placement": d.explainPlacement, "process": d.explainProcess, "game-session": d.explainGameSession,
		"ticket": d.explainTicket, "player": d.explainPlayer, "party": d.explainParty, "game-instance": d.explainGameInstance,
	}
	for kind, explain := range d.explains {
		d.handleAs("GET explain/{kind}/{id...}", "GET explain/"+kind+"/{id...}", d.explaining(explain))
	}
	d.handle("GET "+FeedPath, d.serveFeed)
	d.handle("GET "+LogsPrefix+"{id...}", d.logs)
	d.handle("POST "+RotateTokenPath, d.rotateToken)
	d.handle("POST "+ConsoleLinksPath, d.signed(identity.MayLook, "look at the console", d.newConsoleLink))
	d.keyRoutes()
	d.policyRoutes()
	d.secretRoutes()
	d.hostRoutes()
	d.peopleRoutes()
	d.rolloutRoutes()
	d.auditRoutes()
	d.overviewRoutes()
	d.settingsRoutes()
	d.supportRoutes()
	return d
}

// explaining serves explanations of one kind.
func (d *Door) explaining(explain func(ctx context.Context, id string) (*Explanation, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		by, ok := d.authorize(w, r, nil, identity.MayLook, "look at everything")
		if !ok {
			return
		}
		w, r, traced := d.traced(w, r)
		defer traced()
		x, err := explain(r.Context(), r.PathValue("id"))
		if err != nil {
			d.refuse(w, r, err)
			return
		}
		if by.MayCall(policy.ReadOutput) != nil {
			x.hideOutput()
		}
		answer(w, http.StatusOK, x)
	}
}

// Explain returns this door's answer about an object: an Explanation as JSON, with the output of its server process if the caller may read that. Its error is a
// *domain.Refusal if the object does not exist.
func (d *Door) Explain(ctx context.Context, kind, id string, mayReadOutput bool) (document []byte, err error) {
	explain, ok := d.explains[kind]
	if !ok {
		return nil, domain.Refuse(domain.NotFound, "objects of the kind %.40q are not explained", kind)
	}
	x, err := explain(ctx, id)
	if err != nil {
		return nil, err
	}
	if !mayReadOutput {
		x.hideOutput()
	}
	return json.Marshal(x)
}

func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := d.routes.Handler(r); pattern == "" && r.Method != http.MethodPost { // such as an unknown path, which only callers of this door are told
		d.looking(d.routes.ServeHTTP)(w, r)
		return
	}
	d.routes.ServeHTTP(w, r)
}

// looking serves a request without a body that every role may make that may look.
func (d *Door) looking(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, ok := d.authorize(w, r, nil, identity.MayLook, "look at everything"); ok {
			w, r, traced := d.traced(w, r)
			defer traced()
			h(w, r)
		}
	}
}

// traced starts the span of an authorized request, named by the pattern of its path.
func (d *Door) traced(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, func()) {
	if !d.config.Tracing.On() {
		return w, r, func() {}
	}
	return d.config.Tracing.Serve(w, r, tracing.Call{Door: "operator", Operation: cmp.Or(r.Pattern, "unknown"), Trusted: true, Began: time.Now()})
}

// authorize returns the principal that signed a request with this body. If there is none, or its role is not sufficient, authorize answers the
// request.
func (d *Door) authorize(w http.ResponseWriter, r *http.Request, body []byte, may identity.Roles, what string) (by identity.Principal, ok bool) {
	by, status, refused := d.config.Authenticate(r, body)
	if refused == nil && !may.Allow(by.Role) {
		if r.Method == http.MethodPost {
			d.config.Audit.RefusedAs(originOf(r, &by), "AccessDenied")
		}
		status, refused = http.StatusForbidden, fmt.Errorf("access key %s has the role %s, which may not %s", by.ID, by.Role, what)
	}
	if refused == nil {
		if refused = d.mayDo(r, &by, body); refused != nil {
			status = http.StatusForbidden
			if r.Method == http.MethodPost {
				d.config.Audit.RefusedAs(originOf(r, &by), "AccessDenied")
			}
		}
	}
	if refused != nil {
		answer(w, status, Problem{refused.Error()})
		return by, false
	}
	by.Used(r.Method + " " + r.URL.Path)
	return by, true
}

// originOf returns the origin of a request that changes something, without a reason.
func originOf(r *http.Request, by *identity.Principal) audit.Origin {
	operation := strings.TrimPrefix(strings.TrimPrefix(r.Pattern, "POST "), Prefix)
	return audit.Origin{Principal: by.ID, Door: audit.DoorOperator, Address: by.Address, Agent: r.UserAgent(), Operation: operation}
}

// recorded returns a request whose changes are recorded in the audit log, and whose records count for the caller. If its reason is invalid, recorded
// answers the request.
func (d *Door) recorded(w http.ResponseWriter, r *http.Request, by *identity.Principal) (*http.Request, bool) {
	if r.Method != http.MethodPost {
		return r, true
	}
	origin := originOf(r, by)
	var err error
	if origin.Reason, err = audit.Reason(r); err != nil {
		d.refuse(w, r, err)
		return nil, false
	}
	return r.WithContext(quotas.With(audit.With(r.Context(), origin), by)), true
}

// Problem is the body of every error answer.
type Problem struct {
	Message string `json:"message"`
}

// Error makes a Problem the error of a client that received it. An error of another type means that the service did not answer.
func (p *Problem) Error() string { return "the service answers: " + p.Message }

func (d *Door) refuse(w http.ResponseWriter, r *http.Request, err error) {
	refusal, ok := errors.AsType[*domain.Refusal](err)
	d.config.Audit.Refused(r.Context(), err)
	switch {
	case ok && refusal.Reason == domain.NotFound:
		answer(w, http.StatusNotFound, Problem{refusal.Detail})
	case ok && refusal.Reason == domain.Conflict:
		answer(w, http.StatusConflict, Problem{refusal.Detail})
	case ok && refusal.Reason == domain.Overloaded:
		answer(w, http.StatusServiceUnavailable, Problem{engine.ForOperators(refusal)})
	case ok:
		answer(w, http.StatusBadRequest, Problem{refusal.Detail})
	case errors.Is(err, engine.ErrStopped):
		answer(w, http.StatusServiceUnavailable, Problem{err.Error()})
	default:
		if r.Context().Err() == nil { // else the client has left, or its key has ended
			d.log.Error("operator request failed", "path", r.URL.Path, "error", err)
		}
		answer(w, http.StatusInternalServerError, Problem{"the request failed inside the service; the log has the cause"})
	}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if status == http.StatusTooManyRequests { // after failed sign-ins
		w.Header().Set("Retry-After", "6")
	}
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(body) // the client has gone if it fails
}

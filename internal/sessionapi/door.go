package sessionapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/fair"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/signin"
	"github.com/musterhq/muster/internal/tracing"
	"github.com/musterhq/muster/internal/warm"
)

// Prefix begins every path of this door.
const Prefix = "/session/v1/"

// Config has the parts and limits of a Door.
type Config struct {
	Engine *engine.Engine
	Keys   identity.Finder
	Dev    bool // accept any credentials, also none; only for loopback

	// Private reports whether others on the network could not read a request.
	Private func(*http.Request) bool
	Signins *signin.Door

	Proxies *clientaddress.Proxies         // for limits by address
	Rate    func(*identity.Principal) bool // of requests with keys of the role client; nil: not limited

	// Registered reports whether the cluster considers this node present; nil: a single node. If it returns false, no event stream begins, because it would stay silent.
	Registered func() bool

	Working int              // requests that are worked on at a time; 0: defaultWorking
	Limits  Limits           // zero: defaultLimits
	Panics  *panics.Guard    // nil: the door makes its own
	Calls   *callstats.Calls // nil: calls are not counted
	Tracing *tracing.Tracer  // nil: calls are not traced
	Log     *slog.Logger
}

// panicDoor is the label of panics of this door.
const panicDoor = "sessionapi"

// defaultWorking is far above the concurrent requests of a machine that keeps up.
const defaultWorking = 8192

// Door answers scripts.
type Door struct {
	engine *engine.Engine
	config Config
	log    *slog.Logger
	routes http.ServeMux

	calls   *calls
	news    news
	working fair.Shares
	bodies  fair.Shares // bytes

	ctx     context.Context // ends when the service is stopping
	stop    context.CancelFunc
	running warm.Group

	mu      sync.Mutex
	dropped chan struct{} // closed when all clients must reopen their event streams
}

// newShares returns shares of a number of slots, for example for running calls, or of bytes.
func newShares(most int) fair.Shares { return fair.NewShares(partsOf(most)) }

func partsOf(most int) (all, key, clients, address int64) {
	n := int64(most)
	return n, n / 2, n / 2, n / 8
}

// SetWorking changes how many requests are worked on at a time.
func (d *Door) SetWorking(most int) { d.working.Resize(partsOf(cmp.Or(most, defaultWorking))) }

// NewDoor opens the door.
func NewDoor(c Config) *Door {
	c.Working = cmp.Or(c.Working, defaultWorking)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.Panics = cmp.Or(c.Panics, panics.New(c.Log))
	d := &Door{engine: c.Engine, config: c, log: c.Log, calls: newCalls(c.Limits, time.Now), dropped: make(chan struct{})}
	d.news.engine = c.Engine
	d.working = newShares(c.Working)
	d.bodies = newShares(bodyBytesMax)
	d.ctx, d.stop = context.WithCancel(context.Background())
	all := slices.Concat(nodes, []*node{placementNode, ticketNode, connectedNode})
	names := make([]string, len(all))
	for i, n := range all {
		names[i] = n.name
	}
	counted := c.Calls.Door("scripts", names...)
	serve := func(pattern string, n *node) {
		d.routes.HandleFunc(pattern, counted.Handler(n.name, func(w http.ResponseWriter, r *http.Request) { d.serveNode(w, r, n) }))
	}
	for _, n := range nodes {
		serve("POST "+Prefix+n.name, n)
		if n.event != "" {
			serve("POST "+Prefix+n.name+asyncSuffix, n)
		}
	}
	serve("GET "+Prefix+"placements/{id}", placementNode)
	serve("GET "+Prefix+"tickets/{id}", ticketNode)
	serve("POST "+Prefix+"calls/{id}/connected", connectedNode)
	d.routes.HandleFunc("GET "+Prefix+"calls/{id}", d.servePoll)
	d.routes.HandleFunc("GET "+Prefix+"openapi.json", serveDescription)
	d.routes.HandleFunc("GET "+Prefix+"events", d.serveEvents)
	d.routes.HandleFunc(Prefix, func(w http.ResponseWriter, r *http.Request) {
		refuse(w, &Problem{status: http.StatusNotFound, Name: unknownNode, Message: "there is no such node", Field: "path",
			Value: excerpt.Short(r.URL.Path), Expected: "POST " + Prefix + " and one of " + nodeNames()})
	})
	d.running.Go(d.sweep)
	return d
}

// Close ends event streams and waiting calls. The port continues to answer running requests meanwhile.
func (d *Door) Close() {
	d.stop()
	d.running.Wait()
	d.news.close()
}

// DropStreams ends all event streams: their clients reconnect to this node or another one.
func (d *Door) DropStreams() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.dropped)
	d.dropped = make(chan struct{})
}

// dropping returns a channel that is closed by the next DropStreams.
func (d *Door) dropping() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dropped
}

// sweep removes outcomes that were kept long enough.
func (d *Door) sweep() {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.calls.expire()
		case <-d.ctx.Done():
			return
		}
	}
}

func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.routes.ServeHTTP(w, r) }

// asyncSuffix is the node library's suffix for the asynchronous form of a node: CreateSessionAsync is CreateSession with ?async=1.
const asyncSuffix = "Async"

// request is one call of a node.
type request struct {
	principal *identity.Principal
	client    string // which of the caller's event streams; "" for none
	path      string // the {id} of the path
	call      *call  // nil if it is answered at once
	traced    context.Context
}

func (d *Door) serveNode(w http.ResponseWriter, r *http.Request, n *node) {
	began := time.Now()
	by, problem := d.authorize(r, n.access, n.name) // before reading the body, so that strangers cannot make the service hold one
	if problem != nil {
		refuse(w, problem)
		return
	}
	if d.config.Rate != nil && !d.config.Rate(by) {
		refuse(w, problemOf(domain.Refuse(domain.Overloaded, "this access key or address exceeds its limit of requests a second")))
		return
	}
	if !d.working.Take(by, 1) {
		refuse(w, problemOf(domain.Refuse(domain.Overloaded, "%d requests are being worked on, and this access key or address has used its share of them", d.working.Keys.Taken())))
		return
	}
	defer d.working.Give(by, 1)
	w, r, traced := d.config.Tracing.Serve(w, r, tracing.Call{Door: "scripts", Operation: n.name, Trusted: by.Role != identity.Client, Began: began})
	defer traced()
	cost := bodyCost(r)
	if !d.bodies.Take(by, cost) {
		refuse(w, problemOf(domain.Refuse(domain.Overloaded, "bodies of other requests take %d bytes, and this access key or address has used its share of them", d.bodies.Keys.Taken())))
		return
	}
	defer d.bodies.Give(by, cost)
	body, problem := readBody(w, r)
	if problem != nil {
		refuse(w, problem)
		return
	}
	req := &request{principal: by, path: r.PathValue("id"), traced: r.Context()}
	if req.client, problem = clientOf(r); problem != nil {
		refuse(w, problem)
		return
	}
	in, problem := n.read(body)
	if problem == nil {
		problem = d.mayDo(r.Context(), n.name, req, in)
	}
	if problem != nil {
		refuse(w, problem)
		return
	}
	later := strings.HasSuffix(r.URL.Path, n.name+asyncSuffix)
	switch async := r.URL.Query().Get("async"); {
	case later && (async == "" || async == "1"):
		d.serveLater(w, n, req, in)
	case later:
		refuse(w, invalid("async", async, "1, or nothing: "+n.name+asyncSuffix+" answers later by its name"))
	case async == "" || async == "0":
		d.serveAtOnce(w, r, n, req, in)
	case async != "1":
		refuse(w, invalid("async", async, "1, or nothing"))
	case n.event == "":
		refuse(w, invalid("async", async, "nothing: "+n.name+" has no asynchronous form"))
	default:
		d.serveLater(w, n, req, in)
	}
}

func (d *Door) serveAtOnce(w http.ResponseWriter, r *http.Request, n *node, req *request, in any) {
	if n.waits {
		patient(w)
	}
	ctx, cancel := req.principal.Within(r.Context())
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	out, problem := d.run(ctx, n, req, in)
	if problem != nil {
		refuse(w, problem)
		return
	}
	answer(w, http.StatusOK, out)
}

// run executes a node. A panic ends only this call.
func (d *Door) run(ctx context.Context, n *node, req *request, in any) (out any, problem *Problem) {
	defer func() {
		if p := recover(); p != nil {
			d.config.Panics.Note(panicDoor, p, "node", n.name)
			out, problem = nil, internalProblem()
		}
	}()
	out, err := n.run(d, ctx, req, in)
	if err == nil {
		return out, nil
	}
	problem = problemOf(err)
	switch {
	case identity.Ended(ctx):
		problem = unauthorized("the access key was revoked, its policies have changed, or the temporary credentials have expired")
	case d.ctx.Err() != nil && errors.Is(err, context.Canceled):
		problem = &Problem{status: http.StatusServiceUnavailable, Name: unavailable, Message: "the service is stopping"}
	case problem.status >= http.StatusInternalServerError && ctx.Err() == nil:
		d.log.Error("a request of the session nodes failed", "node", n.name, "error", err)
	}
	return nil, problem
}

// patient lifts the time limits of the port, for answers that wait for something.
func patient(w http.ResponseWriter) {
	c := http.NewResponseController(w)
	// Reading too: its time limit would end the request while the answer waits. Neither fails on this port.
	_ = c.SetReadDeadline(time.Time{})
	_ = c.SetWriteDeadline(time.Time{})
}

func answer(w http.ResponseWriter, status int, body any) {
	text, err := encode(body)
	if err != nil {
		panic(err) // the types of answers can always be marshalled
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text) // fails if the client has gone
}

// encode encodes without escaping < and >, because scripts print answers.
func encode(body any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(body)
	return b.Bytes(), err
}

func nodeNames() string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

package sessionapi

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/fair"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/tracing"
)

// Limits bound the memory of asynchronous calls and event streams.
type Limits struct {
	Pending   int           // running calls
	Kept      int           // events kept for readers and polls
	KeptBytes int           // their bytes
	KeptFor   time.Duration // and for how long
	Readers   int           // open event streams
}

var defaultLimits = Limits{Pending: 4096, Kept: 100_000, KeptBytes: 64 << 20, KeptFor: 10 * time.Minute, Readers: 10_000}

// calls stores the running asynchronous calls and, for a while, their outcomes. All are in one list, oldest first, so that one bound
// applies to all callers together and the oldest is dropped first.
type calls struct {
	limits Limits
	now    func() time.Time
	epoch  string // of this run of the service; event ids of other runs are invalid

	pending  fair.Shares // running calls
	watching fair.Shares // tickets
	readers  fair.Shares // open event streams

	mu      sync.Mutex
	last    uint64 // number of the newest event
	dropped uint64 // of the newest event of a stream that was dropped
	byID    map[string]*call
	line    []*event
	bytes   int
	streams map[streamKey]*stream
	watches map[watchKey]*watch // tickets that clients watch
}

// call is one asynchronous call.
type call struct {
	id    string
	owner string // id of the access key
	by    *identity.Principal
	node  *node
	to    *stream // nil: it is only polled

	connected chan struct{}        // JoinSession: closed once the script has said
	made      atomic.Pointer[bool] // whether its connection was made

	progress any  // what a poll gets before the end
	done     bool // exactly once
	outcome  []byte
}

// event is one line of a stream, or the end of a call that has none.
type event struct {
	number uint64
	name   string
	data   []byte
	at     time.Time
	ends   *call   // nil: it ends none
	to     *stream // nil: no stream gets its events
}

func newCalls(limits Limits, now func() time.Time) *calls {
	if limits == (Limits{}) {
		limits = defaultLimits
	}
	return &calls{limits: limits, now: now, epoch: rand.Text()[:8], byID: map[string]*call{}, streams: map[streamKey]*stream{},
		pending: newShares(limits.Pending), watching: newShares(limits.Pending), readers: newShares(limits.Readers)}
}

// state is the state of a call in a poll or in its final event.
type state struct {
	CallID   string   `json:"callId"`
	Node     string   `json:"node"`
	State    string   `json:"state"`              // PENDING or COMPLETED
	Progress any      `json:"progress,omitempty"` // of a pending one
	Status   int      `json:"status,omitempty"`   // that the answer would have had at once
	Answer   any      `json:"answer,omitempty"`
	Error    *Problem `json:"error,omitempty"`
}

// begin notes a call that is about to be carried out.
func (c *calls) begin(r *request, n *node) (*call, *Problem) {
	if !c.pending.Take(r.principal, 1) {
		return nil, problemOf(domain.Refuse(domain.Overloaded, "%d asynchronous calls are under way, and this access key or address has used its share of them", c.pending.Keys.Taken()))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	x := &call{id: "call-" + rand.Text(), owner: r.principal.ID, by: r.principal, node: n, connected: make(chan struct{})}
	if r.client != "" {
		x.to = c.stream(streamKey{r.principal.ID, r.client})
		x.to.users++
	}
	c.byID[x.id] = x
	return x, nil
}

// tell reports the progress of a call before its end.
func (c *calls) tell(x *call, name string, progress any) {
	data := mustEncode(state{CallID: x.id, Node: x.node.name, State: "PENDING", Progress: progress})
	c.mu.Lock()
	defer c.mu.Unlock()
	x.progress = progress
	if x.to != nil {
		c.keep(&event{name: name, data: data, to: x.to})
	}
}

// complete ends a call. Only the first call of it counts.
func (c *calls) complete(x *call, out any, problem *Problem) {
	s := state{CallID: x.id, Node: x.node.name, State: "COMPLETED", Status: http.StatusOK, Answer: out, Error: problem}
	if problem != nil {
		s.Status, s.Answer = problem.status, nil
	}
	data := mustEncode(s)
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.done {
		return
	}
	c.pending.Give(x.by, 1)
	x.done, x.outcome, x.progress = true, data, nil
	c.keep(&event{name: x.node.event, data: data, ends: x, to: x.to})
	if x.to != nil {
		x.to.users--
	}
}

// keep puts an event in the line and wakes those who read its stream. c.mu is locked.
func (c *calls) keep(e *event) {
	c.last++
	e.number, e.at = c.last, c.now()
	c.line = append(c.line, e)
	c.bytes += len(e.data)
	if e.to != nil {
		e.to.append(e)
	}
	for len(c.line) > c.limits.Kept || c.bytes > c.limits.KeptBytes && len(c.line) > 1 {
		c.dropOldest()
	}
}

// dropOldest forgets the event at the front of the line, which is at the front of its stream, too. c.mu is locked.
func (c *calls) dropOldest() {
	e := c.line[0]
	c.line[0] = nil
	c.line = c.line[1:]
	c.bytes -= len(e.data)
	if e.ends != nil {
		delete(c.byID, e.ends.id)
	}
	if e.to != nil {
		c.dropped = e.number
		e.to.dropOldest()
		c.tidy(e.to)
	}
}

// expire removes outcomes that were kept long enough.
func (c *calls) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.now().Add(-c.limits.KeptFor)
	for len(c.line) > 0 && c.line[0].at.Before(before) {
		c.dropOldest()
	}
}

// say stores the script's report about its connection; the first one counts.
func (x *call) say(made bool) {
	if x.made.CompareAndSwap(nil, &made) {
		close(x.connected)
	}
}

// said is whether the connection was made; nil while that was not reported.
func (x *call) said() *bool { return x.made.Load() }

// find returns a call of an access key.
func (c *calls) find(owner, id string) (*call, *Problem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x, ok := c.byID[id]; ok && x.owner == owner {
		return x, nil
	}
	return nil, &Problem{status: http.StatusNotFound, Name: unknownCall, Field: "callId", Value: excerpt.Short(id),
		Message: fmt.Sprintf("call %s is not known: it ended more than %s ago, or the service was restarted since", excerpt.Short(id), c.limits.KeptFor)}
}

// look returns the answer to a poll.
func (c *calls) look(x *call) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.done {
		return x.outcome
	}
	return mustEncode(state{CallID: x.id, Node: x.node.name, State: "PENDING", Progress: x.progress})
}

func mustEncode(v any) []byte {
	data, err := encode(v)
	if err != nil {
		panic(err) // the types of answers can always be marshalled
	}
	return data
}

// accepted is the answer to a node with ?async=1.
type accepted struct {
	CallID string `json:"callId"`
}

func (d *Door) serveLater(w http.ResponseWriter, n *node, r *request, in any) {
	c, problem := d.calls.begin(r, n)
	if problem != nil {
		refuse(w, problem)
		return
	}
	r.call = c
	d.running.Go(func() {
		defer d.config.Panics.Confine(panicDoor, func() { d.calls.complete(c, nil, internalProblem()) })
		what := n
		if n.begin != nil {
			with := *n
			with.run = n.begin
			what = &with
		}
		ctx, cancel := r.principal.Within(tracing.Detach(d.ctx, r.traced))
		defer cancel()
		out, problem := d.run(ctx, what, r, in)
		d.calls.complete(c, out, problem)
	})
	w.Header().Set("Location", Prefix+"calls/"+c.id)
	answer(w, http.StatusAccepted, accepted{c.id})
}

func (d *Door) servePoll(w http.ResponseWriter, r *http.Request) {
	by, problem := d.authorize(r, identity.MayPlayOrLook, callsName)
	var c *call
	if problem == nil {
		problem = d.mayDo(r.Context(), callsName, &request{principal: by}, nil)
	}
	if problem == nil {
		c, problem = d.calls.find(by.ID, r.PathValue("id"))
	}
	if problem != nil {
		refuse(w, problem)
		return
	}
	answer(w, http.StatusOK, json.RawMessage(d.calls.look(c)))
}

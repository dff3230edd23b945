// Package callstats counts the calls at the doors, by operation and outcome, and measures how long they take, in the
// same way for all doors.
package callstats

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Outcome is how a call ended.
type Outcome uint8

// The outcomes.
const (
	OK        Outcome = iota
	Refused           // the request is impossible, or the caller is not allowed to make it
	Throttled         // too much at a time; the same call may succeed later
	Failed            // the service could not do its work
	outcomes
)

var outcomeNames = [outcomes]string{OK: "ok", Refused: "refused", Throttled: "throttled", Failed: "failed"}

func (o Outcome) String() string { return outcomeNames[o] }

// OfStatus is the outcome of an HTTP status.
func OfStatus(status int) Outcome {
	switch {
	case status == http.StatusTooManyRequests:
		return Throttled
	case status >= http.StatusInternalServerError:
		return Failed
	case status >= http.StatusBadRequest:
		return Refused
	}
	return OK
}

// Heard is the outcome of a call whose answer is sent under ctx, which ends when the client leaves. A client that leaves before its answer, such as a
// player's telephone that lost the network during a long poll, makes the call fail, but that is no failure of the service.
func Heard(ctx context.Context, o Outcome) Outcome {
	if o == Failed && ctx.Err() != nil {
		return Refused
	}
	return o
}

// Unknown is the label of calls that name no operation of their door. Names that callers invent must not become labels.
const Unknown = "unknown"

// buckets are upper bounds in seconds. A commit takes a fraction of a millisecond to some, by the disk.
var buckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}

// Calls are the calls at all doors. It is a prometheus.Collector.
type Calls struct {
	total   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

// New makes Calls.
func New() *Calls {
	return &Calls{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_calls_total", Help: "Calls that were answered. refused: the request cannot be granted; throttled: too much at a time; failed: the service could not do its work.",
		}, []string{"door", "operation", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "muster_call_seconds", Help: "Time from the head of a request to its answer. Operations that wait for something to happen are as long as the wait.", Buckets: buckets,
		}, []string{"door", "operation"}),
	}
}

// Describe implements prometheus.Collector.
func (c *Calls) Describe(to chan<- *prometheus.Desc) {
	c.total.Describe(to)
	c.seconds.Describe(to)
}

// Collect implements prometheus.Collector.
func (c *Calls) Collect(to chan<- prometheus.Metric) {
	c.total.Collect(to)
	c.seconds.Collect(to)
}

// Door counts the calls at one door. A nil Door counts nothing.
type Door struct {
	operations map[string]*operation
	unknown    *operation
}

// operation has its metrics, so that a call looks up only the operation. They are made with the first call: an operation
// that is never called has no lines in /metrics.
type operation struct {
	begin   sync.Once
	make    func(*operation)
	seconds prometheus.Observer
	total   [outcomes]prometheus.Counter
}

// Door makes the Door with a name, which has the operations and no others. A nil Calls makes none.
func (c *Calls) Door(name string, operations ...string) *Door {
	if c == nil {
		return nil
	}
	of := func(called string) *operation {
		return &operation{make: func(x *operation) {
			x.seconds = c.seconds.WithLabelValues(name, called)
			for o := range outcomes {
				x.total[o] = c.total.WithLabelValues(name, called, o.String())
			}
		}}
	}
	d := &Door{operations: make(map[string]*operation, len(operations)), unknown: of(Unknown)}
	for _, called := range operations {
		d.operations[called] = of(called)
	}
	return d
}

// Done counts a call that has been answered.
func (d *Door) Done(called string, o Outcome, began time.Time) {
	if d == nil {
		return
	}
	x := cmp.Or(d.operations[called], d.unknown)
	x.begin.Do(func() { x.make(x) })
	x.seconds.Observe(time.Since(began).Seconds())
	x.total[o].Inc()
}

// Handler counts the calls of an operation by the status that h answers with.
func (d *Door) Handler(called string, h http.HandlerFunc) http.HandlerFunc {
	if d == nil {
		return h
	}
	return func(w http.ResponseWriter, r *http.Request) {
		noted, answered := d.Note(w, r, called)
		defer answered()
		h(noted, r)
	}
}

// Note returns a writer for the answer to a request, and a function to defer, which counts the call by the status that was written, as Heard says.
func (d *Door) Note(w http.ResponseWriter, r *http.Request, called string) (noted http.ResponseWriter, answered func()) {
	if d == nil {
		return w, func() {}
	}
	began, n := time.Now(), NoteStatus(w)
	return n, func() {
		o := n.Outcome()
		if n.status != 0 { // else the handler panicked
			o = Heard(r.Context(), o)
		}
		d.Done(called, o, began)
	}
}

// Noted records the status of an answer.
type Noted struct {
	http.ResponseWriter
	status int
	marked *Outcome // nil: that of the status
}

// Mark sets the outcome of the call that w answers, for an answer whose status says otherwise.
func Mark(w http.ResponseWriter, o Outcome) {
	for {
		if n, ok := w.(*Noted); ok {
			n.marked = &o
		}
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return
		}
		w = outer.Unwrap()
	}
}

// NoteStatus returns a writer for the answer to a call.
func NoteStatus(w http.ResponseWriter) *Noted { return &Noted{ResponseWriter: w} }

// Outcome is that of the call, once it is answered.
func (n *Noted) Outcome() Outcome {
	if n.marked != nil {
		return *n.marked
	}
	if n.status == 0 { // nothing was written: the handler panicked
		return Failed
	}
	return OfStatus(n.status)
}

// WriteHeader implements http.ResponseWriter.
func (n *Noted) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}

func (n *Noted) Write(b []byte) (int, error) {
	n.status = cmp.Or(n.status, http.StatusOK)
	return n.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (n *Noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// Unwrapped is the server's own writer behind those of Note and NoteStatus. http.MaxBytesReader needs it to end the connection.
func Unwrapped(w http.ResponseWriter) http.ResponseWriter {
	for {
		n, ok := w.(*Noted)
		if !ok {
			return w
		}
		w = n.ResponseWriter
	}
}

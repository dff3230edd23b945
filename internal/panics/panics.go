// Package panics confines a panic to the connection on which it happened. The connection ends; the process and all other
// connections go on. It is for goroutines that serve one connection or one receiver: a panic in the core, or in a goroutine that
// keeps state for all, still ends the process, because that state may be wrong afterwards.
package panics

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/rate"
)

// Guard records the panics of all doors. A nil Guard confines nothing, so that tests without one see every panic.
type Guard struct {
	log     *slog.Logger
	counted *prometheus.CounterVec
	lines   rate.Lines // each has a stack, and a client may be able to cause panics at will
}

// New makes a Guard.
func New(log *slog.Logger) *Guard {
	return &Guard{log: log, lines: rate.Lines{Most: 10, Period: 10 * time.Second}, counted: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_panics_total", Help: "Panics that ended one connection, by the door that served it. Each is a defect.",
	}, []string{"door"})}
}

// Collector is the metric muster_panics_total.
func (g *Guard) Collector() prometheus.Collector { return g.counted }

// Confine stops a panic, records it, and then calls end, which ends the connection; end may be nil. It must be deferred itself,
// by the function that serves the connection:
//
//	defer guard.Confine("serverlink", l.drop)
func (g *Guard) Confine(door string, end func()) {
	if g == nil {
		return
	}
	p := recover()
	if p == nil {
		return
	}
	g.Note(door, p)
	if end != nil {
		defer g.Confine(door, nil)
		end()
	}
}

// Error is the error of a call that panicked.
type Error struct{ Value any }

func (e *Error) Error() string { return "internal error: a panic, which the log shows" } // clients may see it

// Catch stops a panic, records it, and makes it the error of a call. It must be deferred itself.
func (g *Guard) Catch(door string, err *error) {
	if g == nil {
		return
	}
	if p := recover(); p != nil {
		g.Note(door, p)
		*err = &Error{p}
	}
}

// Restart calls serve until it returns without a panic, and pauses after each one. It is for a goroutine that serves one receiver
// for as long as the service runs, and that reads from the state what it still owes.
func (g *Guard) Restart(ctx context.Context, door string, pause time.Duration, serve func()) {
	for !g.ends(door, serve) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

func (g *Guard) ends(door string, serve func()) (ended bool) {
	defer g.Confine(door, nil)
	serve()
	return true
}

// Note counts and logs a panic that its caller has recovered from. It must be called by the deferred function, where the stack
// still shows the place. The log gets the attributes, too. A nil Guard panics again.
func (g *Guard) Note(door string, p any, attributes ...any) {
	if g == nil {
		panic(p)
	}
	g.counted.WithLabelValues(door).Inc()
	if write, silent := g.lines.Note(time.Now()); write {
		attributes = append([]any{"door", door, "panic", p, "unlogged", silent}, attributes...)
		g.log.Error("a panic ended a connection or a task; please report it", append(attributes, "stack", string(debug.Stack()))...)
	}
}

// Handler ends the connection of a request whose handler panics, without an answer: part of one may have been sent.
func (g *Guard) Handler(door string, h http.Handler) http.Handler {
	if g == nil || h == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler: // how handlers ask net/http for just that
				panic(p)
			default:
				g.Note(door, p)
				panic(http.ErrAbortHandler)
			}
		}()
		h.ServeHTTP(w, r)
	})
}

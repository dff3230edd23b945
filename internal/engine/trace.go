package engine

import (
	"context"
	"reflect"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/musterhq/muster/internal/domain/answers"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/tracing"
)

// A traced command has a span "commit" on each node that works on it. On the leader, the span has two parts: "queue", until the command is decided
// and applied, and "append", until its group is durable. The core knows nothing of this.

// doTraced is Do within a span.
func (e *Engine) doTraced(ctx context.Context, cmd kernel.Command) error {
	ctx, span := e.startCommit(ctx, cmd)
	err := e.do(ctx, cmd)
	span.EndWith(err)
	return err
}

// executeTraced executes a request within the trace that the other node sent.
func (e *Engine) executeTraced(ctx context.Context, text string, once *answers.Once) error {
	if !e.config.Tracing.On() || text == "" {
		return e.execute(ctx, once)
	}
	ctx, span := e.startCommit(tracing.WithText(ctx, text), once.Command)
	err := e.execute(ctx, once)
	span.EndWith(err)
	return err
}

func (e *Engine) startCommit(ctx context.Context, cmd kernel.Command) (context.Context, *tracing.Span) {
	ctx, span := e.config.Tracing.Start(ctx, "commit", trace.SpanKindInternal)
	span.Set("muster.command", reflect.Indirect(reflect.ValueOf(kernel.Unwrapped(cmd))).Type().Name())
	return ctx, span
}

// commandTrace holds what the spans of a command need. The goroutine that waits for the command reads it once the command is answered.
type commandTrace struct {
	tracer *tracing.Tracer
	ctx    context.Context

	queued            time.Time
	applied           time.Time // zero: the command was not decided
	appending, stored time.Time // zero: its answer waited for no group
	entry             uint64
}

// submitTraced is submit that adds the parts to the span in ctx.
func (r *run) submitTraced(ctx context.Context, cmd kernel.Command) error {
	x := &commandTrace{tracer: r.e.config.Tracing, ctx: ctx, queued: time.Now()}
	c := newCall(cmd)
	c.trace = x
	err := r.wait(c)
	if !x.applied.IsZero() {
		x.tracer.Part(ctx, "queue", x.queued, x.applied)
	}
	if !x.stored.IsZero() {
		x.tracer.Part(ctx, "append", x.appending, x.stored, tracing.Number("muster.journal.entry", x.entry))
	}
	return err
}

// decided remembers which records the command created that cause later work. It does so before they are durable, because a follower on another node
// may ask as soon as they are.
func (x *commandTrace) decided(events []kernel.Emitted) {
	x.applied = time.Now()
	for _, emitted := range events {
		switch e := emitted.Event.(type) {
		case *hosting.GameSessionCreated:
			x.tracer.Remember(x.ctx, tracing.Cause{Kind: tracing.GameSession, ID: string(e.ID)})
		case *hosting.PlacementStarted:
			x.tracer.Remember(x.ctx, tracing.Cause{Kind: tracing.Placement, ID: e.Placement.ID})
		case *hosting.PlayerReserved:
			x.tracer.Remember(x.ctx, tracing.Cause{Kind: tracing.PlayerSession, ID: e.PlayerSession.String()})
		case *matchmaking.TicketStarted:
			x.tracer.Remember(x.ctx, ticketCause(e.Ticket.No))
		}
	}
}

// tracedKinds are the events that decided and traceMatches look for.
var tracedKinds = kernel.Kinds(new(hosting.GameSessionCreated), new(hosting.PlacementStarted), new(hosting.PlayerReserved), new(matchmaking.TicketStarted), new(matchmaking.MatchProposed))

func ticketCause(no uint64) tracing.Cause {
	return tracing.Cause{Kind: tracing.Ticket, ID: strconv.FormatUint(no, 10)}
}

// traceMatches continues the traces of tickets in their match: its placement, which has the match's id, and the push to the server process then
// follow from it. No call causes the commands that propose matches.
func traceMatches(t *tracing.Tracer, events []kernel.Emitted) {
	for _, emitted := range events {
		e, ok := emitted.Event.(*matchmaking.MatchProposed)
		if !ok {
			continue
		}
		var of []tracing.Cause
		for _, s := range e.Match.Seats {
			of = append(of, ticketCause(s.Ticket))
		}
		t.Join("match", tracing.Cause{Kind: tracing.Placement, ID: e.Match.ID}, of)
	}
}

// traced records in the traces of a group's commands that the group is durable, before they are answered.
func (g *Group) traced(appending time.Time) {
	for _, c := range g.calls {
		if x := c.trace; x != nil {
			x.appending, x.stored, x.entry = appending, time.Now(), g.Number
		}
	}
}

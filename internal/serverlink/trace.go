package serverlink

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/tracing"
)

// The trace of the call that made a game session goes on with the push to its server process, and from there with the request by which the process activates it.

// prompted is the push of a game session to a process, if it is traced.
type prompted struct {
	game session.ID
	span trace.SpanContext
}

// beginPush begins the span of the push of a game session.
func (l *link) beginPush(id session.ID, placement string) (context.Context, *tracing.Span) {
	p := l.process
	t := p.server.config.Tracing
	if t == nil {
		return p.server.ctx, nil
	}
	causes := []tracing.Cause{{Kind: tracing.GameSession, ID: string(id)}}
	if placement != "" {
		causes = append(causes, tracing.Cause{Kind: tracing.Placement, ID: placement})
	}
	ctx, span := t.Continue(p.server.ctx, "push "+pushCreateGameSession, trace.SpanKindProducer, causes...)
	if span == nil {
		p.prompted.Store(nil)
		return ctx, nil
	}
	l.describe(span, id)
	p.prompted.Store(&prompted{id, trace.SpanContextFromContext(ctx)})
	return ctx, span
}

// beginAnswer begins the span of a request if it answers a push that is traced.
func (l *link) beginAnswer(ctx context.Context, r *request) (context.Context, *tracing.Span) {
	t := l.process.server.config.Tracing
	if t == nil || r.action != actActivateGameSession {
		return ctx, nil
	}
	pushed := l.process.prompted.Load()
	if pushed == nil || pushed.game != gameID(r.gameSession) {
		return ctx, nil
	}
	ctx, span := t.Start(trace.ContextWithSpanContext(ctx, pushed.span), r.action, trace.SpanKindServer)
	span.Set("muster.door", panicDoor)
	l.describe(span, pushed.game)
	return ctx, span
}

func (l *link) describe(span *tracing.Span, id session.ID) {
	span.Set("muster.game_session.id", string(id))
	span.Set("muster.fleet.id", l.process.key.Fleet)
	span.Set("muster.compute", l.process.key.Compute)
	span.Set("muster.process.id", l.process.key.Process)
}

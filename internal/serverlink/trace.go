package serverlink

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/tracing"
)

// The trace of the call that created a game session continues with the push to its server process, and then with the request by which the process
// activates it. Other requests of server processes have traces, too.

// prompted is the push of a game session to a process, if traced.
type prompted struct {
	game session.ID
	span trace.SpanContext
}

// beginPush starts the span of the push of a game session.
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

// beginRequest starts the span of a request, if traced. ActivateGameSession answers a push, and is traced if the push was. AcceptPlayerSession and
// RemovePlayerSession continue the call that created the player session, if this node knows it. Of a process's other requests, those about its
// beginning and its end are sampled, and those that it repeats all day are not traced.
func (l *link) beginRequest(ctx context.Context, r *request) (context.Context, *tracing.Span) {
	t := l.process.server.config.Tracing
	if t == nil {
		return ctx, nil
	}
	var span *tracing.Span
	switch r.action {
	case actActivateGameSession:
		if pushed := l.process.prompted.Load(); pushed != nil && pushed.game == gameID(r.gameSession) {
			ctx, span = t.Start(trace.ContextWithSpanContext(ctx, pushed.span), r.action, trace.SpanKindServer)
		}
	case actAcceptPlayerSession, actRemovePlayerSession:
		if id, err := playerID(r.playerSession); err == nil {
			ctx, span = t.ContinueHere(ctx, r.action, trace.SpanKindServer, tracing.Cause{Kind: tracing.PlayerSession, ID: id.String()})
		}
		if span == nil {
			ctx, span = t.Root(ctx, r.action)
		}
	case actActivateServerProcess, actTerminateServerProcess:
		ctx, span = t.Root(ctx, r.action)
	}
	if span == nil {
		return ctx, nil
	}
	span.Set("muster.door", panicDoor)
	l.describe(span, gameID(r.gameSession))
	return ctx, span
}

func (l *link) describe(span *tracing.Span, id session.ID) {
	if id != "" {
		span.Set("muster.game_session.id", string(id))
	}
	span.Set("muster.fleet.id", l.process.key.Fleet)
	span.Set("muster.compute", l.process.key.Compute)
	span.Set("muster.process.id", l.process.key.Process)
}

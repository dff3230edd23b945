package tracing

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Cause names a thing that a traced command made and that causes later work: a push, a webhook. Kinds distinguish the ids of different things.
type Cause struct{ Kind, ID string }

// The kinds of causes.
const (
	GameSession   = "game session"
	Placement     = "placement" // also of a match, which has the same id
	Ticket        = "ticket"    // by its number
	PlayerSession = "player session"
)

const (
	causesMax = 4096 // new ones replace the oldest
	askWait   = 250 * time.Millisecond
	quiet     = 10 * time.Second // pause after a question without a timely answer
	causeMax  = 1024             // bytes of an id in a question
	linksMax  = 64               // from a span to spans of other traces
)

// causes remembers which span made a thing, for the newest things. It exists only in this process: losing it ends traces early and has no other effect.
// In a cluster the leader remembers causes, and the other nodes ask it.
type causes struct {
	most int

	mu    sync.Mutex
	spans map[Cause]trace.SpanContext
	order []Cause // a ring, once it has most entries
	next  int

	ask        func(ctx context.Context, question []byte) (answer []byte, err error)
	quiet      time.Duration
	quietUntil atomic.Pointer[time.Time] // nil: questions are asked
}

// Remember records that the work of ctx made a thing.
func (t *Tracer) Remember(ctx context.Context, c Cause) {
	s := trace.SpanContextFromContext(ctx)
	if !t.On() || !s.IsSampled() {
		return
	}
	x := &t.causes
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.spans == nil {
		x.spans = make(map[Cause]trace.SpanContext)
	}
	if _, known := x.spans[c]; !known {
		if len(x.order) < x.most {
			x.order = append(x.order, c)
		} else {
			delete(x.spans, x.order[x.next])
			x.order[x.next] = c
			x.next = (x.next + 1) % x.most
		}
	}
	x.spans[c] = s
}

// AskWith sets the function that asks the leader, whose AnswerCause answers. Call it once, before using the Tracer.
func (t *Tracer) AskWith(ask func(ctx context.Context, question []byte) ([]byte, error)) {
	if t != nil {
		t.causes.ask = ask
	}
}

// Continue begins a span that follows from the first of these things that a traced command made. The span is nil if there is none.
func (t *Tracer) Continue(ctx context.Context, name string, kind trace.SpanKind, of ...Cause) (context.Context, *Span) {
	if !t.On() {
		return ctx, nil
	}
	s := t.causeOf(ctx, of)
	if !s.IsSampled() {
		return ctx, nil
	}
	return t.Start(trace.ContextWithRemoteSpanContext(ctx, s), name, kind)
}

// ContinueHere is Continue without a question to another node.
func (t *Tracer) ContinueHere(ctx context.Context, name string, kind trace.SpanKind, of Cause) (context.Context, *Span) {
	if !t.On() {
		return ctx, nil
	}
	s := t.known([]Cause{of})
	if !s.IsSampled() {
		return ctx, nil
	}
	return t.Start(trace.ContextWithRemoteSpanContext(ctx, s), name, kind)
}

// Join records that several things from traced commands together caused another one. It makes a span in the trace of the first, with links to the others.
func (t *Tracer) Join(name string, made Cause, of []Cause) {
	x := t.export()
	if x == nil {
		return
	}
	var spans []trace.SpanContext
	t.causes.mu.Lock()
	for _, c := range of {
		if s, ok := t.causes.spans[c]; ok {
			spans = append(spans, s)
		}
	}
	t.causes.mu.Unlock()
	if len(spans) == 0 {
		return
	}
	var links []trace.Link
	for _, s := range spans[1:min(len(spans), linksMax+1)] {
		links = append(links, trace.Link{SpanContext: s})
	}
	ctx, span := x.Start(trace.ContextWithRemoteSpanContext(context.Background(), spans[0]), name, trace.WithLinks(links...))
	t.Remember(ctx, made)
	span.SetAttributes(attribute.String("muster."+made.Kind+".id", made.ID))
	span.End()
}

func (t *Tracer) causeOf(ctx context.Context, of []Cause) trace.SpanContext {
	if s := t.known(of); s.IsValid() || t.causes.ask == nil {
		return s
	}
	if until := t.causes.quietUntil.Load(); until != nil && time.Now().Before(*until) {
		return trace.SpanContext{}
	}
	waiting, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	answer, err := t.causes.ask(waiting, question(of))
	if err != nil { // this node is the leader, or there is none: the trace ends here
		if waiting.Err() != nil && ctx.Err() == nil { // later work must not wait for telemetry again
			until := time.Now().Add(t.causes.quiet)
			t.causes.quietUntil.Store(&until)
		}
		return trace.SpanContext{}
	}
	return parse(string(answer))
}

func (t *Tracer) known(of []Cause) trace.SpanContext {
	t.causes.mu.Lock()
	defer t.causes.mu.Unlock()
	for _, c := range of {
		if s, ok := t.causes.spans[c]; ok {
			return s
		}
	}
	return trace.SpanContext{}
}

// question encodes causes, one per line: the kind, a tab, and the id.
func question(of []Cause) []byte {
	var b []byte
	for _, c := range of {
		if c.ID != "" && len(c.ID) <= causeMax {
			b = append(append(append(append(b, c.Kind...), '\t'), c.ID...), '\n')
		}
	}
	return b
}

// AnswerCause answers the question of another node with the Text of the span, or with nothing. It never fails; the error is part of the signature for questions between nodes.
func (t *Tracer) AnswerCause(_ context.Context, question []byte) (answer []byte, err error) {
	if t == nil || len(question) > 4*causeMax {
		return nil, nil
	}
	var of []Cause
	for line := range strings.Lines(string(question)) {
		kind, id, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		of = append(of, Cause{kind, id})
	}
	if s := t.known(of); s.IsValid() {
		return []byte(textOf(s)), nil
	}
	return nil, nil
}

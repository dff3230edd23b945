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

// Cause names a thing that a traced command made, and that causes something later: a push, a webhook. Kinds keep ids of different things apart.
type Cause struct{ Kind, ID string }

// The kinds of causes.
const (
	GameSession   = "game session"
	Placement     = "placement" // also that of a match, whose id it has
	Ticket        = "ticket"    // by its number
	PlayerSession = "player session"
)

const (
	causesMax = 4096 // the oldest make room
	askWait   = 250 * time.Millisecond
	quiet     = 10 * time.Second // after a question without an answer in time, no other is asked
	causeMax  = 1024             // bytes of an id in a question
	linksMax  = 64               // of a span to those of other traces
)

// causes remembers which span made a thing, for the newest things. It is memory of this process alone: what is lost with it ends a trace early, nothing else.
// In a cluster the node that decides remembers, and the others ask it.
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

// Remember notes that the work that ctx is for made a thing.
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

// AskWith sets how to ask the node that decides, whose AnswerCause answers. It is called once, before the Tracer is used.
func (t *Tracer) AskWith(ask func(ctx context.Context, question []byte) ([]byte, error)) {
	if t != nil {
		t.causes.ask = ask
	}
}

// Continue begins a span that follows from the first of these things that a traced command made, and is nil if none was.
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

// Join notes that things which traced commands made have made another one together. It is a span in the trace of the first of them, with links to the others.
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
	if err != nil { // this node decides, or none does: the trace ends here
		if waiting.Err() != nil && ctx.Err() == nil { // what follows is not to wait for telemetry again
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

// A question has a line for each cause: its kind, a tab, its id.
func question(of []Cause) []byte {
	var b []byte
	for _, c := range of {
		if c.ID != "" && len(c.ID) <= causeMax {
			b = append(append(append(append(b, c.Kind...), '\t'), c.ID...), '\n')
		}
	}
	return b
}

// AnswerCause answers the question of another node: the Text of the span, or nothing. It never fails; its form is that of a question between nodes.
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

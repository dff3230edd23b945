// Package tracing makes spans for everything that a request causes: the call at its door, the commit of its commands, the push to a server process and its
// answer, and the webhooks. Package otlp exports them.
//
// A Tracer that is nil or has no provider traces nothing and costs one comparison. A call that is not sampled has no spans.
//
// # Whose decision counts
//
// A span begins once a request is authenticated: strangers cause none. Callers with one of the studio's access keys decide with the flag in their traceparent
// whether the call is traced, as the standard specifies. The flag and the trace id of players, and of keys with the role client, which every player's client
// contains, do not influence that: their calls are sampled at random. A sampled call still continues their trace.
//
// # What a span contains
//
// A span contains names of operations and commands, identifiers, numbers of journal entries, and outcomes. It contains no credentials, texts of players, or bodies.
package tracing

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/musterhq/muster/internal/callstats"
)

// Scope is the name under which all spans are made.
const Scope = "github.com/musterhq/muster"

// Sampling determines which calls are traced.
type Sampling struct {
	Share   float64 // of the calls for which no caller decides, 0 to 1
	Parents bool    // trusted callers decide for their own calls
}

// Tracer makes spans. Its methods may be called concurrently.
type Tracer struct {
	to     atomic.Pointer[export] // nil: nothing is traced
	causes causes
}

// export is the destination of spans, and the sampling of calls.
type export struct {
	trace.Tracer
	sampling Sampling
}

// New makes a Tracer that traces nothing before ExportTo.
func New() *Tracer { return &Tracer{causes: causes{most: causesMax, quiet: quiet}} }

// ExportTo sends spans that begin from now on to a provider, which must record every span that has no parent or a sampled one. nil: nothing is traced.
func (t *Tracer) ExportTo(provider trace.TracerProvider, s Sampling) {
	if provider == nil {
		t.to.Store(nil)
		return
	}
	t.to.Store(&export{provider.Tracer(Scope), s})
}

func (t *Tracer) export() *export {
	if t == nil {
		return nil
	}
	return t.to.Load()
}

// On reports whether tracing is on.
func (t *Tracer) On() bool { return t.export() != nil }

// Call is a call at a door.
type Call struct {
	Door, Operation string
	RequestID       string // of the answer; may be empty
	Trusted         bool   // the caller may decide whether the call is traced
	Began           time.Time
}

// Begin begins the span of an authenticated call. Work for the call must use the returned context. The Span is nil if the call is not traced.
func (t *Tracer) Begin(r *http.Request, c Call) (context.Context, *Span) {
	ctx := r.Context()
	x := t.export()
	if x == nil {
		return ctx, nil
	}
	parent := extract(r.Header)
	if parent.IsValid() {
		parent = parent.WithTraceFlags(parent.TraceFlags().WithSampled(x.chooses(parent, c.Trusted)))
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	if parent.IsValid() && !parent.IsSampled() || !parent.IsValid() && !x.chance() {
		return ctx, nil
	}
	ctx, span := x.Start(ctx, c.Operation, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(c.Began), trace.WithAttributes(
		attribute.String("muster.door", c.Door), attribute.String("rpc.method", c.Operation)))
	if c.RequestID != "" {
		span.SetAttributes(attribute.String("aws.request_id", c.RequestID))
	}
	return ctx, &Span{span}
}

func (x *export) chooses(parent trace.SpanContext, trusted bool) bool {
	if trusted && x.sampling.Parents {
		return parent.IsSampled()
	}
	return x.chance()
}

// chance decides at random. It ignores the trace id, which callers choose.
func (x *export) chance() bool { return rand.Float64() < x.sampling.Share }

// Serve is Begin for a handler: it returns replacements for the handler's parameters, and a function to defer.
func (t *Tracer) Serve(w http.ResponseWriter, r *http.Request, c Call) (http.ResponseWriter, *http.Request, func()) {
	if !t.On() {
		return w, r, func() {}
	}
	ctx, span := t.Begin(r, c)
	if ctx != r.Context() {
		r = r.WithContext(ctx)
	}
	if span == nil {
		return w, r, func() {}
	}
	noted := callstats.NoteStatus(w)
	return noted, r, func() { span.End(noted.Outcome()) }
}

// Start begins a span for a part of the work of ctx. The span is nil if that work is not traced.
func (t *Tracer) Start(ctx context.Context, name string, kind trace.SpanKind) (context.Context, *Span) {
	x := t.export()
	if x == nil || !trace.SpanContextFromContext(ctx).IsSampled() {
		return ctx, nil
	}
	ctx, span := x.Start(ctx, name, trace.WithSpanKind(kind))
	return ctx, &Span{span}
}

// Root begins the span of a request without a trace, if it is sampled.
func (t *Tracer) Root(ctx context.Context, name string) (context.Context, *Span) {
	x := t.export()
	if x == nil || !x.chance() {
		return ctx, nil
	}
	ctx, span := x.Start(ctx, name, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer))
	return ctx, &Span{span}
}

// Child is Start for callers that have no Tracer but run within a span.
func Child(ctx context.Context, name string, kind trace.SpanKind) (context.Context, *Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, nil
	}
	ctx, span := parent.TracerProvider().Tracer(Scope).Start(ctx, name, trace.WithSpanKind(kind))
	return ctx, &Span{span}
}

// Traced reports whether the work of ctx is traced.
func (t *Tracer) Traced(ctx context.Context) bool {
	return t.On() && trace.SpanContextFromContext(ctx).IsSampled()
}

// Detach returns a context that ends with ctx and belongs to the trace of from, for work that outlives the call that began it.
func Detach(ctx, from context.Context) context.Context {
	if s := trace.SpanContextFromContext(from); s.IsValid() {
		return trace.ContextWithSpanContext(ctx, s)
	}
	return ctx
}

// Span is a traced part of a call. The methods of a nil Span do nothing.
type Span struct{ span trace.Span }

// Set adds a text attribute. Exports truncate it to 256 characters.
func (s *Span) Set(key, value string) {
	if s != nil {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// Number returns a numeric attribute.
func Number(key string, value uint64) attribute.KeyValue { return attribute.Int64(key, int64(value)) }

// Part adds a span for a finished part of the work of ctx.
func (t *Tracer) Part(ctx context.Context, name string, from, to time.Time, has ...attribute.KeyValue) {
	if x := t.export(); x != nil {
		_, span := x.Start(ctx, name, trace.WithTimestamp(from), trace.WithAttributes(has...))
		span.End(trace.WithTimestamp(to))
	}
}

// End ends the span of a call.
func (s *Span) End(o callstats.Outcome) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attribute.String("muster.outcome", o.String()))
	if o == callstats.Failed {
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

// EndWith ends the span of work that failed with err, or succeeded. It does not record the text of the error, which may come from a client.
func (s *Span) EndWith(err error) {
	if s == nil {
		return
	}
	if err != nil {
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

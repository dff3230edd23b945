package tracing

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Limits on headers from peers. A traceparent of the current version has 55 bytes; later versions have at least as many.
const (
	parentMax = 128
	stateMax  = 512 // bytes of tracestate; the standard requires support for this many
)

var (
	w3c        propagation.TraceContext
	parentName = http.CanonicalHeaderKey("traceparent")
	stateName  = http.CanonicalHeaderKey("tracestate")
)

// extract reads the trace of a request. It ignores malformed headers, a tracestate that is too long, and baggage.
func extract(h http.Header) trace.SpanContext {
	parents := h[parentName]
	if len(parents) != 1 || len(parents[0]) > parentMax {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": parents[0]}
	if state := joined(h[stateName]); state != "" {
		carrier["tracestate"] = state
	}
	return trace.SpanContextFromContext(w3c.Extract(context.Background(), carrier))
}

// joined joins the lines of a header; empty if the result is too long.
func joined(lines []string) string {
	bytes := 0
	for _, line := range lines {
		if bytes += len(line) + 1; bytes > stateMax+1 {
			return ""
		}
	}
	return strings.Join(lines, ",")
}

// Inject sets the trace of ctx in the headers of a request to another program. It replaces an existing trace.
func Inject(ctx context.Context, h http.Header) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return
	}
	h.Del(stateName)
	w3c.Inject(ctx, propagation.HeaderCarrier(h))
}

// Text returns the trace of ctx in the form of a traceparent; empty if there is none or it is not sampled.
func Text(ctx context.Context) string {
	s := trace.SpanContextFromContext(ctx)
	if !s.IsSampled() {
		return ""
	}
	return textOf(s)
}

func textOf(s trace.SpanContext) string {
	carrier := propagation.MapCarrier{}
	w3c.Inject(trace.ContextWithSpanContext(context.Background(), s.WithTraceState(trace.TraceState{})), carrier)
	return carrier["traceparent"]
}

// WithText returns a context that belongs to the trace in a Text from another node.
func WithText(ctx context.Context, text string) context.Context {
	if s := parse(text); s.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, s)
	}
	return ctx
}

func parse(text string) trace.SpanContext {
	if text == "" || len(text) > parentMax {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(w3c.Extract(context.Background(), propagation.MapCarrier{"traceparent": text}))
}

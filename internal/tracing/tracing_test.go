package tracing

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/musterhq/muster/internal/callstats"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
	sampled = "00-" + traceID + "-" + spanID + "-01"
	ignored = "00-" + traceID + "-" + spanID + "-00"
)

func newTracer(s Sampling) (*Tracer, *tracetest.SpanRecorder) {
	recorder := tracetest.NewSpanRecorder()
	t := New()
	t.ExportTo(sdk.NewTracerProvider(sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample())), sdk.WithSpanProcessor(recorder)), s)
	return t, recorder
}

func request(header http.Header) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header = header
	return r
}

// Malformed and excessive headers are ignored.
func TestHeaders(t *testing.T) {
	t.Parallel()
	const parent, state = "Traceparent", "Tracestate"
	long := strings.Repeat("a", stateMax)
	for name, c := range map[string]struct {
		header       http.Header
		parent, list string // taken over
	}{
		"none":                         {http.Header{}, "", ""},
		"well-formed":                  {http.Header{parent: {sampled}}, sampled, ""},
		"not sampled":                  {http.Header{parent: {ignored}}, ignored, ""},
		"a state":                      {http.Header{parent: {sampled}, state: {"a=1,b=2"}}, sampled, "a=1,b=2"},
		"a state in two lines":         {http.Header{parent: {sampled}, state: {"a=1", "b=2"}}, sampled, "a=1,b=2"},
		"a state that is too long":     {http.Header{parent: {sampled}, state: {"a=" + long}}, sampled, ""},
		"many lines of it":             {http.Header{parent: {sampled}, state: strings.Split(strings.Repeat("a=1;", 200), ";")}, sampled, ""},
		"a malformed state":            {http.Header{parent: {sampled}, state: {"=;\x00"}}, sampled, ""},
		"a state alone":                {http.Header{state: {"a=1"}}, "", ""},
		"two parents":                  {http.Header{parent: {sampled, sampled}}, "", ""},
		"an empty parent":              {http.Header{parent: {""}}, "", ""},
		"a list":                       {http.Header{parent: {sampled + "," + sampled}}, "", ""},
		"a later version":              {http.Header{parent: {"01" + sampled[2:] + "-more"}}, sampled, ""},
		"a later version, too long":    {http.Header{parent: {"01" + sampled[2:] + "-" + strings.Repeat("x", parentMax)}}, "", ""},
		"the forbidden version":        {http.Header{parent: {"ff" + sampled[2:]}}, "", ""},
		"version 0 with more":          {http.Header{parent: {sampled + "-00"}}, "", ""},
		"no trace id":                  {http.Header{parent: {"00-" + strings.Repeat("0", 32) + "-" + spanID + "-01"}}, "", ""},
		"no span id":                   {http.Header{parent: {"00-" + traceID + "-" + strings.Repeat("0", 16) + "-01"}}, "", ""},
		"upper case":                   {http.Header{parent: {strings.ToUpper(sampled)}}, "", ""},
		"short":                        {http.Header{parent: {sampled[:len(sampled)-1]}}, "", ""},
		"other characters":             {http.Header{parent: {strings.Replace(sampled, "a", "ä", 1)}}, "", ""},
		"unknown flags":                {http.Header{parent: {"00-" + traceID + "-" + spanID + "-ff"}}, "", ""},
		"a megabyte":                   {http.Header{parent: {strings.Repeat("0", 1<<20)}}, "", ""},
		"a control character":          {http.Header{parent: {sampled + "\r\n"}}, "", ""},
		"a baggage, which is not read": {http.Header{parent: {sampled}, "Baggage": {"a=1"}}, sampled, ""},
	} {
		got := extract(c.header)
		text := ""
		if got.IsValid() {
			text = textOf(got)
		}
		if text != c.parent || got.TraceState().String() != c.list {
			t.Errorf("%s: took over %q and %q, want %q and %q", name, text, got.TraceState(), c.parent, c.list)
		}
	}
}

// This tests which side decides whether a call is traced.
func TestWhoDecides(t *testing.T) {
	t.Parallel()
	all, none := Sampling{1, true}, Sampling{0, true}
	for _, c := range []struct {
		sampling Sampling
		parent   string
		trusted  bool
		want     bool
	}{
		{all, "", true, true},
		{none, "", true, false},
		{none, sampled, true, true},
		{all, ignored, true, false},
		{none, sampled, false, false},
		{all, ignored, false, true},
		{Sampling{0, false}, sampled, true, false},
		{Sampling{1, false}, ignored, true, true},
		{all, "nonsense", true, true},
		{none, "nonsense", true, false},
	} {
		tracer, recorder := newTracer(c.sampling)
		header := http.Header{}
		if c.parent != "" {
			header.Set("traceparent", c.parent)
		}
		ctx, span := tracer.Begin(request(header), Call{Door: "api", Operation: "CreateGameSession", Trusted: c.trusted, Began: time.Now()})
		span.End(callstats.OK)
		out := http.Header{}
		Inject(ctx, out)
		ended := recorder.Ended()
		if got := len(ended) == 1; got != c.want {
			t.Errorf("%+v: traced: %t", c, got)
		}
		valid := extract(header).IsValid()
		if sent := extract(out); sent.IsValid() != (valid || c.want) || sent.IsSampled() != c.want || valid && sent.TraceID().String() != traceID {
			t.Errorf("%+v: sends %v on", c, out)
		}
		if c.want && valid && ended[0].Parent().SpanID().String() != spanID {
			t.Errorf("%+v: the parent is %s", c, ended[0].Parent().SpanID())
		}
	}
}

// A span goes to the provider that is set when it begins. Without a provider there are no spans.
func TestExportTo(t *testing.T) {
	t.Parallel()
	tracer, first := newTracer(Sampling{1, true})
	begin := func() (context.Context, *Span) {
		return tracer.Begin(request(http.Header{}), Call{Door: "api", Operation: "CreateGameSession", Began: time.Now()})
	}
	ctx, earlier := begin()
	tracer.Remember(ctx, Cause{GameSession, "1"})
	second := tracetest.NewSpanRecorder()
	tracer.ExportTo(sdk.NewTracerProvider(sdk.WithSpanProcessor(second)), Sampling{1, true})
	_, later := begin()
	_, push := tracer.Continue(t.Context(), "push", trace.SpanKindClient, Cause{GameSession, "1"})
	tracer.ExportTo(nil, Sampling{})
	if _, none := begin(); none != nil || tracer.On() || tracer.Traced(ctx) {
		t.Error("a span without a provider")
	}
	tracer.Part(ctx, "append", time.Now(), time.Now())
	tracer.Join("match", Cause{Placement, "1"}, []Cause{{GameSession, "1"}})
	for _, s := range []*Span{earlier, later, push} {
		s.End(callstats.OK)
	}
	if n, m := len(first.Ended()), len(second.Ended()); n != 1 || m != 2 {
		t.Errorf("%d spans went to the first provider and %d to the second, want 1 and 2", n, m)
	}
}

// Calls that are not traced allocate no memory.
func TestNoAllocations(t *testing.T) {
	off, _ := newTracer(Sampling{0, true})
	ctx, r, header := t.Context(), request(http.Header{}), http.Header{}
	for name, tracer := range map[string]*Tracer{"off": New(), "not chosen": off} {
		if n := testing.AllocsPerRun(100, func() { untraced(ctx, tracer, r, header) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// untraced does what a call does on its way from the door to the journal and to a hook.
func untraced(ctx context.Context, tracer *Tracer, r *http.Request, header http.Header) {
	in, span := tracer.Begin(r, Call{Door: "api", Operation: "CreateGameSession", RequestID: "id", Trusted: true})
	if tracer.Traced(in) {
		panic("it is traced")
	}
	in, child := tracer.Start(in, "commit", trace.SpanKindInternal)
	_, hook := Child(in, "hook", trace.SpanKindClient)
	hook.EndWith(nil)
	child.Set("a", "b")
	tracer.Remember(ctx, Cause{GameSession, "id"})
	_, request := tracer.Root(ctx, "AcceptPlayerSession")
	request.End(callstats.OK)
	Inject(in, header)
	span.End(callstats.OK)
}

func BenchmarkUntraced(b *testing.B) {
	off, _ := newTracer(Sampling{0, true})
	for name, tracer := range map[string]*Tracer{"off": New(), "not chosen": off} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			ctx, r, header := b.Context(), request(http.Header{}), http.Header{}
			for b.Loop() {
				untraced(ctx, tracer, r, header)
			}
		})
	}
}

// Records that a traced command made continue its trace, at this node and at a node that asks it.
func TestCauses(t *testing.T) {
	t.Parallel()
	decides, recorder := newTracer(Sampling{1, true})
	ctx, span := decides.Begin(request(http.Header{}), Call{Operation: "CreateGameSession"})
	decides.Remember(ctx, Cause{GameSession, "game"})
	span.End(callstats.OK)
	made := recorder.Ended()[0].SpanContext()

	other, followed := newTracer(Sampling{0, true})
	other.AskWith(decides.AnswerCause)
	for _, c := range []struct {
		of   []Cause
		want bool
	}{
		{[]Cause{{GameSession, "game"}}, true},
		{[]Cause{{GameSession, "other"}, {GameSession, "game"}}, true},
		{[]Cause{{Placement, "game"}}, false},
		{[]Cause{{GameSession, ""}}, false},
		{nil, false},
	} {
		before := len(followed.Ended())
		_, span := other.Continue(t.Context(), "push", trace.SpanKindProducer, c.of...)
		span.EndWith(nil)
		ended := followed.Ended()
		if got := len(ended) > before; got != c.want {
			t.Errorf("%v: continued: %t", c.of, got)
		}
		if c.want && ended[before].Parent().SpanID() != made.SpanID() {
			t.Errorf("%v: the parent is %v", c.of, ended[before].Parent())
		}
	}
	for _, malformed := range []string{"", "\n", "\t", strings.Repeat("x", 1<<20), "game session", "game session\tgame\tgame\n"} {
		if answer, err := decides.AnswerCause(t.Context(), []byte(malformed)); len(answer) > 0 || err != nil {
			t.Errorf("question %.20q: %q, %v", malformed, answer, err)
		}
	}
}

func TestOldCausesMakeRoom(t *testing.T) {
	t.Parallel()
	tracer, _ := newTracer(Sampling{1, true})
	tracer.causes.most = 3
	ctx, span := tracer.Begin(request(http.Header{}), Call{Operation: "CreateGameSession"})
	defer span.End(callstats.OK)
	for n := range 10 {
		tracer.Remember(ctx, Cause{GameSession, fmt.Sprint(n)})
		tracer.Remember(ctx, Cause{GameSession, fmt.Sprint(n)}) // a repeat takes no place
	}
	for n := range 10 {
		if got := tracer.known([]Cause{{GameSession, fmt.Sprint(n)}}).IsValid(); got != (n >= 7) {
			t.Errorf("%d: known: %t", n, got)
		}
	}
	if len(tracer.causes.spans) != 3 {
		t.Errorf("%d causes", len(tracer.causes.spans))
	}
}

// One request waits for a node that does not answer. Later ones do not wait until some time has passed.
func TestSilentNode(t *testing.T) {
	t.Parallel()
	tracer, _ := newTracer(Sampling{1, true})
	asked := 0
	tracer.AskWith(func(ctx context.Context, _ []byte) ([]byte, error) {
		asked++
		<-ctx.Done()
		return nil, ctx.Err()
	})
	follow := func() {
		if _, span := tracer.Continue(t.Context(), "push", trace.SpanKindProducer, Cause{GameSession, "game"}); span != nil {
			t.Error("a trace goes on that is not known")
		}
	}
	tracer.causes.quiet = time.Hour
	for range 3 {
		follow()
	}
	if asked != 1 {
		t.Errorf("%d questions, want 1", asked)
	}
	passed := time.Now()
	tracer.causes.quietUntil.Store(&passed)
	follow()
	if asked != 2 {
		t.Errorf("%d questions after the while, want 2", asked)
	}
}

// A match belongs to the trace of its first traced ticket, with links to the others. Its consequences continue that trace.
func TestJoin(t *testing.T) {
	t.Parallel()
	tracer, recorder := newTracer(Sampling{Share: 1})
	var nobody *Tracer
	nobody.Root(t.Context(), "ProcessReady")
	nobody.ContinueHere(t.Context(), "x", trace.SpanKindServer, Cause{})
	tickets := []Cause{{Ticket, "1"}, {Ticket, "2"}, {Ticket, "3"}}
	match := Cause{Placement, "m"}
	tracer.Join("match", match, tickets)
	if len(recorder.Ended()) > 0 {
		t.Error("a match of untraced tickets is traced")
	}
	var ids []trace.TraceID
	for _, c := range tickets[1:] {
		ctx, span := tracer.Begin(request(nil), Call{Operation: "StartMatchmaking"})
		tracer.Remember(ctx, c)
		ids = append(ids, trace.SpanContextFromContext(ctx).TraceID())
		span.End(callstats.OK)
	}
	tracer.Join("match", match, tickets)
	all := recorder.Ended()
	s := all[len(all)-1]
	if s.Name() != "match" || s.SpanContext().TraceID() != ids[0] || len(s.Links()) != 1 || s.Links()[0].SpanContext.TraceID() != ids[1] {
		t.Errorf("%s of %s with links %v, want match of %s with a link to %s", s.Name(), s.SpanContext().TraceID(), s.Links(), ids[0], ids[1])
	}
	ctx, span := tracer.Continue(t.Context(), "push", trace.SpanKindProducer, Cause{GameSession, "?"}, match)
	span.EndWith(nil)
	if got := trace.SpanContextFromContext(ctx).TraceID(); got != ids[0] {
		t.Errorf("the push is in trace %s, want %s", got, ids[0])
	}
	if ctx, span := tracer.Root(ctx, "ProcessReady"); span == nil || trace.SpanContextFromContext(ctx).TraceID() == ids[0] {
		t.Error("a root is in the trace of its context, or is none")
	}
	if _, span := tracer.ContinueHere(t.Context(), "AcceptPlayerSession", trace.SpanKindServer, Cause{PlayerSession, "unknown"}); span != nil {
		t.Error("an unknown player session goes on")
	}
}

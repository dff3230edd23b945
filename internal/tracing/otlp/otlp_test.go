package otlp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/tracing"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	type env map[string]string
	const at = "http://collector:4318"
	for _, c := range []struct {
		endpoint        string
		env             env
		traces, metrics string
		refused         string // part of the error
	}{
		{"", nil, "", "", ""},
		{at, nil, at + "/v1/traces", at + "/v1/metrics", ""},
		{at + "/base/", nil, at + "/base/v1/traces", at + "/base/v1/metrics", ""},
		{"", env{"OTEL_EXPORTER_OTLP_ENDPOINT": at}, at + "/v1/traces", at + "/v1/metrics", ""},
		{"", env{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": at + "/x"}, at + "/x", "", ""},
		{"", env{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": at + "/x"}, "", at + "/x", ""},
		{at, env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://other"}, at + "/v1/traces", at + "/v1/metrics", ""},
		{at, env{"OTEL_SDK_DISABLED": "true"}, "", "", ""},
		{at, env{"OTEL_METRICS_EXPORTER": "none"}, at + "/v1/traces", "", ""},
		{at, env{"OTEL_TRACES_EXPORTER": "none", "OTEL_TRACES_SAMPLER": "not read"}, "", at + "/v1/metrics", ""},
		{at, env{"OTEL_TRACES_EXPORTER": "zipkin"}, "", "", `OTEL_TRACES_EXPORTER: "zipkin", want otlp or none`},
		{at, env{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "", "", `OTEL_EXPORTER_OTLP_PROTOCOL: "grpc", want http/protobuf`},
		{at, env{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf", "OTEL_METRICS_EXPORTER": "none"}, at + "/v1/traces", "", ""},
		{"", env{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, "", "", `OTEL_EXPORTER_OTLP_ENDPOINT: `},
		{"", env{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://ann:secret@collector"}, "", "", "OTEL_EXPORTER_OTLP_HEADERS"},
		{at, env{"OTEL_TRACES_SAMPLER": "always"}, "", "", `OTEL_TRACES_SAMPLER: "always", want one of always_off`},
		{at, env{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "1%"}, "", "", `OTEL_TRACES_SAMPLER_ARG: "1%", want a number from 0 to 1`},
		{at, env{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "NaN"}, "", "", "OTEL_TRACES_SAMPLER_ARG"},
		{"", env{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector/?key=secret"}, "", "", "OTEL_EXPORTER_OTLP_ENDPOINT: "},
		{"", env{"OTEL_EXPORTER_OTLP_ENDPOINT": "ann:secret@collector:4318"}, "", "", "OTEL_EXPORTER_OTLP_ENDPOINT: "},
		{at, env{"OTEL_SDK_DISABLED": "yes"}, "", "", `OTEL_SDK_DISABLED: "yes", want true or false`},
		{at, env{"OTEL_EXPORTER_OTLP_HEADERS": "a=1,secret"}, "", "", "OTEL_EXPORTER_OTLP_HEADERS: header 2 is malformed, want name=value"},
		{at, env{"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "a=secret%zz"}, "", "", "OTEL_EXPORTER_OTLP_TRACES_HEADERS: header 1"},
		{at, env{"OTEL_EXPORTER_OTLP_HEADERS": "a=b%20c, d = e=f"}, at + "/v1/traces", at + "/v1/metrics", ""},
		{at, env{"OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, "", "", `OTEL_EXPORTER_OTLP_TIMEOUT: "10s", want a whole number from 1 to`},
		{at, env{"OTEL_BSP_SCHEDULE_DELAY": "0"}, "", "", `OTEL_BSP_SCHEDULE_DELAY: "0", want a whole number from 1 to`},
		{at, env{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "-1"}, "", "", `OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "-1", want a whole number from 1 to 4096`},
		{at, env{"OTEL_METRIC_EXPORT_INTERVAL": "1m"}, "", "", `OTEL_METRIC_EXPORT_INTERVAL: "1m"`},
		{at, env{"OTEL_METRICS_EXPORTER": "none", "OTEL_METRIC_EXPORT_INTERVAL": "not read"}, at + "/v1/traces", "", ""},
		{at, env{"OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"}, "", "", `OTEL_EXPORTER_OTLP_COMPRESSION: "zstd", want gzip or none`},
		{at, env{"OTEL_EXPORTER_OTLP_INSECURE": "1"}, "", "", `OTEL_EXPORTER_OTLP_INSECURE: "1", want true or false`},
		{at, env{"OTEL_EXPORTER_OTLP_CERTIFICATE": "no/such/file"}, "", "", "OTEL_EXPORTER_OTLP_CERTIFICATE: open no/such/file"},
		{at, env{"OTEL_EXPORTER_OTLP_CERTIFICATE": "otlp.go"}, "", "", `OTEL_EXPORTER_OTLP_CERTIFICATE: authorities otlp.go: want at least one certificate`},
		{at, env{"OTEL_EXPORTER_OTLP_CLIENT_KEY": "key.pem"}, "", "", `OTEL_EXPORTER_OTLP_CLIENT_KEY: "key.pem", want a file for both`},
		{"", env{"OTEL_EXPORTER_OTLP_TIMEOUT": "not read"}, "", "", ""},
	} {
		p, err := planOf(c.endpoint, func(name string) string { return c.env[name] })
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q %v: %v, want %q", c.endpoint, c.env, err, c.refused)
			}
			continue
		}
		if err != nil || p.traces != c.traces || p.metrics != c.metrics {
			t.Errorf("%q %v: %+v, %v", c.endpoint, c.env, p, err)
		}
	}
}

func TestSampling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, argument string
		want           tracing.Sampling
	}{
		{"", "", tracing.Sampling{Share: 1, Parents: true}},
		{"always_off", "", tracing.Sampling{}},
		{"traceidratio", "0.25", tracing.Sampling{Share: 0.25}},
		{"parentbased_traceidratio", "", tracing.Sampling{Share: 1, Parents: true}},
		{"parentbased_traceidratio", "0.01", tracing.Sampling{Share: 0.01, Parents: true}},
	} {
		if got, err := samplingOf(c.name, c.argument); got != c.want || err != nil {
			t.Errorf("%s %s: %+v, %v", c.name, c.argument, got, err)
		}
	}
}

// exporter is one that has begun, with the Tracer whose spans it exports.
type exporter struct {
	*Exporter
	tracer *tracing.Tracer
}

func open(t *testing.T, url string, log *slog.Logger) exporter {
	t.Helper()
	x, err := Open(t.Context(), Config{Endpoint: url, Getenv: func(string) string { return "" }, Version: "1", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	tracer := tracing.New()
	x.Begin(tracer, prometheus.NewRegistry())
	return exporter{x, tracer}
}

func call(x exporter, operation string) {
	_, span := x.tracer.Begin(httptest.NewRequest(http.MethodPost, "/", nil), tracing.Call{Door: "api", Operation: operation})
	span.Set("muster.placement.id", strings.Repeat("é", 2*textMax))
	span.End(callstats.OK)
}

// While the collector stands still, no more spans wait than fit, further ones are dropped and counted, and no caller waits.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	standing, again := make(chan struct{}, 1), make(chan struct{})
	longest := make(chan int, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m collectortrace.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &m); err != nil {
			t.Error(err)
		}
		most := 0
		for _, a := range m.ResourceSpans[0].ScopeSpans[0].Spans[0].Attributes {
			most = max(most, len([]rune(a.Value.GetStringValue())))
		}
		select {
		case longest <- most:
		default:
		}
		select {
		case standing <- struct{}{}:
		default:
		}
		<-again
	}))
	defer server.Close()
	x := open(t, server.URL, slog.New(slog.DiscardHandler))
	for range 512 { // a batch
		call(x, "first")
	}
	<-standing
	for range spansMax + 100 {
		call(x, "more")
	}
	if waiting, dropped := x.waiting.Load(), testutil.ToFloat64(x.dropped.WithLabelValues(queueFull)); waiting != spansMax || dropped != 612 {
		t.Errorf("%d spans wait and %v were dropped, want %d and 612", waiting, dropped, spansMax)
	}
	close(again)
	if got := <-longest; got != textMax {
		t.Errorf("the longest text has %d characters, want %d", got, textMax)
	}
	if err := x.spans.ForceFlush(t.Context()); err != nil {
		t.Error(err)
	}
	if sent := testutil.ToFloat64(x.sent); sent != spansMax || x.waiting.Load() != 0 {
		t.Errorf("%v spans were sent and %d wait, want %d and none", sent, x.waiting.Load(), spansMax)
	}
	x.Close(t.Context())
}

// A collector that refuses is logged once, without its URL, however that was written; what it did not take is counted.
func TestRefusingCollector(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/a-secret", "//a-secret/", "/a-secret/../a-secret", "/a-secret!|"} {
		t.Run(path, func(t *testing.T) { refusingCollector(t, path) })
	}
}

func refusingCollector(t *testing.T, path string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("no ", 1000), http.StatusUnauthorized)
	}))
	defer server.Close()
	var log logtest.Log
	x := open(t, "HTTP"+strings.TrimPrefix(server.URL, "http")+path, slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		call(x, "call")
		if err := x.spans.ForceFlush(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if dropped, failed := testutil.ToFloat64(x.dropped.WithLabelValues(exportFailed)), testutil.ToFloat64(x.failed.WithLabelValues("traces")); dropped != 3 || failed != 3 {
		t.Errorf("%v spans dropped in %v exports, want 3 in 3", dropped, failed)
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || strings.Contains(text, "a-secret") || len(text) > 600 {
		t.Errorf("the log has\n%s", text)
	}
	x.Close(t.Context())
}

// Without a collector there is nothing, and nothing fails.
func TestOff(t *testing.T) {
	t.Parallel()
	x := open(t, "", slog.New(slog.DiscardHandler))
	if x.Exporter != nil || x.tracer.On() {
		t.Fatal("it exports")
	}
	call(x, "call")
	x.Close(t.Context())
}

// A stop does not wait for a collector that stands still.
func TestCloseGivesUp(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then is the end of the connection noticed
		<-r.Context().Done()
	}))
	defer server.Close()
	x := open(t, server.URL, slog.New(slog.DiscardHandler))
	call(x, "call")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("time is up"))
	x.Close(ctx)
}

// An export that is under way when the service stops ends with it, whatever its time limits are.
func TestCloseEndsExports(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000")
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "3600000")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
	standing, ended := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(standing)
		<-r.Context().Done()
		close(ended)
	}))
	defer server.Close()
	x := open(t, server.URL, slog.New(slog.DiscardHandler))
	call(x, "call")
	<-standing
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x.Close(ctx)
	<-ended
}

//go:build !quick

package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/rate"
	"github.com/musterhq/muster/internal/tracing"
)

const (
	textMax   = 256 // characters of an attribute
	closeWait = 2 * time.Second
	sayEvery  = time.Minute // interval of log lines about a collector that does not answer
)

// Exporter sends telemetry to a collector. A nil Exporter exports nothing.
type Exporter struct {
	counts
	to        plan
	toSpans   trace.SpanExporter // nil: none are exported
	toMetrics metric.Exporter    // nil: none are exported
	resource  *resource.Resource
	log       *slog.Logger
	told      rate.Lines

	// Since Begin.
	spans   *trace.TracerProvider
	metrics meters
	waiting atomic.Int64 // spans
}

// counts are the counters of an Exporter.
type counts struct {
	sent    prometheus.Counter
	dropped *prometheus.CounterVec // spans, by reason
	failed  *prometheus.CounterVec // exports, by signal
}

// meters is a *metric.MeterProvider. The interface keeps its 1,400 generic functions out of the packages that use an Exporter: each would compile them again.
type meters interface{ Shutdown(context.Context) error }

// Reasons of dropped spans.
const (
	queueFull    = "queue_full"
	exportFailed = "export_failed"
)

// Open prepares an export if the settings or the standard variables name a collector; otherwise the Exporter is nil. Nothing runs and nothing is sent before Begin. Open
// does not fail if the collector does not answer.
func Open(ctx context.Context, c Config) (*Exporter, error) {
	p, err := planOf(c.Endpoint, c.Getenv)
	if err != nil || p.traces == "" && p.metrics == "" {
		return nil, err
	}
	x := &Exporter{counts: newCounts(), to: p, log: c.Log, told: rate.Lines{Most: 1, Period: sayEvery}}
	if x.resource, err = resourceOf(ctx, c); err != nil {
		return nil, err
	}
	if p.traces != "" {
		if x.toSpans, err = otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(p.traces)); err != nil {
			return nil, fmt.Errorf("exporter of traces: %w", err)
		}
	}
	if p.metrics != "" {
		if x.toMetrics, err = otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(p.metrics)); err != nil {
			return nil, fmt.Errorf("exporter of metrics: %w", err)
		}
	}
	return x, nil
}

func newCounts() (c counts) {
	c = counts{
		sent: prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_telemetry_spans_exported_total", Help: "Spans that the collector of OpenTelemetry took."}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_telemetry_spans_dropped_total", Help: "Spans that it did not get: too many waited (queue_full), or it did not take them (export_failed).",
		}, []string{"reason"}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_telemetry_exports_failed_total", Help: "Exports to the collector of OpenTelemetry that failed, each after its repeats.",
		}, []string{"signal"}),
	}
	for _, reason := range []string{queueFull, exportFailed} {
		c.dropped.WithLabelValues(reason)
	}
	for _, signal := range []string{"traces", "metrics"} {
		c.failed.WithLabelValues(signal)
	}
	return c
}

// Begin begins to export the spans of a Tracer and the metrics of a registry. Call it once. With a nil Exporter it stops the tracing.
func (x *Exporter) Begin(tracer *tracing.Tracer, from prometheus.Gatherer) {
	if x == nil {
		tracer.ExportTo(nil, tracing.Sampling{})
		return
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(x.say)) // otherwise the libraries write to standard error
	if x.toMetrics != nil {
		reader := metric.NewPeriodicReader(&metricExporter{x.toMetrics, x}, metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(from))))
		x.metrics = metric.NewMeterProvider(metric.WithResource(x.resource), metric.WithReader(reader))
	}
	if x.toSpans == nil {
		tracer.ExportTo(nil, tracing.Sampling{})
		return
	}
	limits := trace.NewSpanLimits()
	if limits.AttributeValueLengthLimit < 0 || limits.AttributeValueLengthLimit > textMax {
		limits.AttributeValueLengthLimit = textMax
	}
	batches := trace.NewBatchSpanProcessor(&spanExporter{x.toSpans, x}, trace.WithMaxQueueSize(spansMax))
	x.spans = trace.NewTracerProvider(
		trace.WithSampler(trace.ParentBased(trace.AlwaysSample())), // package tracing has decided before
		trace.WithResource(x.resource), trace.WithRawSpanLimits(limits), trace.WithSpanProcessor(&bounded{batches, x}),
	)
	tracer.ExportTo(x.spans, x.to.sampling)
}

// resourceOf returns attributes that identify this service.
func resourceOf(ctx context.Context, c Config) (*resource.Resource, error) {
	attributes := []attribute.KeyValue{attribute.String("service.name", "muster"), attribute.String("service.instance.id", c.Instance)}
	if c.Version != "" {
		attributes = append(attributes, attribute.String("service.version", c.Version))
	}
	r, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attributes...), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return r, nil
}

// Close sends the remaining telemetry and gives up after closeWait.
func (x *Exporter) Close(ctx context.Context) {
	if x == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closeWait)
	defer cancel()
	var closing sync.WaitGroup
	defer closing.Wait()
	if x.metrics != nil {
		closing.Go(func() { x.closed(x.metrics.Shutdown(ctx)) })
	}
	if x.spans != nil {
		closing.Go(func() {
			x.closed(x.spans.Shutdown(ctx))
			_ = x.toSpans.Shutdown(ctx) // ends a running export, and with it the goroutine of the processor
		})
	}
}

func (x *Exporter) closed(err error) {
	if err != nil {
		x.log.Debug("the last telemetry could not be exported", "error", x.cause(err))
	}
}

// say logs a failure, at a limited rate.
func (x *Exporter) say(err error) {
	if write, before := x.told.Note(time.Now()); write {
		x.log.Warn("telemetry could not be exported; requests are not affected", "error", x.cause(err), "unlogged", before)
	}
}

// cause returns an error without the URLs, whose paths may be secret, and without most of the collector's answer.
func (x *Exporter) cause(err error) string {
	const most = 200
	text := err.Error()
	for _, to := range []string{x.to.traces, x.to.metrics} {
		if to != "" {
			text = strings.ReplaceAll(text, requested(to), "the collector")
		}
	}
	return excerpt.Begin(text, most)
}

// requested returns a URL as the exporters request and report it.
func requested(to string) string {
	u, err := url.Parse(to)
	if err != nil {
		return to // unreachable: CheckEndpoint has parsed it
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// bounded limits the waiting spans to spansMax, so that the processor behind it always has room and drops none uncounted.
type bounded struct {
	trace.SpanProcessor
	x *Exporter
}

func (b *bounded) OnEnd(s trace.ReadOnlySpan) {
	if b.x.waiting.Add(1) > spansMax {
		b.x.waiting.Add(-1)
		b.x.dropped.WithLabelValues(queueFull).Inc()
		return
	}
	b.SpanProcessor.OnEnd(s)
}

type spanExporter struct {
	trace.SpanExporter
	x *Exporter
}

func (e *spanExporter) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	n := len(spans)
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.x.waiting.Add(int64(-n))
	if err != nil {
		e.x.dropped.WithLabelValues(exportFailed).Add(float64(n))
		e.x.failed.WithLabelValues("traces").Inc()
		e.x.say(err)
		return nil
	}
	e.x.sent.Add(float64(n))
	return nil
}

type metricExporter struct {
	metric.Exporter
	x *Exporter
}

func (e *metricExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	if err := e.Exporter.Export(ctx, m); err != nil {
		e.x.failed.WithLabelValues("metrics").Inc()
		e.x.say(err)
	}
	return nil
}

// Describe implements prometheus.Collector. All Exporters have the same metrics, so it may be called on a nil one.
func (*Exporter) Describe(to chan<- *prometheus.Desc) {
	c := newCounts()
	c.sent.Describe(to)
	c.dropped.Describe(to)
	c.failed.Describe(to)
	to <- waitingDesc
	to <- waitingLimitDesc
}

// Collect implements prometheus.Collector.
func (x *Exporter) Collect(to chan<- prometheus.Metric) {
	x.sent.Collect(to)
	x.dropped.Collect(to)
	x.failed.Collect(to)
	to <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(x.waiting.Load()))
	to <- prometheus.MustNewConstMetric(waitingLimitDesc, prometheus.GaugeValue, spansMax)
}

var (
	waitingDesc      = prometheus.NewDesc("muster_telemetry_spans_waiting", "Spans that wait for the collector of OpenTelemetry.", nil, nil)
	waitingLimitDesc = prometheus.NewDesc("muster_telemetry_spans_waiting_limit", "The most of them; more are dropped.", nil, nil)
)

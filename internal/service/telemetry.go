package service

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/audit/export"
	"github.com/musterhq/muster/internal/cluster/exchange"
	"github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/live"
	"github.com/musterhq/muster/internal/office"
	"github.com/musterhq/muster/internal/settings"
	"github.com/musterhq/muster/internal/tracing"
	"github.com/musterhq/muster/internal/tracing/otlp"
)

// openTelemetry prepares to export traces and metrics, if a collector is configured.
func (x *Service) openTelemetry(ctx context.Context) error {
	x.tracing, x.instance = tracing.New(), uuid.NewString()
	if x.node != nil {
		x.instance = x.node.Requests().Self()
		x.tracing.AskWith(func(ctx context.Context, question []byte) ([]byte, error) {
			return x.node.Ask(ctx, exchange.Cause, question)
		})
	}
	exporter, err := otlp.Open(ctx, x.collector(x.settings))
	x.otlp.Set(exporter)
	return err
}

// beginTelemetry starts to export traces and the metrics of /metrics.
func (x *Service) beginTelemetry() {
	x.metrics.Register(sent{&x.otlp})
	x.otlp.Get().Begin(x.tracing, x.metrics.Gatherer())
}

// exportTo switches telemetry to another collector; nil: to none. The previous one still gets the data that is queued
// for it. A reload that ends after endTelemetry starts nothing.
func (x *Service) exportTo(ctx context.Context, next *otlp.Exporter) {
	x.otlpTurn.Lock()
	before := next
	if !x.otlpEnded {
		before = x.otlp.Get()
		next.Begin(x.tracing, x.metrics.Gatherer())
		x.otlp.Set(next)
	}
	x.otlpTurn.Unlock()
	before.Close(ctx)
}

// endTelemetry stops the export of telemetry for good. The collector still gets the data that is queued for it.
func (x *Service) endTelemetry(ctx context.Context) {
	x.otlpTurn.Lock()
	x.otlpEnded = true
	x.otlpTurn.Unlock()
	x.otlp.Get().Close(ctx)
}

// collector returns the configuration of the collector, and the identity under which telemetry is sent.
func (x *Service) collector(s settings.Settings) otlp.Config {
	getenv := x.reload.getenv
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	return otlp.Config{Endpoint: s.OTLPEndpoint, Getenv: getenv, Version: x.version, Instance: x.instance, Log: x.log}
}

// sent collects the metrics of the exporter that is in force.
type sent struct{ to *live.Value[*otlp.Exporter] }

// Describe implements prometheus.Collector.
func (s sent) Describe(to chan<- *prometheus.Desc) { s.to.Get().Describe(to) }

// Collect implements prometheus.Collector.
func (s sent) Collect(to chan<- prometheus.Metric) {
	if x := s.to.Get(); x != nil {
		x.Collect(to)
	}
}

// auditSource adapts the engine to the export of the audit log.
type auditSource struct{ *engine.Engine }

// AuditHere is AuditHead without the wait for what other nodes have acknowledged.
func (s auditSource) AuditHere(ctx context.Context) (head audit.Head, err error) {
	err = s.ReadHere(ctx, func(v *cell.View) error { head = v.AuditHead(); return nil })
	return head, err
}

// openAuditExport prepares to send the audit log to the receivers in the settings. Sending starts when this node
// becomes the leader.
func (x *Service) openAuditExport(ctx context.Context) error {
	exporter, err := x.newAuditExport(ctx, x.settings)
	if err != nil {
		return err
	}
	x.exports.Set(exporter)
	x.metrics.Register(exported{&x.exports})
	x.once = append(x.once, &x.exports)
	return nil
}

// exported collects the metrics of the export that is in force.
type exported struct {
	slot *office.Slot[*export.Exporter]
}

// Describe implements prometheus.Collector.
func (exported) Describe(to chan<- *prometheus.Desc) { new(export.Exporter).Describe(to) }

// Collect implements prometheus.Collector.
func (x exported) Collect(to chan<- prometheus.Metric) {
	if e := x.slot.Get(); e != nil {
		e.Collect(to)
	}
}

// newAuditExport returns the export of the audit log; nil without receivers.
func (x *Service) newAuditExport(ctx context.Context, s settings.Settings) (*export.Exporter, error) {
	targets, err := export.Parse(s.AuditExport)
	if err != nil || len(targets) == 0 {
		return nil, err
	}
	host, _ := os.Hostname() // without a host name, messages have none
	c := export.Config{Engine: auditSource{x.engine}, Targets: targets, Header: export.Header{Host: host, Version: x.version}, Log: x.log}
	if slices.ContainsFunc(targets, func(t export.Target) bool { return t.Name == export.OTLP }) {
		if c.Logs, err = otlp.OpenLogs(ctx, x.collector(s)); err != nil {
			return nil, fmt.Errorf("audit-export: otlp: %w", err)
		}
	}
	exporter, err := export.New(c)
	if err != nil {
		return nil, fmt.Errorf("audit-export: %w", err)
	}
	return exporter, nil
}

// lateExports returns the receivers of the audit log that are behind.
func (x *Service) lateExports() []export.Late {
	if e := x.exports.Get(); e != nil {
		return e.Late()
	}
	return nil
}

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

// openTelemetry prepares to export traces and metrics, if a collector is named.
func (x *Service) openTelemetry(ctx context.Context, getenv func(string) string) error {
	x.tracing, x.instance = tracing.New(), uuid.NewString()
	if x.node != nil {
		x.instance = x.node.Requests().Self()
		x.tracing.AskWith(func(ctx context.Context, question []byte) ([]byte, error) {
			return x.node.Ask(ctx, exchange.Cause, question)
		})
	}
	exporter, err := otlp.Open(ctx, x.collector(x.settings, getenv))
	x.otlp.Set(exporter)
	return err
}

// beginTelemetry begins to export traces, and what /metrics has.
func (x *Service) beginTelemetry() {
	x.metrics.Register(sent{&x.otlp})
	x.otlp.Get().Begin(x.tracing, x.metrics.Gatherer())
}

// exportTo has telemetry go to another collector; nil: to none. The one before gets what waits for it.
func (x *Service) exportTo(ctx context.Context, next *otlp.Exporter) {
	before := x.otlp.Get()
	next.Begin(x.tracing, x.metrics.Gatherer())
	x.otlp.Set(next)
	before.Close(ctx)
}

// collector is where telemetry goes, and as whose.
func (x *Service) collector(s settings.Settings, getenv func(string) string) otlp.Config {
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	return otlp.Config{Endpoint: s.OTLPEndpoint, Getenv: getenv, Version: x.version, Instance: x.instance, Log: x.log}
}

// sent are the metrics of the collector that is in force.
type sent struct{ to *live.Value[*otlp.Exporter] }

// Describe implements prometheus.Collector.
func (s sent) Describe(to chan<- *prometheus.Desc) { s.to.Get().Describe(to) }

// Collect implements prometheus.Collector.
func (s sent) Collect(to chan<- prometheus.Metric) {
	if x := s.to.Get(); x != nil {
		x.Collect(to)
	}
}

// auditSource is the engine as the export of the audit log reads it.
type auditSource struct{ *engine.Engine }

// AuditHere is AuditHead without the wait for what other nodes have acknowledged.
func (s auditSource) AuditHere(ctx context.Context) (head audit.Head, err error) {
	err = s.ReadHere(ctx, func(v *cell.View) error { head = v.AuditHead(); return nil })
	return head, err
}

// openAuditExport prepares to send the audit log to the receivers in the settings. It begins with the office.
func (x *Service) openAuditExport(ctx context.Context, getenv func(string) string) error {
	exporter, err := x.newAuditExport(ctx, x.settings, getenv)
	if err != nil {
		return err
	}
	x.exports.Set(exporter)
	x.metrics.Register(exported{&x.exports})
	x.once = append(x.once, &x.exports)
	return nil
}

// exported are the metrics of the export that is in force.
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

// newAuditExport returns nil without receivers.
func (x *Service) newAuditExport(ctx context.Context, s settings.Settings, getenv func(string) string) (*export.Exporter, error) {
	targets, err := export.Parse(s.AuditExport)
	if err != nil || len(targets) == 0 {
		return nil, err
	}
	host, _ := os.Hostname() // without one, messages have none
	c := export.Config{Engine: auditSource{x.engine}, Targets: targets, Header: export.Header{Host: host, Version: x.version}, Log: x.log}
	if slices.ContainsFunc(targets, func(t export.Target) bool { return t.Name == export.OTLP }) {
		if c.Logs, err = otlp.OpenLogs(ctx, x.collector(s, getenv)); err != nil {
			return nil, fmt.Errorf("audit-export: otlp: %w", err)
		}
	}
	exporter, err := export.New(c)
	if err != nil {
		return nil, fmt.Errorf("audit-export: %w", err)
	}
	return exporter, nil
}

// lateExports are the receivers of the audit log that are late.
func (x *Service) lateExports() []export.Late {
	if e := x.exports.Get(); e != nil {
		return e.Late()
	}
	return nil
}

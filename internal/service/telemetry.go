package service

import (
	"context"

	"github.com/musterhq/muster/internal/cluster/exchange"
	"github.com/musterhq/muster/internal/tracing/otlp"
)

// openTelemetry begins to export traces, if a collector is named.
func (x *Service) openTelemetry(ctx context.Context, getenv func(string) string) (err error) {
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	c := otlp.Config{Endpoint: x.settings.OTLPEndpoint, Getenv: getenv, Version: x.version, Log: x.log}
	if x.node != nil {
		c.Instance = x.node.Requests().Self()
	}
	if x.otlp, err = otlp.Open(ctx, c); err != nil {
		return err
	}
	x.tracing = x.otlp.Tracer()
	if x.node != nil {
		x.tracing.AskWith(func(ctx context.Context, question []byte) ([]byte, error) {
			return x.node.Ask(ctx, exchange.Cause, question)
		})
	}
	return nil
}

// exportMetrics begins to export what /metrics has.
func (x *Service) exportMetrics(ctx context.Context) error {
	if x.otlp == nil {
		return nil
	}
	x.metrics.Register(x.otlp)
	return x.otlp.ExportMetrics(ctx, x.metrics.Gatherer())
}

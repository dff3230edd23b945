// Package otlp exports traces, metrics and the audit log to a collector, by OTLP over HTTP.
//
// Nothing waits for the collector. Spans wait in a queue of spansMax; spans that do not fit, or that the collector does not accept within the exporter's time limits, are
// dropped and counted. Metrics are exported with their current values, so a failed export loses only a point. Logs are for callers that keep records until the collector
// has them.
package otlp

import (
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
)

// spansMax is how many spans the queue for the collector holds.
const spansMax = 4096

// Config is what an Exporter needs.
type Config struct {
	Endpoint string              // URL of the collector; empty: from the standard variables
	Getenv   func(string) string // reads the standard variables
	Version  string              // of the release
	Instance string              // distinguishes services with the same name
	Log      *slog.Logger
}

// Record is a record of a log.
type Record struct {
	At         time.Time
	Warning    bool   // otherwise the severity is information
	Event      string // name of its kind
	Body       string
	Attributes []attribute.KeyValue
}

// Busy is the error if a collector asks for a pause.
type Busy struct {
	Status string
	After  time.Duration // requested pause; 0: not stated
}

func (b *Busy) Error() string { return "the collector answered " + b.Status }

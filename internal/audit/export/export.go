// Package export sends the audit log to receivers outside the service: to syslog receivers, and to an OpenTelemetry collector.
//
// Each receiver gets every entry, in the order of the numbers. The state contains the number of the last entry that each receiver has, so that the next start and the
// next leader continue from there. If the service or the receiver ends before that number is recorded, entries are sent again. Entries for an unreachable receiver wait
// in the log itself: none is lost, and memory holds only one group of them. No change waits for a receiver.
package export

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/audit"
	domainaudit "github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/tracing/otlp"
)

// Engine has the log and the positions of the receivers.
type Engine interface {
	audit.Reader
	AuditHere(ctx context.Context) (domainaudit.Head, error)
	Do(ctx context.Context, cmd kernel.Command) error
}

// Config is what an Exporter needs.
type Config struct {
	Engine  Engine
	Targets []Target
	Logs    *otlp.Logs // of the target OTLP; nil without one
	Header  Header
	Log     *slog.Logger
}

// Exporter is an office.Part, and a prometheus.Collector.
type Exporter struct {
	workers []*worker
	cancel  context.CancelFunc // nil: it rests
	work    sync.WaitGroup
}

// receiver is a way to a receiver.
type receiver interface {
	// send sends entries in their order. rejected is the number of entries that the receiver will never accept. After an error it is unknown which ones arrived.
	send(ctx context.Context, docs []audit.Document) (rejected int, err error)
	// confirm returns nil once the receiver has all that was sent since the last confirm.
	confirm(ctx context.Context) error
	// drop ends a connection.
	drop()
}

// New returns an Exporter that rests. It reads the files that the targets name, to find mistakes early.
func New(c Config) (*Exporter, error) {
	x := &Exporter{}
	for _, t := range c.Targets {
		w := &worker{engine: c.Engine, name: t.Name, log: c.Log}
		switch t.network {
		case "":
			if c.Logs == nil {
				return nil, errors.New("no OpenTelemetry collector is named")
			}
			w.name, w.to = OTLP+"+"+c.Logs.Where(), &collector{c.Logs}
		case "udp":
			w.to = &datagrams{to: t, head: c.Header}
		default:
			if _, err := t.security(); t.network == "tls" && err != nil {
				return nil, fmt.Errorf("%s: %w", t.Name, err)
			}
			w.to = &stream{to: t, head: c.Header, writeWait: writeWait, closeWait: closeWait}
		}
		if len(w.name) > domainaudit.ReceiverMax {
			return nil, fmt.Errorf("the URL of the collector is longer than %d bytes", domainaudit.ReceiverMax)
		}
		x.workers = append(x.workers, w)
	}
	return x, nil
}

// Lead implements office.Part.
func (x *Exporter) Lead() {
	ctx, cancel := context.WithCancel(context.Background())
	x.cancel = cancel
	for _, w := range x.workers {
		x.work.Go(func() { w.run(ctx) })
	}
}

// Rest implements office.Part.
func (x *Exporter) Rest() {
	if x.cancel != nil {
		x.cancel()
		x.work.Wait()
	}
}

// Late describes a receiver that has received no entries for a long time, although some wait.
type Late struct {
	Receiver string
	For      time.Duration // age of the oldest entry that waits
	Waiting  uint64        // entries
	Why      string        // the last attempt failed; empty: it did not
}

// lateAfter is how long entries wait, while the receiver gets none, before operators are told.
const lateAfter = 5 * time.Minute

// Late returns the receivers that are late, at the leader.
func (x *Exporter) Late() (all []Late) {
	for _, w := range x.workers {
		if s := w.status(); s.leads && min(s.age, s.still) >= lateAfter {
			all = append(all, Late{w.name, s.age, s.waiting, s.why})
		}
	}
	return all
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"receiver"}, labels...), nil)
}

var (
	waitingDesc  = desc("muster_audit_export_waiting", "Entries of the audit log that a receiver of --audit-export does not have yet, at the node that decides.")
	delayDesc    = desc("muster_audit_export_delay_seconds", "Age of the oldest entry of the audit log that a receiver does not have yet; 0: it has all.")
	sentDesc     = desc("muster_audit_exported_total", "Entries of the audit log that a receiver has accepted from this process.")
	failuresDesc = desc("muster_audit_export_failures_total", "Failed attempts to send entries of the audit log to a receiver. The entries wait, and are sent again.")
	lostDesc     = desc("muster_audit_export_lost_total", "Entries of the audit log that a receiver will not get: the collector rejected them (rejected), or they left the log before the receiver took them (gone).", "reason")
)

// Describe implements prometheus.Collector.
func (x *Exporter) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{waitingDesc, delayDesc, sentDesc, failuresDesc, lostDesc} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (x *Exporter) Collect(to chan<- prometheus.Metric) {
	for _, w := range x.workers {
		s := w.status()
		if s.leads {
			to <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(s.waiting), w.name)
			to <- prometheus.MustNewConstMetric(delayDesc, prometheus.GaugeValue, s.age.Seconds(), w.name)
		}
		to <- prometheus.MustNewConstMetric(sentDesc, prometheus.CounterValue, float64(s.sent), w.name)
		to <- prometheus.MustNewConstMetric(failuresDesc, prometheus.CounterValue, float64(s.failures), w.name)
		to <- prometheus.MustNewConstMetric(lostDesc, prometheus.CounterValue, float64(s.rejected), w.name, "rejected")
		to <- prometheus.MustNewConstMetric(lostDesc, prometheus.CounterValue, float64(s.gone), w.name, "gone")
	}
}

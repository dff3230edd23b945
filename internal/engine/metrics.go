package engine

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics holds the engine's measurements. They are taken once per group of commands, so that they cost a single
// command nothing extra.
type metrics struct {
	commit   prometheus.Histogram
	append   prometheus.Histogram
	entries  prometheus.Counter
	bytes    prometheus.Counter
	commands prometheus.Counter

	snapshot        prometheus.Histogram
	snapshotsFailed prometheus.Counter
	snapshotAt      prometheus.Gauge
	unsaved         atomic.Int64 // bytes of journal after the latest snapshot

	archived       prometheus.Counter
	archive        prometheus.Histogram
	archiveRefused prometheus.Counter
	copied         prometheus.Counter
	copiedDamaged  prometheus.Counter
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_" + name, Help: help})
	}
	histogram := func(name, help string, buckets ...float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "muster_" + name, Help: help, Buckets: buckets})
	}
	syncs := []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}
	long := []float64{.001, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300}
	return &metrics{
		commit: histogram("commit_seconds",
			"Time from the first decision of a group of commands until the group is durable and its callers are answered.", syncs...),
		append:   histogram("journal_append_seconds", "Time to write an entry to the journal and sync it.", syncs...),
		entries:  counter("journal_entries_total", "Entries written to the journal. An entry is a group of commands with one sync."),
		bytes:    counter("journal_bytes_total", "Bytes of the entries written to the journal."),
		commands: counter("commands_committed_total", "Commands whose outcome became durable with the entries written to the journal."),

		snapshot:        histogram("snapshot_seconds", "Time to write a snapshot while the service works.", long...),
		snapshotsFailed: counter("snapshots_failed_total", "Snapshots that were not written; the journal keeps growing."),
		snapshotAt:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "muster_snapshot_last_timestamp_seconds", Help: "Unix time at which the latest snapshot of this run was complete; 0 before the first."}),

		archived:       counter("archive_records_total", "Records of what has ended that were written to the archive."),
		archive:        histogram("archive_put_seconds", "Time to write a batch of records to the archive and sync it.", syncs...),
		archiveRefused: counter("archive_refused_total", "Batches that the archive refused; ended records stay in memory until it accepts them."),
		copied:         counter("archive_copied_records_total", "Records that this node of a cluster has copied from the archive of another node."),
		copiedDamaged:  counter("archive_copied_damaged_total", "Places in the archive of another node that could not be read while records were copied from it."),
	}
}

var (
	unsavedBytes = prometheus.NewDesc("muster_journal_unsaved_bytes", "Bytes of the journal after the latest snapshot, which a restart reads again.", nil, nil)
	lastEntry    = prometheus.NewDesc("muster_journal_last_entry", "Number of the newest durable entry of the journal.", nil, nil)
	lacksRecords = prometheus.NewDesc("muster_archive_lacks_records", "1 while this node's archive lacks records, which it copies from another node; else 0.", nil, nil)
	clockAhead   = prometheus.NewDesc("muster_cluster_clock_ahead_seconds", "How far this node's clock is ahead of the time of the cluster.", nil, nil)
)

func (n *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		n.commit, n.append, n.entries, n.bytes, n.commands, n.snapshot, n.snapshotsFailed, n.snapshotAt, n.archived, n.archive, n.archiveRefused, n.copied, n.copiedDamaged,
	}
}

// committed records a group that became durable.
func (n *metrics) committed(g *Group, appending time.Time) {
	now := time.Now()
	n.append.Observe(now.Sub(appending).Seconds())
	n.commit.Observe(now.Sub(g.began).Seconds())
	n.entries.Inc()
	n.bytes.Add(float64(len(g.Batch)))
	n.commands.Add(float64(len(g.calls)))
}

// Describe implements prometheus.Collector.
func (e *Engine) Describe(to chan<- *prometheus.Desc) {
	for _, x := range e.metrics.collectors() {
		x.Describe(to)
	}
	to <- unsavedBytes
	to <- lastEntry
	to <- lacksRecords
	to <- clockAhead
}

// Collect implements prometheus.Collector.
func (e *Engine) Collect(to chan<- prometheus.Metric) {
	for _, x := range e.metrics.collectors() {
		x.Collect(to)
	}
	gauge := func(d *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	gauge(unsavedBytes, float64(e.metrics.unsaved.Load()))
	gauge(lastEntry, float64(e.durable.reached.Load()))
	if _, lacks := e.ArchiveLacks(); lacks {
		gauge(lacksRecords, 1)
	} else {
		gauge(lacksRecords, 0)
	}
	if e.time != nil {
		gauge(clockAhead, e.time.ownAhead().Seconds())
	}
}

var _ prometheus.Collector = (*Engine)(nil)

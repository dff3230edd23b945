package bench

import (
	"bytes"
	"context"
	"fmt"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// waits are the parts of an answer's time that the service measures itself.
var waits = []struct{ metric, about string }{
	{"muster_journal_append_seconds", "a journal entry to disk"},
	{"muster_commit_seconds", "a group of commands to its answers"},
	{"muster_archive_put_seconds", "a batch to the archive"},
}

// metrics asks the service for its metrics.
func (s *server) metrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	text, err := s.get(ctx, "http://"+s.addr+"/metrics")
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(text))
}

// reportWaits reports how long the parts of an answer took since an earlier reading of the metrics. The histograms have
// coarse buckets: a quantile is shown as the upper bound of its bucket.
func (b *bench) reportWaits(before, after map[string]*dto.MetricFamily) {
	for _, x := range waits {
		counts, total := bucketsSince(before[x.metric], after[x.metric])
		if total == 0 {
			continue
		}
		quantile := func(q float64) string {
			for _, c := range counts {
				if float64(c.count) >= q*float64(total) {
					return fmt.Sprintf("%g ms", 1000*c.bound)
				}
			}
			return "more"
		}
		b.progress("  %s: %d, p50 within %s, p99 %s, p99.9 %s, all %s", x.about, total, quantile(0.5), quantile(0.99), quantile(0.999), quantile(1))
	}
}

// bucket counts the observations up to a bound in seconds.
type bucket struct {
	bound float64
	count uint64
}

func bucketsSince(before, after *dto.MetricFamily) (counts []bucket, total uint64) {
	if after == nil {
		return nil, 0
	}
	for _, x := range after.GetMetric()[0].GetHistogram().GetBucket() {
		counts = append(counts, bucket{x.GetUpperBound(), x.GetCumulativeCount()})
	}
	total = after.GetMetric()[0].GetHistogram().GetSampleCount()
	if before != nil {
		for i, x := range before.GetMetric()[0].GetHistogram().GetBucket() {
			counts[i].count -= x.GetCumulativeCount()
		}
		total -= before.GetMetric()[0].GetHistogram().GetSampleCount()
	}
	return counts, total
}

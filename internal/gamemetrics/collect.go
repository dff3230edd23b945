package gamemetrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

var descriptions = func() map[*Definition]*prometheus.Desc {
	all := map[*Definition]*prometheus.Desc{}
	for _, d := range Table {
		all[d] = prometheus.NewDesc(d.Prometheus(), d.Meaning, d.Labels(), nil)
	}
	return all
}()

// Describe implements prometheus.Collector.
func (r *Recorder) Describe(to chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (r *Recorder) Collect(to chan<- prometheus.Metric) {
	r.reading.Lock()
	defer r.reading.Unlock()
	s, err := r.read()
	if err != nil {
		return // the engine has stopped
	}
	s.gauges(func(d *Definition, value float64, names ...string) {
		to <- prometheus.MustNewConstMetric(descriptions[d], prometheus.GaugeValue, value, s.labels(d, names)...)
	})
	rules := r.config.Rules() // before locking r.mu; see reading
	r.mu.Lock()
	defer r.mu.Unlock()
	r.countRules(rules)
	r.countHosts(&s)
	r.note(&s)
	top := r.topRules()
	for k, c := range r.counts {
		if k.metric.Of != Rule || top[[2]string{k.a, k.b}] {
			to <- prometheus.MustNewConstMetric(descriptions[k.metric], prometheus.CounterValue, c.total, s.labels(k.metric, []string{k.a, k.b})...)
		}
	}
	for k, t := range r.times {
		buckets, sum := make(map[float64]uint64, len(bounds)), uint64(0)
		for i, bound := range bounds {
			sum += t.buckets[i]
			buckets[bound] = sum
		}
		to <- prometheus.MustNewConstHistogram(descriptions[k.metric], uint64(t.total.Count), t.total.Sum, buckets, s.labels(k.metric, []string{k.a, k.b})...)
	}
}

// labels returns the values of the labels of a metric.
func (s *sample) labels(d *Definition, names []string) []string {
	all := slices.Clone(names)
	if d.Of == Place {
		all = append(all[:2], s.groups[names[0]])
	}
	return all[:len(d.Labels())]
}

var _ prometheus.Collector = (*Recorder)(nil)

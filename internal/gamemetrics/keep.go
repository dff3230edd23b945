package gamemetrics

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/series"
)

// keepEvery is the interval between checks for the end of a minute. It is short because the clock of a test may jump.
const keepEvery = time.Second

// keep writes each minute when it is over, beginning with the present one. When ctx ends, it also writes the unfinished minute.
func (r *Recorder) keep(ctx context.Context, present int64) {
	again := time.NewTicker(keepEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			r.write(present)
			return
		case <-again.C:
			if now := r.minute(); now > present {
				r.write(present)
				present = now
			}
		}
	}
}

// minute returns the current minute, but at least the one after the last written minute: the clock may have been set back, and a restart within a minute begins the next.
func (r *Recorder) minute() int64 {
	now := r.config.Engine.Now().Unix() / 60
	if r.config.Store != nil {
		now = max(now, r.config.Store.Last()+1)
	}
	return now
}

// write writes a minute. If that fails, its counts are written with the next one.
func (r *Recorder) write(minute int64) {
	points, undo, err := r.points()
	if err != nil {
		return // the engine has stopped
	}
	if r.config.Store == nil {
		return
	}
	if r.config.Beside != nil {
		more, undoMore := r.config.Beside()
		points = append(points, more...)
		undoOurs := undo
		undo = func() { undoOurs(); undoMore() }
	}
	if err = r.config.Short(); err == nil {
		err = r.config.Store.Append(minute, points)
	}
	if err == nil {
		r.failing = false
		return
	}
	undo()
	if !r.failing { // otherwise it was logged already
		r.failing = true
		r.config.Log.Warn("metrics cannot be stored: graphs have a gap until storing works again; counters lose nothing before a restart", "error", err)
	}
}

// points returns the points of this minute for the series, and marks the counters as written. undo reverts that.
func (r *Recorder) points() (points []series.Point, undo func(), err error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	s, err := r.read()
	if err != nil {
		return nil, nil, err
	}
	s.gauges(func(d *Definition, value float64, names ...string) {
		points = append(points, series.Point{Key: d.key(names...), Stat: series.Of(value)})
	})
	s.sums(func(d *Definition, dimension, name string, value float64) {
		points = append(points, series.Point{Key: series.MakeKey(d.Name, series.Dimension{Name: dimension, Value: name}), Stat: series.Of(value)})
	})
	var undone []func()
	sums := map[series.Key]float64{}
	rules := r.config.Rules() // before locking r.mu; see reading
	r.mu.Lock()
	defer r.mu.Unlock()
	r.countRules(rules)
	r.countHosts(&s)
	r.note(&s)
	top := r.topRules()
	for k, c := range r.counts {
		n := c.total - c.written
		if n == 0 {
			continue
		}
		c.written = c.total
		if k.metric.Of == Rule && !top[[2]string{k.a, k.b}] { // once it has a series, that begins with the evaluations of its minute
			continue
		}
		undone = append(undone, func() { c.written -= n })
		points = append(points, series.Point{Key: k.series(), Stat: series.Of(n), Counts: true})
		if k.metric.Of == Place {
			sums[series.MakeKey(k.metric.Name, series.Dimension{Name: "FleetId", Value: k.a})] += n
			if group, ok := s.groups[k.a]; ok {
				sums[series.MakeKey(k.metric.Name, series.Dimension{Name: metricGroups, Value: group})] += n
			}
		}
	}
	for k, n := range sums {
		points = append(points, series.Point{Key: k, Stat: series.Of(n)})
	}
	for k, t := range r.times {
		if t.minute.Count == 0 {
			continue
		}
		was, written := t.minute, t.written
		p := series.Point{Key: k.series(), Stat: was, Counts: true, Buckets: slices.Clone(t.buckets[:])}
		for i, n := range t.written {
			p.Buckets[i] -= n
		}
		t.minute, t.written = series.Stat{}, t.buckets
		undone = append(undone, func() { t.minute.Add(was); t.written = written })
		points = append(points, p)
	}
	return points, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, f := range undone {
			f()
		}
	}, nil
}

// key returns the key of a series of one subject. names are in the order of the labels.
func (d *Definition) key(names ...string) series.Key {
	metric := d.Name
	if d.Of == QueueLocation {
		metric = placementPrefix + names[1]
	}
	var dims []series.Dimension
	for i, name := range dimensions[d.Of] {
		dims = append(dims, series.Dimension{Name: name, Value: names[i]})
	}
	return series.MakeKey(metric, dims...)
}

// placementPrefix begins the names of the metrics that end with a location.
const placementPrefix = "Placement "

func (k key) series() series.Key { return k.metric.key(k.a, k.b) }

// keyFrom is the inverse of key.series. It is not ok for a series of another kind.
func keyFrom(from series.Key) (k key, ok bool) {
	metric, dims, err := from.Parse()
	if err != nil {
		return k, false
	}
	location, toLocation := strings.CutPrefix(metric, placementPrefix)
	for _, d := range Table {
		if d.Kind == Gauge || d.Name != metric && !(toLocation && d == placementsTo) || len(dims) != len(dimensions[d.Of]) {
			continue
		}
		match := true
		var names [2]string
		for i, dim := range dims {
			match = match && dim.Name == dimensions[d.Of][i]
			names[i] = dim.Value
		}
		if match {
			if d == placementsTo {
				names[1] = location
			}
			return key{d, names[0], names[1]}, true
		}
	}
	return k, false
}

// restore continues the counters where the stored series ended.
func (r *Recorder) restore() {
	r.config.Store.Totals(func(from series.Key, total series.Total) bool {
		k, ok := keyFrom(from)
		switch {
		case !ok:
		case k.metric.Kind == Counter:
			r.counts[k] = &count{total: total.Sum, written: total.Sum}
		case len(total.Buckets) <= len(bounds)+1:
			t := &times{total: series.Total{Count: total.Count, Sum: total.Sum}}
			copy(t.buckets[:], total.Buckets)
			t.written = t.buckets
			r.times[k] = t
		}
		return true
	})
}

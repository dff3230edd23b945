package gamemetrics

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
)

// sample has the values for the gauges, read at one moment.
type sample struct {
	now            domain.Time
	places         []hosting.PlaceCounts // the sum of all others last, as Other
	groups         map[string]string     // the metric group of each fleet
	capacities     []capacity
	queues         []depth
	locations      []depth
	configurations []tickets
	serverGroups   []servers
	hosts          []placed
	uses           map[[2]string]use // by fleet and location
}

type (
	capacity struct {
		fleet, location string
		fleet.Capacity
	}
	depth struct {
		name string
		placement.Depth
	}
	tickets struct {
		configuration string
		active        int
	}
	servers struct {
		group         string
		all, utilized int
	}
)

// defaultGroup is the metric group of a fleet without one.
const defaultGroup = "default"

// read reads the state. It costs the same for a million game sessions as for one.
func (r *Recorder) read() (s sample, err error) {
	s.now = domain.TimeOf(r.config.Engine.Now())
	var hosts []HostUse
	if r.config.Hosts != nil {
		hosts = r.config.Hosts()
	}
	err = r.config.Engine.ReadHere(background, func(v *cell.View) error { // the values need not be durable
		s.readPlaces(v)
		s.readHosts(v, hosts)
		for _, q := range v.Queues("", subjectsMax) {
			s.queues = append(s.queues, depth{q.Name, v.QueueDepth(q.Name)})
		}
		waiting := map[string]placement.Depth{}
		for _, l := range v.Locations("", subjectsMax) {
			waiting[l.Name] = placement.Depth{}
		}
		v.LocationDepths(func(location string, d placement.Depth) bool {
			if _, known := waiting[location]; known || len(waiting) < subjectsMax {
				waiting[location] = d
			}
			return true
		})
		for _, name := range slices.Sorted(maps.Keys(waiting)) {
			s.locations = append(s.locations, depth{name, waiting[name]})
		}
		for _, c := range v.Configurations("", "", subjectsMax) {
			s.configurations = append(s.configurations, tickets{c.Name, v.TicketCounts(c.Name).Active})
		}
		for _, g := range v.GameServerGroups(catalog.Place{}, subjectsMax) {
			all, utilized := v.GameServersIn(g.Name)
			s.serverGroups = append(s.serverGroups, servers{g.Name, all, utilized})
		}
		return nil
	})
	return s, err
}

func (s *sample) readPlaces(v *cell.View) {
	places, rest, more := v.PlaceCounts(subjectsMax)
	s.places, s.groups = places, map[string]string{}
	for _, p := range places {
		if _, known := s.groups[p.Fleet]; known {
			continue
		}
		f, _ := v.Fleet(p.Fleet)
		s.groups[p.Fleet] = defaultGroup
		if len(f.MetricGroups) > 0 {
			s.groups[p.Fleet] = f.MetricGroups[0]
		}
		if f.Managed != nil {
			for _, l := range f.Locations {
				s.capacities = append(s.capacities, capacity{f.ID, l.Name, l.Capacity})
			}
		}
	}
	if more {
		rest.Fleet, rest.Location = Other, Other
		s.places = append(s.places, rest)
		s.groups[Other] = Other
	}
}

// note stores which subjects have series of their own. The caller holds r.mu.
func (r *Recorder) note(s *sample) {
	for of := range r.subjects {
		clear(r.subjects[of])
	}
	for _, p := range s.places {
		if p.Fleet != Other {
			r.subjects[Place][[2]string{p.Fleet, p.Location}] = true
		}
	}
	for _, q := range s.queues {
		r.subjects[Queue][[2]string{q.name}] = true
	}
	for _, l := range s.locations {
		r.subjects[Location][[2]string{l.name}] = true
	}
	for _, c := range s.configurations {
		r.subjects[Configuration][[2]string{c.configuration}] = true
	}
	for k := range r.counts { // a queue's locations are those where it has placed game sessions
		if k.metric == placementsTo && k.a != Other && r.subjects[Queue][[2]string{k.a}] {
			r.subjects[QueueLocation][[2]string{k.a, k.b}] = true
		}
	}
	r.forgetGone()
	r.beginAtZero()
}

// beginAtZero makes the counters and durations of known subjects exist before their first event, which Prometheus would not see as an increase
// otherwise. Hosts' counters begin with the first report of a host. The caller holds r.mu.
func (r *Recorder) beginAtZero() {
	for _, d := range Table {
		if d.Kind == Gauge || slices.Contains(countedByHosts, d) {
			continue
		}
		for names := range r.subjects[d.Of] {
			k := key{d, names[0], names[1]}
			if d.Kind == Counter && r.counts[k] == nil {
				r.counts[k] = &count{}
			}
			if d.Kind == Duration && r.times[k] == nil {
				r.times[k] = &times{}
			}
		}
	}
}

// forgetGone removes the counters of subjects that are gone, once all their counts are written. The caller holds r.mu.
func (r *Recorder) forgetGone() {
	gone := func(k key) bool {
		names := [2]string{k.a, k.b}
		if k.metric.Of == Rule {
			names = [2]string{k.a}
			return !r.subjects[Configuration][names] && k.a != Other
		}
		return k.a != Other && !r.subjects[k.metric.Of][names]
	}
	maps.DeleteFunc(r.counts, func(k key, c *count) bool { return gone(k) && c.written == c.total })
	maps.DeleteFunc(r.times, func(k key, t *times) bool { return gone(k) && t.minute.Count == 0 })
}

// gauges yields the gauges of single subjects, in the order of the labels.
func (s *sample) gauges(yield func(d *Definition, value float64, names ...string)) {
	for _, d := range Table {
		switch {
		case d.place != nil:
			for i := range s.places {
				p := &s.places[i]
				if value, ok := d.place(p); ok {
					yield(d, value, p.Fleet, p.Location)
				}
			}
		case d.use != nil:
			for i := range s.places {
				p := &s.places[i]
				if u := s.uses[[2]string{p.Fleet, p.Location}]; u.hosts > 0 {
					yield(d, d.use(u)/float64(u.hosts), p.Fleet, p.Location)
				}
			}
		case d.hosts != nil:
			for _, c := range s.capacities {
				yield(d, float64(d.hosts(c.Capacity)), c.fleet, c.location)
			}
		}
	}
	for _, q := range s.queues {
		yield(queueDepth, float64(q.Placements), q.name)
		yield(averageWait, rounded(q.AverageWait(s.now)), q.name)
	}
	for _, l := range s.locations {
		yield(locationDepth, float64(l.Placements), l.name)
		yield(locationWait, rounded(l.AverageWait(s.now)), l.name)
	}
	for _, c := range s.configurations {
		yield(currentTickets, float64(c.active), c.configuration)
	}
	for _, g := range s.serverGroups {
		yield(availableServers, float64(g.all-g.utilized), g.group)
		yield(utilizedServers, float64(g.utilized), g.group)
		if g.all > 0 {
			yield(utilizedShare, float64(g.utilized)*100/float64(g.all), g.group)
		}
	}
}

// sums yields the gauges of the sums over a fleet's locations, and over the fleets of a metric group. Shares are computed from the sums.
func (s *sample) sums(yield func(d *Definition, dimension, name string, value float64)) {
	for _, by := range []struct {
		dimension string
		of        func(p *hosting.PlaceCounts) string
	}{
		{"FleetId", func(p *hosting.PlaceCounts) string { return p.Fleet }},
		{metricGroups, func(p *hosting.PlaceCounts) string { return s.groups[p.Fleet] }},
	} {
		sums, uses := map[string]*hosting.PlaceCounts{}, map[string]use{}
		for i := range s.places {
			p := &s.places[i]
			name := by.of(p)
			if sums[name] == nil {
				sums[name] = &hosting.PlaceCounts{}
			}
			sums[name].Add(p)
			uses[name] = uses[name].plus(s.uses[[2]string{p.Fleet, p.Location}])
		}
		for _, name := range slices.Sorted(maps.Keys(sums)) {
			for _, d := range Table {
				if d.place != nil {
					if value, ok := d.place(sums[name]); ok {
						yield(d, by.dimension, name, value)
					}
				}
				if u := uses[name]; d.use != nil && u.hosts > 0 {
					yield(d, by.dimension, name, d.use(u)/float64(u.hosts))
				}
			}
		}
	}
}

// topRules returns the rules with series of their own. The caller holds r.mu.
func (r *Recorder) topRules() map[[2]string]bool {
	sums := map[[2]string]float64{}
	for k, c := range r.counts {
		if k.metric.Of == Rule {
			sums[[2]string{k.a, k.b}] += c.total
		}
	}
	names := slices.SortedFunc(maps.Keys(sums), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	top := map[[2]string]bool{}
	for _, name := range names[:min(len(names), rulesMax)] {
		top[name] = true
	}
	return top
}

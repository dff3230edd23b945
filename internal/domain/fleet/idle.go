package fleet

import "github.com/musterhq/muster/internal/domain/sorted"

// Tags on which the service itself acts.
const (
	PackingTag = "muster:packing" // of a fleet: Pack or Spread
	DrainTag   = "muster:drain"   // of a compute: with "true" it gets no new game sessions

	Pack   = "pack"   // fill up computes one after another, so that the last ones can be emptied; the default
	Spread = "spread" // choose the compute with the fewest game sessions
)

// spreads reports whether new game sessions go to the compute with the fewest.
func (f *Fleet) spreads() bool { return tagged(f.Tags, PackingTag, Spread) }

// Draining reports whether the compute gets no new game sessions.
func (x *Compute) Draining() bool { return tagged(x.Tags, DrainTag, "true") }

func tagged(tags []Tag, key, value string) bool {
	for _, t := range tags {
		if t.Key == key {
			return t.Value == value
		}
	}
	return false
}

// site holds the computes and processes of a fleet in one location.
type site struct {
	order     sorted.Set[ordered]    // its computes in creation order
	processes sorted.Set[idle]       // free processes, whether or not their compute may start a game session
	packed    sorted.Set[ComputeRef] // computes that may start a game session and have a free process
	spread    sorted.Set[host]       // the same computes, emptiest first

	counts SiteCounts // without Computes
}

// idle is a free process. The order fills up computes one after another.
type idle struct {
	compute ComputeRef
	process ProcessRef
}

func (a idle) before(b idle) bool {
	if a.compute != b.compute {
		return a.compute < b.compute
	}
	return a.process < b.process
}

// host is a compute that could start a game session, ordered by the number of game sessions.
type host struct {
	hosting int32
	compute ComputeRef
}

func (a host) before(b host) bool {
	if a.hosting != b.hosting {
		return a.hosting < b.hosting
	}
	return a.compute < b.compute
}

func newSite() *site {
	return &site{
		order:     newOrder(),
		processes: sorted.NewSet(idle.before),
		packed:    sorted.NewSet(func(a, b ComputeRef) bool { return a < b }),
		spread:    sorted.NewSet(host.before),
	}
}

func (s *State) siteOf(c *Compute) *site { return s.sites[place{c.FleetID, c.Location}] }

// counted tells how a process counts for its compute and location, and in the index of idle processes.
type counted struct {
	running, ready, healthy, hosting, activating, idle bool
	standing                                           Standing
}

// Reindex updates the compute's counts and the index of idle processes from the record. It must be called after each change of a process.
func (s *State) Reindex(r ProcessRef) {
	p := s.Processes.Get(r)
	s.setCounted(r, counted{
		running: p.State != Ended,
		ready:   p.State == ProcessReady,
		healthy: p.State == ProcessReady && p.Health == Healthy,
		hosting: p.Session != 0, activating: p.Session != 0 && p.Activating,
		idle:     p.Eligible() && !s.Computes.Get(p.Compute).Draining(),
		standing: p.Standing(s.Computes.Get(p.Compute)),
	})
}

// SetComputeTags replaces a compute's tags. DrainTag may exclude its processes from new game sessions, or include them again.
func (s *State) SetComputeTags(compute ComputeRef, tags []Tag) {
	was := s.Computes.Get(compute).Draining()
	s.Computes.Mut(compute).Tags = tags
	if was == s.Computes.Get(compute).Draining() {
		return
	}
	s.ProcessesOn(compute, func(r ProcessRef, _ *Process) bool {
		s.Reindex(r)
		return true
	})
}

func (s *State) setCounted(r ProcessRef, want counted) {
	p := s.Processes.Get(r)
	have, compute := p.counted, p.Compute
	if have == want {
		return
	}
	s.Processes.Mut(r).counted = want
	c := s.Computes.Mut(compute)
	at, was, wasReady := s.siteOf(c), c.offer(), c.Ready > 0
	c.Processes += step(have.running, want.running)
	c.Ready += step(have.ready, want.ready)
	c.Hosting += step(have.hosting, want.hosting)
	c.activating += step(have.activating, want.activating)
	c.idle += step(have.idle, want.idle)
	s.count(at, &SiteCounts{
		Processes: step(have.ready, want.ready), Healthy: step(have.healthy, want.healthy),
		ComputesReady: step(wasReady, c.Ready > 0), ComputesWithGame: step(was.hosting > 0, c.Hosting > 0),
	})
	s.stand(at, have.standing, want.standing)
	switch {
	case want.idle && !have.idle:
		at.processes.Set(idle{compute, r})
	case have.idle && !want.idle:
		at.processes.Delete(idle{compute, r})
	}
	s.reoffer(compute, was)
}

// offer is the position of a compute in the selection of the next one.
type offer struct {
	open          bool // it may start a game session now
	idle, hosting int32
}

func (x *Compute) offer() offer {
	return offer{x.idle > 0 && (x.activations == 0 || x.activating < x.activations), x.idle, x.Hosting}
}

// reoffer updates the selection after a change of a compute, and records freed places.
func (s *State) reoffer(compute ComputeRef, was offer) {
	c := s.Computes.Get(compute)
	at, is := s.siteOf(c), c.offer()
	if was.open {
		s.count(at, &SiteCounts{Idle: -was.idle})
	}
	if is.open {
		s.count(at, &SiteCounts{Idle: is.idle})
	}
	moved := was.hosting != is.hosting
	if was.open && (moved || !is.open) {
		at.spread.Delete(host{was.hosting, compute})
	}
	if is.open && (moved || !was.open) {
		at.spread.Set(host{is.hosting, compute})
	}
	switch {
	case is.open && !was.open:
		at.packed.Set(compute)
	case was.open && !is.open:
		at.packed.Delete(compute)
	}
	if is.open && (!was.open || is.idle > was.idle) {
		s.freed = append(s.freed, Place{c.FleetID, c.Location})
	}
}

// limitActivations sets how many game sessions may be ACTIVATING on each compute of a fleet.
func (s *State) limitActivations(fleet string, most int32) {
	s.ComputesFrom(fleet, 0, "", func(r ComputeRef, _ *Compute) bool {
		c := s.Computes.Mut(r)
		was := c.offer()
		c.activations = most
		s.reoffer(r, was)
		return true
	})
}

// Place is a location of a fleet.
type Place struct{ Fleet, Location string }

// TakeFreed returns the places where a process has become free since the last call.
func (s *State) TakeFreed() []Place {
	freed := s.freed
	s.freed = s.freed[:0]
	return freed
}

// step returns the change of a count when a flag changes.
func step(was, is bool) int32 {
	switch {
	case is && !was:
		return 1
	case was && !is:
		return -1
	}
	return 0
}

// PickIdle selects the process that gets the next game session in a location of a fleet. By default it takes a process of the compute
// that comes first in memory, so that hosts fill up one after another and the last ones can be emptied. In a fleet that spreads, it takes
// a process of the compute with the fewest game sessions; see B029. It skips a compute that has reached the fleet's limit of ACTIVATING
// game sessions. The event names the process, so the order may differ after a restart.
func (s *State) PickIdle(fleet, location string) (first ProcessRef, ok bool) {
	at := s.sites[place{fleet, location}]
	if at == nil {
		return 0, false
	}
	compute, ok := at.packed.Min()
	if f, known := s.fleets[fleet]; ok && known && s.Fleets.Get(f).spreads() {
		emptiest, _ := at.spread.Min()
		compute = emptiest.compute
	}
	if ok {
		at.processes.Ascend(idle{compute: compute}, func(x idle) bool {
			first = x.process
			return false
		})
	}
	return first, ok
}

// IdleCount returns the number of processes of a location that could host a game session now.
func (s *State) IdleCount(fleet, location string) int {
	return int(s.SiteCounts(fleet, location).Idle)
}

// HeldBack is SiteCounts.HeldBack for a location of a fleet.
func (s *State) HeldBack(fleet, location string) int {
	n := s.SiteCounts(fleet, location)
	return int(n.HeldBack())
}

package fleet

import "github.com/tidwall/btree"

// Tags that the service itself acts on.
const (
	PackingTag = "muster:packing" // of a fleet: Pack or Spread
	DrainTag   = "muster:drain"   // of a compute: "true" keeps new game sessions away

	Pack   = "pack"   // computes fill up one after another, so that the last ones can be emptied; the default
	Spread = "spread" // the compute with the fewest game sessions is next
)

// spreads reports whether game sessions are spread over the fleet's computes.
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

// idleIndex is the processes of a location that could take a game session, and the computes that they are on.
type idleIndex struct {
	processes *btree.BTreeG[idle]
	computes  *btree.BTreeG[host]
}

// idle is a process that could take a game session, ordered so that computes fill up one after another.
type idle struct{ compute, process Ref }

func (a idle) before(b idle) bool {
	if a.compute != b.compute {
		return a.compute < b.compute
	}
	return a.process < b.process
}

// host is a compute with such processes, ordered so that the game sessions are spread.
type host struct {
	hosting int32
	compute Ref
}

func (a host) before(b host) bool {
	if a.hosting != b.hosting {
		return a.hosting < b.hosting
	}
	return a.compute < b.compute
}

func newIdleIndex() *idleIndex {
	return &idleIndex{
		processes: btree.NewBTreeGOptions(idle.before, btree.Options{NoLocks: true}),
		computes:  btree.NewBTreeGOptions(host.before, btree.Options{NoLocks: true}),
	}
}

// counted is how a process stands in the counts of its compute and in the index of idle ones.
type counted struct{ running, ready, hosting, idle bool }

// Reindex brings the compute's counts and the index of idle processes up to date with the record. Call it after each
// change of a process.
func (s *State) Reindex(r Ref) {
	p := s.Processes.Get(r)
	s.setCounted(r, counted{
		running: p.State != Ended,
		ready:   p.State == ProcessReady,
		hosting: p.Session != 0,
		idle:    p.Eligible() && !s.Computes.Get(p.Compute).Draining(),
	})
}

// SetComputeTags replaces a compute's tags. One of them may take its processes out of the choice, or put them back.
func (s *State) SetComputeTags(compute Ref, tags []Tag) {
	was := s.Computes.Get(compute).Draining()
	s.Computes.Mut(compute).Tags = tags
	if was == s.Computes.Get(compute).Draining() {
		return
	}
	s.ProcessesOn(compute, func(r Ref, _ *Process) bool {
		s.Reindex(r)
		return true
	})
}

func (s *State) setCounted(r Ref, want counted) {
	p := s.Processes.Get(r)
	have := p.counted
	if have == want {
		return
	}
	compute, at := p.Compute, place{p.Key.Fleet, p.Location}
	s.Processes.Mut(r).counted = want
	c := s.Computes.Mut(compute)
	was := host{c.Hosting, compute}
	offered := c.idle > 0
	c.Processes += step(have.running, want.running)
	c.Ready += step(have.ready, want.ready)
	c.Hosting += step(have.hosting, want.hosting)
	c.idle += step(have.idle, want.idle)

	index := s.idle[at]
	if index == nil {
		index = newIdleIndex()
		s.idle[at] = index
	}
	if is := (host{c.Hosting, compute}); offered != (c.idle > 0) || is != was {
		if offered {
			index.computes.Delete(was)
		}
		if c.idle > 0 {
			index.computes.Set(is)
		}
	}
	switch {
	case want.idle && !have.idle:
		index.processes.Set(idle{compute, r})
		s.freed = append(s.freed, Place{at.fleet, at.location})
	case have.idle && !want.idle:
		index.processes.Delete(idle{compute, r})
	}
}

// Place is a location of a fleet.
type Place struct{ Fleet, Location string }

// TakeFreed returns the places where a process has become free since the last call.
func (s *State) TakeFreed() []Place {
	freed := s.freed
	s.freed = s.freed[:0]
	return freed
}

// step is what a count changes by when a flag does.
func step(was, is bool) int32 {
	switch {
	case is && !was:
		return 1
	case was && !is:
		return -1
	}
	return 0
}

// PickIdle chooses the process that gets the next game session at a location of a fleet: of the compute that comes first in
// memory, so that hosts fill up one after another and the last ones can be emptied; or, in a fleet that spreads, of the
// compute with the fewest game sessions; see B029. The event names the process, so another order after a restart does no
// harm.
func (s *State) PickIdle(fleet, location string) (Ref, bool) {
	index := s.idle[place{fleet, location}]
	if index == nil {
		return 0, false
	}
	first, ok := index.processes.Min()
	if f, known := s.fleets[fleet]; ok && known && s.Fleets.Get(f).spreads() {
		emptiest, _ := index.computes.Min()
		index.processes.Ascend(idle{compute: emptiest.compute}, func(x idle) bool {
			first = x
			return false
		})
	}
	return first.process, ok
}

// IdleCount is the number of processes of a location that could take a game session.
func (s *State) IdleCount(fleet, location string) int {
	if index := s.idle[place{fleet, location}]; index != nil {
		return index.processes.Len()
	}
	return 0
}

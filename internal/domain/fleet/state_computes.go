package fleet

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/sorted"
)

// Compute finds a compute of a fleet.
func (s *State) Compute(fleet, name string) (ComputeRef, bool) {
	r, ok := s.computes[computeKey{fleet, name}]
	return r, ok
}

// ComputeCount returns the number of computes in a fleet.
func (s *State) ComputeCount(fleet string) int {
	if t := s.byFleet[fleet]; t != nil {
		return t.Len()
	}
	return 0
}

// AddCompute stores a compute.
func (s *State) AddCompute(c Compute) {
	r, rec := s.Computes.Add()
	*rec = c
	s.indexCompute(r)
}

func (s *State) indexCompute(r ComputeRef) {
	c := s.Computes.Mut(r)
	c.Fleet = s.fleets[c.FleetID]
	c.activations = s.Fleets.Get(c.Fleet).activationsMax()
	entry, at := ordered{int64(c.Created), c.Name, r.Any()}, place{c.FleetID, c.Location}
	s.computes[computeKey{c.FleetID, c.Name}] = r
	s.byFleet[c.FleetID].Set(entry)
	if s.sites[at] == nil {
		s.sites[at] = newSite()
	}
	s.sites[at].order.Set(entry)
	s.held.Computes.Add(c.Holder, 0)
}

// RemoveCompute removes a compute with its processes, which must have ended.
func (s *State) RemoveCompute(r ComputeRef) {
	for p := s.Computes.Get(r).firstProcess; p != 0; p = s.Computes.Get(r).firstProcess {
		s.RemoveProcess(p)
	}
	c := s.Computes.Get(r)
	s.held.Computes.Remove(c.Holder, 0)
	delete(s.computes, computeKey{c.FleetID, c.Name})
	entry, at := ordered{int64(c.Created), c.Name, r.Any()}, s.siteOf(c)
	s.byFleet[c.FleetID].Delete(entry)
	if at.order.Delete(entry); at.order.Len() == 0 {
		delete(s.sites, place{c.FleetID, c.Location})
	}
	s.Computes.Remove(r)
}

// ComputesFrom yields the computes of a fleet in creation order, beginning after (created, name).
func (s *State) ComputesFrom(fleet string, created int64, name string, yield func(ComputeRef, *Compute) bool) {
	if t := s.byFleet[fleet]; t != nil {
		s.computesFrom(t, created, name, yield)
	}
}

// ComputesIn yields the computes in one location.
func (s *State) ComputesIn(fleet, location string, created int64, name string, yield func(ComputeRef, *Compute) bool) {
	if at := s.sites[place{fleet, location}]; at != nil {
		s.computesFrom(at.order, created, name, yield)
	}
}

func (s *State) computesFrom(t sorted.Set[ordered], created int64, name string, yield func(ComputeRef, *Compute) bool) {
	from := ordered{created: created, id: name}
	t.Ascend(from, func(o ordered) bool {
		r := ComputeRef(o.ref)
		return !from.before(o) || yield(r, s.Computes.Get(r))
	})
}

// Process finds a server process.
func (s *State) Process(k Key) (ProcessRef, bool) {
	r, ok := s.processes[k]
	return r, ok
}

// AddProcess stores a process on its compute.
func (s *State) AddProcess(p Process) ProcessRef {
	r, rec := s.Processes.Add()
	*rec = p
	rec.counted = counted{}
	s.link(r, p.Compute)
	return r
}

func (s *State) link(r ProcessRef, compute ComputeRef) {
	c := s.Computes.Mut(compute)
	head := c.firstProcess
	c.firstProcess = r
	if head != 0 {
		s.Processes.Mut(head).prev = r
	}
	p := s.Processes.Mut(r)
	p.next, p.prev = head, 0
	s.processes[p.Key] = r
}

// RemoveProcess drops a process.
func (s *State) RemoveProcess(r ProcessRef) {
	s.setCounted(r, counted{})
	p := *s.Processes.Get(r)
	if p.prev != 0 {
		s.Processes.Mut(p.prev).next = p.next
	} else {
		s.Computes.Mut(p.Compute).firstProcess = p.next
	}
	if p.next != 0 {
		s.Processes.Mut(p.next).prev = p.prev
	}
	delete(s.processes, p.Key)
	s.Processes.Remove(r)
}

// Renew starts a new life under the key of an ended process. The new process takes over the open connection.
func (s *State) Renew(r ProcessRef, at domain.Time) {
	s.setCounted(r, counted{})
	p := s.Processes.Mut(r)
	*p = Process{
		Key: p.Key, Compute: p.Compute, Location: p.Location, State: Initialized, Linked: p.Linked, Link: p.Link, Node: p.Node,
		SDK: p.SDK, Life: p.Life + 1, Connected: at, Ending: p.Ending, next: p.next, prev: p.prev,
	}
}

// ProcessesOn yields the processes of a compute, including ended ones, newest first.
func (s *State) ProcessesOn(compute ComputeRef, yield func(ProcessRef, *Process) bool) {
	for r := s.Computes.Get(compute).firstProcess; r != 0; {
		p := s.Processes.Get(r)
		next := p.next
		if !yield(r, p) {
			return
		}
		r = next
	}
}

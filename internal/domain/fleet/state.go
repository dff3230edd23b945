package fleet

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/domain/sorted"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/quota"
)

// State has all records of fleets, with their indexes. Snapshots contain no indexes; they are rebuilt from the records.
type State struct {
	Locations chunk.Table[Location]
	Fleets    chunk.Table[Fleet]
	Computes  chunk.Table[Compute]
	Processes chunk.Table[Process]
	Events    chunk.Table[Event]
	Creations chunk.Table[Creation]
	Aliases   catalog.Catalog[Alias]
	Builds    catalog.Catalog[Build]
	Rollouts  catalog.Catalog[Rollout] // by alias

	locations sorted.Map[string, LocationRef]
	fleets    map[string]Ref
	order     sorted.Set[ordered] // fleets in creation order
	computes  map[computeKey]ComputeRef
	byFleet   map[string]sorted.Set[ordered] // computes of a fleet in creation order
	processes map[Key]ProcessRef
	sites     map[place]*site
	events    map[string][]EventRef // of a fleet, oldest first
	creations map[creator][]CreationRef

	freed []Place // where a process has become free since TakeFreed

	held Held
	all  SiteCounts // of all locations of all fleets, without Computes
}

type (
	computeKey struct{ fleet, name string }
	place      struct{ fleet, location string }
	creator    struct{ fleet, name string }
)

// ordered is an entry of an index in creation order; equal times are ordered by id.
type ordered struct {
	created int64
	id      string
	ref     chunk.AnyRef // of a fleet or a compute
}

func (a ordered) before(b ordered) bool {
	if a.created != b.created {
		return a.created < b.created
	}
	return a.id < b.id
}

// New returns an empty State.
func New() *State {
	return &State{
		Locations: chunk.New[Location](), Fleets: chunk.New[Fleet](), Computes: chunk.New[Compute](), Processes: chunk.New[Process](), Events: chunk.New[Event](), Creations: chunk.New[Creation](),
		locations: sorted.NewMap[string, LocationRef](),
		fleets:    map[string]Ref{},
		order:     newOrder(),
		computes:  map[computeKey]ComputeRef{},
		byFleet:   map[string]sorted.Set[ordered]{},
		processes: map[Key]ProcessRef{},
		sites:     map[place]*site{},
		events:    map[string][]EventRef{},
		creations: map[creator][]CreationRef{},
		Aliases:   catalog.NewHeld(aliasPlace, func(a *Alias) quota.Holder { return a.Holder }),
		Builds:    catalog.NewHeld(buildPlace, func(b *Build) quota.Holder { return b.Holder }),
		Rollouts:  catalog.New(rolloutPlace),
	}
}

// The cell's lock protects index trees.
func newOrder() sorted.Set[ordered] {
	return sorted.NewSet(ordered.before)
}

// Held counts fleets, custom locations and computes by their holders.
type Held struct{ Fleets, Locations, Computes quota.Held }

// Held counts the records by their holders. Aliases and Builds count their own.
func (s *State) Held() *Held { return &s.held }

// Location finds a custom location by name.
func (s *State) Location(name string) (LocationRef, bool) { return s.locations.Get(name) }

// AddLocation stores a custom location.
func (s *State) AddLocation(l Location) {
	r, rec := s.Locations.Add()
	*rec = l
	s.locations.Set(l.Name, r)
	s.held.Locations.Add(l.Holder, 0)
}

// RemoveLocation drops a custom location.
func (s *State) RemoveLocation(r LocationRef) {
	s.held.Locations.Remove(s.Locations.Get(r).Holder, 0)
	s.locations.Delete(s.Locations.Get(r).Name)
	s.Locations.Remove(r)
}

// LocationsFrom yields custom locations, ordered by name, beginning after `after`.
func (s *State) LocationsFrom(after string, yield func(*Location) bool) {
	s.locations.Ascend(after, func(name string, r LocationRef) bool {
		return name == after || yield(s.Locations.Get(r))
	})
}

// Fleet finds a fleet by id.
func (s *State) Fleet(id string) (Ref, bool) {
	r, ok := s.fleets[id]
	return r, ok
}

// AddFleet stores a fleet.
func (s *State) AddFleet(f Fleet) {
	r, rec := s.Fleets.Add()
	*rec = f
	s.fleets[f.ID] = r
	s.order.Set(ordered{int64(f.Created), f.ID, r.Any()})
	s.byFleet[f.ID] = newOrder()
	s.held.Fleets.Add(f.Holder, 0)
}

// ChangeFleet replaces a fleet.
func (s *State) ChangeFleet(r Ref, f Fleet) {
	was, most := s.Fleets.Get(r).activationsMax(), f.activationsMax()
	*s.Fleets.Mut(r) = f
	if was != most {
		s.limitActivations(f.ID, most)
	}
}

// RemoveFleet removes a fleet and its event log. Its computes must have been removed; its creations are removed when they no longer
// count.
func (s *State) RemoveFleet(r Ref) {
	f := s.Fleets.Get(r)
	id := f.ID
	s.order.Delete(ordered{int64(f.Created), id, r.Any()})
	delete(s.fleets, id)
	delete(s.byFleet, id)
	for _, e := range s.events[id] {
		s.Events.Remove(e)
	}
	delete(s.events, id)
	s.held.Fleets.Remove(f.Holder, 0)
	s.Fleets.Remove(r)
}

// FleetsFrom yields fleets in creation order, beginning after (created, id).
func (s *State) FleetsFrom(created int64, id string, yield func(*Fleet) bool) {
	from := ordered{created: created, id: id}
	s.order.Ascend(from, func(o ordered) bool {
		return !from.before(o) || yield(s.Fleets.Get(Ref(o.ref)))
	})
}

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

// eventsMax bounds a fleet's event log; beyond it, the oldest events are removed. It suffices for weeks of a healthy fleet.
const eventsMax = 2000

// AddEvent appends to a fleet's event log.
func (s *State) AddEvent(e Event) {
	if _, ok := s.fleets[e.FleetID]; !ok {
		return
	}
	r, rec := s.Events.Add()
	*rec = e
	log := append(s.events[e.FleetID], r)
	if len(log) > eventsMax {
		s.Events.Remove(log[0])
		log = slices.Delete(log, 0, 1)
	}
	s.events[e.FleetID] = log
}

// Frequent returns the newest event of a code, if a fleet's log has at least `many` of them since a time.
func (s *State) Frequent(fleet, code string, since domain.Time, many int) (last Event, ok bool) {
	for _, r := range slices.Backward(s.events[fleet]) {
		e := s.Events.Get(r)
		if e.At < since {
			break
		}
		if e.Code != code {
			continue
		}
		if last.No == 0 {
			last = *e
		}
		if many--; many == 0 {
			return last, true
		}
	}
	return last, false
}

// RemoveEvent removes an event from a fleet's log, by its number.
func (s *State) RemoveEvent(fleet string, no uint64) {
	log := s.events[fleet]
	at := slices.IndexFunc(log, func(r EventRef) bool { return s.Events.Get(r).No == no })
	if at >= 0 {
		s.Events.Remove(log[at])
		s.events[fleet] = slices.Delete(log, at, at+1)
	}
}

// EventsOf returns the event log of a fleet, oldest first. Callers must not change it.
func (s *State) EventsOf(fleet string) []EventRef { return s.events[fleet] }

func (s *State) AddCreation(c Creation) CreationRef {
	r, rec := s.Creations.Add()
	*rec = c
	at := creator{c.FleetID, c.Creator}
	s.creations[at] = append(s.creations[at], r)
	return r
}

func (s *State) RemoveCreation(r CreationRef) {
	c := s.Creations.Get(r)
	at := creator{c.FleetID, c.Creator}
	left := slices.DeleteFunc(s.creations[at], func(x CreationRef) bool { return x == r })
	if len(left) == 0 {
		delete(s.creations, at)
	} else {
		s.creations[at] = left
	}
	s.Creations.Remove(r)
}

// CreationsOf returns the recent creations of a creator in a fleet. Callers must not change it.
func (s *State) CreationsOf(fleet, name string) []CreationRef {
	return s.creations[creator{fleet, name}]
}

// Restore rebuilds the indexes from the records, after a snapshot was loaded. Snapshots refer to records by identifier, so references are
// resolved first; an unknown identifier is an error.
func (s *State) Restore() error {
	s.Aliases.Restore()
	s.Builds.Restore()
	s.Rollouts.Restore()
	for r, l := range s.Locations.All() {
		s.locations.Set(l.Name, r)
		s.held.Locations.Add(l.Holder, 0)
	}
	for r, f := range s.Fleets.All() {
		s.fleets[f.ID] = r
		s.order.Set(ordered{int64(f.Created), f.ID, r.Any()})
		s.byFleet[f.ID] = newOrder()
		s.held.Fleets.Add(f.Holder, 0)
	}
	for _, c := range s.Computes.All() {
		if _, ok := s.fleets[c.FleetID]; !ok {
			return fmt.Errorf("compute %s is in fleet %s, which does not exist", c.Name, c.FleetID)
		}
	}
	for r := range s.Computes.All() {
		s.indexCompute(r)
	}
	for r := range s.Processes.All() {
		p := s.Processes.Mut(r)
		compute, ok := s.computes[computeKey{p.Key.Fleet, p.Key.Compute}]
		if !ok {
			return fmt.Errorf("process %s is on a compute that does not exist", p.Key)
		}
		p.Compute = compute
		s.link(r, p.Compute)
		s.Reindex(r)
	}
	for r, e := range s.Events.All() {
		s.events[e.FleetID] = append(s.events[e.FleetID], r)
	}
	for _, log := range s.events {
		slices.SortFunc(log, func(a, b EventRef) int { return cmp.Compare(s.Events.Get(a).No, s.Events.Get(b).No) })
	}
	for r, c := range s.Creations.All() {
		at := creator{c.FleetID, c.Creator}
		s.creations[at] = append(s.creations[at], r)
	}
	return nil
}

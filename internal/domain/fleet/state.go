package fleet

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/sorted"
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

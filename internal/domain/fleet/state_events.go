package fleet

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
)

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

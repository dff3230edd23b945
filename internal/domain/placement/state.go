package placement

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/sorted"
)

// State has all queues and placements, with their indexes. Snapshots contain no indexes; they are rebuilt from the records.
type State struct {
	Queues     chunk.Table[Queue]
	Placements chunk.Table[Placement]

	queues  sorted.Map[string, QueueRef]
	byID    map[string]Ref
	held    quota.Held                  // placements
	queued  quota.Held                  // queues
	pending map[string]sorted.Set[turn] // by queue
	waiting map[Place]sorted.Set[turn]  // by the places that they may use

	queueDepths    map[string]Depth // of pending ones, by queue
	locationDepths map[string]Depth // of those that wait for a process, by the location of their first choice
}

// turn orders all placements: the earliest one is served first.
type turn struct {
	start domain.Time
	no    uint64
	ref   Ref
}

func (a turn) before(b turn) bool {
	if a.start != b.start {
		return a.start < b.start
	}
	return a.no < b.no
}

func newTurns() sorted.Set[turn] {
	return sorted.NewSet(turn.before)
}

// New returns an empty State.
func New() *State {
	return &State{
		Queues: chunk.New[Queue](), Placements: chunk.New[Placement](),
		queues:  sorted.NewMap[string, QueueRef](),
		byID:    map[string]Ref{},
		pending: map[string]sorted.Set[turn]{},
		waiting: map[Place]sorted.Set[turn]{},

		queueDepths: map[string]Depth{}, locationDepths: map[string]Depth{},
	}
}

// Queue finds a queue.
func (s *State) Queue(name string) (QueueRef, bool) { return s.queues.Get(name) }

// PutQueue stores or replaces a queue.
func (s *State) PutQueue(q Queue) {
	s.queued.Add(q.Holder, 0)
	if r, ok := s.queues.Get(q.Name); ok {
		s.queued.Remove(s.Queues.Get(r).Holder, 0)
		*s.Queues.Mut(r) = q
		return
	}
	r, rec := s.Queues.Add()
	*rec = q
	s.queues.Set(q.Name, r)
}

// RemoveQueue removes a queue without pending placements.
func (s *State) RemoveQueue(name string) {
	if r, ok := s.queues.Get(name); ok {
		s.queued.Remove(s.Queues.Get(r).Holder, 0)
		s.queues.Delete(name)
		s.Queues.Remove(r)
	}
	delete(s.pending, name)
}

// QueuesFrom yields queues, ordered by name, beginning after `after`.
func (s *State) QueuesFrom(after string, yield func(*Queue) bool) {
	s.queues.Ascend(after, func(name string, r QueueRef) bool { return name == after || yield(s.Queues.Get(r)) })
}

// Placement finds a placement in memory.
func (s *State) Placement(id string) (Ref, bool) {
	r, ok := s.byID[id]
	return r, ok
}

// Held counts the placements in memory, including those that have ended.
func (s *State) Held() *quota.Held { return &s.held }

// QueuesHeld counts the queues.
func (s *State) QueuesHeld() *quota.Held { return &s.queued }

// Add stores a placement.
func (s *State) Add(p Placement) Ref {
	p.waiting, p.held = nil, int32(p.Bytes())
	s.held.Add(quota.HolderOf(p.Holder, p.Maker), int(p.held))
	r, rec := s.Placements.Add()
	*rec = p
	s.byID[p.ID] = r
	if p.Status == Pending {
		t := s.pending[p.Queue]
		if t == nil {
			t = newTurns()
			s.pending[p.Queue] = t
		}
		t.Set(turn{p.Start, p.No, r})
		deepen(s.queueDepths, p.Queue, p.Start, 1)
	}
	return r
}

// Change calls f to change a placement and updates the index of pending ones. f must not change Queue, Start or No.
func (s *State) Change(r Ref, f func(*Placement)) *Placement {
	p := s.Placements.Mut(r)
	was := p.Status
	f(p)
	if len(p.Tried) > triedMax {
		p.Tried = slices.Clone(p.Tried[len(p.Tried)-triedMax:])
	}
	if was == Pending && p.Status != Pending {
		s.Wait(r, nil)
		p = s.Placements.Mut(r)
		if t := s.pending[p.Queue]; t != nil {
			t.Delete(turn{p.Start, p.No, r})
		}
		deepen(s.queueDepths, p.Queue, p.Start, -1)
	}
	return p
}

// Remove removes an ended placement.
func (s *State) Remove(r Ref) {
	p := s.Placements.Get(r)
	s.held.Remove(quota.HolderOf(p.Holder, p.Maker), int(p.held))
	delete(s.byID, p.ID)
	s.Placements.Remove(r)
}

// PendingIn yields the pending placements of a queue in their order.
func (s *State) PendingIn(queue string, yield func(Ref, *Placement) bool) {
	if t := s.pending[queue]; t != nil {
		t.Scan(func(x turn) bool { return yield(x.ref, s.Placements.Get(x.ref)) })
	}
}

// PendingAfter is PendingIn for the placements after the one with a start and a number.
func (s *State) PendingAfter(queue string, start domain.Time, no uint64, yield func(Ref, *Placement) bool) {
	if t := s.pending[queue]; t != nil {
		t.Ascend(turn{start: start, no: no + 1}, func(x turn) bool { return yield(x.ref, s.Placements.Get(x.ref)) })
	}
}

// Wait sets the places at which a placement waits for a free process. Without places, it no longer waits.
func (s *State) Wait(r Ref, places []Place) {
	p := s.Placements.Mut(r)
	was, me := p.waiting, turn{p.Start, p.No, r}
	p.waiting = places
	if len(was) > 0 {
		deepen(s.locationDepths, was[0].Location, p.Start, -1)
	}
	if len(places) > 0 {
		deepen(s.locationDepths, places[0].Location, p.Start, 1)
	}
	for _, at := range was {
		if t := s.waiting[at]; t != nil {
			t.Delete(me)
			if t.Len() == 0 {
				delete(s.waiting, at)
			}
		}
	}
	for _, at := range places {
		t := s.waiting[at]
		if t == nil {
			t = newTurns()
			s.waiting[at] = t
		}
		t.Set(me)
	}
}

// FirstChoice counts the waiting placements whose first choice is a place, and returns when the oldest of them started.
func (s *State) FirstChoice(at Place) (n int32, oldest domain.Time) {
	if t := s.waiting[at]; t != nil {
		t.Scan(func(x turn) bool {
			if p := s.Placements.Get(x.ref); p.waiting[0] == at {
				if n++; n == 1 {
					oldest = x.start
				}
			}
			return true
		})
	}
	return n, oldest
}

// FirstWaiting returns the placement that has waited longest for a process at a place.
func (s *State) FirstWaiting(at Place) (Ref, bool) {
	if t := s.waiting[at]; t != nil {
		if first, ok := t.Min(); ok {
			return first.ref, true
		}
	}
	return 0, false
}

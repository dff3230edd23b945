package office

import (
	"sync"

	"github.com/musterhq/muster/internal/live"
)

// Slot is a Part whose work can be replaced by other work of its kind, also while it leads.
type Slot[P interface {
	comparable
	Part
}] struct {
	part live.Value[P]

	mu    sync.Mutex
	leads bool
}

// Get returns the part that has the slot. It waits for nothing.
func (s *Slot[P]) Get() P { return s.part.Get() }

// Set replaces the part: the former one rests before the next one leads. The zero P is none.
func (s *Slot[P]) Set(next P) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest()
	s.part.Set(next)
	s.lead()
}

// Lead implements Part.
func (s *Slot[P]) Lead() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leads = true
	s.lead()
}

// Rest implements Part.
func (s *Slot[P]) Rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest()
	s.leads = false
}

func (s *Slot[P]) lead() {
	var none P
	if part := s.part.Get(); s.leads && part != none {
		part.Lead()
	}
}

func (s *Slot[P]) rest() {
	var none P
	if part := s.part.Get(); s.leads && part != none {
		part.Rest()
	}
}

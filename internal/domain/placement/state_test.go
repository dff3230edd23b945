package placement

import (
	"fmt"
	"testing"
)

// A placement stores the latest triedMax of its attempts.
func TestTriedIsBounded(t *testing.T) {
	s := New()
	r := s.Add(Placement{ID: "p", Queue: "q"})
	for i := range 3 * triedMax {
		s.Change(r, func(p *Placement) { p.Tried = append(p.Tried, Try{Fleet: fmt.Sprint(i)}) })
		p := s.Placements.Get(r)
		if want := min(i+1, triedMax); len(p.Tried) != want || p.Tried[want-1].Fleet != fmt.Sprint(i) {
			t.Fatalf("after %d attempts: %d remembered, the last %+v", i+1, len(p.Tried), p.Tried[len(p.Tried)-1])
		}
	}
}

package office

import (
	"slices"
	"sync"
	"testing"
)

// told records the calls of parts.
type told struct {
	mu  sync.Mutex
	all []string
}

type worker struct {
	name string
	told *told
}

func (w *worker) say(what string) {
	w.told.mu.Lock()
	defer w.told.mu.Unlock()
	w.told.all = append(w.told.all, w.name+" "+what)
}

func (w *worker) Lead() { w.say("leads") }
func (w *worker) Rest() { w.say("rests") }

// The part of a slot leads only while the slot does, and never at the same time as the previous part.
func TestSlot(t *testing.T) {
	var s Slot[*worker]
	said := &told{}
	a, b, c := &worker{"a", said}, &worker{"b", said}, &worker{"c", said}
	s.Lead() // an empty one
	s.Set(a)
	s.Set(b)
	s.Rest()
	s.Set(c)
	s.Lead()
	s.Set(nil)
	s.Rest()
	want := []string{"a leads", "a rests", "b leads", "b rests", "c leads", "c rests"}
	if !slices.Equal(said.all, want) {
		t.Errorf("got %v, want %v", said.all, want)
	}
}

// Replacing the part while leadership changes leaves each part in the correct state.
func TestSlotAtOnce(t *testing.T) {
	var s Slot[*worker]
	said := &told{}
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for range 50 {
				s.Set(&worker{"x", said})
				s.Get()
			}
		})
	}
	work.Go(func() {
		for range 50 {
			s.Lead()
			s.Rest()
		}
	})
	work.Wait()
	for i, what := range said.all {
		if want := []string{"x leads", "x rests"}[i%2]; what != want {
			t.Fatalf("step %d: %s, want %s", i, what, want)
		}
	}
}

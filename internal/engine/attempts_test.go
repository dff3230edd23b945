package engine_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/waittest"
)

// The first attempt of a placement is in the archive when the second one takes the id of its game session. Lists of the fleet have the id
// once, with the second attempt.
func TestAnArchivedAttemptIsNotListedBesideItsSuccessor(t *testing.T) {
	h := newHouse(t, engine.Config{EndedLinger: time.Nanosecond})
	h.hall()
	first := h.server("p1")
	h.must(&hosting.CreateQueue{Queue: placement.Queue{
		Name: "queue", Region: "us-east-1", Account: "1", Timeout: 10 * time.Minute, Destinations: []string{"arn:aws:gamelift:us-east-1:1:fleet/" + testFleet},
	}})
	h.must(&hosting.StartPlacement{Placement: placement.Placement{ID: "placed", Queue: "queue", PlayersMax: 2}})
	list := func() []session.GameSession {
		t.Helper()
		page, more, err := h.GameSessions(t.Context(), testFleet, hosting.GameFilter{}, hosting.GamePlace{}, 10)
		if err != nil || more {
			t.Fatalf("list: more %t, %v", more, err)
		}
		return page
	}
	if page := list(); len(page) != 1 || page[0].ProcessID != first.Process {
		t.Fatalf("the placement's first attempt: %+v", page)
	}
	h.must(&hosting.EndProcess{Process: first, Request: 1})
	waittest.Until(t, "what ended leaves memory", func() bool { return h.inMemory() == 0 })
	if page := list(); len(page) != 1 || page[0].Status != session.Terminated {
		t.Fatalf("the first attempt, archived: %+v", page)
	}
	time.Sleep(2 * time.Millisecond) // created in another millisecond
	second := h.server("p2")
	page := list()
	if len(page) != 1 || page[0].ProcessID != second.Process || page[0].Status != session.Activating {
		t.Errorf("the second attempt: got %d game sessions, want it alone: %+v", len(page), page)
	}
	if page, _, err := h.GameSessions(t.Context(), testFleet, hosting.GameFilter{Status: session.Terminated}, hosting.GamePlace{}, 10); err != nil || len(page) != 0 {
		t.Errorf("TERMINATED game sessions: got %d and %v, want none", len(page), err)
	}
	h.must(&hosting.EndProcess{Process: second, Request: 2})
	waittest.Until(t, "what ended leaves memory", func() bool { return h.inMemory() == 0 })
	if page := list(); len(page) != 1 || page[0].ProcessID != second.Process {
		t.Errorf("both attempts archived: got %+v, want the second", page)
	}
}

package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/waittest"
)

// Tickets that ended are found in memory and in the archive, each once, beside those that wait; tickets of other configurations are not.
func TestTicketsSince(t *testing.T) {
	h := newHouse(t, engine.Config{EndedLinger: time.Nanosecond})
	const body = `{"ruleLanguageVersion":"1.0","teams":[{"name":"all","minPlayers":2,"maxPlayers":2}]}`
	rules, problems := ruleset.Parse(body)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	h.must(&matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: "pairs", Body: body}, Compiled: rules})
	for _, name := range []string{"duel", "other"} {
		h.must(&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{Name: name, RuleSet: "pairs", RequestTimeout: time.Minute, Standalone: true}})
	}
	before := domain.TimeOf(h.Now())
	var want []string
	for i := range 40 {
		id := fmt.Sprintf("t%02d", i)
		h.must(&matchmaking.StartMatchmaking{Configuration: "duel", ID: id, Players: []matchmaking.Player{{ID: "p-" + id}}})
		if i >= 3 {
			h.must(&matchmaking.StopMatchmaking{ID: id})
		}
		want = append(want, id)
	}
	h.must(&matchmaking.StartMatchmaking{Configuration: "other", ID: "x", Players: []matchmaking.Player{{ID: "p-x"}}})
	check := func(where string) {
		t.Helper()
		x, err := h.TicketsSince(t.Context(), "duel", before, 100)
		if err != nil || !x.Whole {
			t.Fatalf("%s: %v, %+v", where, err, x)
		}
		var got []string
		for _, ticket := range x.Tickets {
			got = append(got, ticket.ID)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want each once", where, got)
		}
	}
	check("while they move to the archive")
	waittest.Until(t, "what ended leaves memory", func() bool { return h.inMemory() == 0 })
	check("in the archive")
	if x, err := h.TicketsSince(t.Context(), "duel", before, 10); err != nil || x.Whole || len(x.Tickets) > 10 {
		t.Errorf("%v, %d tickets, whole %t: want at most 10, and that there are others", err, len(x.Tickets), x.Whole)
	}
	if x, err := h.TicketsSince(t.Context(), "duel", domain.TimeOf(h.Now().Add(time.Hour)), 100); err != nil || len(x.Tickets) != 3 {
		t.Errorf("%v, %d tickets: want only those that wait", err, len(x.Tickets))
	}
}

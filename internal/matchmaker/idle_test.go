package matchmaker

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/waittest"
)

func TestIdleTurnsShareOneTenth(t *testing.T) {
	var turns idleTurns
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 100 { // ten configurations that want a turn at once, again and again
		if got, want := turns.reserve(start, 20*time.Millisecond), start.Add(time.Duration(i)*200*time.Millisecond); got != want {
			t.Fatalf("turn %d is at %s, want %s", i, got.Sub(start), want.Sub(start))
		}
	}
	later := start.Add(time.Hour)
	if got := turns.reserve(later, 20*time.Millisecond); got != later {
		t.Errorf("a turn after a pause is at %s, want at once", got.Sub(start))
	}
}

// equalSums is for two teams of five with the same sum.
const equalSums = `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number"}],
"teams":[{"name":"red","minPlayers":5,"maxPlayers":5},{"name":"blue","minPlayers":5,"maxPlayers":5}],
"rules":[{"name":"Equal","type":"comparison","measurements":["sum(teams[red].players.attributes[skill])"],
"referenceValue":"sum(teams[blue].players.attributes[skill])","operation":"="}]}`

// TestPoolThatStandsStillIsSearchedOn: four tickets are so strong that no team balances a team with one of them. The search
// tries them first since they are the oldest, and no ticket comes after the last.
func TestPoolThatStandsStillIsSearchedOn(t *testing.T) {
	h := newHouse(t)
	h.rules("equal", equalSums)
	h.do(&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{Name: "equal", RuleSet: "equal", RequestTimeout: time.Hour, Standalone: true}})
	for i, skill := range []float64{1e6, 3e6, 9e6, 27e6, 1, 2, 4, 8, 16, 3, 5, 6, 7, 10} {
		h.do(&matchmaking.StartMatchmaking{Configuration: "equal", ID: fmt.Sprint("t", i), Chosen: true, Players: []matchmaking.Player{{
			ID: fmt.Sprint("p", i), Attributes: []ruleset.NamedValue{{Name: "skill", Value: ruleset.Value{Kind: ruleset.Number, Number: skill}}}}}})
	}
	waittest.Until(h, "the match is found", func() bool { return h.status("t4") == matchmaking.Completed })
	for _, s := range h.runner.Status() {
		if s.Configuration == "equal" && s.Continued == 0 {
			t.Errorf("it was found at once, want a pool that takes longer: %+v", s.Stats)
		}
	}
}

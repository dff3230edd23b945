package arenaclient

import (
	"testing"

	"github.com/musterhq/muster/examples/arena"
	"github.com/musterhq/muster/gameclient"
)

// A player who is still in an earlier party leaves it for the new one, and gets an event about that.
func TestLeavingTheOldPartyEndsNothing(t *testing.T) {
	f := flow{inParty: "pty-new"}
	removed := gameclient.Event{Type: gameclient.OnRemovedFromParty, EventData: gameclient.EventData{PartyID: "pty-old", Reason: "SWITCHED"}}
	if _, err := f.see(t.Context(), removed); err != nil {
		t.Errorf("of the old party: %v", err)
	}
	removed.PartyID = "pty-new"
	if _, err := f.see(t.Context(), removed); err == nil {
		t.Error("of the own party: no error")
	}
}

func TestWalk(t *testing.T) {
	for line, want := range map[string]int{"d": 1, "dddd": 4, "dad": 0, "hello": 0, "é": 0} {
		direction, steps := walk(line)
		if steps != want || want > 0 && direction != arena.East {
			t.Errorf("%q: %d steps %v, want %d", line, steps, direction, want)
		}
	}
}

package operator

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/playerflow/inspection"
)

// Player flow does not know why a player waits for a host, but the placement does.
func TestPlayerWhoWaitsForAHost(t *testing.T) {
	now := domain.TimeOf(time.Unix(1_700_000_000, 0))
	s := standing{line: inspection.PlayerLine{Since: now.Add(-90 * time.Second)}}
	s.Game = flow.InstanceID{15: 7}
	s.snapshot.Game = &playerflow.GameView{Instance: flow.Instance{Status: flow.InstancePending, Placement: "p-1"}, Membership: flow.Membership{Status: flow.MemberPending}}
	for _, part := range []string{"The player is in a game, without a party, unchanged for 1m30s.", "no host yet: muster explain placement p-1 says why"} {
		if why := whyPlayer(&s, now); !strings.Contains(why, part) {
			t.Errorf("%q is not in %q", part, why)
		}
	}
	var x Explanation
	playerFacts(&x, &s)
	for _, f := range x.Facts {
		if f.Name == "membership" && f.Value != "PENDING, attempt 0" {
			t.Errorf("membership: %q", f.Value)
		}
	}
}

func TestMembershipInWords(t *testing.T) {
	for lost, want := range map[int]string{0: "ACTIVE, attempt 2", 1: "ACTIVE, attempt 2, lost the connection once", 3: "ACTIVE, attempt 2, lost the connection 3 times"} {
		m := flow.Membership{Status: flow.MemberActive, Attempt: 2}
		m.Disconnects += int32(lost)
		if got := membershipInWords(&m); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

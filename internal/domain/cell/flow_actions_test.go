package cell

import (
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// actionsTold returns the allowed actions that a player was told after an event.
func (w *flowWorld) actionsTold(player string, since uint64) (all []flow.Actions) {
	w.t.Helper()
	v := w.cell.View()
	events, _, _ := v.EventsAfter(player, since, 1000)
	for _, e := range events {
		if e.Type != flow.OnAllowedActionsChanged && e.Type != flow.OnGameSessionChanged {
			continue
		}
		m, err := flow.DecodeMessage(e.Body)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, m.Allowed)
	}
	return all
}

// wantAllowed compares the latest actions that a player was told since a number with the state, and looks for one action in them.
func (w *flowWorld) wantAllowed(player string, since uint64, action flow.Actions, want bool) {
	w.t.Helper()
	r, _ := w.cell.playerflow.Flow.Player(player)
	now, told := w.cell.playerflow.AllowedActions(r), w.actionsTold(player, since)
	if len(told) != 1 || told[0] != now || (now&action != 0) != want {
		w.t.Errorf("%s was told %v, and may do %v; want to be told once, and %v: %v", player, told, now.Names(), action.Names(), want)
	}
}

// Players are told their allowed actions when these change, once in a transaction, and only then. The revision of their record stays.
func TestActionsAreTold(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.queues()
	w.party("a", "b")
	rev, since := w.player("a").Rev, w.seq("a")
	w.must(&playerflow.SetReady{Caller: w.as("a"), Ready: true})
	if told := w.actionsTold("a", since); len(told) != 0 {
		t.Errorf("nothing is allowed that was not, and a is told %v", told)
	}
	w.must(&playerflow.SetReady{Caller: w.as("b"), Ready: true})
	w.wantAllowed("a", since, flow.CanEnterMatchmaking, true)
	since = w.seq("a")
	w.offline("b")
	w.wantAllowed("a", since, flow.CanEnterMatchmaking, false)
	since = w.seq("a")
	w.attach("b")
	w.wantAllowed("a", since, flow.CanEnterMatchmaking, true)
	since = w.seq("a")
	w.must(&playerflow.SetReady{Caller: w.as("b"), Ready: false})
	w.wantAllowed("a", since, flow.CanEnterMatchmaking, false)
	since, other := w.seq("a"), w.seq("b")
	w.must(&playerflow.PromoteLeader{Caller: w.as("a"), Target: "b"})
	w.wantAllowed("a", since, flow.CanKickPlayer, false)
	w.wantAllowed("b", other, flow.CanKickPlayer, true)
	if after := w.player("a").Rev; after != rev {
		t.Errorf("the revision went from %d to %d without a change of the keys", rev, after)
	}
}

// A lost seat, a game whose host is about to end, and an operator's lock also change the allowed actions. So does the end of a lock,
// without a call.
func TestActionsOfGamesAndLocksAreTold(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.queues()
	w.online("a")
	g := w.play(false, flow.ReconnectOptional, "a")
	w.connect(g, "a")
	since := w.seq("a")
	w.lose(g, w.member("a").Session)
	w.wantAllowed("a", since, flow.CanDeclineReconnect, true)
	since = w.seq("a")
	w.must(&hosting.TerminateGameSession{ID: w.gameOf(g).ID})
	w.wantAllowed("a", since, flow.CanGetHostConnectionDetails, false)
	w.must(&playerflow.ForceEnd{Instance: g})

	since = w.seq("a")
	w.must(&playerflow.SetPenalty{Player: "a", Penalty: flow.Penalty{Kind: flow.ByOperator, Until: w.now.Add(time.Minute)}})
	w.wantAllowed("a", since, flow.CanEnterMatchmaking, false)
	since = w.seq("a")
	w.pass(time.Minute + time.Second)
	w.wantAllowed("a", since, flow.CanEnterMatchmaking, true)
}

// A player who is not logged in receives nothing.
func TestActionsOfThoseWhoAreGone(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.party("a", "b")
	w.must(&playerflow.Logout{Caller: w.as("b")})
	since := w.seq("b")
	w.must(&playerflow.SetPenalty{Player: "b", Penalty: flow.Penalty{Kind: flow.ByOperator, Until: w.now.Add(time.Minute)}})
	if told := w.actionsTold("b", since); len(told) != 0 {
		t.Errorf("b, who is not logged in, is told %v", told)
	}
}

// A player who repeatedly leaves the queue is told of the lock and its step, counted from 0, in every mode of penalties.
func TestRequeueLockIsTold(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Penalties.Mode = flow.PenaltiesOff })
	w.queues()
	w.online("a")
	var locks []flow.Penalty
	leave := func() {
		w.must(&playerflow.EnterMatchmaking{Caller: w.as("a"), Ticket: domain.TicketID(w.id()), Queue: testQueue})
		since := w.seq("a")
		w.must(&playerflow.LeaveMatchmaking{Caller: w.as("a")})
		v := w.cell.View()
		events, _, _ := v.EventsAfter("a", since, 100)
		for _, e := range events {
			if m, _ := flow.DecodeMessage(e.Body); e.Type == flow.OnPenaltyApplied {
				locks = append(locks, *m.Penalty)
			}
		}
	}
	for range 3 {
		leave()
	}
	w.pass(16 * time.Second)
	leave()
	steps := make([]int32, len(locks))
	for i, lock := range locks {
		steps[i] = lock.Step()
		if lock.Kind != flow.Requeue || lock.Until <= lock.Since {
			t.Errorf("the lock: %+v", lock)
		}
	}
	if !slices.Equal(steps, []int32{0, 1}) {
		t.Errorf("locks with the steps %v, want 0 and 1", steps)
	}
}

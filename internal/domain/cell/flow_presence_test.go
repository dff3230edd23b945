package cell

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

func (w *flowWorld) poll(player string) {
	w.t.Helper()
	w.must(&playerflow.PollEvents{Player: player, LoginSessionID: w.logins[player]})
}

// TestPollsKeepAPlayerOnline: a poll counts for deadAfter, whenever the one before it was and whatever the stream does.
func TestPollsKeepAPlayerOnline(t *testing.T) {
	online := func(t *testing.T, w *flowWorld) {
		t.Helper()
		if p := w.player("a").Presence; p != flow.Online {
			t.Errorf("a is %s", p)
		}
	}
	for _, deadAfter := range []time.Duration{2 * time.Second, 25 * time.Second} {
		t.Run(fmt.Sprintf("an event ended a poll, deadAfter %s", deadAfter), func(t *testing.T) {
			w := newFlowWorld(t, func(c *flow.Config) {
				c.Sessions.PingInterval, c.Sessions.DeadAfter = time.Second, deadAfter
			})
			w.party("a", "b")
			w.offline("a")
			for part := range 10 {
				early := time.Duration(part) * deadAfter / 10
				w.poll("a")
				w.pass(early)
				w.poll("a")
				before := w.seq("b")
				w.pass(deadAfter - time.Millisecond)
				online(t, w)
				w.wantTold("b", before, "")
			}
			w.pass(deadAfter/5 + 2*time.Millisecond)
			if p := w.player("a").Presence; p != flow.Offline {
				t.Errorf("a is %s long after the last poll", p)
			}
		})
	}
	t.Run("the stream is lost", func(t *testing.T) {
		w := newFlowWorld(t, nil)
		ticket := w.search("a", "b")
		before := w.seq("b")
		w.pass(10 * time.Second)
		w.poll("a")
		w.pass(15 * time.Second)
		w.offline("a")
		online(t, w)
		w.pass(9 * time.Second)
		w.poll("a")
		w.pass(20 * time.Second)
		online(t, w)
		w.wantTold("b", before, "")
		if r, _ := w.cell.playerflow.Flow.PartyByTicket(ticket); w.cell.playerflow.Flow.Parties.Get(r).Search.Status == flow.Held {
			t.Error("the search is held back")
		}
		w.pass(6 * time.Second)
		w.wantTold("b", before, "PartyMemberPresence MatchmakingStatus")
	})
	t.Run("a stream comes and goes between polls", func(t *testing.T) {
		w := newFlowWorld(t, nil)
		w.party("a", "b")
		w.poll("a")
		w.attach("a")
		w.offline("a")
		online(t, w)
		w.pass(26 * time.Second)
		if p := w.player("a").Presence; p != flow.Offline {
			t.Errorf("a is %s long after the last poll", p)
		}
	})
	t.Run("polls of a login that was replaced do not count", func(t *testing.T) {
		w := newFlowWorld(t, nil)
		w.party("a", "b")
		w.poll("a")
		w.login("a")
		w.attach("a")
		w.offline("a")
		if p := w.player("a").Presence; p != flow.Offline {
			t.Errorf("a is %s", p)
		}
	})
}

// TestSyncHasANewNumber: an OnSync is no event that a client can have seen, also when it has seen all there are.
func TestSyncHasANewNumber(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.party("a", "b")
	attach := func(after uint64) uint64 {
		t.Helper()
		w.stream++
		cmd := &playerflow.AttachStream{Player: "a", LoginSessionID: w.logins["a"], Stream: w.stream, After: after}
		w.must(cmd)
		return cmd.Sync
	}
	poll := func(after uint64) uint64 {
		t.Helper()
		cmd := &playerflow.PollEvents{Player: "a", LoginSessionID: w.logins["a"], After: &after}
		w.must(cmd)
		return cmd.Sync
	}
	for _, begin := range []func(uint64) uint64{attach, poll} {
		for _, after := range []uint64{0, w.seq("a") + 100} {
			head := w.seq("a")
			if got := begin(after); got != head+1 || w.seq("a") != got {
				t.Errorf("behind %d: OnSync has number %d, the head was %d and is %d", after, got, head, w.seq("a"))
			}
		}
		head := w.seq("a")
		if got := begin(head); got != 0 || w.seq("a") != head {
			t.Errorf("a client that has everything gets OnSync %d", got)
		}
	}
	syncs := 0
	for _, x := range w.player("a").Outbox() {
		if x.Type == flow.OnSync {
			syncs++
		}
	}
	if syncs != 1 {
		t.Errorf("the outbox holds %d OnSync, want 1: a replay would send everything as often", syncs)
	}
}

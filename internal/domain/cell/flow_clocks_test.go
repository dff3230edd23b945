package cell

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// TestSessionExpiring: the player of a silent login session gets an event a minute before it ends.
func TestSessionExpiring(t *testing.T) {
	hour := func(c *flow.Config) { c.Sessions.IdleExpiry = time.Hour }
	t.Run("it ends", func(t *testing.T) {
		w := newFlowWorld(t, hour)
		w.login("a")
		w.pass(time.Hour - playerflow.ExpiryNotice - time.Second)
		w.wantTold("a", 0, "")
		w.pass(2 * time.Second)
		w.wantTold("a", 0, "SessionExpiring")
		m, _ := flow.DecodeMessage(w.player("a").Outbox()[0].Body)
		if want := w.cell.WallTime(w.cell.playerflow.Flow.Logins.Get(w.player("a").Login()).ExpireBy); m.Deadline != want {
			t.Errorf("it is said to end at %d, want %d", m.Deadline, want)
		}
		w.pass(playerflow.ExpiryNotice)
		if w.player("a").Login() != 0 {
			t.Error("the login session has not ended")
		}
		w.wantTold("a", 0, "SessionExpiring")
	})
	t.Run("a sign of life after the notice", func(t *testing.T) {
		w := newFlowWorld(t, hour)
		w.login("a")
		w.pass(time.Hour - playerflow.ExpiryNotice/2)
		w.wantTold("a", 0, "SessionExpiring")
		w.attach("a")
		w.offline("a")
		since := w.seq("a")
		w.pass(time.Hour - 2*playerflow.ExpiryNotice)
		if told := w.seq("a"); told != since || w.player("a").Login() == 0 {
			t.Errorf("told %d times more, want none; logged in: %t", told-since, w.player("a").Login() != 0)
		}
		w.pass(playerflow.ExpiryNotice + time.Second)
		w.wantTold("a", since, "SessionExpiring")
	})
	t.Run("who is here is not told", func(t *testing.T) {
		w := newFlowWorld(t, hour)
		w.online("a")
		w.pass(5 * time.Hour)
		w.wantTold("a", 0, "")
		if w.player("a").Login() == 0 {
			t.Error("the login session of a player who is here has ended")
		}
	})
}

// TestReadyTimeout: members stay ready only for a limited time. The clock stops while they search or play.
func TestReadyTimeout(t *testing.T) {
	minute := func(c *flow.Config) { c.Parties.ReadyTimeout = time.Minute }
	ready := func(w *flowWorld, player string) bool {
		r, _ := w.cell.playerflow.Flow.Party(w.keys(player).Party)
		p := w.cell.playerflow.Flow.Parties.Get(r)
		i, _ := p.Member(player)
		return p.Members[i].Ready
	}
	t.Run("in a party", func(t *testing.T) {
		w := newFlowWorld(t, minute)
		w.party("a", "b")
		w.must(&playerflow.SetReady{Caller: w.as("a"), Ready: true})
		w.pass(30 * time.Second)
		w.must(&playerflow.SetReady{Caller: w.as("b"), Ready: true})
		before := w.seq("b")
		w.pass(29 * time.Second)
		w.wantTold("b", before, "")
		w.pass(2 * time.Second)
		w.wantTold("b", before, "PartyChanged:READY")
		if ready(w, "a") || !ready(w, "b") {
			t.Errorf("ready: a %t, b %t; want only b", ready(w, "a"), ready(w, "b"))
		}
		w.pass(time.Minute)
		if ready(w, "b") {
			t.Error("b is ready for ever")
		}
	})
	t.Run("in a search", func(t *testing.T) {
		w := newFlowWorld(t, minute)
		w.search("a", "b")
		w.pass(2 * time.Minute)
		if !ready(w, "a") || !ready(w, "b") {
			t.Error("who searches is not ready")
		}
		w.must(&playerflow.LeaveMatchmaking{Caller: w.as("a")})
		w.pass(59 * time.Second)
		if !ready(w, "b") {
			t.Error("the clock did not begin anew after the search")
		}
		w.pass(2 * time.Second)
		if ready(w, "b") {
			t.Error("b is ready for ever")
		}
	})
	t.Run("off", func(t *testing.T) {
		w := newFlowWorld(t, nil)
		w.party("a", "b")
		w.must(&playerflow.SetReady{Caller: w.as("a"), Ready: true})
		w.pass(30 * time.Minute)
		if !ready(w, "a") {
			t.Error("a is not ready, and readyTimeout is off")
		}
	})
}

// TestSearchTimeouts: player flow overrides the timeouts of the matchmaking configuration: 5 minutes, and 20 seconds to accept.
func TestSearchTimeouts(t *testing.T) {
	own := func(c *flow.Config) {
		c.Search.TicketTimeout, c.Search.AcceptanceTimeout = time.Hour, time.Minute
		c.Queues = []flow.QueueConfig{{Name: testQueue, Own: []flow.Setting{{Name: "ticketTimeout", Value: `"1m"`}}},
			{Name: acceptQueue, Own: []flow.Setting{{Name: "acceptanceTimeout", Value: `"5s"`}}}}
	}
	t.Run("ticketTimeout of the queue", func(t *testing.T) {
		w := newFlowWorld(t, own)
		w.search("a")
		w.pass(59 * time.Second)
		w.wantPhase("a", flow.Matchmaking)
		before := w.seq("a")
		w.pass(2 * time.Second)
		w.wantTold("a", before, "GameSessionChanged MatchmakingFailed:TIMEOUT")
	})
	t.Run("ticketTimeout of the service", func(t *testing.T) {
		w := newFlowWorld(t, own)
		w.searchIn(acceptQueue, "a")
		w.pass(time.Hour - time.Second)
		w.wantPhase("a", flow.Matchmaking)
		w.pass(2 * time.Second)
		w.wantPhase("a", flow.InParty)
	})
	t.Run("acceptanceTimeout of the queue", func(t *testing.T) {
		w := newFlowWorld(t, own)
		a, b := w.searchIn(acceptQueue, "a"), w.searchIn(acceptQueue, "b")
		if refused := w.propose(acceptQueue, a, b); refused != nil {
			t.Fatal(refused)
		}
		w.pass(4 * time.Second)
		w.wantPhase("a", flow.Matchmaking)
		w.pass(2 * time.Second)
		w.wantPhase("a", flow.InParty)
	})
}

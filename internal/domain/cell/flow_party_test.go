package cell

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// TestT2Party checks the rows of docs/spec/player-flow.md#t2 that are about parties.
func TestT2Party(t *testing.T) {
	t.Run("invite expires", func(t *testing.T) {
		w := newFlowWorld(t, nil)
		w.party("a")
		w.online("b")
		w.must(&playerflow.SendInvite{Caller: w.as("a"), ID: flow.InviteID(w.id()), Target: "b"})
		before := w.seq("a")
		w.pass(2*time.Minute + time.Second)
		w.wantTold("a", before, "PartyInviteCancelled:EXPIRED")
		w.wantTold("b", 0, "PartyInviteReceived PartyInviteCancelled:EXPIRED")
	})
	t.Run("leader offline", func(t *testing.T) {
		w := newFlowWorld(t, nil)
		id := w.party("a", "b")
		w.offline("a")
		w.pass(29 * time.Second)
		r, _ := w.cell.playerflow.Flow.Party(id)
		if !w.cell.playerflow.Flow.Parties.Get(r).Leads("a") {
			t.Error("the lead was taken too early")
		}
		w.pass(2 * time.Second)
		if !w.cell.playerflow.Flow.Parties.Get(r).Leads("b") || w.cell.playerflow.Flow.Parties.Get(r).Leads("a") {
			t.Error("b does not lead")
		}
		w.attach("a")
		w.pass(time.Minute)
		if w.cell.playerflow.Flow.Parties.Get(r).Leads("a") {
			t.Error("a got the lead back by coming back")
		}
	})
	t.Run("member offline", func(t *testing.T) {
		w := newFlowWorld(t, nil)
		w.party("a", "b")
		w.offline("b")
		w.pass(119 * time.Second)
		w.wantPhase("b", flow.InParty)
		w.pass(2 * time.Second)
		w.wantPhase("b", flow.Idle)
		w.wantPhase("a", flow.InParty)
		if got := w.told("b", 0); got[len(got)-len("RemovedFromParty:OFFLINE"):] != "RemovedFromParty:OFFLINE" {
			t.Errorf("b was told %s", got)
		}
	})
	t.Run("member offline in a game", func(t *testing.T) {
		w := newFlowWorld(t, nil)
		w.party("a", "b")
		g := w.play(false, flow.ReconnectRequired, "b")
		w.connect(g, "b")
		w.offline("b")
		w.pass(10 * time.Minute)
		w.wantPhase("b", flow.InGameWithParty)
		w.must(&playerflow.EndGame{Instance: g})
		w.pass(119 * time.Second) // the timer starts again
		w.wantPhase("b", flow.InParty)
		w.pass(2 * time.Second)
		w.wantPhase("b", flow.Idle)
	})
	t.Run("nobody there", func(t *testing.T) {
		w := newFlowWorld(t, func(c *flow.Config) {
			c.Parties.OfflineRemoval, c.Parties.StaleExpiration = time.Hour, 10*time.Minute
		})
		w.party("a", "b")
		w.offline("a")
		w.offline("b")
		w.pass(9 * time.Minute)
		w.wantPhase("a", flow.InParty)
		w.pass(2 * time.Minute)
		w.wantPhase("a", flow.Idle)
		w.wantPhase("b", flow.Idle)
		if w.cell.playerflow.Flow.Parties.Len() != 0 {
			t.Error("the party is still there")
		}
	})
	for phase, want := range []flow.Phase{1: flow.Idle, 2: flow.Idle, 3: flow.InGame} {
		if phase == 0 {
			continue
		}
		w := newFlowWorld(t, nil)
		phases[phase](w)
		before := w.seq("me")
		w.must(&playerflow.ShutDownParty{Party: w.keys("me").Party})
		w.wantPhase("me", want)
		w.wantPhase("friend", flow.Idle)
		told := "GameSessionChanged RemovedFromParty:SHUT_DOWN"
		if phase == 2 {
			told = "GameSessionChanged LeftMatchmaking:PARTY_SHUT_DOWN RemovedFromParty:SHUT_DOWN"
		}
		w.wantTold("me", before, told)
	}
}

// TestOneRevisionForEachCommit checks docs/spec/player-flow.md#i9: rev increases by one with each commit that changes a key. Each such commit has one
// OnGameSessionChanged, which is its first event.
func TestOneRevisionForEachCommit(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.party("a", "b")
	w.party("c", "d")
	rev, before := w.player("a").Rev, w.seq("a")
	r, _ := w.cell.playerflow.Flow.Player("c")
	w.must(&playerflow.JoinParty{Caller: w.as("a"), Party: w.cell.playerflow.Flow.Players.Get(r).Keys.Party})
	if got := w.player("a").Rev; got != rev+1 {
		t.Errorf("rev rose from %d to %d by one commit", rev, got)
	}
	w.wantTold("a", before, "GameSessionChanged RemovedFromParty:SWITCHED AddedToParty PartyChanged:JOINED")
	if w.player("b").Rev != 1 || w.player("c").Rev != 1 {
		t.Error("the revision of a player with unchanged keys rose")
	}
	before = w.seq("a")
	w.must(&playerflow.SetReady{Caller: w.as("a"), Ready: true})
	w.wantTold("a", before, "PartyChanged:READY")
	if got := w.player("a").Rev; got != rev+1 {
		t.Errorf("rev rose to %d, and no key changed", got)
	}
}

// TestEventsHaveNoGaps: event numbers increase by one, across logins and restarts, and a client is told of events that are no longer stored.
func TestEventsHaveNoGaps(t *testing.T) {
	w := newFlowWorld(t, func(c *flow.Config) { c.Sessions.EventsKept, c.Sessions.EventsKeptFor = 20, time.Minute })
	w.party("a", "b")
	for range 40 {
		w.must(&playerflow.SetReady{Caller: w.as("b"), Ready: true})
		w.must(&playerflow.SetReady{Caller: w.as("b"), Ready: false})
		w.pass(10 * time.Second)
	}
	v := w.cell.View()
	p := w.player("a")
	events, head, ok := v.EventsAfter("a", p.FirstKept()-1, 1000)
	if !ok || head != p.Seq || len(events) < 20 || events[0].Seq != p.FirstKept() || events[len(events)-1].Seq != head {
		t.Fatalf("%d events up to %d (%t), the first is %d", len(events), head, ok, p.FirstKept())
	}
	for i, e := range events[1:] {
		if e.Seq != events[i].Seq+1 || e.Commit <= events[i].Commit-1 {
			t.Fatalf("event %d of commit %d follows %d of %d", e.Seq, e.Commit, events[i].Seq, events[i].Commit)
		}
	}
	if _, _, ok := v.EventsAfter("a", p.FirstKept()-2, 1000); ok {
		t.Error("a gap was not noticed")
	}
	if _, _, ok := v.EventsAfter("a", p.Seq+1, 1000); ok {
		t.Error("a client that is ahead was not noticed")
	}
	if rest, _, ok := v.EventsAfter("a", p.Seq, 1000); !ok || len(rest) != 0 {
		t.Error("a client that has everything gets something")
	}
	w.must(&playerflow.AckEvents{Player: "a", LoginSessionID: w.logins["a"], Seq: p.Seq})
	seq := w.player("a").Seq
	w.login("a")
	w.must(&kernel.Resume{})
	if got := w.player("a").Seq; got != seq+1 { // OnSessionReplaced
		t.Errorf("the numbers go on with %d behind %d", got, seq)
	}
}

// TestOutboxesOfThoseAwayAreDropped: a player who is away for long takes little memory.
func TestOutboxesOfThoseAwayAreDropped(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.party("a")
	w.must(&playerflow.Logout{Caller: w.as("a")})
	w.pass(16 * time.Minute)
	if p := w.player("a"); len(p.Outbox()) != 0 || p.Seq == 0 {
		t.Errorf("%d events are kept, the last number is %d", len(p.Outbox()), p.Seq)
	}
	w.pass(31 * 24 * time.Hour)
	if _, ok := w.cell.playerflow.Flow.Player("a"); ok {
		t.Error("the player is still known")
	}
}

// TestRepeatedRequest: a repeat gets the first answer and changes nothing. After ten minutes it counts as a new request.
func TestRepeatedRequest(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.online("a")
	by := w.as("a")
	by.Request = "r1"
	first := &playerflow.CreateParty{Caller: by, ID: flow.PartyID(w.id())}
	w.must(first)
	w.must(&playerflow.SetReady{Caller: w.as("a"), Ready: true})
	entries, dump := len(w.journal), string(w.dump())
	again := &playerflow.CreateParty{Caller: by, ID: flow.PartyID(w.id())}
	w.must(again)
	if !again.Repeated || again.Made != first.Made || again.Flow != first.Flow || len(w.journal) != entries || string(w.dump()) != dump {
		t.Errorf("repeat: %+v, first %+v", again.Caller, first.Caller)
	}
	other := w.login("b")
	other.Request = "r1"
	w.must(&playerflow.CreateParty{Caller: other, ID: flow.PartyID(w.id())})
	w.pass(10*time.Minute + time.Second)
	w.must(again)
	if again.Repeated && again.Made == first.Made {
		t.Error("the request is remembered for ever")
	}
	if n := w.cell.playerflow.Flow.Requests.Len(); n != 1 {
		t.Errorf("%d requests are remembered, want 1", n)
	}
}

// TestIfRev checks the header X-If-Rev.
func TestIfRev(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.party("a")
	rev := w.player("a").Rev
	by := w.as("a")
	old := rev - 1
	by.IfRev = &old
	w.refused(&playerflow.LeaveParty{Caller: by}, flow.RevConflict)
	by.IfRev = &rev
	w.must(&playerflow.LeaveParty{Caller: by})
}

// TestInvitesOutliveTheirSender, and a kick ends those of the kicked.
func TestInvitesOutliveTheirSender(t *testing.T) {
	w := newFlowWorld(t, nil)
	id := w.party("a", "b")
	w.online("c")
	invite := &playerflow.SendInvite{Caller: w.as("b"), ID: flow.InviteID(w.id()), Target: "c"}
	w.must(invite)
	again := &playerflow.SendInvite{Caller: w.as("a"), ID: flow.InviteID(w.id()), Target: "c"}
	w.must(again)
	if flow.InviteID(again.Made) != invite.ID {
		t.Error("a second invite was made")
	}
	w.must(&playerflow.LeaveParty{Caller: w.as("b")})
	w.refused(&playerflow.CancelInvite{Caller: w.as("b"), Invite: invite.ID}, flow.InviteNotFound)
	w.must(&playerflow.JoinParty{Caller: w.as("c"), Invite: invite.ID})
	if w.keys("c").Party != id {
		t.Error("c is in another party")
	}
	if len(w.cell.playerflow.Flow.InvitesTo("c")) != 0 {
		t.Error("the invite is still there")
	}
	w.refused(&playerflow.CancelInvite{Caller: w.as("c"), Invite: flow.InviteID{1}}, flow.InviteNotFound)
	w.online("d")
	w.must(&playerflow.SendInvite{Caller: w.as("a"), ID: flow.InviteID{2}, Target: "d"})
	w.refused(&playerflow.CancelInvite{Caller: w.as("c"), Invite: flow.InviteID{2}}, flow.NotLeader)
	w.refused(&playerflow.SendInvite{Caller: w.as("a"), ID: flow.InviteID(w.id()), Target: "a"}, flow.CannotTargetSelf)
}

package cell

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// TestInvitesTellNothing: whether a player exists, and whom a player blocks, is not to be learned from invites: what the sender is
// answered and told is the same.
func TestInvitesTellNothing(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.party("a")
	w.online("free", "blocks")
	w.must(&playerflow.SetBlocks{Player: "blocks", Blocked: []string{"a"}})
	before, heard := w.seq("a"), map[string]uint64{"free": w.seq("free"), "blocks": w.seq("blocks")}
	targets := []string{"free", "blocks", "nobody"}
	sent := map[string]*playerflow.SendInvite{}
	for _, target := range targets {
		sent[target] = &playerflow.SendInvite{Caller: w.as("a"), ID: flow.InviteID(w.id()), Target: target}
		w.must(sent[target])
		again := &playerflow.SendInvite{Caller: w.as("a"), ID: flow.InviteID(w.id()), Target: target}
		w.must(again)
		if flow.InviteID(sent[target].Made) != sent[target].ID || flow.InviteID(again.Made) != sent[target].ID {
			t.Errorf("%s: made %v, then %v, want %v twice", target, sent[target].Made, again.Made, sent[target].ID)
		}
	}
	w.wantTold("a", before, "")
	w.wantTold("free", heard["free"], "PartyInviteReceived")
	w.wantTold("blocks", heard["blocks"], "")
	if n := len(w.cell.playerflow.Flow.InvitesTo("blocks")) + len(w.cell.playerflow.Flow.InvitesTo("nobody")); n != 0 {
		t.Errorf("%d invites can be seen that must not", n)
	}
	w.refused(&playerflow.JoinParty{Caller: w.as("blocks"), Invite: sent["blocks"].ID}, flow.InviteNotFound)
	w.refused(&playerflow.DeclineInvite{Caller: w.as("blocks"), Invite: sent["blocks"].ID}, flow.InviteNotFound)

	// All can be taken back, and all expire, with the same words.
	for _, target := range targets {
		before := w.seq("a")
		w.must(&playerflow.CancelInvite{Caller: w.as("a"), Invite: sent[target].ID})
		w.wantTold("a", before, "PartyInviteCancelled:CANCELLED")
		w.must(&playerflow.SendInvite{Caller: w.as("a"), ID: flow.InviteID(w.id()), Target: target})
	}
	before = w.seq("a")
	w.pass(2*time.Minute + time.Second)
	w.wantTold("a", before, "PartyInviteCancelled:EXPIRED PartyInviteCancelled:EXPIRED PartyInviteCancelled:EXPIRED")
	w.wantTold("blocks", heard["blocks"], "")
}

// A hidden invite is delivered when it is sent again and the receiver may see it, such as a friend who logs in for the first time.
func TestInviteIsSeenLater(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.party("a")
	first := &playerflow.SendInvite{Caller: w.as("a"), ID: flow.InviteID(w.id()), Target: "friend"}
	w.must(first)
	w.online("friend")
	if len(w.cell.playerflow.Flow.InvitesTo("friend")) != 0 {
		t.Error("the invite is seen at once")
	}
	again := &playerflow.SendInvite{Caller: w.as("a"), ID: flow.InviteID(w.id()), Target: "friend"}
	w.must(again)
	if flow.InviteID(again.Made) != first.ID || len(w.cell.playerflow.Flow.InvitesTo("friend")) != 1 {
		t.Errorf("made %v, want %v, and one that is seen", again.Made, first.ID)
	}
	w.must(&playerflow.JoinParty{Caller: w.as("friend"), Invite: first.ID})
	// Unseen invites count like others.
	w.must(&playerflow.KickPlayer{Caller: w.as("a"), Target: "friend"})
	most := w.cell.playerflow.Config.Parties.InvitesMax
	for i := range most {
		w.must(&playerflow.SendInvite{Caller: w.as("a"), ID: flow.InviteID(w.id()), Target: "nobody-" + string(rune('a'+i))})
	}
	w.refused(&playerflow.SendInvite{Caller: w.as("a"), ID: flow.InviteID(w.id()), Target: "friend"}, flow.RateLimited)
	w.refused(&playerflow.SendInvite{Caller: w.as("a"), ID: flow.InviteID(w.id()), Target: "not a name"}, flow.InvalidArgument)
}

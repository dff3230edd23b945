package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain/flow"
)

// mayReceive reports whether a player exists who has not blocked the sender and has room for an invite.
func (t *invites) mayReceive(player, sender string) bool {
	r, ok := t.Flow.Player(player)
	return ok && !slices.Contains(t.Flow.Players.Get(r).Blocked, sender) && len(t.Flow.InvitesTo(player)) < t.Limits.InvitesToPlayerMax
}

// sent finds a pending invite of a party to a player, including one that only its sender sees; 0 if there is none.
func (t *invites) sent(party flow.PartyID, player string) flow.InviteRef {
	for _, r := range t.Flow.InvitesOf(party) {
		if x := t.Flow.Invites.Get(r); x.To == player && !x.Expired {
			return r
		}
	}
	return 0
}

// pending finds a player's acceptable invite to a party; 0 if there is none.
func (t *invites) pending(party flow.PartyID, player string) flow.InviteRef {
	for _, r := range t.Flow.InvitesTo(player) {
		if x := t.Flow.Invites.Get(r); x.Party == party && !x.Expired {
			return r
		}
	}
	return 0
}

func (t *invites) countPending(party flow.PartyID) (n int) {
	for _, r := range t.Flow.InvitesOf(party) {
		if !t.Flow.Invites.Get(r).Expired {
			n++
		}
	}
	return n
}

// answerable finds an invite that a player can answer.
func (t *invites) answerable(player string, id flow.InviteID) (*flow.Invite, error) {
	r, ok := t.Flow.Invite(id)
	if !ok || t.Flow.Invites.Get(r).To != player || t.Flow.Invites.Get(r).Unseen {
		return nil, flow.Refuse(flow.Refusal{Code: flow.InviteNotFound}, "invite %s not found", id)
	}
	x := t.Flow.Invites.Get(r)
	if x.Expired {
		return nil, flow.Refuse(flow.Refusal{Code: flow.InviteExpired}, "invite %s has expired", id)
	}
	return x, nil
}

// bothSides returns the players to be told of the end of an invite.
func bothSides(x *flow.Invite) []string {
	if x.Unseen {
		return []string{x.From}
	}
	return []string{x.From, x.To}
}

// end removes an invite and tells both sides, unless they were already told that it expired.
func (t *invites) end(r flow.InviteRef, reason flow.Reason) {
	x := *t.Flow.Invites.Get(r)
	t.Emit(&InviteRemoved{x.ID})
	if !x.Expired {
		t.tellPlayers(flow.OnPartyInviteCancelled, flow.Message{Invite: t.inviteView(&x), Reason: reason}, bothSides(&x)...)
	}
}

// due expires an invite, and removes it later.
func (t *invites) due(r flow.InviteRef) {
	x := *t.Flow.Invites.Get(r)
	if x.Expired {
		t.Emit(&InviteRemoved{x.ID})
		return
	}
	view := t.inviteView(&x)
	x.Expired, x.ExpireBy = true, t.Contact.Add(expiredKept)
	t.Emit(&InviteChanged{x})
	t.tellPlayers(flow.OnPartyInviteCancelled, flow.Message{Invite: view, Reason: flow.Expired}, bothSides(&x)...)
}

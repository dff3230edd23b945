package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// SendInvite lets a player join the caller's party. Made is the invite; one that is pending already stays as it is.
//
// A caller does not learn who exists and who blocks them. An invite for such a player is one like any other for its sender: it
// counts, can be taken back, and expires. Nobody else sees it (B193). So is an invite for a player who has InvitesToPlayerMax.
type SendInvite struct {
	Caller
	ID     domain.UUID // of the invite to be
	Target string
}

func (cmd *SendInvite) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, party, done, err := t.partyCaller(&cmd.Caller, "SendInvite", t.ownParty)
	if err != nil || done {
		return err
	}
	p, x := t.Flow.Players.Get(r), t.Flow.Parties.Get(party)
	if cmd.Target == p.ID {
		return flow.Refuse(flow.Refusal{Code: flow.CannotTargetSelf}, "player_id: %s is the caller", p.ID)
	}
	if err := checkPlayerID("player_id", cmd.Target); err != nil {
		return err
	}
	switch _, member := x.Member(cmd.Target); {
	case member:
		return flow.Refuse(flow.Refusal{Code: flow.AlreadyInParty, Players: []string{cmd.Target}}, "player %s is in the party already", cmd.Target)
	case slices.Contains(p.Blocked, cmd.Target):
		return flow.Refuse(flow.Refusal{Code: flow.PermissionDenied}, "player %s is blocked by the caller", cmd.Target)
	}
	unseen := !t.mayBeInvited(cmd.Target, p.ID)
	old := t.sentInvite(x.ID, cmd.Target)
	if old != 0 {
		sent := t.Flow.Invites.Get(old)
		cmd.Made = sent.ID
		if unseen || !sent.Unseen || cmd.looks() {
			return nil
		}
		cmd.ID = sent.ID // it can be seen from now on
		t.Emit(&InviteRemoved{sent.ID})
	} else if n, most := t.pendingInvites(x.ID), t.Config.Parties.InvitesMax; n >= most {
		return flow.Refuse(flow.Refusal{Code: flow.RateLimited}, "party pty-%s has %d pending invites; the limit is %d", x.ID, n, most)
	}
	if cmd.looks() {
		return nil
	}
	invite := flow.Invite{
		ID: cmd.ID, Party: x.ID, From: p.ID, To: cmd.Target, Unseen: unseen, Created: t.Now, ExpireBy: t.Contact.Add(t.Config.Parties.InviteTimeout),
	}
	t.Emit(&InviteChanged{invite})
	if !unseen {
		t.tellPlayers(flow.OnPartyInviteReceived, flow.Message{Invite: t.inviteView(&invite)}, invite.To)
	}
	cmd.Made = cmd.ID
	return nil
}

// mayBeInvited reports whether a player exists who has not blocked the sender and has room for an invite.
func (t *Tx) mayBeInvited(player, sender string) bool {
	r, ok := t.Flow.Player(player)
	return ok && !slices.Contains(t.Flow.Players.Get(r).Blocked, sender) && len(t.Flow.InvitesTo(player)) < t.Limits.InvitesToPlayerMax
}

// sentInvite finds an invite that a party waits with, also one that only its sender knows of; 0 when there is none.
func (t *Tx) sentInvite(party domain.UUID, player string) flow.InviteRef {
	for _, r := range t.Flow.InvitesOf(party) {
		if x := t.Flow.Invites.Get(r); x.To == player && !x.Expired {
			return r
		}
	}
	return 0
}

// bothSides are those who hear of the end of an invite.
func bothSides(x *flow.Invite) []string {
	if x.Unseen {
		return []string{x.From}
	}
	return []string{x.From, x.To}
}

// pendingInvite finds a player's invite to a party; 0 when there is none that can be accepted.
func (t *Tx) pendingInvite(party domain.UUID, player string) flow.InviteRef {
	for _, r := range t.Flow.InvitesTo(player) {
		if x := t.Flow.Invites.Get(r); x.Party == party && !x.Expired {
			return r
		}
	}
	return 0
}

func (t *Tx) pendingInvites(party domain.UUID) (n int) {
	for _, r := range t.Flow.InvitesOf(party) {
		if !t.Flow.Invites.Get(r).Expired {
			n++
		}
	}
	return n
}

// inviteTo finds an invite that a player can answer.
func (t *Tx) inviteTo(player string, id domain.UUID) (*flow.Invite, error) {
	r, ok := t.Flow.Invite(id)
	if !ok || t.Flow.Invites.Get(r).To != player || t.Flow.Invites.Get(r).Unseen {
		return nil, flow.Refuse(flow.Refusal{Code: flow.InviteNotFound}, "invite inv-%s not found", id)
	}
	x := t.Flow.Invites.Get(r)
	if x.Expired {
		return nil, flow.Refuse(flow.Refusal{Code: flow.InviteExpired}, "invite inv-%s has expired", id)
	}
	return x, nil
}

// CancelInvite takes an invite back: its sender may, and a leader of the party.
type CancelInvite struct {
	Caller
	Invite domain.UUID
}

func (cmd *CancelInvite) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, done, err := t.caller(&cmd.Caller, "CancelInvite")
	if err != nil || done {
		return err
	}
	p := t.Flow.Players.Get(r)
	invite, ok := t.Flow.Invite(cmd.Invite)
	if !ok || p.Keys.Party.IsZero() || t.Flow.Invites.Get(invite).Party != p.Keys.Party {
		return flow.Refuse(flow.Refusal{Code: flow.InviteNotFound}, "invite inv-%s not found", cmd.Invite)
	}
	party, _ := t.Flow.Party(p.Keys.Party)
	switch x := t.Flow.Invites.Get(invite); {
	case x.Expired:
		return flow.Refuse(flow.Refusal{Code: flow.InviteExpired}, "invite inv-%s has expired", cmd.Invite)
	case x.From != p.ID && !t.Flow.Parties.Get(party).Leads(p.ID):
		return flow.Refuse(flow.Refusal{Code: flow.NotLeader}, "invite inv-%s was sent by %s", cmd.Invite, x.From)
	}
	t.endInvite(invite, flow.Cancelled)
	return nil
}

// DeclineInvite says no to an invite. JoinParty says yes.
type DeclineInvite struct {
	Caller
	Invite domain.UUID
}

func (cmd *DeclineInvite) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	_, done, err := t.caller(&cmd.Caller, "RespondToInvite")
	if err != nil || done {
		return err
	}
	x, err := t.inviteTo(cmd.Player, cmd.Invite)
	if err != nil {
		return err
	}
	invite := *x
	t.Emit(&InviteRemoved{invite.ID})
	t.tellPlayers(flow.OnPartyInviteResponse, flow.Message{Invite: t.inviteView(&invite), Player: cmd.Player}, invite.From)
	return nil
}

// endInvite drops an invite and tells both sides, unless they were told that it had expired.
func (t *Tx) endInvite(r flow.InviteRef, reason flow.Reason) {
	x := *t.Flow.Invites.Get(r)
	t.Emit(&InviteRemoved{x.ID})
	if !x.Expired {
		t.tellPlayers(flow.OnPartyInviteCancelled, flow.Message{Invite: t.inviteView(&x), Reason: reason}, bothSides(&x)...)
	}
}

// inviteDue lets an invite expire, and later forgets it.
func (t *Tx) inviteDue(r flow.InviteRef) {
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

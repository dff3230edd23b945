package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// SendInvite lets a player join the caller's party. Made is the invite. An already pending invite stays unchanged.
//
// The caller must not learn which players exist or block the caller. To its sender, an invite to such a player looks like any other: it
// counts, can be cancelled, and expires. But no other player sees it (B193). The same holds for a player who has InvitesToPlayerMax
// invites.
type SendInvite struct {
	Caller
	ID     flow.InviteID // of the new invite
	Target string
}

func (cmd *SendInvite) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, party, done, err := t.parties.partyCaller(&cmd.Caller, "SendInvite", t.parties.of)
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
	unseen := !t.invites.mayReceive(cmd.Target, p.ID)
	old := t.invites.sent(x.ID, cmd.Target)
	if old != 0 {
		sent := t.Flow.Invites.Get(old)
		cmd.Made = domain.UUID(sent.ID)
		if unseen || !sent.Unseen || cmd.looks() {
			return nil
		}
		cmd.ID = sent.ID // it becomes visible now
		t.Emit(&InviteRemoved{sent.ID})
	} else if n, most := t.invites.countPending(x.ID), t.Config.Parties.InvitesMax; n >= most {
		return flow.Refuse(flow.Refusal{Code: flow.RateLimited}, "party %s has %d pending invites; the limit is %d", x.ID, n, most)
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
	cmd.Made = domain.UUID(cmd.ID)
	return nil
}

// CancelInvite withdraws an invite. Its sender and the leaders of the party may do so.
type CancelInvite struct {
	Caller
	Invite flow.InviteID
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
		return flow.Refuse(flow.Refusal{Code: flow.InviteNotFound}, "invite %s not found", cmd.Invite)
	}
	party, _ := t.Flow.Party(p.Keys.Party)
	switch x := t.Flow.Invites.Get(invite); {
	case x.Expired:
		return flow.Refuse(flow.Refusal{Code: flow.InviteExpired}, "invite %s has expired", cmd.Invite)
	case x.From != p.ID && !t.Flow.Parties.Get(party).Leads(p.ID):
		return flow.Refuse(flow.Refusal{Code: flow.NotLeader}, "invite %s was sent by %s", cmd.Invite, x.From)
	}
	t.invites.end(invite, flow.Cancelled)
	return nil
}

// DeclineInvite declines an invite. JoinParty accepts one.
type DeclineInvite struct {
	Caller
	Invite flow.InviteID
}

func (cmd *DeclineInvite) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	_, done, err := t.caller(&cmd.Caller, "RespondToInvite")
	if err != nil || done {
		return err
	}
	x, err := t.invites.answerable(cmd.Player, cmd.Invite)
	if err != nil {
		return err
	}
	invite := *x
	t.Emit(&InviteRemoved{invite.ID})
	t.tellPlayers(flow.OnPartyInviteResponse, flow.Message{Invite: t.inviteView(&invite), Player: cmd.Player}, invite.From)
	return nil
}

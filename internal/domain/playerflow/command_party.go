package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// CreateParty creates a party with the caller as its only member. Made is its id.
type CreateParty struct {
	Caller
	ID             flow.PartyID // of the new party
	Attributes     string       // a JSON object; empty for none
	Joinability    flow.Joinability
	MembersMax     int32 // 0: the default
	FailOnExisting bool  // on_existing FAIL: refuse if the caller is in a party
}

func (cmd *CreateParty) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, done, err := t.caller(&cmd.Caller, "CreateParty")
	if err != nil || done {
		return err
	}
	config := &t.Config.Parties
	p := t.Flow.Players.Get(r)
	if err := t.parties.mayChange(p); err != nil {
		return err
	}
	if cmd.FailOnExisting && !p.Keys.Party.IsZero() {
		return flow.Refuse(flow.Refusal{Code: flow.AlreadyInParty}, "player %s is in a party", p.ID)
	}
	if cmd.MembersMax < 0 || cmd.MembersMax > config.MembersMax {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "max_members: %d, want 1 to %d", cmd.MembersMax, config.MembersMax)
	}
	if cmd.Joinability > flow.Closed {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "joinability: unknown value %d", cmd.Joinability)
	}
	if cmd.looks() {
		return nil
	}
	t.parties.leave(r, flow.Switched)
	t.parties.create(r, flow.Party{ID: cmd.ID, Attributes: cmd.Attributes, Joinability: cmd.Joinability, MembersMax: cmd.MembersMax})
	cmd.Made = domain.UUID(cmd.ID)
	return nil
}

// JoinParty joins a party by its id, by its code, or by accepting an invite. Made is the party's id.
type JoinParty struct {
	Caller
	Party          flow.PartyID
	Code           string
	Invite         flow.InviteID
	FailOnExisting bool
}

func (cmd *JoinParty) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, done, err := t.caller(&cmd.Caller, "JoinParty")
	if err != nil || done {
		return err
	}
	p := t.Flow.Players.Get(r)
	if err := t.parties.mayChange(p); err != nil {
		return err
	}
	target, err := t.parties.toJoin(cmd, p)
	if err != nil {
		return err
	}
	if err := t.parties.mayJoin(target, p); err != nil {
		return err
	}
	party := t.Flow.Parties.Get(target)
	id := party.ID
	cmd.Made = domain.UUID(id)
	if cmd.looks() {
		return nil
	}
	if party.Search != nil {
		t.searches.end(target, flow.OnLeftMatchmaking, flow.Requested, p.ID)
	}
	t.parties.leave(r, flow.Switched)
	t.parties.join(r, target)
	return nil
}

// LeaveParty leaves the caller's party.
type LeaveParty struct{ Caller }

func (cmd *LeaveParty) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, party, done, err := t.parties.partyCaller(&cmd.Caller, "LeaveParty", t.parties.of)
	if err != nil || done {
		return err
	}
	t.searches.declines(r, party, func() { t.parties.leave(r, flow.Left) })
	return nil
}

// KickPlayer removes another member from the party. A kicked player needs a new invite to return.
type KickPlayer struct {
	Caller
	Target string
}

// KickedMax bounds how many kicked players a party remembers.
const KickedMax = 100

func (cmd *KickPlayer) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, party, done, err := t.parties.partyCaller(&cmd.Caller, "KickPlayer", t.parties.ledWith(cmd.Target))
	if err != nil || done {
		return err
	}
	id := t.Flow.Parties.Get(party).ID
	for _, x := range slices.Clone(t.Flow.InvitesOf(id)) {
		if t.Flow.Invites.Get(x).To == cmd.Target {
			t.invites.end(x, flow.Cancelled)
		}
	}
	target, _ := t.Flow.Player(cmd.Target)
	t.searches.declines(r, party, func() { t.parties.leave(target, flow.WasKicked) })
	p := *t.Flow.Parties.Get(party)
	p.Kicked = append(slices.Clip(p.Kicked), flow.Kicked{Player: cmd.Target, At: t.Now})
	p.Kicked = p.Kicked[max(0, len(p.Kicked)-KickedMax):]
	t.Emit(&PartyChanged{p})
	return nil
}

// PromoteLeader makes another member the leader, or an additional leader if the party may have several.
type PromoteLeader struct {
	Caller
	Target string
}

func (cmd *PromoteLeader) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	_, party, done, err := t.parties.partyCaller(&cmd.Caller, "PromoteLeader", t.parties.ledWith(cmd.Target))
	if err != nil || done {
		return err
	}
	if t.Flow.Parties.Get(party).Leads(cmd.Target) {
		return nil
	}
	t.changeParty(party, flow.LeaderChanged, cmd.Target, func(p *flow.Party) {
		for i := range p.Members {
			p.Members[i].Leader = p.Members[i].Player == cmd.Target || p.Members[i].Leader && t.Config.Parties.MultipleLeaders
		}
		p.LeaderBy = 0
	})
	return nil
}

// RotateInviteCode replaces the party's code with a new one.
type RotateInviteCode struct{ Caller }

func (cmd *RotateInviteCode) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	_, party, done, err := t.parties.partyCaller(&cmd.Caller, "RotateInviteCode", t.parties.ledBy)
	if err != nil || done {
		return err
	}
	code := t.parties.newCode()
	t.changeParty(party, flow.CodeChanged, cmd.Player, func(p *flow.Party) { p.Code = code })
	return nil
}

// DisbandParty ends the party for all its members.
type DisbandParty struct{ Caller }

func (cmd *DisbandParty) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, party, done, err := t.parties.partyCaller(&cmd.Caller, "DisbandParty", t.parties.ledBy)
	if err != nil || done {
		return err
	}
	t.searches.declines(r, party, func() { t.parties.shutDown(party, flow.Disbanded) })
	return nil
}

// ShutDownParty ends a party on behalf of the studio's backend or an operator.
type ShutDownParty struct{ Party flow.PartyID }

func (cmd *ShutDownParty) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	r, ok := t.Flow.Party(cmd.Party)
	if !ok {
		return flow.Refuse(flow.Refusal{Code: flow.PartyNotFound}, "party %s not found", cmd.Party)
	}
	t.Cause = "ShutDownParty"
	t.parties.shutDown(r, flow.ShutDown)
	return nil
}

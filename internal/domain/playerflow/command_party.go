package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// CreateParty makes a party of one. Made is its id.
type CreateParty struct {
	Caller
	ID             domain.UUID // of the party to be
	Attributes     string      // a JSON object; empty for none
	Joinability    flow.Joinability
	MembersMax     int32 // 0: the default
	FailOnExisting bool  // on_existing FAIL: not when the caller is in a party
}

func (cmd *CreateParty) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, done, err := t.caller(&cmd.Caller, "CreateParty")
	if err != nil || done {
		return err
	}
	config := &t.Config.Parties
	p := t.Flow.Players.Get(r)
	if err := t.mayChangeParty(p); err != nil {
		return err
	}
	if cmd.FailOnExisting && !p.Keys.Party.IsZero() {
		return flow.Refuse(flow.Refusal{Code: flow.AlreadyInParty}, "player %s is in a party", p.ID)
	}
	if cmd.MembersMax < 0 || cmd.MembersMax > config.MembersMax {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "max_members: %d, want 1 to %d", cmd.MembersMax, config.MembersMax)
	}
	if cmd.Joinability > flow.Closed {
		return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "joinability: not known")
	}
	if cmd.looks() {
		return nil
	}
	t.leaveParty(r, flow.Switched)
	t.createParty(r, flow.Party{ID: cmd.ID, Attributes: cmd.Attributes, Joinability: cmd.Joinability, MembersMax: cmd.MembersMax})
	cmd.Made = cmd.ID
	return nil
}

// JoinParty goes to a party: by its id, by its code, or by an invite that is accepted. Made is the party's id.
type JoinParty struct {
	Caller
	Party          domain.UUID
	Code           string
	Invite         domain.UUID
	FailOnExisting bool
}

func (cmd *JoinParty) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, done, err := t.caller(&cmd.Caller, "JoinParty")
	if err != nil || done {
		return err
	}
	p := t.Flow.Players.Get(r)
	if err := t.mayChangeParty(p); err != nil {
		return err
	}
	target, err := t.partyToJoin(cmd, p)
	if err != nil {
		return err
	}
	if err := t.mayJoin(target, p); err != nil {
		return err
	}
	party := t.Flow.Parties.Get(target)
	id := party.ID
	cmd.Made = id
	if cmd.looks() {
		return nil
	}
	if party.Search != nil {
		t.endSearch(target, flow.OnLeftMatchmaking, flow.Requested, p.ID)
	}
	t.leaveParty(r, flow.Switched)
	t.joinParty(r, target)
	return nil
}

// partyToJoin finds the party and checks that it lets this player in this way.
func (t *Tx) partyToJoin(cmd *JoinParty, p *flow.Player) (flow.PartyRef, error) {
	var target flow.PartyRef
	var invite *flow.Invite
	var ok bool
	switch {
	case !cmd.Invite.IsZero():
		x, err := t.inviteTo(p.ID, cmd.Invite)
		if err != nil {
			return 0, err
		}
		invite = x
		target, ok = t.Flow.Party(x.Party)
	case cmd.Code != "":
		target, ok = t.Flow.PartyByCode(cmd.Code)
	default:
		target, ok = t.Flow.Party(cmd.Party)
	}
	if !ok {
		return 0, flow.Refuse(flow.Refusal{Code: flow.PartyNotFound}, "party not found")
	}
	party := t.Flow.Parties.Get(target)
	switch {
	case p.Keys.Party == party.ID:
		return 0, flow.Refuse(flow.Refusal{Code: flow.AlreadyInParty}, "player %s is in party pty-%s already", p.ID, party.ID)
	case cmd.FailOnExisting && !p.Keys.Party.IsZero():
		return 0, flow.Refuse(flow.Refusal{Code: flow.AlreadyInParty}, "player %s is in a party", p.ID)
	case party.Joinability == flow.Closed:
		return 0, flow.Refuse(flow.Refusal{Code: flow.PartyClosed}, "party pty-%s is closed", party.ID)
	case party.Joinability == flow.InviteOnly && cmd.Code == "" && invite == nil && t.pendingInvite(party.ID, p.ID) == 0:
		return 0, flow.Refuse(flow.Refusal{Code: flow.PartyClosed}, "party pty-%s can be joined by code or invite", party.ID)
	}
	return target, nil
}

// mayJoin checks the rest, in the order of docs/spec/player-flow.md#t1-note-3.
func (t *Tx) mayJoin(target flow.PartyRef, p *flow.Player) error {
	party := t.Flow.Parties.Get(target)
	for _, k := range party.Kicked {
		if k.Player == p.ID && t.pendingInvite(party.ID, p.ID) == 0 {
			return flow.Refuse(flow.Refusal{Code: flow.KickedNeedsInvite}, "player %s was kicked from party pty-%s and needs a new invite", p.ID, party.ID)
		}
	}
	for _, m := range party.Members {
		if x := t.member(m.Player); slices.Contains(x.Blocked, p.ID) || slices.Contains(p.Blocked, x.ID) {
			return flow.Refuse(flow.Refusal{Code: flow.JoinNotAllowed}, "player %s may not be in a party with one of its members", p.ID)
		}
	}
	switch {
	case party.Search != nil && (!t.Config.Parties.JoinCancelsMatchmaking || party.Search.Status >= flow.Placing):
		return flow.Refuse(flow.Refusal{Code: flow.PartyInMatchmaking}, "party pty-%s is in matchmaking", party.ID)
	case int32(len(party.Members)) >= party.MembersMax:
		return flow.Refuse(flow.Refusal{Code: flow.PartyFull}, "party pty-%s: %d of %d members", party.ID, len(party.Members), party.MembersMax)
	}
	mine := versionOf(p)
	for _, m := range party.Members {
		if v := versionOf(t.member(m.Player)); v != "" && mine != "" && v != mine {
			return flow.Refuse(flow.Refusal{Code: flow.PartyVersionMismatch, Players: []string{m.Player}}, "client version %s, %s has %s", mine, m.Player, v)
		}
	}
	return nil
}

// LeaveParty goes out of the party.
type LeaveParty struct{ Caller }

func (cmd *LeaveParty) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, party, done, err := t.partyCaller(&cmd.Caller, "LeaveParty", t.ownParty)
	if err != nil || done {
		return err
	}
	t.declines(r, party, func() { t.leaveParty(r, flow.Left) })
	return nil
}

// KickPlayer takes another member out of the party. Whoever is kicked needs a newer invite to come back.
type KickPlayer struct {
	Caller
	Target string
}

// KickedMax bounds how many players a party remembers to have kicked.
const KickedMax = 100

func (cmd *KickPlayer) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, party, done, err := t.partyCaller(&cmd.Caller, "KickPlayer", t.ledWith(cmd.Target))
	if err != nil || done {
		return err
	}
	id := t.Flow.Parties.Get(party).ID
	for _, x := range slices.Clone(t.Flow.InvitesOf(id)) {
		if t.Flow.Invites.Get(x).To == cmd.Target {
			t.endInvite(x, flow.Cancelled)
		}
	}
	target, _ := t.Flow.Player(cmd.Target)
	t.declines(r, party, func() { t.leaveParty(target, flow.WasKicked) })
	p := *t.Flow.Parties.Get(party)
	p.Kicked = append(slices.Clip(p.Kicked), flow.Kicked{Player: cmd.Target, At: t.Now})
	p.Kicked = p.Kicked[max(0, len(p.Kicked)-KickedMax):]
	t.Emit(&PartyChanged{p})
	return nil
}

// PromoteLeader makes another member the leader, or with several leaders one more.
type PromoteLeader struct {
	Caller
	Target string
}

func (cmd *PromoteLeader) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	_, party, done, err := t.partyCaller(&cmd.Caller, "PromoteLeader", t.ledWith(cmd.Target))
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

// RotateInviteCode makes the party's code void and gives it another one.
type RotateInviteCode struct{ Caller }

func (cmd *RotateInviteCode) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	_, party, done, err := t.partyCaller(&cmd.Caller, "RotateInviteCode", t.ledParty)
	if err != nil || done {
		return err
	}
	code := t.newPartyCode()
	t.changeParty(party, flow.CodeChanged, cmd.Player, func(p *flow.Party) { p.Code = code })
	return nil
}

// DisbandParty ends the party for all its members.
type DisbandParty struct{ Caller }

func (cmd *DisbandParty) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, party, done, err := t.partyCaller(&cmd.Caller, "DisbandParty", t.ledParty)
	if err != nil || done {
		return err
	}
	t.declines(r, party, func() { t.shutDownParty(party, flow.Disbanded) })
	return nil
}

// ShutDownParty ends a party from outside: for the studio's backend, or an operator.
type ShutDownParty struct{ Party domain.UUID }

func (cmd *ShutDownParty) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	r, ok := t.Flow.Party(cmd.Party)
	if !ok {
		return flow.Refuse(flow.Refusal{Code: flow.PartyNotFound}, "party pty-%s not found", cmd.Party)
	}
	t.Cause = "ShutDownParty"
	t.shutDownParty(r, flow.ShutDown)
	return nil
}

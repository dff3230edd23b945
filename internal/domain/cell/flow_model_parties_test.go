package cell

import (
	"slices"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// --- what players do

func (p *flowPlay) createParty(x *modelPlayer) {
	cmd := &playerflow.CreateParty{Caller: p.as(x.name), ID: flow.PartyID(p.id()), FailOnExisting: p.rand.IntN(3) == 0}
	refusal := flow.Code("")
	switch {
	case x.phase() == flow.Matchmaking:
		refusal = flow.InMatchmaking
	case cmd.FailOnExisting && x.party != nil:
		refusal = flow.AlreadyInParty
	}
	p.try(x, cmd, refusal, func() { p.m.leaveParty(x); p.m.createParty(x, cmd.ID) })
}

func (p *flowPlay) joinParty(x *modelPlayer) {
	target, ok := one(p, p.m.parties)
	if !ok {
		return
	}
	refusal := flow.Code("")
	switch {
	case x.phase() == flow.Matchmaking:
		refusal = flow.InMatchmaking
	case x.party == target:
		refusal = flow.AlreadyInParty
	case p.kicked(target, x):
		refusal = flow.KickedNeedsInvite
	case target.search != nil:
		refusal = flow.PartyInMatchmaking
	case len(target.members) == modelMembersMax:
		refusal = flow.PartyFull
	}
	p.try(x, &playerflow.JoinParty{Caller: p.as(x.name), Party: flow.PartyID(target.id)}, refusal, func() { p.m.leaveParty(x); p.m.join(x, target) })
}

// kicked reads the party's record, because the model has no invites that would undo a kick.
func (p *flowPlay) kicked(party *modelParty, x *modelPlayer) bool {
	r, _ := p.cell.playerflow.Flow.Party(flow.PartyID(party.id))
	return slices.ContainsFunc(p.cell.playerflow.Flow.Parties.Get(r).Kicked, func(k flow.Kicked) bool { return k.Player == x.name })
}

func notIn(x *modelPlayer) flow.Code {
	if x.party == nil {
		return flow.NotInParty
	}
	return ""
}

func notLeading(x *modelPlayer) flow.Code {
	if x.party != nil && x.party.leader != x {
		return flow.NotLeader
	}
	return notIn(x)
}

func (p *flowPlay) leavesParty(x *modelPlayer) {
	p.try(x, &playerflow.LeaveParty{Caller: p.as(x.name)}, notIn(x), func() { p.m.leaveParty(x) })
}

func (p *flowPlay) companion(x *modelPlayer) (target *modelPlayer, refusal flow.Code) {
	target = p.anybody()
	if x.party != nil && p.rand.IntN(4) > 0 {
		target, _ = one(p, x.party.members)
	}
	switch refusal = notLeading(x); {
	case refusal != "":
	case target.party != x.party:
		refusal = flow.TargetNotInParty
	case target == x:
		refusal = flow.CannotTargetSelf
	}
	return target, refusal
}

func (p *flowPlay) kick(x *modelPlayer) {
	target, refusal := p.companion(x)
	p.try(x, &playerflow.KickPlayer{Caller: p.as(x.name), Target: target.name}, refusal, func() { p.m.leaveParty(target) })
}

func (p *flowPlay) promote(x *modelPlayer) {
	target, refusal := p.companion(x)
	p.try(x, &playerflow.PromoteLeader{Caller: p.as(x.name), Target: target.name}, refusal, func() { x.party.leader, x.party.leaderBy = target, 0 })
}

func (p *flowPlay) setReady(x *modelPlayer) {
	ready, refusal := p.rand.IntN(5) > 0, notIn(x)
	if refusal == "" && x.seat != nil {
		refusal = flow.PlayerInGame
	}
	p.try(x, &playerflow.SetReady{Caller: p.as(x.name), Ready: ready}, refusal, func() {
		switch {
		case x.party.search == nil:
			x.party.ready[x] = ready
		case !ready:
			p.m.wish(x)
		}
	})
}

func (p *flowPlay) setPreferences(x *modelPlayer) {
	refusal := notLeading(x)
	if refusal == "" && x.party.search != nil {
		refusal = flow.InMatchmaking
	}
	p.try(x, &playerflow.SetPartyPreferences{Caller: p.as(x.name), Regions: &[]string{"us-east-1"}}, refusal, func() { clear(x.party.ready) })
}

func (p *flowPlay) disbands(x *modelPlayer) {
	p.try(x, &playerflow.DisbandParty{Caller: p.as(x.name)}, notLeading(x), func() { p.m.disband(x.party) })
}

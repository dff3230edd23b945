package cell

import (
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

func (p *flowPlay) enter(x *modelPlayer) {
	queue, _ := one(p, []string{testQueue, testQueue, acceptQueue, "nosuch"})
	cmd := &playerflow.EnterMatchmaking{Caller: p.as(x.name), Ticket: domain.TicketID(p.id()), Party: flow.PartyID(p.id()), Queue: queue}
	members := []*modelPlayer{x}
	if x.party != nil {
		members = x.party.members
	}
	some := func(f func(*modelPlayer) bool) bool { return slices.ContainsFunc(members, f) }
	if p.rand.IntN(2) == 0 { // or parties of several would seldom search
		p.allReady(members)
	}
	refusal := flow.Code("")
	switch {
	case x.party != nil && x.party.leader != x:
		refusal = flow.NotLeader
	case some(func(m *modelPlayer) bool { return m.seat != nil }):
		refusal = flow.PlayerInGame
	case x.party != nil && x.party.search != nil && x.party.search.queue == queue:
		p.try(x, cmd, "", func() {
			if domain.TicketID(cmd.Made) != x.party.search.ticket {
				p.t.Errorf("entering the same queue again gave %s, not the ticket that there is", domain.TicketID(cmd.Made))
			}
		})
		return
	case x.party != nil && x.party.search != nil:
		refusal = flow.InMatchmaking
	case some(func(m *modelPlayer) bool { return !m.online }):
		refusal = flow.MembersOffline
	case len(members) > 1 && some(func(m *modelPlayer) bool { return !x.party.ready[m] }):
		refusal = flow.PlayersNotReady
	case queue == "nosuch":
		refusal = flow.QueueNotFound
	}
	p.try(x, cmd, refusal, func() {
		if x.party == nil {
			p.m.createParty(x, cmd.Party)
		}
		x.party.search = &modelSearch{ticket: cmd.Ticket, queue: queue, timeoutAt: int64(p.now) + 300*modelSecond}
	})
}

// allReady makes members of a party ready who can be.
func (p *flowPlay) allReady(members []*modelPlayer) {
	for _, m := range members {
		if m.phase() == flow.InParty && m.loggedIn {
			p.must(&playerflow.SetReady{Caller: p.as(m.name), Ready: true})
			m.party.ready[m] = true
		}
	}
}

func (p *flowPlay) leavesMatchmaking(x *modelPlayer) {
	refusal := flow.Code("")
	switch {
	case x.seat != nil && !x.seat.wasActive:
		refusal = flow.AlreadyMatched
	case x.phase() != flow.Matchmaking:
		refusal = flow.NotInMatchmaking
	}
	p.try(x, &playerflow.LeaveMatchmaking{Caller: p.as(x.name)}, refusal, func() { p.m.wish(x) })
}

func (p *flowPlay) answers(x *modelPlayer) {
	if asked := p.asked(); len(asked) > 0 && p.rand.IntN(10) > 0 {
		x, _ = one(p, asked)
	}
	cmd := &playerflow.AnswerMatch{Caller: p.as(x.name), Accept: p.rand.IntN(8) > 0}
	refusal := flow.AcceptanceNotOpen
	switch {
	case x.seat != nil:
		cmd.Ticket = x.seat.game.ticketOf[x]
		if cmd.Accept && !cmd.Ticket.IsZero() {
			refusal = ""
		}
		p.try(x, cmd, refusal, nil)
		return
	case x.party != nil && x.party.search != nil:
		cmd.Ticket = x.party.search.ticket
		if x.party.search.match != nil {
			refusal = ""
		}
	}
	p.try(x, cmd, refusal, func() {
		match := x.party.search.match
		if !cmd.Accept {
			p.m.endSearch(x.party)
			return
		}
		match.accepted[x] = true
		all := 0
		for _, party := range match.parties {
			all += len(party.members)
		}
		if len(match.accepted) == all {
			p.happened["match accepted"]++
			p.committed(match.parties)
		}
	})
}

func (p *flowPlay) asked() (all []*modelPlayer) {
	for _, party := range p.m.parties {
		if party.search != nil && party.search.match != nil {
			all = append(all, party.members...)
		}
	}
	return all
}

// proposed makes the matchmaker propose two parties of a queue.
func (p *flowPlay) proposed(*modelPlayer) {
	queue, _ := one(p, []string{testQueue, acceptQueue})
	searching := slices.DeleteFunc(slices.Clone(p.m.parties), func(x *modelParty) bool {
		return x.search == nil || x.search.queue != queue || x.search.match != nil
	})
	a, ok := one(p, searching)
	if !ok || len(searching) < 2 {
		return
	}
	b, _ := one(p, slices.DeleteFunc(searching, func(x *modelParty) bool { return x == a }))
	refused := p.propose(queue, a.search.ticket, b.search.ticket)
	held := p.m.held(a) || p.m.held(b)
	p.doing = fmt.Sprintf("proposal in %s, held back: %t", queue, held)
	switch {
	case held != (refused != nil):
		p.t.Errorf("proposal: %v, held back in the model: %t", refused, held)
	case held:
		p.happened["proposal held back"]++
	case queue == acceptQueue:
		match := &modelMatch{parties: [2]*modelParty{a, b}, accepted: map[*modelPlayer]bool{}, acceptBy: int64(p.now) + 20*modelSecond}
		a.search.match, b.search.match = match, match
	default:
		p.committed([2]*modelParty{a, b})
	}
}

// committed moves the players of a match; the id of the game is what the first of them has got.
func (p *flowPlay) committed(parties [2]*modelParty) {
	p.happened["match committed"]++
	g := p.m.commit(parties[0], parties[1])
	g.id = flow.InstanceID(domain.UUID(p.keys(g.seats[0].player.name).Game))
}

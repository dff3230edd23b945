package cell

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// endSearch takes a party out of matchmaking: all its members in one transaction, told why. Who ended it is not ready any
// more; the others stay as they are.
func (t *tx) endSearch(r flow.Ref, told flow.MessageType, why flow.Reason, by string) {
	p := *t.c.flow.Parties.Get(r)
	search := *p.Search
	p.Search = nil
	t.emit(&PartyChanged{p})
	players := partyPlayers(&p)
	for _, player := range players {
		m, _ := t.c.flow.Player(player)
		t.setKeys(m, func(k *flow.Keys) { k.Ticket = domain.UUID{} })
	}
	t.tellPlayers(told, flow.Message{Ticket: search.Ticket, Reason: why, Player: by}, players...)
	if i, ok := p.Member(by); ok && (why == flow.Requested || why == flow.NotReady) && p.Members[i].Ready {
		t.changeParty(r, flow.ReadyChanged, by, func(p *flow.Party) { p.Members[i].Ready = false })
	}
}

// leaveSearch is a member's wish to end the search.
func (t *tx) leaveSearch(r flow.Ref, why flow.Reason) error {
	p := t.c.flow.Players.Get(r)
	party, _ := t.c.flow.Party(p.Keys.Party)
	x := t.c.flow.Parties.Get(party)
	if t.c.config.Flow.Search.LeaderCancels && !x.Leads(p.ID) {
		return flow.Refuse(flow.Refusal{Code: flow.NotLeader}, "only the leader ends the search of party pty-%s", x.ID)
	}
	t.endSearch(party, flow.OnLeftMatchmaking, why, p.ID)
	return nil
}

// requeue puts the players of a game instance that got no host back into the queue, and returns who they are, sorted.
func (t *tx) requeue(x *flow.Instance, out []flow.Membership) []string {
	slices.SortFunc(out, func(a, b flow.Membership) int { return 0 })
	return nil
}

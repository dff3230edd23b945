package cell

import (
	"github.com/musterhq/muster/internal/domain/flow"
)

// --- both side by side

func (p *flowPlay) compare() {
	p.t.Helper()
	for _, name := range p.m.names {
		x := p.m.players[name]
		want := flow.Keys{}
		if x.party != nil {
			want.Party = flow.PartyID(x.party.id)
			if x.party.search != nil {
				want.Ticket = x.party.search.ticket
			}
		}
		if x.seat != nil {
			want.Game = flow.InstanceID(x.seat.game.id)
		}
		if got := p.keys(name); got != want {
			p.t.Errorf("%s has keys %+v, in the model %+v", name, got, want)
			continue
		}
		if x.seat != nil {
			p.happened[x.seat.status.String()]++
			if got := p.member(name); got.Status != x.seat.status || got.Disconnects != int32(x.seat.lost) {
				p.t.Errorf("%s is %s with %d losses, in the model %s with %d", name, got.Status, got.Disconnects, x.seat.status, x.seat.lost)
			}
		}
	}
	for _, party := range p.m.parties {
		p.compareParty(party)
	}
	if n := p.cell.playerflow.Flow.Parties.Len(); n != len(p.m.parties) {
		p.t.Errorf("%d parties, in the model %d", n, len(p.m.parties))
	}
	v := p.cell.View()
	if broken := v.Audit(); len(broken) > 0 {
		p.t.Errorf("invariants: %v", broken)
	}
}

func (p *flowPlay) compareParty(party *modelParty) {
	p.t.Helper()
	r, ok := p.cell.playerflow.Flow.Party(flow.PartyID(party.id))
	if !ok {
		p.t.Errorf("party %s is gone", party.id)
		return
	}
	x := p.cell.playerflow.Flow.Parties.Get(r)
	if len(x.Members) != len(party.members) {
		p.t.Errorf("party %s has %d members, in the model %d", party.id, len(x.Members), len(party.members))
		return
	}
	for i, m := range party.members {
		got := x.Members[i]
		if got.Player != m.name || got.Leader != (party.leader == m) || got.Ready != party.ready[m] {
			p.t.Errorf("member %d of %s: %+v, in the model %s, leads %t, ready %t", i, party.id, got, m.name, party.leader == m, party.ready[m])
		}
	}
	if s := party.search; s != nil {
		asked := x.Search.Status == flow.RequiresAcceptance
		if held := x.Search.Status == flow.Held; asked != (s.match != nil) || held != (s.match == nil && p.m.held(party)) {
			p.t.Errorf("the search of %s is %s; in the model it waits for answers: %t, is held back: %t", party.id, x.Search.Status, s.match != nil, p.m.held(party))
		}
	}
}

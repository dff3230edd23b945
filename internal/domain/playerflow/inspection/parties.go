package inspection

import (
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// States of a party besides those of its search.
const (
	PartyIdle   = "IN_PARTY"
	PartyInGame = "IN_GAME" // at least one member is
)

// PartyStates lists the states of parties, in the order of a party's life.
func PartyStates() []string {
	all := []string{PartyIdle}
	for s := flow.Queued; s < flow.SearchEnded; s++ {
		all = append(all, s.String())
	}
	return append(all, PartyInGame)
}

// PartyFilter selects parties. Its zero value selects all.
type PartyFilter struct {
	State  string
	Queue  string // in which the party searches, or which it prefers
	Player string // part of a member's id, in lower case
}

// PartyLine is a party in a list.
type PartyLine struct {
	ID            flow.PartyID
	Created       domain.Time
	State         string
	Queue         string // in which the party searches, or which it prefers
	Players       []string
	Leader        string
	MembersMax    int32
	Ready, Online int // members
	Joinability   flow.Joinability
	Invites       int // that can still be accepted
	Ticket        domain.TicketID
	Searches      domain.Time // when the search began; 0: no search
	Game          flow.InstanceID
	StaleBy       domain.Time // when the party is shut down unless a member returns; 0: a member is online
}

// Parties yields the parties that a filter selects among the next step records, in the order of their places in memory. It returns where
// the next call begins; 0 at the end.
func (v *View) Parties(f *PartyFilter, after flow.PartyRef, step int, yield func(*flow.Party)) (next flow.PartyRef) {
	v.SawAll()
	at := after
	for p := range v.c.Flow.Parties.From(after, &at) {
		if v.c.choosesParty(f, p) {
			yield(p)
		}
		if step--; step == 0 {
			return at
		}
	}
	return 0
}

func (c *Inspection) choosesParty(f *PartyFilter, p *flow.Party) bool {
	if f.Queue != "" && f.Queue != queueOf(p) {
		return false
	}
	if f.Player != "" {
		found := false
		for i := range p.Members {
			found = found || strings.Contains(strings.ToLower(p.Members[i].Player), f.Player)
		}
		if !found {
			return false
		}
	}
	return f.State == "" || c.partyState(p) == f.State
}

// partyState returns the state of a party as its members see it: after a restart, a search may be held although its record does not say so.
func (c *Inspection) partyState(p *flow.Party) string {
	if s := p.Search; s != nil && s.Status > flow.Held {
		return s.Status.String()
	}
	state := PartyIdle
	if p.Search != nil {
		state = p.Search.Status.String()
	}
	for i := range p.Members {
		r, ok := c.Flow.Player(p.Members[i].Player)
		if !ok {
			continue
		}
		switch x := c.Flow.Players.Get(r); {
		case p.Search != nil && x.Presence != flow.Online:
			return flow.Held.String()
		case p.Search == nil && !x.Keys.Game.IsZero():
			return PartyInGame
		}
	}
	return state
}

func queueOf(p *flow.Party) string {
	if p.Search != nil {
		return p.Search.Queue
	}
	return p.Queue
}

// PartyLine returns one party as in a list.
func (v *View) PartyLine(id flow.PartyID) (PartyLine, bool) {
	v.SawAll()
	r, ok := v.c.Flow.Party(id)
	if !ok {
		return PartyLine{}, false
	}
	return v.c.partyLine(r), true
}

func (c *Inspection) partyLine(r flow.PartyRef) PartyLine {
	p := c.PartyView(r)
	x := PartyLine{ID: p.ID, Created: p.Created, State: c.partyState(&p.Party), Queue: queueOf(&p.Party), MembersMax: p.MembersMax, Joinability: p.Joinability}
	if p.StaleBy != 0 {
		x.StaleBy = c.WallTime(p.StaleBy)
	}
	for i, m := range p.Members {
		x.Players = append(x.Players, m.Player)
		if m.Leader && x.Leader == "" {
			x.Leader = m.Player
		}
		if m.Ready {
			x.Ready++
		}
		if p.People[i].Online {
			x.Online++
		}
		if ref, ok := c.Flow.Player(m.Player); ok && x.Game.IsZero() {
			x.Game = c.Flow.Players.Get(ref).Keys.Game
		}
	}
	if s := p.Search; s != nil {
		x.Ticket, x.Searches = s.Ticket, s.Entered
	}
	for _, ref := range c.Flow.InvitesOf(p.ID) {
		if !c.Flow.Invites.Get(ref).Expired {
			x.Invites++
		}
	}
	return x
}

// ChangesInMemory yields, in no particular order, the changes of players' keys among the next step records that are still in memory. It
// returns where the next call begins; 0 at the end.
func (v *View) ChangesInMemory(after flow.ChangeRef, step int, yield func(*flow.Change)) (next flow.ChangeRef) {
	v.SawAll()
	at := after
	for x := range v.c.Flow.Changes.From(after, &at) {
		yield(x)
		if step--; step == 0 {
			return at
		}
	}
	return 0
}

// CountOnline adds the online players among the next step records to the counts of the nodes that have their streams. It returns where the
// next call begins; 0 at the end. The number of a single node is 0.
func (v *View) CountOnline(after flow.PlayerRef, step int, counts map[uint32]int) (next flow.PlayerRef) {
	v.SawAll()
	at := after
	for p := range v.c.Flow.Players.From(after, &at) {
		if p.Presence == flow.Online {
			counts[p.Node]++
		}
		if step--; step == 0 {
			return at
		}
	}
	return 0
}

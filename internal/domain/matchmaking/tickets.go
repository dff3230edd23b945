package matchmaking

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/quota"
)

// Ticket finds a ticket in memory.
func (s *Records) Ticket(id string) (TicketRef, bool) {
	r, ok := s.tickets[id]
	return r, ok
}

// TicketNo finds an active ticket by its number.
func (s *Records) TicketNo(no uint64) (TicketRef, bool) {
	r, ok := s.numbers[no]
	return r, ok
}

// TicketOf finds the newest active ticket of a player. All others are in placement: a new ticket ends the others.
func (s *Records) TicketOf(player string) (TicketRef, bool) {
	r, ok := s.players[player]
	return r, ok
}

// BackfillOf finds the active backfill ticket of a game session.
func (s *Records) BackfillOf(game string) (TicketRef, bool) {
	r, ok := s.backfills[game]
	return r, ok
}

// AddTicket stores a ticket, which becomes its players' newest if it is active.
func (s *Records) AddTicket(t Ticket) TicketRef {
	if t.Owner == 0 {
		t.Owner = ownerByID(&t)
	}
	r, rec := s.Tickets.Add()
	*rec = t
	s.tickets[t.ID] = r
	s.held.Add(quota.HolderOf(t.Holder, t.Maker), t.Bytes())
	if !t.Status.Active() {
		return r
	}
	s.numbers[t.No] = r
	s.count(&t, 1)
	eachPlayer(t.Roster, func(id string) bool {
		s.addTo(id, r)
		return true
	})
	if t.Backfill && t.Game != "" {
		s.backfills[t.Game] = r
	}
	return r
}

// addTo adds an active ticket to those of a player. A snapshot has tickets in any order, so the newest one is found by its number.
func (s *Records) addTo(player string, r TicketRef) {
	old, ok := s.players[player]
	if ok && s.newer(old, r) {
		old, r = r, old
	}
	s.players[player] = r
	if ok {
		s.elders[player] = append(s.elders[player], old)
	}
}

// takeFrom removes a ticket from the active ones of a player.
func (s *Records) takeFrom(player string, r TicketRef) {
	elders := s.elders[player]
	if s.players[player] == r {
		if len(elders) == 0 {
			delete(s.players, player)
			return
		}
		r = elders[0]
		for _, other := range elders[1:] {
			if s.newer(other, r) {
				r = other
			}
		}
		s.players[player] = r
	}
	if len(elders) == 1 {
		delete(s.elders, player)
		return
	}
	s.elders[player] = slices.DeleteFunc(elders, func(other TicketRef) bool { return other == r })
}

func (s *Records) newer(a, b TicketRef) bool { return s.Tickets.Get(a).No > s.Tickets.Get(b).No }

func (s *Records) count(t *Ticket, by int) {
	c := s.counts[t.Configuration]
	if c == nil {
		c = &Counts{}
		s.counts[t.Configuration] = c
	}
	c.Active += by
	if c.Active == 0 {
		delete(s.counts, t.Configuration)
	}
}

// Rival finds a newer active ticket of one of the ticket's players.
func (s *Records) Rival(r TicketRef) (rival TicketRef, ok bool) {
	eachPlayer(s.Tickets.Get(r).Roster, func(id string) bool {
		rival, ok = s.players[id]
		ok = ok && rival != r
		return !ok
	})
	return rival, ok
}

// EndTicket marks a ticket as ended; no is its number among ended records.
func (s *Records) EndTicket(r TicketRef, at domain.Time, status Status, reason Reason, no uint64) *Ticket {
	t := s.Tickets.Get(r)
	s.count(t, -1)
	delete(s.numbers, t.No)
	eachPlayer(t.Roster, func(id string) bool {
		s.takeFrom(id, r)
		return true
	})
	if t.Backfill && s.backfills[t.Game] == r {
		delete(s.backfills, t.Game)
	}
	t = s.Tickets.Mut(r)
	t.Status, t.Reason, t.End, t.EndedNo = status, reason, at, no
	return t
}

func (s *Records) RemoveTicket(r TicketRef) {
	t := s.Tickets.Get(r)
	s.held.Remove(quota.HolderOf(t.Holder, t.Maker), t.Bytes())
	if s.tickets[t.ID] == r {
		delete(s.tickets, t.ID)
	}
	s.Tickets.Remove(r)
}

// Bytes estimates the memory used by the ticket and its index entries.
func (t *Ticket) Bytes() int {
	const record = 512
	return record + len(t.ID) + len(t.Roster)
}

// EachPlayer yields the ids of the ticket's players, in its order.
func (t *Ticket) EachPlayer(yield func(id string) bool) { eachPlayer(t.Roster, yield) }

// PlayersOf returns the players of a ticket with their teams.
func (t *Ticket) PlayersOf() []Player {
	all := DecodeRoster(t.Roster)
	if t.Outcome != nil && !t.Backfill {
		for i := range all {
			all[i].Team = t.Outcome.Team
		}
	}
	return all
}

// ownerByID derives the owner of a ticket from the prefix of its id, for journals from before tickets had an owner.
func ownerByID(t *Ticket) Owner {
	_, ofParty := domain.ParseID[domain.TicketID](t.ID)
	_, ofInstance := domain.ParseID[domain.BackfillID](t.ID)
	switch {
	case t.automatic:
		return ServiceOwned
	case ofParty == nil:
		return PartyOwned
	case ofInstance == nil && t.Backfill:
		return InstanceOwned
	}
	return ClientOwned
}

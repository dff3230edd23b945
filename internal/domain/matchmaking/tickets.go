package matchmaking

import (
	"github.com/musterhq/muster/internal/domain"
)

// Ticket finds a ticket that is in memory.
func (s *Records) Ticket(id string) (Ref, bool) {
	r, ok := s.tickets[id]
	return r, ok
}

// TicketNo finds an active ticket by its number.
func (s *Records) TicketNo(no uint64) (Ref, bool) {
	r, ok := s.numbers[no]
	return r, ok
}

// TicketOf finds the newest active ticket of a player.
func (s *Records) TicketOf(player string) (Ref, bool) {
	r, ok := s.players[player]
	return r, ok
}

// BackfillOf finds the active backfill ticket of a game session.
func (s *Records) BackfillOf(game string) (Ref, bool) {
	r, ok := s.backfills[game]
	return r, ok
}

// AddTicket stores a ticket. From now on its players' newest ticket is this one, if it is active.
func (s *Records) AddTicket(t Ticket) Ref {
	r, rec := s.Tickets.Add()
	*rec = t
	s.tickets[t.ID] = r
	s.held.Add(t.Maker, t.Bytes())
	if !t.Status.Active() {
		return r
	}
	s.numbers[t.No] = r
	s.count(&t, 1)
	eachPlayer(t.Roster, func(id string) bool {
		// After a restart tickets come in no order: the newest one counts.
		if old, ok := s.players[id]; !ok || s.newer(r, old) {
			s.players[id] = r
		}
		return true
	})
	if t.Backfill && t.Game != "" {
		s.backfills[t.Game] = r
	}
	return r
}

// newer reports whether a player's ticket a counts more than b: one that is placed already leaves the place to another.
func (s *Records) newer(a, b Ref) bool {
	x, y := s.Tickets.Get(a), s.Tickets.Get(b)
	if (x.Status == Placing) != (y.Status == Placing) {
		return y.Status == Placing
	}
	return x.No > y.No
}

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

// Return puts a ticket back that was being placed: its players' newest ticket is it, unless they have begun another one.
func (s *Records) Return(r Ref) {
	eachPlayer(s.Tickets.Get(r).Roster, func(id string) bool {
		if _, ok := s.players[id]; !ok {
			s.players[id] = r
		}
		return true
	})
}

// Rival finds an active ticket of one of the ticket's players that is newer.
func (s *Records) Rival(r Ref) (rival Ref, ok bool) {
	eachPlayer(s.Tickets.Get(r).Roster, func(id string) bool {
		rival, ok = s.players[id]
		ok = ok && rival != r
		return !ok
	})
	return rival, ok
}

// EndTicket marks a ticket as ended, as the no-th record that did.
func (s *Records) EndTicket(r Ref, at domain.Time, status Status, reason Reason, no uint64) *Ticket {
	t := s.Tickets.Get(r)
	s.count(t, -1)
	delete(s.numbers, t.No)
	eachPlayer(t.Roster, func(id string) bool {
		if s.players[id] == r {
			delete(s.players, id)
		}
		return true
	})
	if t.Backfill && s.backfills[t.Game] == r {
		delete(s.backfills, t.Game)
	}
	t = s.Tickets.Mut(r)
	t.Status, t.Reason, t.End, t.EndedNo = status, reason, at, no
	return t
}

// RemoveTicket drops a ticket that has ended.
func (s *Records) RemoveTicket(r Ref) {
	t := s.Tickets.Get(r)
	s.held.Add(t.Maker, -t.Bytes())
	if s.tickets[t.ID] == r {
		delete(s.tickets, t.ID)
	}
	s.Tickets.Remove(r)
}

// Bytes is roughly how much memory the ticket takes, with its place in the indexes.
func (t *Ticket) Bytes() int {
	const record = 512
	return record + len(t.ID) + len(t.Roster)
}

// EachPlayer yields the ids of the ticket's players, in its order.
func (t *Ticket) EachPlayer(yield func(id string) bool) { eachPlayer(t.Roster, yield) }

// PlayersOf is the players of a ticket with their teams.
func (t *Ticket) PlayersOf() []Player {
	all := DecodeRoster(t.Roster)
	if t.Outcome != nil && !t.Backfill {
		for i := range all {
			all[i].Team = t.Outcome.Team
		}
	}
	return all
}

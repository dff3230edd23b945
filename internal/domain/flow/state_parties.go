package flow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/sorted"
)

// Party finds a party.
func (s *State) Party(id PartyID) (PartyRef, bool) {
	return s.parties.Find(id)
}

// PartyByCode finds a party by its invite code.
func (s *State) PartyByCode(code string) (PartyRef, bool) {
	return s.codes.Find(code)
}

// PartyByTicket finds the party of a ticket.
func (s *State) PartyByTicket(ticket domain.TicketID) (PartyRef, bool) {
	r, ok := s.searches[ticket]
	return r, ok
}

// PutParty stores a party or replaces it.
func (s *State) PutParty(p Party) PartyRef {
	r, ok := s.parties.Find(p.ID)
	if ok {
		s.unindexParty(s.Parties.Get(r))
	} else {
		r, _ = s.Parties.Add()
		s.parties.Put(p.ID, r)
	}
	*s.Parties.Mut(r) = p
	s.indexParty(r, &p)
	return r
}

func (s *State) indexParty(r PartyRef, p *Party) {
	if p.Code != "" {
		s.codes.Put(p.Code, r)
	}
	if p.Search != nil {
		s.searches[p.Search.Ticket] = r
		s.search(p.Search)
	}
}

func (s *State) unindexParty(p *Party) {
	if p.Code != "" {
		s.codes.Remove(p.Code)
	}
	if p.Search != nil {
		delete(s.searches, p.Search.Ticket)
		all := s.searching[p.Search.Queue]
		if all.Delete(p.Search.Ticket); all.Len() == 0 {
			delete(s.searching, p.Search.Queue)
		}
	}
}

// RemoveParty drops a party. Its members must have left, and its invites must have gone before.
func (s *State) RemoveParty(r PartyRef) {
	p := s.Parties.Get(r)
	s.unindexParty(p)
	s.parties.Remove(p.ID)
	s.Parties.Remove(r)
}

// Invite finds an invite, including one that recently expired.
func (s *State) Invite(id InviteID) (InviteRef, bool) {
	r, ok := s.invites[id]
	return r, ok
}

// InvitesTo returns the invites that a player sees, oldest first.
func (s *State) InvitesTo(player string) []InviteRef { return s.invitesTo[player] }

// InvitesOf returns the invites to a party, oldest first.
func (s *State) InvitesOf(party PartyID) []InviteRef { return s.invitesOf[party] }

// PutInvite stores an invite or replaces it.
func (s *State) PutInvite(x Invite) InviteRef {
	r, ok := s.invites[x.ID]
	if !ok {
		r, _ = s.Invites.Add()
		s.invites[x.ID] = r
		if !x.Unseen {
			s.invitesTo[x.To] = append(s.invitesTo[x.To], r)
		}
		s.invitesOf[x.Party] = append(s.invitesOf[x.Party], r)
	}
	*s.Invites.Mut(r) = x
	return r
}

// RemoveInvite drops an invite.
func (s *State) RemoveInvite(r InviteRef) {
	x := s.Invites.Get(r)
	without(s.invitesTo, x.To, r)
	without(s.invitesOf, x.Party, r)
	delete(s.invites, x.ID)
	s.Invites.Remove(r)
}

func without[K comparable, T any](m map[K][]chunk.Ref[T], key K, r chunk.Ref[T]) {
	left := slices.DeleteFunc(slices.Clone(m[key]), func(x chunk.Ref[T]) bool { return x == r })
	if len(left) == 0 {
		delete(m, key)
	} else {
		m[key] = left
	}
}

// QueueNamed finds the record of a queue.
func (s *State) QueueNamed(name string) (QueueRef, bool) {
	r, ok := s.queues[name]
	return r, ok
}

// search adds a search to the index of its queue.
func (s *State) search(x *Search) {
	all := s.searching[x.Queue]
	if all == nil {
		all = sorted.NewSet(domain.TicketID.Less)
		s.searching[x.Queue] = all
	}
	all.Set(x.Ticket)
}

// SearchingIn yields the parties that search in a queue, in the order of their tickets, beginning after a ticket.
func (s *State) SearchingIn(queue string, after domain.TicketID, yield func(PartyRef) bool) {
	if all := s.searching[queue]; all != nil {
		all.Ascend(after, func(ticket domain.TicketID) bool { return ticket == after || yield(s.searches[ticket]) })
	}
}

// SetQueue stores or replaces the record of a queue.
func (s *State) SetQueue(q Queue) QueueRef {
	r, ok := s.queues[q.Name]
	if !ok {
		r, _ = s.Queues.Add()
		s.queues[q.Name] = r
	}
	*s.Queues.Mut(r) = q
	return r
}

// Closed reports whether a queue is closed.
func (s *State) Closed(queue string) bool {
	r, ok := s.queues[queue]
	return ok && s.Queues.Get(r).Closed
}

package flow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
)

// Player finds a player.
func (s *State) Player(id string) (PlayerRef, bool) {
	return s.players.Find(id)
}

// AddPlayer stores a new player.
func (s *State) AddPlayer(p Player) PlayerRef {
	r, rec := s.Players.Add()
	*rec = p
	rec.login, rec.membership = 0, 0
	rec.Loaded()
	s.players.Put(p.ID, r)
	return r
}

// Loaded computes the size of the outbox of a loaded player.
func (p *Player) Loaded() {
	p.bytes = 0
	for _, x := range p.outbox {
		p.bytes += toldSize(x)
	}
}

// RemovePlayer removes a player.
func (s *State) RemovePlayer(r PlayerRef) {
	s.players.Remove(s.Players.Get(r).ID)
	s.Players.Remove(r)
}

// toldSize estimates the memory of one event in an outbox, without its body, which outboxes share.
func toldSize(x Told) int32 { return 40 + int32(len(x.Body)) }

// Tell appends an event to a player's outbox and drops those before number first.
func (s *State) Tell(r PlayerRef, x Told, first uint64) *Player {
	p := s.Players.Mut(r)
	p.Seq++
	p.outbox = append(p.outbox, x)
	p.bytes += toldSize(x)
	p.trim(first)
	return p
}

// trim drops the events before number first.
func (p *Player) trim(first uint64) {
	from := p.FirstKept()
	if first <= from {
		return
	}
	n := int(min(first-from, uint64(len(p.outbox))))
	for _, x := range p.outbox[:n] {
		p.bytes -= toldSize(x)
	}
	if p.outbox = p.outbox[n:]; len(p.outbox) == 0 {
		p.outbox = nil
	} else if n > len(p.outbox) { // do not keep a large array for few events
		p.outbox = slices.Clone(p.outbox)
	}
}

// Trim drops the events of a player before number first.
func (s *State) Trim(r PlayerRef, first uint64) *Player {
	p := s.Players.Mut(r)
	p.trim(first)
	return p
}

// EventsLimit is the most events that are kept for a player, whatever the options say.
const EventsLimit = eventsLimit

// Login finds a login session, including one that was recently replaced.
func (s *State) Login(id LoginSessionID) (LoginRef, bool) {
	return s.logins.Find(id)
}

// LoginByToken finds the login session of an access token.
func (s *State) LoginByToken(token domain.UUID) (LoginRef, bool) {
	return s.tokens.Find(token)
}

// PutLogin stores a login session or replaces it.
func (s *State) PutLogin(l Login) LoginRef {
	r, ok := s.logins.Find(l.ID)
	if ok {
		s.unindexTokens(s.Logins.Get(r))
	} else {
		r, _ = s.Logins.Add()
		s.logins.Put(l.ID, r)
	}
	player, known := s.Player(l.Player)
	if known {
		l.Player = s.Players.Get(player).ID // share the string: a decoded one has memory of its own
	}
	*s.Logins.Mut(r) = l
	s.indexTokens(r, &l)
	if !known { // the player was removed; the record only tells that the login session was replaced
		return r
	}
	switch p := s.Players.Mut(player); {
	case l.State == LoginLive:
		s.setLogin(p, r)
	case p.login == r:
		s.setLogin(p, 0)
	}
	return r
}

// setLogin sets the live login session of a player; 0: none.
func (s *State) setLogin(p *Player, r LoginRef) {
	if p.login != 0 {
		s.loggedIn--
	}
	if r != 0 {
		s.loggedIn++
	}
	p.login = r
}

// LoggedIn counts the players with a live login session.
func (s *State) LoggedIn() int { return s.loggedIn }

func (s *State) indexTokens(r LoginRef, l *Login) {
	s.tokens.Put(l.Token, r)
	if !l.Previous.IsZero() {
		s.tokens.Put(l.Previous, r)
	}
}

func (s *State) unindexTokens(l *Login) {
	s.tokens.Remove(l.Token)
	if !l.Previous.IsZero() {
		s.tokens.Remove(l.Previous)
	}
}

// RemoveLogin forgets a login session.
func (s *State) RemoveLogin(r LoginRef) {
	l := *s.Logins.Get(r)
	s.unindexTokens(&l)
	s.logins.Remove(l.ID)
	if player, ok := s.Player(l.Player); ok && s.Players.Get(player).login == r {
		s.setLogin(s.Players.Mut(player), 0)
	}
	s.Logins.Remove(r)
}

// LoginTicket finds a login ticket by its hash.
func (s *State) LoginTicket(hash domain.UUID) (LoginTicketRef, bool) {
	r, ok := s.tickets[hash]
	return r, ok
}

// AddLoginTicket stores a login ticket.
func (s *State) AddLoginTicket(x LoginTicket) LoginTicketRef {
	if r, ok := s.tickets[x.Hash]; ok {
		*s.Tickets.Mut(r) = x
		return r
	}
	r, rec := s.Tickets.Add()
	*rec = x
	s.tickets[x.Hash] = r
	return r
}

// RemoveLoginTicket drops a login ticket.
func (s *State) RemoveLoginTicket(r LoginTicketRef) {
	delete(s.tickets, s.Tickets.Get(r).Hash)
	s.Tickets.Remove(r)
}

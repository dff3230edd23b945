package flow

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Advice is what was said of one search alone, by the client that began it and by the studio's hooks. It is kept until
// nothing can come of the search any more: the players are out of it, or their game has a host.
type Advice struct {
	Ticket     domain.TicketID
	Attributes string   // of the client: a JSON object; empty for none
	Trusted    string   // of the studio, for all players of the search: a JSON object
	Regions    []string // where the studio wants the game: the best first
	Players    []PlayerAdvice
	Changed    uint64
}

// PlayerAdvice is what the studio said of one player of a search.
type PlayerAdvice struct {
	Player  string
	Trusted string // a JSON object; empty for none
	Data    string // PlayerData of the player session
}

// IsZero reports whether nothing was said.
func (a *Advice) IsZero() bool {
	return a.Attributes == "" && a.Trusted == "" && len(a.Regions) == 0 && len(a.Players) == 0
}

// Of is what was said of a player; the zero one when that is nothing.
func (a *Advice) Of(player string) PlayerAdvice {
	for _, p := range a.Players {
		if p.Player == player {
			return p
		}
	}
	return PlayerAdvice{Player: player}
}

func (a *Advice) Fields(c *wire.Codec) {
	wire.ID(c, 1, &a.Ticket)
	c.String(2, &a.Attributes)
	c.String(3, &a.Trusted)
	c.Strings(4, &a.Regions)
	wire.Many(c, 5, &a.Players, (*PlayerAdvice).Fields)
}

func (p *PlayerAdvice) Fields(c *wire.Codec) {
	c.String(1, &p.Player)
	c.String(2, &p.Trusted)
	c.String(3, &p.Data)
}

// Advice finds what was said of a search.
func (s *State) Advice(ticket domain.TicketID) (*Advice, bool) {
	r, ok := s.advised[ticket]
	if !ok {
		return nil, false
	}
	return s.Advices.Get(r), true
}

// AddAdvice keeps what was said of a search.
func (s *State) AddAdvice(a Advice) {
	r, ok := s.advised[a.Ticket]
	if !ok {
		r, _ = s.Advices.Add()
		s.advised[a.Ticket] = r
	}
	*s.Advices.Mut(r) = a
}

// RemoveAdvice forgets it.
func (s *State) RemoveAdvice(ticket domain.TicketID) {
	s.Advices.Remove(s.advised[ticket])
	delete(s.advised, ticket)
}

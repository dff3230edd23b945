package flow

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Advice is the information about one search from the client that began it and from the studio's hooks. It is kept
// until the search can have no further effect: its players have left it, or their game has a host.
type Advice struct {
	Ticket     domain.TicketID
	Attributes string   // from the client: a JSON object; empty for none
	Trusted    string   // from the studio, for all players of the search: a JSON object
	Regions    []string // the studio's preferred locations, best first
	Players    []PlayerAdvice
	Changed    uint64
}

// PlayerAdvice is the studio's information about one player of a search.
type PlayerAdvice struct {
	Player  string
	Trusted string // a JSON object; empty for none
	Data    string // PlayerData of the player session
}

// IsZero reports whether the advice is empty.
func (a *Advice) IsZero() bool {
	return a.Attributes == "" && a.Trusted == "" && len(a.Regions) == 0 && len(a.Players) == 0
}

// Of returns the advice about a player; the zero value if there is none.
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

// Advice finds the advice for a search.
func (s *State) Advice(ticket domain.TicketID) (*Advice, bool) {
	r, ok := s.advised[ticket]
	if !ok {
		return nil, false
	}
	return s.Advices.Get(r), true
}

// AddAdvice stores the advice for a search.
func (s *State) AddAdvice(a Advice) {
	r, ok := s.advised[a.Ticket]
	if !ok {
		r, _ = s.Advices.Add()
		s.advised[a.Ticket] = r
	}
	*s.Advices.Mut(r) = a
}

// RemoveAdvice removes the advice for a search.
func (s *State) RemoveAdvice(ticket domain.TicketID) {
	s.Advices.Remove(s.advised[ticket])
	delete(s.advised, ticket)
}

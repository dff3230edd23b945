package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/domain/wire"
)

func (c *Cell) applyMatchmaker(event Event) {
	switch e := event.(type) {
	case *RuleSetChanged:
		x := e.RuleSet
		x.Changed = c.touch()
		c.matchmaking.PutRuleSet(x)
	case *RuleSetRemoved:
		c.matchmaking.RemoveRuleSet(e.Name)
		c.touch()
	case *ConfigurationChanged:
		x := e.Configuration
		x.Changed = c.touch()
		c.matchmaking.PutConfiguration(x)
	case *ConfigurationRemoved:
		c.matchmaking.RemoveConfiguration(e.Name)
		c.touch()
	}
}

func (c *Cell) applyTicket(at domain.Time, event Event) {
	m := c.matchmaking
	switch e := event.(type) {
	case *TicketStarted:
		x := e.Ticket
		x.Changed = c.touch()
		c.ticketNo = x.No
		c.waiting.setWall(ticketTimeout, m.AddTicket(x), x.TimeoutAt)
	case *TicketsSearching:
		for _, no := range e.Tickets {
			r, _ := m.TicketNo(uint64(no))
			t := m.Tickets.Mut(r)
			t.Status, t.Changed = matchmaking.Searching, c.touch()
		}
	case *TicketEnded:
		r, _ := m.TicketNo(uint64(e.Ticket))
		c.applyTicketEnd(at, r, e.Status, e.Reason)
	}
}

func (c *Cell) applyTicketEnd(at domain.Time, r matchmaking.Ref, status matchmaking.Status, reason matchmaking.Reason) {
	c.matchmaking.EndTicket(r, at, status, reason, c.ended.next()).Changed = c.touch()
	c.ended.push(endedTicket, r)
	c.waiting.clear(ticketTimeout, r)
}

func (c *Cell) applyMatch(at domain.Time, event Event) {
	m := c.matchmaking
	switch e := event.(type) {
	case *MatchProposed:
		c.applyProposed(at, e)
	case *PlayersAnswered:
		r, _ := m.TicketNo(uint64(e.Ticket))
		t := m.Tickets.Mut(r)
		outcome := *t.Outcome
		outcome.Answers = []byte(e.Answers)
		t.Outcome, t.Changed = &outcome, c.touch()
	case *MatchAccepted:
		r, _ := m.Match(e.ID)
		x := m.Matches.Mut(r)
		x.AcceptBy, x.Changed = 0, c.touch()
		c.waiting.clear(acceptanceTimeout, r)
		for _, s := range x.Seats {
			if r, ok := m.TicketNo(s.Ticket); ok {
				t := m.Tickets.Mut(r)
				t.Status, t.Reason, t.Changed = matchmaking.Placing, matchmaking.NoReason, c.number
			}
		}
	case *MatchDropped:
		c.applyDropped(e)
	case *MatchCompleted:
		c.applyCompleted(at, e)
	}
}

func (c *Cell) applyProposed(at domain.Time, e *MatchProposed) {
	m, x := c.matchmaking, e.Match
	x.Of, _ = m.Configuration(e.Configuration)
	x.Proposed, x.Changed = at, c.touch()
	c.waiting.setWall(acceptanceTimeout, m.AddMatch(x), x.AcceptBy)
	status := matchmaking.Placing
	if x.AcceptBy != 0 {
		status = matchmaking.RequiresAcceptance
	}
	for _, s := range x.Seats {
		r, _ := m.TicketNo(s.Ticket)
		t := m.Tickets.Mut(r)
		t.Status, t.Reason, t.Changed = status, matchmaking.NoReason, c.number
		t.Outcome = &matchmaking.Outcome{Match: x.ID, Team: s.Team}
		c.waiting.clear(ticketTimeout, r)
		if !t.Backfill {
			m.NoteWait(t.Configuration, at, t.Start)
		}
	}
}

func (c *Cell) applyDropped(e *MatchDropped) {
	m := c.matchmaking
	at, _ := m.Match(e.ID)
	for _, no := range e.Returned {
		r, _ := m.TicketNo(uint64(no))
		t := m.Tickets.Mut(r)
		t.Status, t.Reason, t.Outcome, t.Changed = matchmaking.Searching, e.Reason, nil, c.touch()
		t.Generation++
		m.Return(r)
		c.waiting.setWall(ticketTimeout, r, t.TimeoutAt)
	}
	c.removeMatch(at)
}

func (c *Cell) removeMatch(r matchmaking.Ref) {
	c.waiting.clear(acceptanceTimeout, r)
	c.matchmaking.RemoveMatch(r)
	c.touch()
}

func (c *Cell) applyCompleted(at domain.Time, e *MatchCompleted) {
	m := c.matchmaking
	match, _ := m.Match(e.ID)
	var game session.GameSession
	if g, ok := c.sessions.Game(e.Game); ok {
		game = *c.sessions.Games.Get(g)
	}
	left := e.Sessions
	for _, s := range m.Matches.Get(match).Seats {
		r, ok := m.TicketNo(s.Ticket)
		if !ok {
			continue
		}
		t := m.Tickets.Mut(r)
		outcome := *t.Outcome
		if e.Game != "" {
			outcome.Game, outcome.GameRegion = string(e.Game), game.Region
			outcome.IPAddress, outcome.DNSName, outcome.Port = game.IPAddress, game.DNSName, game.Port
		}
		if n := int(t.Players); !t.Backfill && n <= len(left) {
			outcome.Sessions, left = left[:n:n], left[n:]
		}
		t.Outcome = &outcome
		c.applyTicketEnd(at, r, matchmaking.Completed, matchmaking.NoReason)
	}
	c.removeMatch(match)
}

func (c *Cell) applyHosted(event Event) {
	m := c.matchmaking
	switch e := event.(type) {
	case *HostedChanged:
		h := e.Hosted
		if r, ok := m.HostedBy(h.Game); ok {
			h.Of = m.Hosted.Get(r).Of
		} else if r, ok := m.Match(h.Match); ok {
			h.Of = m.Matches.Get(r).Of
		}
		h.Changed = c.touch()
		m.PutHosted(h)
	case *HostedTold:
		if r, ok := m.HostedBy(string(e.Game)); ok {
			h := m.Hosted.Mut(r)
			h.Told, h.Changed = e.Update, c.touch()
		}
	case *GameSessionMatched:
		r, _ := c.sessions.Game(e.ID)
		g := c.sessions.Games.Mut(r)
		g.MatchmakerData, g.Changed = e.MatchmakerData, c.touch()
	}
}

// matchmaking reads a part of a snapshot.
func (l *loader) matchmaking(kind uint64, body []byte) error {
	m := l.c.matchmaking
	switch kind {
	case partRuleSet:
		return loadWith(l, body, m.PutRuleSet)
	case partConfiguration:
		return loadWith(l, body, m.PutConfiguration)
	case partTicket:
		return loadWith(l, body, func(x matchmaking.Ticket) { m.AddTicket(x) })
	case partMatch:
		return loadWith(l, body, func(x matchmaking.Match) { m.AddMatch(x) })
	case partHosted:
		return loadWith(l, body, m.PutHosted)
	default:
		return loadWith(l, body, m.RestoreRecent)
	}
}

func loadWith[T any, M interface {
	*T
	wire.Message
}](l *loader, body []byte, put func(T)) error {
	var x T
	err := l.reader.Read(body, M(&x))
	if err == nil {
		put(x)
	}
	return err
}

// restoreMatchmaking rebuilds what the snapshot does not hold.
func (c *Cell) restoreMatchmaking(ticketNo uint64) {
	c.ticketNo = ticketNo
	for r, t := range c.matchmaking.Tickets.All() {
		if t.Status.Waits() {
			c.waiting.setWall(ticketTimeout, r, t.TimeoutAt)
		}
	}
	for r, x := range c.matchmaking.Matches.All() {
		c.waiting.setWall(acceptanceTimeout, r, x.AcceptBy)
	}
}

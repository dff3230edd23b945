package matchmaking

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

func (c *State) Apply(at domain.Time, event kernel.Event) {
	switch event.(type) {
	case *RuleSetChanged, *RuleSetRemoved, *ConfigurationChanged, *ConfigurationRemoved:
		c.applyMatchmaker(event)
	case *TicketStarted, *TicketsSearching, *TicketEnded:
		c.applyTicket(at, event)
	case *MatchProposed, *PlayersAnswered, *MatchAccepted, *MatchDropped, *MatchCompleted:
		c.applyMatch(at, event)
	case *HostedChanged, *HostedTold:
		c.applyHosted(event)
	}
}

func (c *State) applyMatchmaker(event kernel.Event) {
	switch e := event.(type) {
	case *RuleSetChanged:
		x := e.RuleSet
		x.Changed = c.Touch()
		c.Records.PutRuleSet(x)
	case *RuleSetRemoved:
		c.Records.RemoveRuleSet(e.Name)
		c.Touch()
	case *ConfigurationChanged:
		x := e.Configuration
		x.Changed = c.Touch()
		c.Records.PutConfiguration(x)
	case *ConfigurationRemoved:
		c.Records.RemoveConfiguration(e.Name)
		c.Touch()
	}
}

func (c *State) applyTicket(at domain.Time, event kernel.Event) {
	m := c.Records
	switch e := event.(type) {
	case *TicketStarted:
		x := e.Ticket
		x.Changed = c.Touch()
		c.ticketNo = x.No
		c.Waiting.SetWall(TicketTimeout, m.AddTicket(x).Any(), x.TimeoutAt)
	case *TicketsSearching:
		for _, no := range e.Tickets {
			r, _ := m.TicketNo(uint64(no))
			t := m.Tickets.Mut(r)
			t.Status, t.Changed = Searching, c.Touch()
		}
	case *TicketEnded:
		r, _ := m.TicketNo(uint64(e.Ticket))
		c.applyTicketEnd(at, r, e.Status, e.Reason)
	}
}

func (c *State) applyTicketEnd(at domain.Time, r TicketRef, status Status, reason Reason) {
	c.Records.EndTicket(r, at, status, reason, c.Ended.Next()).Changed = c.Touch()
	c.Ended.Push(kernel.Ended{Room: Room, Kind: endedTicket, Ref: r.Any()})
	c.Waiting.Clear(TicketTimeout, r.Any())
}

func (c *State) applyMatch(at domain.Time, event kernel.Event) {
	m := c.Records
	switch e := event.(type) {
	case *MatchProposed:
		c.applyProposed(at, e)
	case *PlayersAnswered:
		r, _ := m.TicketNo(uint64(e.Ticket))
		t := m.Tickets.Mut(r)
		outcome := *t.Outcome
		outcome.Answers = []byte(e.Answers)
		t.Outcome, t.Changed = &outcome, c.Touch()
	case *MatchAccepted:
		r, _ := m.Match(e.ID)
		x := m.Matches.Mut(r)
		x.AcceptBy, x.Changed = 0, c.Touch()
		c.Waiting.Clear(AcceptanceTimeout, r.Any())
		for _, s := range x.Seats {
			if r, ok := m.TicketNo(s.Ticket); ok {
				t := m.Tickets.Mut(r)
				t.Status, t.Reason, t.Changed = Placing, NoReason, c.Number()
			}
		}
	case *MatchDropped:
		c.applyDropped(e)
	case *MatchCompleted:
		c.applyCompleted(at, e)
	}
}

func (c *State) applyProposed(at domain.Time, e *MatchProposed) {
	m, x := c.Records, e.Match
	x.Of, _ = m.Configuration(e.Configuration)
	x.Proposed, x.Changed = at, c.Touch()
	c.Waiting.SetWall(AcceptanceTimeout, m.AddMatch(x).Any(), x.AcceptBy)
	status := Placing
	if x.AcceptBy != 0 {
		status = RequiresAcceptance
	}
	for _, s := range x.Seats {
		r, _ := m.TicketNo(s.Ticket)
		t := m.Tickets.Mut(r)
		t.Status, t.Reason, t.Changed = status, NoReason, c.Number()
		t.Outcome = &Outcome{Match: x.ID, Team: s.Team}
		c.Waiting.Clear(TicketTimeout, r.Any())
		if !t.Backfill {
			m.NoteWait(t.Configuration, at, t.Start)
		}
	}
}

func (c *State) applyDropped(e *MatchDropped) {
	m := c.Records
	at, _ := m.Match(e.ID)
	for _, no := range e.Returned {
		r, _ := m.TicketNo(uint64(no))
		t := m.Tickets.Mut(r)
		t.Status, t.Reason, t.Outcome, t.Changed = Searching, e.Reason, nil, c.Touch()
		t.Generation++
		c.Waiting.SetWall(TicketTimeout, r.Any(), t.TimeoutAt)
	}
	c.removeMatch(at)
}

func (c *State) removeMatch(r MatchRef) {
	c.Waiting.Clear(AcceptanceTimeout, r.Any())
	c.Records.RemoveMatch(r)
	c.Touch()
}

func (c *State) applyCompleted(at domain.Time, e *MatchCompleted) {
	m := c.Records
	match, _ := m.Match(e.ID)
	var game session.GameSession
	if g, ok := c.hosting.FindGame(e.Game); ok {
		game = *c.hosting.Game(g)
	}
	left := e.Sessions
	for _, s := range c.Match(match).Seats {
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
		c.applyTicketEnd(at, r, Completed, NoReason)
	}
	c.removeMatch(match)
}

func (c *State) applyHosted(event kernel.Event) {
	m := c.Records
	switch e := event.(type) {
	case *HostedChanged:
		h := e.Hosted
		if r, ok := m.HostedBy(h.Game); ok {
			h.Of = c.hosted(r).Of
		} else if r, ok := m.Match(h.Match); ok {
			h.Of = c.Match(r).Of
		}
		h.Changed = c.Touch()
		m.PutHosted(h)
	case *HostedTold:
		if r, ok := m.HostedBy(string(e.Game)); ok {
			h := m.Hosted.Mut(r)
			h.Told, h.Changed = e.Update, c.Touch()
		}
	}
}

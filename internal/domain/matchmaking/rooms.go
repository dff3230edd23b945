package matchmaking

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// This file has matchmaking's operations for player flow. Records are read-only, and a pointer is valid until the next event.

// FindTicket finds a ticket in memory by its id.
func (c *State) FindTicket(id string) (TicketRef, bool) { return c.Records.Ticket(id) }

// FindTicketNo finds an active ticket by its number.
func (c *State) FindTicketNo(no uint64) (TicketRef, bool) { return c.Records.TicketNo(no) }

// Ticket returns a ticket.
func (c *State) Ticket(r TicketRef) *Ticket { return c.Records.Tickets.Get(r) }

// Match returns a pending match.
func (c *State) Match(r MatchRef) *Match { return c.Records.Matches.Get(r) }

func (c *State) hosted(r HostedRef) *Hosted { return c.Records.Hosted.Get(r) }

// EachConfiguration yields the configurations in the order of their names.
func (c *State) EachConfiguration(yield func(*Configuration) bool) {
	c.Records.ConfigurationsFrom("", yield)
}

// Configuration returns the present settings, which are never changed in place.
func (c *State) Configuration(name string) (*Configuration, bool) {
	return c.Records.Configuration(name)
}

// Compiled returns the compiled form of a rule set; nil if there is none.
func (c *State) Compiled(name string) *ruleset.RuleSet { return c.Records.Compiled(name) }

// EstimatedWait returns the mean wait of recently matched tickets in seconds; ok is false if there were too few.
func (c *State) EstimatedWait(configuration string, now domain.Time) (seconds int32, ok bool) {
	return c.Records.EstimatedWait(configuration, now)
}

// HostedMatch returns the record of a game session that a match created.
func (c *State) HostedMatch(game string) (Hosted, bool) {
	r, ok := c.Records.HostedBy(game)
	if !ok {
		return Hosted{}, false
	}
	return *c.hosted(r), true
}

// BackfillOf finds the active backfill ticket of a game session.
func (c *State) BackfillOf(game string) (TicketRef, bool) { return c.Records.BackfillOf(game) }

// DelaySearch moves the deadlines of a searching ticket and of the match that awaits its answer, while an event of player flow is
// applied. acceptBy is the match's deadline in the record of the ticket's party, 0 if it has none; DelaySearch returns the new one. Of
// the parties of a match, only the first moves its deadline.
func (c *State) DelaySearch(ticket, match string, acceptBy, by domain.Time) domain.Time {
	m := c.Records
	if at, ok := m.Ticket(ticket); ok {
		t := m.Tickets.Mut(at)
		t.TimeoutAt, t.Changed = t.TimeoutAt+by, c.Number()
		if t.Status.Waits() {
			c.Waiting.SetWall(TicketTimeout, at.Any(), t.TimeoutAt)
		}
	}
	at, ok := m.Match(match)
	if !ok || acceptBy == 0 {
		return acceptBy
	}
	x := m.Matches.Mut(at)
	if acceptBy == x.AcceptBy {
		x.AcceptBy, x.Changed = x.AcceptBy+by, c.Number()
		c.Waiting.SetWall(AcceptanceTimeout, at.Any(), x.AcceptBy)
	}
	return x.AcceptBy
}

// SetHosted records a game session that is to be backfilled as if a match had created it.
func (t *Tx) SetHosted(h Hosted) { t.Emit(&HostedChanged{h}) }

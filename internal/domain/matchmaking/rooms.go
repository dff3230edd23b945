package matchmaking

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// What matchmaking offers to player flow. Records are for reading: a pointer is good until the next event.

// FindTicket finds a ticket that is in memory by its id.
func (c *State) FindTicket(id string) (Ref, bool) { return c.Records.Ticket(id) }

// FindTicketNo finds an active ticket by its number.
func (c *State) FindTicketNo(no uint64) (Ref, bool) { return c.Records.TicketNo(no) }

// Ticket returns a ticket.
func (c *State) Ticket(r Ref) *Ticket { return c.Records.Tickets.Get(r) }

// Match returns a match that is on its way.
func (c *State) Match(r Ref) *Match { return c.Records.Matches.Get(r) }

// EachConfiguration yields the configurations in the order of their names.
func (c *State) EachConfiguration(yield func(*Configuration) bool) {
	c.Records.ConfigurationsFrom("", yield)
}

// Configuration finds a configuration as it is now. It is never changed in place.
func (c *State) Configuration(name string) (*Configuration, bool) {
	return c.Records.Configuration(name)
}

// Compiled is a rule set's compiled form; nil when there is none.
func (c *State) Compiled(name string) *ruleset.RuleSet { return c.Records.Compiled(name) }

// EstimatedWait is the mean wait of the tickets that were matched lately, in seconds; not known when they are too few.
func (c *State) EstimatedWait(configuration string, now domain.Time) (seconds int32, ok bool) {
	return c.Records.EstimatedWait(configuration, now)
}

// HostedMatch is what is known of a game session that came of a match.
func (c *State) HostedMatch(game string) (Hosted, bool) {
	r, ok := c.Records.HostedBy(game)
	if !ok {
		return Hosted{}, false
	}
	return *c.Records.Hosted.Get(r), true
}

// BackfillOf finds the active backfill ticket of a game session.
func (c *State) BackfillOf(game string) (Ref, bool) { return c.Records.BackfillOf(game) }

// DelaySearch moves the ends of a ticket that searches and of the match that waits for its answer, while an event of player flow
// is applied. AcceptBy is when the match ends as the ticket's party knows it, 0 if it knows of none; DelaySearch returns when it
// ends now. Of the parties of a match, the first one moves its end.
func (c *State) DelaySearch(ticket, match string, acceptBy, by domain.Time) domain.Time {
	m := c.Records
	if at, ok := m.Ticket(ticket); ok {
		t := m.Tickets.Mut(at)
		t.TimeoutAt, t.Changed = t.TimeoutAt+by, c.Number()
		if t.Status.Waits() {
			c.Waiting.SetWall(TicketTimeout, at, t.TimeoutAt)
		}
	}
	at, ok := m.Match(match)
	if !ok || acceptBy == 0 {
		return acceptBy
	}
	x := m.Matches.Mut(at)
	if acceptBy == x.AcceptBy {
		x.AcceptBy, x.Changed = x.AcceptBy+by, c.Number()
		c.Waiting.SetWall(AcceptanceTimeout, at, x.AcceptBy)
	}
	return x.AcceptBy
}

// SetHosted notes a game session that is to be backfilled as if it came of a match.
func (t *Tx) SetHosted(h Hosted) { t.Emit(&HostedChanged{h}) }

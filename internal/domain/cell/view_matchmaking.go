package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/domain/session"
)

// Ticket is a ticket as clients are shown it.
type Ticket struct {
	matchmaking.Ticket
	EstimatedWait int32 // seconds; of one that has not ended
	WaitKnown     bool
}

func (c *Cell) ticket(r matchmaking.Ref, now domain.Time) (t Ticket) {
	if r == 0 {
		return t
	}
	t.Ticket = *c.matchmaking.Tickets.Get(r)
	if t.Status.Active() {
		t.EstimatedWait, t.WaitKnown = c.matchmaking.EstimatedWait(t.Configuration, now)
	}
	return t
}

func (v *View) ticket(r matchmaking.Ref) Ticket {
	t := v.c.ticket(r, v.c.last)
	v.saw(t.Changed)
	return t
}

// Ticket returns a ticket that is in memory; the engine looks into the archive for others.
func (v *View) Ticket(id string) (Ticket, bool) {
	r, ok := v.c.matchmaking.Ticket(id)
	if !ok {
		v.sawAll()
		return Ticket{}, false
	}
	return v.ticket(r), true
}

// TicketNo returns an active ticket by its number.
func (v *View) TicketNo(no uint64) (Ticket, bool) {
	r, ok := v.c.matchmaking.TicketNo(no)
	if !ok {
		v.sawAll()
		return Ticket{}, false
	}
	return v.ticket(r), true
}

// WaitingTickets returns those of the next records that wait in a pool, in no particular order, and where to go on; 0 at the
// end. It is for a matchmaker that begins.
func (v *View) WaitingTickets(after chunk.Ref, step int) (waiting []matchmaking.Ticket, next chunk.Ref) {
	v.sawAll()
	at := after
	for t := range v.c.matchmaking.Tickets.From(after, &at) {
		if t.Status.Waits() {
			waiting = append(waiting, *t)
		}
		if step--; step == 0 {
			return waiting, at
		}
	}
	return waiting, 0
}

// RuleSet returns a rule set.
func (v *View) RuleSet(name string) (matchmaking.RuleSet, bool) {
	r, ok := v.c.matchmaking.RuleSet(name)
	if !ok {
		v.sawAll()
		return matchmaking.RuleSet{}, false
	}
	x := *v.c.matchmaking.RuleSets.Get(r)
	v.saw(x.Changed)
	return x, true
}

// CompiledRuleSet returns the compiled form of a rule set; nil when there is none. It never changes.
func (v *View) CompiledRuleSet(name string) *ruleset.RuleSet {
	v.sawAll()
	return v.c.matchmaking.Compiled(name)
}

// RuleSets returns up to limit rule sets in the order of their names, beginning behind `after`.
func (v *View) RuleSets(after string, limit int) (page []matchmaking.RuleSet) {
	v.sawAll()
	v.c.matchmaking.RuleSetsFrom(after, func(x *matchmaking.RuleSet) bool {
		page = append(page, *x)
		return len(page) < limit
	})
	return page
}

// Configuration returns a matchmaking configuration.
func (v *View) Configuration(name string) (matchmaking.Configuration, bool) {
	c, ok := v.c.matchmaking.Configuration(name)
	if !ok {
		v.sawAll()
		return matchmaking.Configuration{}, false
	}
	v.saw(c.Changed)
	return *c, true
}

// Configurations returns up to limit matchmaking configurations in the order of their names, beginning behind `after`; a
// rule set other than "" leaves out those that use another one.
func (v *View) Configurations(after, ruleSet string, limit int) (page []matchmaking.Configuration) {
	v.sawAll()
	v.c.matchmaking.ConfigurationsFrom(after, func(c *matchmaking.Configuration) bool {
		if ruleSet == "" || c.RuleSet == ruleSet {
			page = append(page, *c)
		}
		return len(page) < limit
	})
	return page
}

// TicketCounts tells how much is going on in a matchmaking configuration.
func (v *View) TicketCounts(configuration string) matchmaking.Counts {
	v.sawAll()
	return v.c.matchmaking.Counts(configuration)
}

// FreeSlots is how many players a game session takes, and its backfill wants; not ok: it takes nobody.
func (v *View) FreeSlots(game string) (free int32, ok bool) {
	v.sawAll()
	free, ok = v.c.freeSlots(game)
	if r, open := v.c.matchmaking.BackfillOf(game); open {
		if most := v.c.matchmaking.Tickets.Get(r).Slots; most > 0 {
			free = min(free, most)
		}
	}
	return free, ok
}

// Match returns a match whose players are asked, or that is being placed.
func (v *View) Match(id string) (matchmaking.Match, bool) {
	v.sawAll()
	r, ok := v.c.matchmaking.Match(id)
	if !ok {
		return matchmaking.Match{}, false
	}
	return *v.c.matchmaking.Matches.Get(r), true
}

// Hosted returns what is known of a game session that came of a match.
func (v *View) Hosted(game session.ID) (matchmaking.Hosted, bool) {
	r, ok := v.c.matchmaking.HostedBy(string(game))
	if !ok {
		v.sawAll()
		return matchmaking.Hosted{}, false
	}
	h := *v.c.matchmaking.Hosted.Get(r)
	v.saw(h.Changed)
	return h, true
}

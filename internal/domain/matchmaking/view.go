package matchmaking

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/domain/session"
)

// TicketView is a ticket as clients see it.
type TicketView struct {
	Ticket
	EstimatedWait int32 // seconds; of an active ticket
	WaitKnown     bool
}

func (c *State) TicketView(r TicketRef, now domain.Time) (t TicketView) {
	if r == 0 {
		return t
	}
	t.Ticket = *c.Ticket(r)
	if t.Status.Active() {
		t.EstimatedWait, t.WaitKnown = c.Records.EstimatedWait(t.Configuration, now)
	}
	return t
}

func (v *View) ticket(r TicketRef) TicketView {
	t := v.c.TicketView(r, v.c.Last())
	v.Saw(t.Changed)
	return t
}

// Ticket returns a ticket in memory; the engine reads others from the archive.
func (v *View) Ticket(id string) (TicketView, bool) {
	r, ok := v.c.Records.Ticket(id)
	if !ok {
		v.SawAll()
		return TicketView{}, false
	}
	return v.ticket(r), true
}

// TicketNo returns an active ticket by its number.
func (v *View) TicketNo(no uint64) (TicketView, bool) {
	r, ok := v.c.Records.TicketNo(no)
	if !ok {
		v.SawAll()
		return TicketView{}, false
	}
	return v.ticket(r), true
}

// WaitingTickets returns the waiting tickets among the next step records, in no particular order, and where the next call begins; 0 at the end. A
// matchmaker uses it to fill its pool when it starts.
func (v *View) WaitingTickets(after TicketRef, step int) (waiting []Ticket, next TicketRef) {
	v.SawAll()
	at := after
	for t := range v.c.Records.Tickets.From(after, &at) {
		if t.Status.Waits() {
			waiting = append(waiting, *t)
		}
		if step--; step == 0 {
			return waiting, at
		}
	}
	return waiting, 0
}

// OpenTickets yields, in no particular order, the tickets among the next step records that have not ended. It returns where the next call begins; 0
// at the end. The tickets are for metrics and may be ahead of what is durable.
func (v *View) OpenTickets(after TicketRef, step int, yield func(*Ticket)) (next TicketRef) {
	return v.eachTicket(after, step, func(t *Ticket) {
		if t.Status.Active() {
			yield(t)
		}
	})
}

// TicketsInMemory is OpenTickets including ended tickets that are still in memory. All of them are durable.
func (v *View) TicketsInMemory(after TicketRef, step int, yield func(*Ticket)) (next TicketRef) {
	v.SawAll()
	return v.eachTicket(after, step, yield)
}

func (v *View) eachTicket(after TicketRef, step int, yield func(*Ticket)) (next TicketRef) {
	at := after
	for t := range v.c.Records.Tickets.From(after, &at) {
		yield(t)
		if step--; step == 0 {
			return at
		}
	}
	return 0
}

// OpenMatches is OpenTickets for matches that await acceptance or placement.
func (v *View) OpenMatches(after MatchRef, step int, yield func(*Match)) (next MatchRef) {
	at := after
	for m := range v.c.Records.Matches.From(after, &at) {
		yield(m)
		if step--; step == 0 {
			return at
		}
	}
	return 0
}

// RuleSet returns a rule set.
func (v *View) RuleSet(name string) (x RuleSet, ok bool) {
	r, ok := v.c.Records.RuleSet(name)
	if ok {
		x = *v.c.Records.RuleSets.Get(r)
	}
	return x, v.Found(ok, x.Changed)
}

// CompiledRuleSet returns the compiled form of a rule set, which never changes; nil if there is none.
func (v *View) CompiledRuleSet(name string) *ruleset.RuleSet {
	v.SawAll()
	return v.c.Records.Compiled(name)
}

// RuleSets returns up to limit rule sets, ordered by name, beginning after `after`.
func (v *View) RuleSets(after string, limit int) []RuleSet {
	v.SawAll()
	return kernel.Page(limit, func(take func(*RuleSet) bool) { v.c.Records.RuleSetsFrom(after, take) })
}

// Configuration returns a matchmaking configuration.
func (v *View) Configuration(name string) (Configuration, bool) {
	c, ok := v.c.Records.Configuration(name)
	if !ok {
		v.SawAll()
		return Configuration{}, false
	}
	v.Saw(c.Changed)
	return *c, true
}

// Configurations returns up to limit matchmaking configurations, ordered by name, beginning after `after`. If ruleSet is not "", it selects those
// that use it.
func (v *View) Configurations(after, ruleSet string, limit int) (page []Configuration) {
	v.SawAll()
	v.c.Records.ConfigurationsFrom(after, func(c *Configuration) bool {
		if ruleSet == "" || c.RuleSet == ruleSet {
			page = append(page, *c)
		}
		return len(page) < limit
	})
	return page
}

func (v *View) TicketCounts(configuration string) Counts {
	v.SawAll()
	return v.c.Records.Counts(configuration)
}

// FreeSlots returns how many more players a game session can take, at most as many as its open backfill asks for. ok is false if it takes none.
func (v *View) FreeSlots(game string) (free int32, ok bool) {
	v.SawAll()
	free, ok = v.c.FreeSlots(game)
	if r, open := v.c.Records.BackfillOf(game); open {
		if most := v.c.Ticket(r).Slots; most > 0 {
			free = min(free, most)
		}
	}
	return free, ok
}

// Match returns a match that awaits acceptance or placement.
func (v *View) Match(id string) (Match, bool) {
	v.SawAll()
	r, ok := v.c.Records.Match(id)
	if !ok {
		return Match{}, false
	}
	return *v.c.Match(r), true
}

// Hosted returns the record of a game session that a match created.
func (v *View) Hosted(game session.ID) (h Hosted, ok bool) {
	r, ok := v.c.Records.HostedBy(string(game))
	if ok {
		h = *v.c.hosted(r)
	}
	return h, v.Found(ok, h.Changed)
}

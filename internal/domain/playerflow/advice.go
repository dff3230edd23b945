package playerflow

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Advice is what the studio says about one search: attributes for the matchmaker, and PlayerData and the order of locations for the
// resulting game. A match is committed and placed in one transaction, which cannot wait for the studio, so the studio is asked when the
// search begins.

func (c *State) applyAdvice(event kernel.Event) {
	switch e := event.(type) {
	case *SearchAdvised:
		a := e.Advice
		a.Changed = c.Touch()
		c.Flow.AddAdvice(a)
	case *SearchAdviceDropped:
		c.Flow.RemoveAdvice(e.Ticket)
		c.Touch()
	}
}

// keep stores the advice for a search, unless it is empty.
func (t *advices) keep(a flow.Advice) {
	if !a.IsZero() {
		t.Emit(&SearchAdvised{a})
	}
}

// of returns the advice for a search; an empty one if there is none.
func (t *advices) of(ticket domain.TicketID) flow.Advice {
	if a, ok := t.Flow.Advice(ticket); ok {
		return *a
	}
	return flow.Advice{Ticket: ticket}
}

func (t *advices) drop(ticket domain.TicketID) {
	if _, ok := t.Flow.Advice(ticket); ok {
		t.Emit(&SearchAdviceDropped{ticket})
	}
}

// dropAll removes the advice for the searches of a game's members, because the game now accepts players.
func (t *advices) dropAll(r flow.InstanceRef) {
	for _, m := range t.Flow.Instances.Get(r).Members() {
		t.drop(t.Flow.Memberships.Get(m).Ticket)
	}
}

// memberLeft removes the advice for a search when the last player from that search has left the game.
func (t *advices) memberLeft(left *flow.Membership) {
	r, ok := t.Flow.Instance(left.Instance)
	if !ok || left.Ticket.IsZero() {
		return
	}
	for _, m := range t.Flow.Instances.Get(r).Members() {
		if t.Flow.Memberships.Get(m).Ticket == left.Ticket {
			return
		}
	}
	t.drop(left.Ticket)
}

// ofMembers returns the advice for the searches that led to memberships.
func (t *advices) ofMembers(members []flow.Membership) map[domain.TicketID]flow.Advice {
	var all map[domain.TicketID]flow.Advice
	for _, m := range members {
		if a, ok := t.Flow.Advice(m.Ticket); ok {
			if all == nil {
				all = map[domain.TicketID]flow.Advice{}
			}
			all[m.Ticket] = *a
		}
	}
	return all
}

// regions returns the order of locations that the studio wants for the game of a match. If the orders of parties differ, locations are
// sorted by the sum of their ranks over all players whose party has an order; a location missing from an order ranks after that order's
// last one.
func (t *advices) regions(r flow.InstanceRef) []string {
	var orders [][]string
	var weights []int
	players := map[domain.TicketID]int{}
	var tickets []domain.TicketID
	for _, m := range t.Flow.Instances.Get(r).Members() {
		ticket := t.Flow.Memberships.Get(m).Ticket
		if players[ticket]++; players[ticket] == 1 {
			tickets = append(tickets, ticket)
		}
	}
	for _, ticket := range tickets {
		if a, ok := t.Flow.Advice(ticket); ok && len(a.Regions) > 0 {
			orders, weights = append(orders, a.Regions), append(weights, players[ticket])
		}
	}
	return mergeOrders(orders, weights)
}

// mergeOrders merges several orders into one: by the sum of ranks, ties by name.
func mergeOrders(orders [][]string, weights []int) []string {
	sums := map[string]int{}
	for _, order := range orders {
		for _, name := range order {
			sums[name] = 0
		}
	}
	for name := range sums {
		for i, order := range orders {
			place := slices.Index(order, name)
			if place < 0 {
				place = len(order)
			}
			sums[name] += weights[i] * place
		}
	}
	return slices.SortedFunc(maps.Keys(sums), func(a, b string) int { return cmp.Or(cmp.Compare(sums[a], sums[b]), cmp.Compare(a, b)) })
}

package cell

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// What was said of single searches: attributes for the matchmaker, PlayerData and the order of locations for the game that
// comes of it. A match is committed and placed in one transaction, which cannot wait for anybody: so the studio is asked
// when the search begins.

func (c *Cell) applyAdvice(event Event) {
	switch e := event.(type) {
	case *SearchAdvised:
		a := e.Advice
		a.Changed = c.touch()
		c.flow.AddAdvice(a)
	case *SearchAdviceDropped:
		c.flow.RemoveAdvice(e.Ticket)
		c.touch()
	}
}

// advise keeps what was said of a search, if anything was.
func (t *tx) advise(a flow.Advice) {
	if !a.IsZero() {
		t.emit(&SearchAdvised{a})
	}
}

// advised is what was said of a search; the zero one when that is nothing.
func (t *tx) advised(ticket domain.UUID) flow.Advice {
	if a, ok := t.c.flow.Advice(ticket); ok {
		return *a
	}
	return flow.Advice{Ticket: ticket}
}

func (t *tx) dropAdvice(ticket domain.UUID) {
	if _, ok := t.c.flow.Advice(ticket); ok {
		t.emit(&SearchAdviceDropped{ticket})
	}
}

// settleAdvice forgets what was said of the searches of those who are in a game that takes players now.
func (t *tx) settleAdvice(r flow.Ref) {
	for _, m := range t.c.flow.Instances.Get(r).Members() {
		t.dropAdvice(t.c.flow.Memberships.Get(m).Ticket)
	}
}

// adviceOfLeaver forgets what was said of a search when the last one of those who searched together has left the game.
func (t *tx) adviceOfLeaver(left *flow.Membership) {
	r, ok := t.c.flow.Instance(left.Instance)
	if !ok || left.Ticket.IsZero() {
		return
	}
	for _, m := range t.c.flow.Instances.Get(r).Members() {
		if t.c.flow.Memberships.Get(m).Ticket == left.Ticket {
			return
		}
	}
	t.dropAdvice(left.Ticket)
}

// advicesOf are what was said of the searches that memberships came out of.
func (t *tx) advicesOf(members []flow.Membership) map[domain.UUID]flow.Advice {
	var all map[domain.UUID]flow.Advice
	for _, m := range members {
		if a, ok := t.c.flow.Advice(m.Ticket); ok {
			if all == nil {
				all = map[domain.UUID]flow.Advice{}
			}
			all[m.Ticket] = *a
		}
	}
	return all
}

// wantedRegions is the order of locations that the studio wants for the game of a match. Where parties differ, a location's
// place is the sum of its places over all players whose party has an order; behind the last one when it is not in it.
func (t *tx) wantedRegions(r flow.Ref) []string {
	var orders [][]string
	var weights []int
	players := map[domain.UUID]int{}
	var tickets []domain.UUID
	for _, m := range t.c.flow.Instances.Get(r).Members() {
		ticket := t.c.flow.Memberships.Get(m).Ticket
		if players[ticket]++; players[ticket] == 1 {
			tickets = append(tickets, ticket)
		}
	}
	for _, ticket := range tickets {
		t.addRegions(ticket, players[ticket], &orders, &weights)
	}
	return mergeOrders(orders, weights)
}

func (t *tx) addRegions(ticket domain.UUID, players int, orders *[][]string, weights *[]int) {
	if a, ok := t.c.flow.Advice(ticket); ok && len(a.Regions) > 0 {
		*orders, *weights = append(*orders, a.Regions), append(*weights, players)
	}
}

// mergeOrders makes one order of several: by the sum of places, equal ones by name.
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

// dataOf is the PlayerData of a player who was matched; empty when nobody has said anything.
func (t *tx) dataOf(player string) string {
	r, ok := t.c.flow.Player(player)
	if !ok || t.c.flow.Players.Get(r).Membership() == 0 {
		return ""
	}
	return t.c.flow.Memberships.Get(t.c.flow.Players.Get(r).Membership()).Data
}

// advice checks that somebody still needs what was said of a search.
func (a *auditor) advice(x *flow.Advice) {
	if _, searching := a.c.flow.PartyByTicket(x.Ticket); searching {
		return
	}
	if a.waiting == nil { // counted once: there may be as many searches as memberships
		a.waiting = map[domain.UUID]bool{}
		for _, m := range a.c.flow.Memberships.All() {
			if !a.c.flow.Instances.Get(m.InstanceRef()).Ready {
				a.waiting[m.Ticket] = true
			}
		}
	}
	if a.waiting[x.Ticket] {
		return
	}
	a.fail("advice", "mm-"+x.Ticket.String(), "it is kept, and nobody searches or waits for a host with this ticket")
}

package matcher

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

// location is where a large match may be played, and the tickets that accept it.
type location struct {
	name    string
	players int32
	ranks   []int // of the location among those that the ticket accepts, the fastest first; for each of tickets
	tickets []int32
}

// batchKey names a batch of a level.
type batchKey struct {
	location string // empty: no ticket has latencies
	rank     int    // with the preference fastestRegion: how many of its locations each ticket tries before this one
}

// batches groups tickets by location, according to the batching preference. A ticket may be in several batches.
func (m *Matcher) batches(tickets []int32) iter.Seq2[batchKey, []int32] {
	return func(yield func(batchKey, []int32) bool) {
		locations := m.locations(tickets)
		m.stats.Steps += uint64(len(tickets) * len(locations))
		switch {
		case len(locations) == 0:
			if !m.plan.latency {
				yield(batchKey{}, tickets)
			}
		case m.rules.Algorithm.Batching != ruleset.FastestRegion:
			for i := range locations {
				if !yield(batchKey{location: locations[i].name}, locations[i].tickets) {
					return
				}
			}
		default:
			fastestFirst(locations, yield)
		}
	}
}

// fastestFirst yields the batches of tickets' fastest locations, then those of their two fastest, and so on.
func fastestFirst(locations []location, yield func(batchKey, []int32) bool) {
	most := 0
	for i := range locations {
		most = max(most, slices.Max(locations[i].ranks))
	}
	for rank := 0; rank <= most; rank++ {
		for i := range locations {
			var batch []int32
			more := rank == 0
			for k, slot := range locations[i].tickets {
				if r := locations[i].ranks[k]; r <= rank {
					batch, more = append(batch, slot), more || r == rank
				}
			}
			if more && !yield(batchKey{locations[i].name, rank}, batch) {
				return
			}
		}
	}
}

// locations returns the locations in use with their tickets, those with most players first.
func (m *Matcher) locations(tickets []int32) []location {
	var all []location
	place := map[string]int{}
	for i := range m.pool.regions.regions {
		if r := &m.pool.regions.regions[i]; r.users > 0 {
			place[r.name] = len(all)
			all = append(all, location{name: r.name})
		}
	}
	var choices []choice
	for _, slot := range tickets {
		choices = m.choices(slot, choices[:0])
		for rank, c := range choices {
			l := &all[place[c.region]]
			l.tickets, l.ranks = append(l.tickets, slot), append(l.ranks, rank)
			l.players += m.pool.tickets[slot].players
		}
		if len(choices) == 0 && !m.plan.latency && m.anywhere(slot) {
			for i := range all {
				all[i].tickets, all[i].ranks = append(all[i].tickets, slot), append(all[i].ranks, 0)
				all[i].players += m.pool.tickets[slot].players
			}
		}
	}
	all = slices.DeleteFunc(all, func(l location) bool { return len(l.tickets) == 0 })
	slices.SortFunc(all, func(a, b location) int {
		return cmp.Or(-cmp.Compare(a.players, b.players), cmp.Compare(a.name, b.name))
	})
	return all
}

// choice is a location that a ticket accepts.
type choice struct {
	region  string
	latency float64 // the party's average
}

// choices returns the locations that all players of a ticket accept, the fastest first. If no rule needs latencies, players without any
// accept what the others accept.
func (m *Matcher) choices(slot int32, to []choice) []choice {
	players := m.pool.records[slot].players
	first := slices.IndexFunc(players, func(p ruleset.Player) bool { return len(p.Latencies) > 0 })
	if first < 0 {
		return to
	}
	most := m.largeMost()
	for _, l := range players[first].Latencies {
		total, n, all := 0.0, 0, true
		for p := range players {
			if len(players[p].Latencies) == 0 && !m.plan.latency {
				continue
			}
			ms, ok := latencyTo(players[p].Latencies, l.Region)
			if !ok || float64(ms) > most {
				all = false
				break
			}
			total, n = total+float64(ms), n+1
		}
		if all {
			to = append(to, choice{l.Region, total / float64(n)})
		}
	}
	slices.SortFunc(to, func(a, b choice) int {
		return cmp.Or(cmp.Compare(a.latency, b.latency), cmp.Compare(a.region, b.region))
	})
	return to
}

// largeMost returns the lowest maximum latency of the level's rules.
func (m *Matcher) largeMost() float64 {
	most := math.Inf(1)
	for _, rule := range m.large.level.level.Rules {
		if form, ok := rule.Form.(*ruleset.Latency); ok && form.HasLatency {
			most = min(most, form.MaxLatency)
		}
	}
	return most
}

func (m *Matcher) anywhere(slot int32) bool {
	return !slices.ContainsFunc(m.pool.records[slot].players, func(p ruleset.Player) bool { return len(p.Latencies) > 0 })
}

package matcher

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

// location is where a large match may be played, and the tickets that accept it by name.
type location struct {
	name    string
	players int32
	places  []int // of the tickets, in the level's order
	ranks   []int // of the location among those that the ticket accepts, the fastest first; for each of places
}

// batchKey names a batch of a level.
type batchKey struct {
	location string // empty: no ticket has latencies
	rank     int    // with the preference fastestRegion: how many of its locations each ticket tries before this one
}

// batches groups tickets by location, according to the batching preference, and leaves out the batches that are done. A ticket may be in
// several batches.
func (m *Matcher) batches(tickets []int32, done map[batchKey]bool) iter.Seq2[batchKey, []int32] {
	return func(yield func(batchKey, []int32) bool) {
		locations, anywhere := m.locations(tickets)
		give := func(key batchKey, l *location, rank int) bool {
			return done[key] || yield(key, m.batch(tickets, l, anywhere, rank))
		}
		switch {
		case len(locations) == 0 && m.plan.latency:
		case len(locations) == 0 && len(anywhere) > 0:
			give(batchKey{}, &location{}, 0)
		case len(locations) == 0:
			if !done[batchKey{}] {
				yield(batchKey{}, tickets)
			}
		case m.rules.Algorithm.Batching != ruleset.FastestRegion:
			for i := range locations {
				if !give(batchKey{location: locations[i].name}, &locations[i], math.MaxInt) {
					return
				}
			}
		default:
			fastestFirst(locations, give)
		}
	}
}

// fastestFirst gives the batches of tickets' fastest locations, then those of their two fastest, and so on.
func fastestFirst(locations []location, give func(batchKey, *location, int) bool) {
	most := 0
	for i := range locations {
		most = max(most, slices.Max(locations[i].ranks))
	}
	for rank := 0; rank <= most; rank++ {
		for i := range locations {
			l := &locations[i]
			if (rank == 0 || slices.Contains(l.ranks, rank)) && !give(batchKey{l.name, rank}, l, rank) {
				return
			}
		}
	}
}

// batch returns the tickets that accept a location, in their order: those that name it with at most this rank, and those that accept any.
// It is made when its turn comes, because a pool may have thousands of locations, and many tickets that accept any.
func (m *Matcher) batch(tickets []int32, l *location, anywhere []int, rank int) []int32 {
	batch := make([]int32, 0, len(l.places)+len(anywhere))
	for i, place := range l.places {
		if l.ranks[i] > rank {
			continue
		}
		for len(anywhere) > 0 && anywhere[0] < place {
			batch, anywhere = append(batch, tickets[anywhere[0]]), anywhere[1:]
		}
		batch = append(batch, tickets[place])
	}
	for _, place := range anywhere {
		batch = append(batch, tickets[place])
	}
	m.stats.Steps += uint64(len(batch))
	return batch
}

// locations returns the locations that tickets name, those with most players first, and the places of the tickets that accept any.
func (m *Matcher) locations(tickets []int32) (all []location, anywhere []int) {
	known := map[string]int{}
	var choices []choice
	for place, slot := range tickets {
		choices = m.choices(slot, choices[:0])
		m.stats.Steps += uint64(1 + len(choices))
		for rank, c := range choices {
			at, ok := known[c.region]
			if !ok {
				at = len(all)
				known[c.region] = at
				all = append(all, location{name: c.region})
			}
			l := &all[at]
			l.places, l.ranks = append(l.places, place), append(l.ranks, rank)
			l.players += m.pool.tickets[slot].players
		}
		if len(choices) == 0 && !m.plan.latency && m.anywhere(slot) {
			anywhere = append(anywhere, place)
		}
	}
	slices.SortFunc(all, func(a, b location) int {
		return cmp.Or(-cmp.Compare(a.players, b.players), cmp.Compare(a.name, b.name))
	})
	return all, anywhere
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

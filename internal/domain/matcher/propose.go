package matcher

import (
	"slices"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

// propose makes a proposal from a match, and removes its tickets from the pool.
func (m *Matcher) propose(f *found) Proposal {
	m.balance(f)
	tickets := f.tickets
	slices.SortFunc(tickets, func(a, b joined) int {
		if m.older(a.slot, b.slot) {
			return -1
		}
		return 1
	})
	level := m.rules.Level(f.level)
	p := Proposal{
		Tickets: make([]uint64, len(tickets)),
		Teams:   make([][]Seat, len(m.rules.Teams)),
		Level:   f.level, Players: f.players, MaxPlayers: level.Slots,
		Region: m.region(level, tickets),
		Counts: m.sumCounts(tickets),
	}
	seats, sizes := make([]Seat, 0, f.players), make([]int32, len(m.rules.Teams))
	m.eachSeat(tickets, func(team int, _ Seat) { sizes[team]++ })
	for team, n := range sizes {
		p.Teams[team] = seats[len(seats) : len(seats) : len(seats)+int(n)]
		seats = seats[:len(seats)+int(n)]
	}
	m.eachSeat(tickets, func(team int, seat Seat) { p.Teams[team] = append(p.Teams[team], seat) })
	for i, j := range tickets {
		p.Tickets[i] = m.pool.records[j.slot].key
	}
	for _, j := range tickets {
		m.remove(j.slot)
	}
	m.stats.Proposals++
	m.stats.Matched += uint64(len(tickets))
	return p
}

// eachSeat calls f for every player, in the order of the tickets' age and then of the ticket.
func (m *Matcher) eachSeat(tickets []joined, f func(team int, seat Seat)) {
	for i, j := range tickets {
		r := &m.pool.records[j.slot]
		if r.roster == nil {
			for p := range r.players {
				f(int(j.team), Seat{int32(i), int32(p)})
			}
			continue
		}
		for k := range r.roster.parts {
			part := &r.roster.parts[k]
			for _, p := range part.who {
				f(part.team, Seat{int32(i), p})
			}
		}
	}
}

// region returns the region with the lowest average latency of those that every player reported and that satisfy the latency rules; "" if
// there is none.
func (m *Matcher) region(level *ruleset.Level, tickets []joined) string {
	first := m.pool.records[tickets[0].slot].players[0].Latencies
	best, lowest := "", int64(0)
	for _, l := range first {
		total, everybody := int64(0), true
		for _, j := range tickets {
			players := m.pool.records[j.slot].players
			for p := range players {
				ms, ok := latencyTo(players[p].Latencies, l.Region)
				total, everybody = total+int64(ms), everybody && ok
			}
			if !everybody {
				break
			}
		}
		if !everybody || best != "" && (total > lowest || total == lowest && l.Region > best) {
			continue
		}
		if m.plan.latency && !m.suits(level, tickets, l.Region) {
			continue
		}
		best, lowest = l.Region, total
	}
	return best
}

func latencyTo(latencies []ruleset.RegionLatency, region string) (ms int32, ok bool) {
	for i := range latencies {
		if latencies[i].Region == region {
			return latencies[i].Milliseconds, true
		}
	}
	return 0, false
}

// suits reports whether a region satisfies each latency rule that is required by itself.
func (m *Matcher) suits(level *ruleset.Level, tickets []joined, region string) bool {
	for _, rule := range level.Rules {
		form, ok := rule.Form.(*ruleset.Latency)
		if !ok || rule.Replaced {
			continue
		}
		var all []float64
		for _, j := range tickets {
			players := m.pool.records[j.slot].players
			for p := range players {
				ms, _ := latencyTo(players[p].Latencies, region)
				if form.HasLatency && float64(ms) > form.MaxLatency {
					return false
				}
				if form.HasDistance {
					all = append(all, float64(ms))
				}
			}
		}
		if !form.HasDistance {
			continue
		}
		reference := form.Reference.Of(all)
		for _, j := range tickets {
			n := len(m.pool.records[j.slot].players)
			party := form.Party.Of(all[:n])
			all = all[n:]
			if !ruleset.AtMost(ruleset.Difference(party, reference, true), form.MaxDistance) {
				return false
			}
		}
	}
	return true
}

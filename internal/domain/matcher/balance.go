package matcher

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

// balancer exchanges tickets between the teams of a match until no exchange of two tickets of equal size brings the teams' averages
// closer together. It keeps the sizes of teams and does not move a roster.
type balancer struct {
	m       *Matcher
	match   *found
	column  int
	sums    []float64
	sizes   []float64
	values  []float64 // of each ticket: the sum over its players
	players []int32
	free    bool // no rule depends on teams, so every exchange is legal
	checks  int  // of legality, still allowed
}

// balanceChecks is the most exchanges that are checked against the rules for one match.
const balanceChecks = 2000

func (m *Matcher) balance(f *found) {
	if a := &m.rules.Algorithm; !a.Balanced || len(m.rules.Teams) < 2 {
		return
	}
	b := balancer{m: m, match: f, column: m.rules.Algorithm.BalancedColumn, checks: balanceChecks}
	b.free = m.rules.Large || m.plan.levels[f.level].teamless
	b.sums, b.sizes = make([]float64, len(m.rules.Teams)), make([]float64, len(m.rules.Teams))
	b.values, b.players = make([]float64, len(f.tickets)), make([]int32, len(f.tickets))
	for i, j := range f.tickets {
		b.players[i] = m.pool.tickets[j.slot].players
		r := &m.pool.records[j.slot]
		for p := range r.players {
			b.values[i] += r.players[p].Values[b.column].Number
		}
		if j.team >= 0 {
			b.sums[j.team] += b.values[i]
			b.sizes[j.team] += float64(b.players[i])
			continue
		}
		for k := range r.roster.parts {
			part := &r.roster.parts[k]
			for p := range part.players {
				b.sums[part.team] += part.players[p].Values[b.column].Number
			}
			b.sizes[part.team] += float64(len(part.players))
		}
	}
	if b.free {
		b.deal()
	}
	for b.exchange() {
	}
	m.stats.Steps += uint64(len(f.tickets) * len(f.tickets))
}

// deal distributes the single players again, the highest value first, each to the team that is furthest below the average.
func (b *balancer) deal() {
	var singles []int
	total, players := 0.0, 0.0
	for team := range b.sums {
		total, players = total+b.sums[team], players+b.sizes[team]
	}
	places := make([]int, len(b.sums))
	for i, j := range b.match.tickets {
		if b.players[i] == 1 && j.team >= 0 {
			singles = append(singles, i)
			places[j.team]++
			b.sums[j.team] -= b.values[i]
		}
	}
	slices.SortFunc(singles, func(x, y int) int {
		return cmp.Or(-cmp.Compare(b.values[x], b.values[y]), cmp.Compare(x, y))
	})
	mean := total / players
	for _, i := range singles {
		best, most := -1, 0.0
		for team := range places {
			if places[team] == 0 {
				continue
			}
			need := (mean*b.sizes[team] - b.sums[team]) / float64(places[team])
			if best < 0 || need > most {
				best, most = team, need
			}
		}
		places[best]--
		b.sums[best] += b.values[i]
		b.match.tickets[i].team = int32(best)
	}
}

func (b *balancer) mean(team int) float64 { return b.sums[team] / b.sizes[team] }

// spread returns the difference between the highest and the lowest average, with the two teams.
func (b *balancer) spread() (spread float64, high, low int) {
	high, low = -1, -1
	for team := range b.sums {
		if b.sizes[team] == 0 {
			continue
		}
		if high < 0 || b.mean(team) > b.mean(high) {
			high = team
		}
		if low < 0 || b.mean(team) < b.mean(low) {
			low = team
		}
	}
	if high < 0 {
		return 0, 0, 0
	}
	return b.mean(high) - b.mean(low), high, low
}

type swap struct {
	a, b  int // places of tickets
	after float64
}

// exchange makes the best exchange. It returns false if none reduces the spread. An exchange without the highest or the lowest team does
// not change the spread.
func (b *balancer) exchange() bool {
	spread, high, low := b.spread()
	if !(spread > 0) || math.IsInf(spread, 0) {
		return false
	}
	gain := 1e-9 * max(1, spread) // a smaller gain is rounding
	var swaps []swap
	best := swap{after: spread - gain}
	for i, x := range b.match.tickets {
		if x.team < 0 || int(x.team) != high && int(x.team) != low {
			continue
		}
		for k, y := range b.match.tickets {
			if y.team < 0 || y.team == x.team || b.players[i] != b.players[k] || int(y.team) == high && int(x.team) == low {
				continue
			}
			after := b.after(i, k)
			switch {
			case after >= spread-gain:
			case !b.free:
				swaps = append(swaps, swap{i, k, after})
			case after < best.after:
				best = swap{i, k, after}
			}
		}
	}
	if b.free {
		if best.a == best.b {
			return false
		}
		b.do(best)
		return true
	}
	slices.SortStableFunc(swaps, func(x, y swap) int { return cmp.Compare(x.after, y.after) })
	for _, s := range swaps {
		if b.checks--; b.checks < 0 {
			return false
		}
		b.do(s)
		if b.legal() {
			return true
		}
		b.do(s) // undo it
	}
	return false
}

// after returns the spread after an exchange.
func (b *balancer) after(i, k int) float64 {
	x, y := b.match.tickets[i].team, b.match.tickets[k].team
	d := b.values[i] - b.values[k]
	high, low := math.Inf(-1), math.Inf(1)
	for team := range b.sums {
		if b.sizes[team] == 0 {
			continue
		}
		sum := b.sums[team]
		switch int32(team) {
		case x:
			sum -= d
		case y:
			sum += d
		}
		mean := sum / b.sizes[team]
		high, low = max(high, mean), min(low, mean)
	}
	return high - low
}

func (b *balancer) do(s swap) {
	x, y := &b.match.tickets[s.a], &b.match.tickets[s.b]
	d := b.values[s.a] - b.values[s.b]
	b.sums[x.team] -= d
	b.sums[y.team] += d
	x.team, y.team = y.team, x.team
}

func (b *balancer) legal() bool {
	l := b.m.rules.Level(b.match.level)
	b.m.fillCandidate(&b.m.search.cand, b.match.tickets)
	b.m.stats.Steps += uint64(10 * len(l.Rules))
	return l.Accepts(&b.m.search.cand.Candidate)
}

// tellsNoTeams reports whether no rule of a level depends on teams.
func (l *levelPlan) tellsNoTeams() bool {
	for i, rule := range l.level.Rules {
		switch rule.Form.(type) {
		case *ruleset.Compound, *ruleset.Latency, *ruleset.BatchDistance, *ruleset.Sort:
			continue
		}
		if p := &l.rules[i]; !p.covered || p.byTeam {
			return false
		}
	}
	return true
}

package simulate

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain/matcher"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// measured gathers the figures of the report.
type measured struct {
	rules    *ruleset.RuleSet
	settings Settings
	length   time.Duration
	each     time.Duration // of overTime

	tickets, players     Count
	matches, full, inAll int
	overTime             []span
	waits                []float64
	lacks                []Lack
	numbers              []numbers
	words                []WordQuality
	wordColumns          []int
	worst, mean          []float64
	reported             bool // a player sent latencies
	noRegion             int
	levels               []LevelUse
	rulesUsed            []RuleUse
}

type span struct {
	arrived, matched, timedOut, left int
	waits                            []float64
}

type numbers struct {
	column        int
	within, teams []float64
}

func newMeasured(r *run) *measured {
	m := &measured{rules: r.rules, settings: r.settings}
	if n := len(r.arrivals); n > 0 {
		m.length = r.arrivals[n-1].At
	}
	var n int
	m.each, n = spans(m.length)
	m.overTime = make([]span, n)
	for i := range r.arrivals {
		a := &r.arrivals[i]
		m.tickets.Arrived++
		m.players.Arrived += len(a.Players)
		m.spanOf(a).arrived++
		for j := range a.Players {
			m.reported = m.reported || len(a.Players[j].Latencies) > 0
		}
	}
	for i, a := range r.rules.Attributes {
		switch a.Kind {
		case ruleset.Number:
			m.numbers = append(m.numbers, numbers{column: i})
		case ruleset.String:
			m.words, m.wordColumns = append(m.words, WordQuality{Name: a.Name}), append(m.wordColumns, i)
		}
	}
	for _, wait := range r.rules.Waits() {
		m.levels = append(m.levels, LevelUse{Wait: wait})
	}
	for _, rule := range r.rules.Rules {
		m.rulesUsed = append(m.rulesUsed, RuleUse{Name: rule.Name})
	}
	return m
}

func (m *measured) spanOf(a *Arrival) *span { return &m.overTime[a.At/m.each] }

func (m *measured) timedOut(a *Arrival) {
	m.tickets.TimedOut++
	m.players.TimedOut += len(a.Players)
	m.spanOf(a).timedOut++
	if attribute, yes := m.unmatchable(a); yes {
		m.tickets.Unmatchable++
		m.players.Unmatchable += len(a.Players)
		m.lack(attribute)
	}
}

func (m *measured) left(a *Arrival) {
	m.tickets.Left++
	m.players.Left += len(a.Players)
	m.spanOf(a).left++
}

// unmatchable reports whether a ticket could never be matched, with any partner and after any wait. attribute is the missing attribute, if that is the reason.
func (m *measured) unmatchable(a *Arrival) (attribute string, yes bool) {
	for i := range a.Players {
		if name, missing := m.rules.Missing(m.valuesOf(&a.Players[i])); missing {
			return name, true
		}
	}
	return "", len(a.Players) > int(m.rules.PartyMax)
}

func (m *measured) lack(attribute string) {
	i := slices.IndexFunc(m.lacks, func(l Lack) bool { return l.Attribute == attribute })
	if i < 0 {
		i, m.lacks = len(m.lacks), append(m.lacks, Lack{Attribute: attribute})
	}
	m.lacks[i].Tickets++
}

// valuesOf returns a player's values in the rule set's columns.
func (m *measured) valuesOf(p *Player) []ruleset.Value {
	values, err := m.rules.Player(p.Attributes)
	if err != nil {
		panic(err) // Fits has checked all arrivals
	}
	return values
}

func (m *measured) matched(now time.Duration, p *matcher.Proposal, tickets []*Arrival) {
	m.matches++
	m.inAll += int(p.Players)
	if p.Players == p.MaxPlayers-m.settings.Additional {
		m.full++
	}
	for _, a := range tickets {
		wait := (now - a.At).Seconds()
		m.waits = append(m.waits, wait)
		s := m.spanOf(a)
		s.matched++
		s.waits = append(s.waits, wait)
		m.tickets.Matched++
		m.players.Matched += len(a.Players)
	}
	m.levels[p.Level].Matches++
	m.levels[p.Level].Tickets += len(tickets)
	for _, c := range p.Counts {
		m.rulesUsed[c.Rule].Passed += c.Passed
		m.rulesUsed[c.Rule].Failed += c.Failed
	}
	m.quality(p, tickets)
}

func (m *measured) quality(p *matcher.Proposal, tickets []*Arrival) {
	teams := make([][][]ruleset.Value, len(p.Teams)) // each team's players' values
	for i, seats := range p.Teams {
		for _, seat := range seats {
			teams[i] = append(teams[i], m.valuesOf(&tickets[seat.Ticket].Players[seat.Player]))
		}
	}
	for i := range m.numbers {
		n := &m.numbers[i]
		var all, averages []float64
		for _, team := range teams {
			sum := 0.0
			for _, player := range team {
				all = append(all, player[n.column].Number)
				sum += player[n.column].Number
			}
			if len(team) > 0 {
				averages = append(averages, sum/float64(len(team)))
			}
		}
		n.within, n.teams = append(n.within, gap(all)), append(n.teams, gap(averages))
	}
	for i := range m.words {
		if sameWord(teams, m.wordColumns[i]) {
			m.words[i].Same++
		}
	}
	if m.reported {
		m.region(p, tickets)
	}
}

// gap returns the largest value minus the smallest.
func gap(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	low, high := values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	return high - low
}

func sameWord(teams [][][]ruleset.Value, column int) bool {
	var first *string
	for _, team := range teams {
		for _, player := range team {
			if first == nil {
				first = &player[column].Text
			} else if *first != player[column].Text {
				return false
			}
		}
	}
	return true
}

func (m *measured) region(p *matcher.Proposal, tickets []*Arrival) {
	if p.Region == "" {
		m.noRegion++
		return
	}
	worst, sum, n := 0.0, 0.0, 0
	for _, a := range tickets {
		for i := range a.Players {
			for _, l := range a.Players[i].Latencies {
				if l.Region == p.Region {
					worst = max(worst, float64(l.Milliseconds))
					sum += float64(l.Milliseconds)
					n++
				}
			}
		}
	}
	m.worst, m.mean = append(m.worst, worst), append(m.mean, sum/float64(n))
}

func (m *measured) report(work matcher.Stats) *Report {
	r := &Report{
		RuleSet: m.settings.Name, Length: m.length.Seconds(), Timeout: m.settings.RequestTimeout.Seconds(), Seed: m.settings.Seed,
		Tickets: m.tickets, Players: m.players, Wait: SpreadOf(m.waits), Words: m.words, Levels: m.levels, Rules: m.rulesUsed,
		Lacks:   m.lacks,
		Matches: Matches{Count: m.matches, Full: m.full},
		Matcher: MatcherWork{Passes: work.Passes, Searches: work.Searches, Evaluations: work.Evaluations, Exhausted: work.Exhausted, CutShort: work.CutShort},
	}
	if m.matches > 0 {
		r.Matches.Players = round(float64(m.inAll) / float64(m.matches))
	}
	for i := range m.overTime {
		s := &m.overTime[i]
		r.OverTime = append(r.OverTime, Span{
			From: (time.Duration(i) * m.each).Seconds(), To: (time.Duration(i+1) * m.each).Seconds(),
			Arrived: s.arrived, Matched: s.matched, TimedOut: s.timedOut, Left: s.left, Wait: SpreadOf(s.waits),
		})
	}
	for i := range m.numbers {
		n := &m.numbers[i]
		r.Numbers = append(r.Numbers, NumberQuality{m.rules.Attributes[n.column].Name, SpreadOf(n.within), SpreadOf(n.teams)})
	}
	if m.reported {
		r.Latency = &LatencyQuality{SpreadOf(m.worst), SpreadOf(m.mean), m.noRegion}
	}
	return r
}

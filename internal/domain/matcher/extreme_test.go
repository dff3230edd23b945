package matcher

import (
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

var extremes = []float64{0, 5e-324, -5e-324, 1e-3, 0.1, 0.3, 1, -1, 7, 1e6, 1e6 + 0.5, 1e12, -1e12, 1e12 + 0.3, 1e15, -1e15, 1e16, 1e300, -1e300, 1.7e308, -1.7e308}

var bounds = regexp.MustCompile(`("maxDistance":|"value":)\d+`)

// TestExtremeNumbers plays TestProposalsAreLegalAndNoneIsMissed with numbers of all sizes.
func TestExtremeNumbers(t *testing.T) {
	runs, proposals := uint64(1000), 0
	if testing.Short() {
		runs = 300
	}
	for seed := range runs {
		r := rand.New(rand.NewPCG(seed, 3))
		body := randomRules(r)
		body = bounds.ReplaceAllStringFunc(body, func(s string) string {
			if r.IntN(3) == 0 {
				return s
			}
			return bounds.FindStringSubmatch(s)[1] + pick(r, "0", "5e-324", "1e-3", "1", "1e6", "1e12", "1e15", "1e300", "1.7e308")
		})
		rules, problems := ruleset.Parse(body)
		if len(problems) > 0 {
			continue
		}
		from := r.IntN(len(extremes))
		number := func() float64 { return extremes[(from+r.IntN(6))%len(extremes)] }
		now := domain.Time(1_700_000_000_000)
		m := New(rules, Config{Name: "random", Budget: 1_000_000})
		if r.IntN(3) > 0 {
			m.exact = 0
		}
		pool := map[uint64]Ticket{}
		for step := range 4 {
			if step < 3 {
				for range 1 + r.IntN(4) {
					ticket := randomTicket(r, rules, uint64(len(pool)+100*step), now)
					for i := range ticket.Players {
						for k := range ticket.Players[i].Attributes {
							if a := &ticket.Players[i].Attributes[k]; a.Kind == ruleset.Number {
								a.Number = number()
							}
						}
					}
					if err := m.Add(ticket); err != nil {
						t.Fatal(err)
					}
					pool[ticket.Key] = ticket
				}
			}
			for _, p := range m.Pass(now) {
				proposals++
				if wrong := illegal(rules, pool, &p, now, 0); wrong != "" {
					t.Fatalf("seed %d: proposal %+v: %s\nrules %s\ntickets %+v", seed, p, wrong, body, pool)
				}
				for _, key := range p.Tickets {
					delete(pool, key)
				}
			}
			if match := bruteForce(rules, pool, now, 0); match != nil {
				t.Fatalf("seed %d: missed %v\nrules %s\ntickets %+v", seed, match, body, pool)
			}
			at, ok := m.Due(now)
			if !ok {
				at = now + 1000
			}
			now = at
		}
	}
	if proposals < int(runs)/4 {
		t.Errorf("%d proposals, want more", proposals)
	}
}

// TestRoundingIsTheReferences: sums of numbers that cancel each other depend on their order, which is the age of their tickets, not the
// order in which a sort rule tries them.
func TestRoundingIsTheReferences(t *testing.T) {
	rules := mustParse(t, `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number"},{"name":"turn","type":"number"}],
"teams":[{"name":"a","minPlayers":3,"maxPlayers":3},{"name":"b","minPlayers":3,"maxPlayers":3}],
"rules":[{"name":"Turn","type":"absoluteSort","sortDirection":"ascending","sortAttribute":"turn"},
{"name":"Even","type":"distance","measurements":"avg(teams[*].players.attributes[skill])","referenceValue":"avg(flatten(teams[*].players.attributes[skill]))","maxDistance":0.1}]}`)
	m, pool := New(rules, Config{}), map[uint64]Ticket{}
	for key, x := range [][2]float64{{1e16, 0}, {0, 1}, {-1e16, 4}, {0, 3}, {1, 2}, {0, 5}} {
		ticket := Ticket{Key: uint64(key), Start: benchStart + domain.Time(key), No: uint64(key), Players: []Player{{ID: "p", Attributes: []ruleset.NamedValue{
			{Name: "skill", Value: ruleset.Value{Kind: ruleset.Number, Number: x[0]}}, {Name: "turn", Value: ruleset.Value{Kind: ruleset.Number, Number: x[1]}},
		}}}}
		pool[ticket.Key] = ticket
		if err := m.Add(ticket); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range m.Pass(benchStart + 1000) {
		if wrong := illegal(rules, pool, &p, benchStart+1000, 0); wrong != "" {
			t.Errorf("proposal %+v: %s", p, wrong)
		}
	}
}

package ruleset

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestHopelessNeverCondemnsAMatch grows random candidates, and compares the result of Hopeless for each beginning with the verdicts
// later. It uses random rules of all types, alone and in compound rules.
func TestHopelessNeverCondemnsAMatch(t *testing.T) {
	condemned := 0
	for seed := range uint64(10_000) {
		chance := rand.New(rand.NewPCG(seed, 1))
		set := exampleSet(t, randomRules(chance)...)
		whole := randomCandidate(t, set, chance)
		verdicts := set.Level(0).Evaluate(whole)
		for n := range 8 {
			part := beginning(whole, n)
			for i, r := range set.Level(0).Rules {
				if _, compound := r.Form.(*Compound); !compound && r.Hopeless(part) {
					condemned++
					if verdicts[i] == Holds {
						t.Fatalf("seed %d: rule %d rejects %d tickets, and holds for all", seed, i, n)
					}
				}
			}
			if i, yes := set.Level(0).Hopeless(part); yes && verdicts[i] == Holds {
				t.Fatalf("seed %d: rule %d rejects %d tickets, and holds for all", seed, i, n)
			}
			if set.HopelessAt(part, 0, 0) && set.Level(0).Accepts(whole) {
				t.Fatalf("seed %d: %d tickets are hopeless, and all are a match", seed, n)
			}
		}
	}
	if condemned < 1000 {
		t.Errorf("%d rejections, want enough to test", condemned)
	}
}

func pick(chance *rand.Rand, from ...string) string { return from[chance.IntN(len(from))] }

func randomRules(chance *rand.Rand) (rules []string) {
	scope := func() string { return pick(chance, "*", "red", "blue") }
	list := func(attribute string) string {
		s := scope()
		if s == "*" && chance.IntN(3) > 0 {
			return "flatten(teams[*].players.attributes[" + attribute + "])"
		}
		return "teams[" + s + "].players.attributes[" + attribute + "]"
	}
	number := func() string {
		return pick(chance, "avg", "min", "max", "sum", "median", "stddev", "count") + "(" + list("skill") + ")"
	}
	bounds := func(property string, most int) string {
		low, high := fmt.Sprintf(`"min%s": %d`, property, chance.IntN(most)), fmt.Sprintf(`"max%s": %d`, property, chance.IntN(most))
		return pick(chance, low, high, low+", "+high)
	}
	for i := range 1 + chance.IntN(4) {
		body := ""
		switch chance.IntN(7) {
		case 0:
			body = fmt.Sprintf(`"type": "comparison", "measurements": "%s", "operation": "%s", "referenceValue": %d`,
				pick(chance, number(), list("skill")), pick(chance, "<", ">", "=", "!=", "<=", ">="), chance.IntN(6))
		case 1:
			body = fmt.Sprintf(`"type": "comparison", "measurements": "%s", "operation": "%s"`, list(pick(chance, "skill", "clan", "modes")), pick(chance, "=", "!="))
		case 2:
			body = fmt.Sprintf(`"type": "distance", "measurements": "%s", "referenceValue": "%s", %s`,
				pick(chance, number(), list("skill")), pick(chance, number(), list("skill"), "3"), bounds("Distance", 5))
		case 3:
			body = `"type": "distance", "measurements": "max(` + skills + `)", "referenceValue": "min(` + skills + `)", ` + bounds("Distance", 6)
		case 4:
			body = fmt.Sprintf(`"type": "collection", "operation": "%s", "measurements": "%s", "referenceValue": "%s", %s`,
				pick(chance, "contains", "intersection", "reference_intersection_count"), pick(chance, list("modes"), list("clan"), "flatten("+modes+")"),
				pick(chance, "a", "set_intersection("+modes+")", modes, "flatten(teams[*].players[playerId])"), bounds("Count", 3))
		case 5:
			body = `"type": "latency", ` + pick(chance, `"maxLatency": 50`, `"maxDistance": 20`, `"maxLatency": 60, "maxDistance": 30`)
		default:
			body = `"type": "batchDistance", "maxDistance": 3, "batchAttribute": "` + pick(chance, "skill", "clan") + `"`
		}
		rules = append(rules, fmt.Sprintf(`{"name": "R%d", %s}`, i, body))
	}
	if chance.IntN(2) == 0 {
		rules = append(rules,
			`{"name": "X", "type": "comparison", "measurements": "`+clans+`", "operation": "="}`,
			`{"name": "Y", "type": "comparison", "measurements": "`+skills+`", "operation": "<", "referenceValue": 4}`,
			`{"name": "C", "type": "compound", "statement": "`+pick(chance, "not(X)", "or(X,Y)", "and(X,not(Y))", "xor(X,Y)", "or(and(X,Y),not(X))", "and(X,Y)")+`"}`)
	}
	return rules
}

func randomCandidate(t *testing.T, set *RuleSet, chance *rand.Rand) *Candidate {
	c := &Candidate{Teams: make([][]Player, 2)}
	for ticket := range 3 + chance.IntN(3) {
		team := chance.IntN(2)
		for range 1 + chance.IntN(2) {
			var list []string
			for range chance.IntN(3) {
				list = append(list, pick(chance, "a", "b", "p0", "p1"))
			}
			p := examplePlayer(t, set, fmt.Sprintf("p%d", ticket), ticket, float64(chance.IntN(6)), pick(chance, "a", "b"), list...)
			for _, region := range []string{"x", "y"} {
				if chance.IntN(4) > 0 {
					p.Latencies = append(p.Latencies, RegionLatency{region, int32(20 + chance.IntN(50))})
				}
			}
			c.Teams[team] = append(c.Teams[team], p)
		}
	}
	return c
}

// beginning returns a candidate's first tickets.
func beginning(c *Candidate, tickets int) *Candidate {
	part := &Candidate{Teams: make([][]Player, len(c.Teams))}
	for team, players := range c.Teams {
		for _, p := range players {
			if p.Ticket < tickets {
				part.Teams[team] = append(part.Teams[team], p)
			}
		}
	}
	return part
}

// TestHopelessRejectsEarly shows which rules reject before the candidate is complete.
func TestHopelessRejectsEarly(t *testing.T) {
	for rule, want := range map[string]bool{
		comparison(skills, `"referenceValue": 10, "operation": ">"`):                                                                     true,
		comparison(clans, `"operation": "!="`):                                                                                           true,
		comparison("avg("+skills+")", `"referenceValue": 10, "operation": ">="`):                                                         false,
		comparison("avg("+skills+")", `"referenceValue": 100, "operation": ">="`):                                                        false,
		distance("max("+skills+")", "min("+skills+")", `"maxDistance": 9`):                                                               true,
		distance("max("+skills+")", "min("+skills+")", `"minDistance": 11`):                                                              false,
		distance("avg(teams[*].players.attributes[skill])", "avg("+skills+")", `"maxDistance": 0`):                                       false,
		rule(`"type": "batchDistance", "batchAttribute": "skill", "maxDistance": 9`):                                                     true,
		rule(`"type": "latency", "maxLatency": 100`):                                                                                     true,
		collection(modes, `"operation": "intersection", "minCount": 2`):                                                                  true,
		collection(modes, `"operation": "intersection", "maxCount": 0`):                                                                  false,
		collection(modes, `"operation": "contains", "referenceValue": "koth", "maxCount": 1`):                                            true,
		collection(modes, `"operation": "contains", "referenceValue": "race", "minCount": 1`):                                            false,
		collection(modes, `"operation": "reference_intersection_count", "referenceValue": "set_intersection(`+modes+`)", "minCount": 2`): true,
		collection(modes, `"operation": "reference_intersection_count", "referenceValue": "`+modes+`", "maxCount": 0`):                   true,
	} {
		set := exampleSet(t, rule)
		c := beginning(exampleCandidate(t, set), 2) // ann 10, bob 20, both K, koth in common
		if _, yes := set.Level(0).Hopeless(c); yes != want {
			t.Errorf("%s: got hopeless %t, want %t", rule, yes, want)
		}
	}
}

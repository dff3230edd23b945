package matcher

import (
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

var guideTries = map[string][]guideTry{
	"Rule sets": {
		{what: "similar and near", tickets: alone(times(8, ofPlayer{"home": ping(40)})...), matched: 8},
		{what: "seven make two even teams of three", tickets: alone(times(7, ofPlayer{"home": ping(40)})...), matched: 6},
		{what: "150 apart at once", tickets: both(times(3, ofPlayer{"skill": 1000, "home": ping(40)}), times(3, ofPlayer{"skill": 1150, "home": ping(40)})), matched: 0},
		{what: "150 apart later", tickets: both(times(3, ofPlayer{"skill": 1000, "home": ping(40)}), times(3, ofPlayer{"skill": 1150, "home": ping(40)})), after: 15, matched: 6},
		{what: "smaller teams after 30 s", tickets: alone(times(4, ofPlayer{"home": ping(40)})...), after: 30, matched: 4},
		{what: "too slow", tickets: alone(times(8, ofPlayer{"home": ping(81)})...), matched: 0},
	},
	"Player attributes": {
		{what: "a value", tickets: alone(times(8, ofPlayer{"skill": 1})...), matched: 8},
		{what: "no value and no default", tickets: alone(times(8, ofPlayer{})...), matched: 0},
	},
	"Teams": {
		{what: "a boss and four squads of two", tickets: both(times(8, ofPlayer{"skill": 50}), times(1, ofPlayer{"skill": 100})), matched: 9},
		{what: "too few", tickets: both(times(7, ofPlayer{"skill": 50}), times(1, ofPlayer{"skill": 100})), matched: 0},
		{what: "the strongest come together, and the boss stands alone",
			tickets: append(alone(times(7, ofPlayer{"skill": 50})...), together(ofPlayer{"skill": 100}, ofPlayer{"skill": 100})), matched: 0},
		{what: "the first squad is the fullest", tickets: alone(times(10, ofPlayer{"skill": 50})...), matched: 10,
			also: func(rules *ruleset.RuleSet, _ map[uint64]Ticket, p *Proposal) string {
				for team, seats := range p.Teams {
					if want := map[string]int{"squad_1": 3, "boss": 1}[rules.Teams[team].Name]; want > 0 && len(seats) != want {
						return fmt.Sprintf("%s has %d players, want %d", rules.Teams[team].Name, len(seats), want)
					}
				}
				return ""
			}},
	},
	"comparison": {
		{what: "each role once in each team", tickets: alone(roles("a", "a", "b", "b", "c", "c", "d", "d")...), matched: 8},
		{what: "a role three times", tickets: alone(roles("a", "a", "a", "b", "b", "c")...), matched: 0},
		{what: "a beginner", tickets: both(roles("a", "a", "b", "b", "c"), []ofPlayer{{"skill": 499, "role": "c"}}), matched: 0},
	},
	"distance": {
		{what: "strong and weak in both teams", tickets: both(times(4, ofPlayer{"skill": 0}), times(4, ofPlayer{"skill": 1000})), matched: 8},
		{what: "strong against weak", tickets: [][]Player{together(times(3, ofPlayer{"skill": 0})...), together(times(3, ofPlayer{"skill": 1000})...)}, matched: 0},
		{what: "50 from the average of all", tickets: [][]Player{together(times(3, ofPlayer{"skill": 0})...), together(times(3, ofPlayer{"skill": 100})...)}, matched: 6},
	},
	"collection": {
		{what: "two healers in two teams", tickets: both(times(6, ofPlayer{"role": "fighter"}), times(2, ofPlayer{"role": "healer"})), matched: 8, also: oneHealer},
		{what: "the third healer is left over", tickets: both(times(3, ofPlayer{"role": "healer"}), times(5, ofPlayer{"role": "fighter"})), matched: 7, also: oneHealer},
		{what: "two healers who stay together", tickets: append(alone(times(4, ofPlayer{"role": "fighter"})...), together(times(2, ofPlayer{"role": "healer"})...)), matched: 0},
		{what: "no mode in common", tickets: both(times(3, ofPlayer{"modes": []string{"siege"}}), times(3, ofPlayer{"modes": []string{"race"}})), matched: 0},
		{what: "a mode in common", tickets: both(times(3, ofPlayer{"modes": []string{"siege"}}), times(3, ofPlayer{"modes": []string{"race", "siege"}})), matched: 6},
		{what: "a player is on a block list", tickets: both(times(5, ofPlayer{}), []ofPlayer{{"blocked": []string{"p0-0"}}}), matched: 0},
	},
	"latency": {
		{what: "near each other", tickets: both(times(4, ofPlayer{"home": ping(40)}), times(4, ofPlayer{"home": ping(70)})), matched: 8},
		{what: "one is further from the lowest", tickets: both(times(7, ofPlayer{"home": ping(40)}), times(1, ofPlayer{"home": ping(71)})), matched: 7},
		{what: "too slow at first", tickets: alone(times(8, ofPlayer{"home": ping(120)})...), matched: 0},
		{what: "fast enough later", tickets: alone(times(8, ofPlayer{"home": ping(120)})...), after: 20, matched: 8},
		{what: "nothing reported", tickets: alone(times(8, ofPlayer{})...), matched: 0},
	},
	"batchDistance": {
		{what: "within the window", tickets: both(times(3, ofPlayer{"skill": 1000}), times(3, ofPlayer{"skill": 1200})), matched: 6},
		{what: "a party has its average", tickets: append(alone(times(5, ofPlayer{"skill": 1000})...), together(ofPlayer{"skill": 900}, ofPlayer{"skill": 1500})), matched: 7},
		{what: "too far apart", tickets: both(times(3, ofPlayer{"skill": 1000}), times(3, ofPlayer{"skill": 1201})), matched: 0},
		{what: "another role", tickets: both(times(3, ofPlayer{"role": "a"}), times(3, ofPlayer{"role": "b"})), matched: 0},
	},
	"absoluteSort and distanceSort": {
		{what: "nothing is forbidden", tickets: alone(each(8, "skill", func(i int) int { return 1000 * i })...), matched: 8},
		{what: "those who like the first one's favourite map come first", matched: 8,
			tickets: both(times(2, ofPlayer{"maps": map[string]float64{"desert": 9, "harbour": 1}}), append(
				times(4, ofPlayer{"maps": map[string]float64{"harbour": 9}}), times(6, ofPlayer{"maps": map[string]float64{"desert": 9}})...)),
			also: func(_ *ruleset.RuleSet, _ map[uint64]Ticket, p *Proposal) string {
				if !slices.Equal(p.Tickets, []uint64{0, 1, 6, 7, 8, 9, 10, 11}) {
					return fmt.Sprint("got the tickets ", p.Tickets, ", want those of players who like the desert")
				}
				return ""
			}},
	},
	"compound": {
		{what: "equals", tickets: both(times(3, ofPlayer{"skill": 1000}), times(3, ofPlayer{"skill": 1050})), matched: 6},
		{what: "experts", tickets: both(times(3, ofPlayer{"skill": 2001}), times(3, ofPlayer{"skill": 3000})), matched: 6},
		{what: "neither", tickets: both(times(3, ofPlayer{"skill": 2000}), times(3, ofPlayer{"skill": 3000})), matched: 0},
		{what: "relaxed through its part", tickets: both(times(3, ofPlayer{"skill": 1000}), times(3, ofPlayer{"skill": 1150})), after: 10, matched: 6},
	},
	"Expansions": {
		{what: "50 from the average", tickets: both(times(3, ofPlayer{"skill": 1000}), times(3, ofPlayer{"skill": 1100})), matched: 6},
		{what: "100 from the average", tickets: both(times(3, ofPlayer{"skill": 1000}), times(3, ofPlayer{"skill": 1200})), matched: 0},
		{what: "100 from the average after 10 s", tickets: both(times(3, ofPlayer{"skill": 1000}), times(3, ofPlayer{"skill": 1200})), after: 10, matched: 6},
		{what: "one against one after 45 s", tickets: alone(times(2, ofPlayer{})...), after: 45, matched: 2},
		{what: "from the median after 60 s", tickets: both(times(5, ofPlayer{"skill": 1000}), times(1, ofPlayer{"skill": 1210})), after: 60, matched: 5},
	},
	"Algorithm": {
		{what: "similar and near", tickets: alone(times(8, ofPlayer{"home": ping(40)})...), matched: 8},
		{what: "too slow", tickets: alone(times(8, ofPlayer{"home": ping(81)})...), matched: 0},
	},
	"Algorithm 2": {
		{what: "a hundred", tickets: alone(times(100, ofPlayer{"home": ping(100)})...), matched: 100},
		{what: "too few of each role", tickets: both(times(50, ofPlayer{"role": "a", "home": ping(50)}), times(50, ofPlayer{"role": "b", "home": ping(50)})), matched: 0},
		{what: "fewer after 30 s", tickets: both(times(50, ofPlayer{"role": "a", "home": ping(50)}), times(50, ofPlayer{"role": "b", "home": ping(50)})), after: 30, matched: 100},
		{what: "too slow", tickets: alone(times(100, ofPlayer{"home": ping(101)})...), matched: 0},
	},
	"docs/guide/player-flow.md": pairs(2),
	"examples/arena/README.md":  pairs(4),
	"trios.json": {
		{what: "averages close together", tickets: both(times(2, ofPlayer{"skill": 10}), times(2, ofPlayer{"skill": 20})), matched: 4},
		{what: "averages far apart", tickets: [][]Player{together(times(2, ofPlayer{"skill": 10})...), together(times(2, ofPlayer{"skill": 40})...)}, matched: 0},
		{what: "averages far apart after 15 s", tickets: [][]Player{together(times(2, ofPlayer{"skill": 10})...), together(times(2, ofPlayer{"skill": 40})...)}, after: 15, matched: 4},
	},
	"ranked.json": {
		{what: "150 apart", tickets: tenOf(1500, 1650, 60), matched: 10},
		{what: "700 apart", tickets: tenOf(1500, 2200, 60), after: 59, matched: 0},
		{what: "700 apart after a minute", tickets: tenOf(1500, 2200, 180), after: 60, matched: 10},
	},
	"ranked-patient.json": {
		{what: "100 apart", tickets: tenOf(1500, 1600, 60), matched: 10},
		{what: "150 apart", tickets: tenOf(1500, 1650, 60), after: 29, matched: 0},
		{what: "500 apart at the last step", tickets: tenOf(1500, 2000, 180), after: 150, matched: 10},
	},
}

// roles makes players above the limit for beginners.
func roles(names ...string) (all []ofPlayer) {
	for _, name := range names {
		all = append(all, ofPlayer{"skill": 500, "role": name})
	}
	return all
}

func tenOf(low, high, latency int) [][]Player {
	return both(times(5, ofPlayer{"skill": low, "home": ping(latency)}), times(5, ofPlayer{"skill": high, "home": ping(latency)}))
}

// pairs returns tries for a rule set without rules, with one team.
func pairs(team int) []guideTry {
	return []guideTry{
		{what: "a full team", tickets: alone(times(team, ofPlayer{})...), matched: team},
		{what: "one too few", tickets: alone(times(team-1, ofPlayer{})...), matched: 0},
	}
}

func oneHealer(rules *ruleset.RuleSet, tickets map[uint64]Ticket, p *Proposal) string {
	for team, seats := range p.Teams {
		healers := 0
		for _, s := range seats {
			for _, a := range tickets[p.Tickets[s.Ticket]].Players[s.Player].Attributes {
				if a.Name == "role" && a.Value.Text == "healer" {
					healers++
				}
			}
		}
		if healers > 1 {
			return fmt.Sprintf("%s has %d healers, want at most one", rules.Teams[team].Name, healers)
		}
	}
	return ""
}

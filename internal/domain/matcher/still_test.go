package matcher

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// strictFives requires five against five with nearly equal averages, and a tank and a healer on each team: few of the many combinations of
// ten players are legal.
const strictFives = `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number"},{"name":"roles","type":"string_list"},
{"name":"modes","type":"string_list","default":["any"]}],
"teams":[{"name":"red","minPlayers":5,"maxPlayers":5},{"name":"blue","minPlayers":5,"maxPlayers":5}],
"rules":[{"name":"Even","type":"distance","measurements":"avg(teams[red].players.attributes[skill])",
"referenceValue":"avg(teams[blue].players.attributes[skill])","maxDistance":%d},
{"name":"Tanks","type":"collection","operation":"contains","measurements":"teams[*].players.attributes[roles]","referenceValue":"tank","minCount":1,"maxCount":%d},
{"name":"Healers","type":"collection","operation":"contains","measurements":"teams[*].players.attributes[roles]","referenceValue":"healer","minCount":1,"maxCount":%d},
{"name":"Modes","type":"collection","operation":"intersection","measurements":"flatten(teams[*].players.attributes[modes])","minCount":1},
{"name":"Total","type":"comparison","operation":"<=","measurements":"stddev(flatten(teams[*].players.attributes[skill]))","referenceValue":%d}]}`

// solvable draws a pool that certainly has a match: ten players that fit, and random others.
func solvable(r *rand.Rand) (body string, tickets []Ticket) {
	apart, most, deviation := 1+r.IntN(20), 1+r.IntN(2), 100+r.IntN(100)
	body = fmt.Sprintf(strictFives, apart, most, most, deviation)
	modes := []string{"siege", "race", "duel", "hunt"}
	var players [][]Player
	player := func(skill int, role, mode string) Player {
		list := []string{mode}
		if other := modes[r.IntN(len(modes))]; other != mode && r.IntN(2) == 0 {
			list = append(list, other)
		}
		return Player{Attributes: []ruleset.NamedValue{number("skill", float64(skill)),
			{Name: "roles", Value: ruleset.Value{Kind: ruleset.List, List: []string{role}}},
			{Name: "modes", Value: ruleset.Value{Kind: ruleset.List, List: list}}}}
	}
	roles := []string{"tank", "healer", "damage", "damage", "damage"}
	mode := modes[r.IntN(len(modes))]
	for range 5 { // a pair of equal skill, one for each team
		skill := 1000 + r.IntN(deviation)*2
		role := roles[len(players)/2%5]
		players = append(players, []Player{player(skill, role, mode)}, []Player{player(skill, role, mode)})
	}
	for range 2 + r.IntN(20) {
		role := roles[r.IntN(5)]
		one := []Player{player(600+r.IntN(1200), role, modes[r.IntN(len(modes))])}
		if r.IntN(4) == 0 {
			one = append(one, player(600+r.IntN(1200), "damage", modes[r.IntN(len(modes))]))
		}
		players = append(players, one)
	}
	r.Shuffle(len(players), func(i, j int) { players[i], players[j] = players[j], players[i] })
	for i, of := range players {
		for k := range of {
			of[k].ID = fmt.Sprint("p", i, "-", k)
		}
		tickets = append(tickets, Ticket{Key: uint64(i), No: uint64(i), Start: benchStart + domain.Time(i), Players: of})
	}
	return body, tickets
}

func stillPool(t *testing.T, seed uint64, c Config) *Matcher {
	t.Helper()
	body, tickets := solvable(rand.New(rand.NewPCG(seed, 13)))
	m := New(mustParse(t, body), c)
	for _, ticket := range tickets {
		if err := m.Add(ticket); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// TestSolvablePoolsThatStandStillMatch: no ticket arrives and no wait time is reached, but the matcher continues until it finds the match
// that exists.
func TestSolvablePoolsThatStandStillMatch(t *testing.T) {
	const pools, passesMost = 120, 200
	late := 0
	for seed := range uint64(pools) {
		m, passes := stillPool(t, seed, Config{Name: "still"}), 0
		for m.Dirty() {
			m.Pass(benchStart + 1000)
		}
		if m.Stats().Proposals > 0 {
			continue
		}
		late++
		for m.Unfinished() && m.Stats().Proposals == 0 && passes < passesMost {
			m.Pass(benchStart + 1000)
			passes++
		}
		if m.Stats().Proposals == 0 {
			t.Errorf("pool %d: no match in %d passes, want the one that was put in: %+v", seed, passes, m.Stats())
		}
	}
	if late < 20 {
		t.Errorf("%d of %d pools needed more than the first search, want enough to try the rest", late, pools)
	}
}

func TestSearchThatGoesOnIsRepeatable(t *testing.T) {
	play := func() (all []Proposal) {
		m := stillPool(t, 61, Config{Name: "still"})
		for m.Dirty() || m.Unfinished() {
			all = append(all, m.Pass(benchStart+1000)...)
		}
		return all
	}
	first := play()
	if len(first) == 0 {
		t.Fatal("no match")
	}
	if again := play(); !reflect.DeepEqual(first, again) {
		t.Errorf("got %+v, then %+v of the same tickets", first, again)
	}
}

// inOrder continues the first exhausted anchor in the search's own order until that ends.
func inOrder(m *Matcher) (found bool) {
	h := m.queue.hard[0]
	h.turns = 1
	for !found && h.level != -1 {
		found = m.continueSearch(&h, which{backfills: true}, benchStart+1000)
	}
	return found
}

// TestSearchGoesOnWhereItStopped: many small budgets cover the same candidates as one large budget, and few of them twice.
func TestSearchGoesOnWhereItStopped(t *testing.T) {
	compared, matches := 0, 0
	for seed := range uint64(400) {
		if compared == 20 {
			break
		}
		small := stillPool(t, seed, Config{Name: "still", Budget: 500})
		if len(small.pool.tickets) > 14 {
			continue
		}
		for small.Dirty() {
			small.Pass(benchStart + 1000)
		}
		if small.Stats().Proposals > 0 || !small.Unfinished() {
			continue
		}
		compared++
		slot := small.queue.hard[0].slot
		before := small.stats.Steps
		found := inOrder(small)
		steps := small.stats.Steps - before

		large := stillPool(t, seed, Config{Name: "still", Budget: 1 << 40})
		large.search.budget = 1 << 40
		before = large.stats.Steps
		large.around(slot, which{backfills: true}, benchStart+1000, false)
		if want := large.search.best.players > 0; found != want {
			t.Errorf("pool %d: found a match: %t, want %t as in one search", seed, found, want)
		}
		if once := large.stats.Steps - before; steps > 2*once+10_000 {
			t.Errorf("pool %d: %d steps, want about the %d of one search", seed, steps, once)
		}
		if found {
			matches++
		}
	}
	if compared < 10 || matches < 5 || matches == compared {
		t.Errorf("compared %d pools, %d with a match: want enough with and without", compared, matches)
	}
}

// equalSums requires two teams of five with the same sum.
const equalSums = `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number"}],
"teams":[{"name":"red","minPlayers":5,"maxPlayers":5},{"name":"blue","minPlayers":5,"maxPlayers":5}],
"rules":[{"name":"Equal","type":"comparison","measurements":["sum(teams[red].players.attributes[skill])"],
"referenceValue":"sum(teams[blue].players.attributes[skill])","operation":"="}]}`

// TestSearchThatGoesOnEnds: the matcher gives up an anchor when it has proved that there is no match, or after its last turn.
func TestSearchThatGoesOnEnds(t *testing.T) {
	for budget, want := range map[int]Effort{20_000: Searched, 20: GivenUp} {
		m := New(mustParse(t, equalSums), Config{Name: "still", Budget: budget})
		for key := range uint64(12) { // no two sums of powers of two are equal
			if err := m.Add(Ticket{Key: key, No: key, Start: benchStart, Players: []Player{{ID: fmt.Sprint(key),
				Attributes: []ruleset.NamedValue{number("skill", float64(int(1)<<key))}}}}); err != nil {
				t.Fatal(err)
			}
		}
		for m.Dirty() {
			m.Pass(benchStart)
		}
		if e, _ := m.Explain(0, benchStart); budget == 20 && e.Effort != Continued {
			t.Errorf("effort %d, want the search to continue", e.Effort)
		}
		for passes := 0; m.Unfinished(); passes++ {
			if m.Pass(benchStart); passes > 12*turnsMax {
				t.Fatalf("budget %d: it never ends: %+v", budget, m.Stats())
			}
		}
		if e, _ := m.Explain(0, benchStart); e.Effort != want || m.Stats().Proposals > 0 {
			t.Errorf("budget %d: effort %d, want %d: %+v", budget, e.Effort, want, m.Stats())
		}
	}
}

// TestSearchGoesOnThroughChanges: tickets arrive and leave while searches continue, and every match is legal.
func TestSearchGoesOnThroughChanges(t *testing.T) {
	for seed := range uint64(20) {
		body, tickets := solvable(rand.New(rand.NewPCG(seed, 13)))
		rules := mustParse(t, body)
		m, all := New(rules, Config{Name: "still", Budget: 200}), map[uint64]Ticket{}
		r := rand.New(rand.NewPCG(seed, 1))
		for i := range 400 {
			now := benchStart + domain.Time(i*100)
			if r.IntN(5) == 0 {
				key := uint64(r.IntN(len(tickets)))
				if _, there := all[key]; there {
					m.Remove(key)
					delete(all, key)
				} else if all[key] = tickets[key]; m.Add(tickets[key]) != nil {
					t.Fatal("not added")
				}
			}
			for _, p := range m.Pass(now) {
				if wrong := illegal(rules, all, &p, now, 0); wrong != "" {
					t.Errorf("pool %d: %s", seed, wrong)
				}
				for _, key := range p.Tickets {
					delete(all, key)
				}
			}
		}
	}
}

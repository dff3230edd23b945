package matcher

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// FuzzMatcher plays mutations of the cases' rule sets with tickets as strange as requests allow: nothing may panic or run for ever, and
// every proposal is legal.
func FuzzMatcher(f *testing.F) {
	files, _ := filepath.Glob("../ruleset/testdata/cases/*.json")
	for i, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var c testCase
		if err := json.Unmarshal(body, &c); err != nil {
			f.Fatal(err)
		}
		f.Add(string(c.RuleSet), uint64(i))
	}
	f.Fuzz(func(t *testing.T, body string, seed uint64) {
		rules, problems := ruleset.Parse(body)
		if len(problems) > 0 {
			if rules, problems = ruleset.Parse(randomRules(rand.New(rand.NewPCG(seed, 7)))); len(problems) > 0 {
				t.Skip()
			}
		}
		playStrange(t, rules, seed)
	})
}

func strangeValue(r *rand.Rand, kind ruleset.Kind) ruleset.Value {
	number := func() float64 { return pick(r, 0, 1, 1, 1, -1, 10, 10.000000001, 1e308, -1e308, 5e-324) }
	word := func() string { return pick(r, "a", "b", "ctf", "tank", "healer", "p1", "p2") }
	v := ruleset.Value{Kind: kind}
	switch kind {
	case ruleset.Number:
		v.Number = number()
	case ruleset.String:
		v.Text = word()
	case ruleset.List:
		for range r.IntN(3) {
			v.List = append(v.List, word())
		}
	case ruleset.Map:
		v.Map = []ruleset.Entry{{Key: word(), Number: number()}}
	}
	return v
}

func strangeTicket(r *rand.Rand, rules *ruleset.RuleSet, key uint64, now domain.Time) Ticket {
	t := Ticket{Key: key, Start: now - domain.Time(r.IntN(60_000)) + 10_000, No: uint64(r.IntN(3)), Backfill: r.IntN(8) == 0, FreeSlots: int32(r.IntN(5) - 1)}
	for i := range pick(r, 1, 1, 1, 1, 2, 3, 10) {
		p := Player{ID: fmt.Sprintf("p%d", int(key)+i), Team: rules.Teams[r.IntN(len(rules.Teams))].Name}
		for _, a := range rules.Attributes {
			if r.IntN(20) > 0 {
				p.Attributes = append(p.Attributes, ruleset.NamedValue{Name: a.Name, Value: strangeValue(r, a.Kind)})
			}
		}
		regions := pick(r, 3, 3, 100)
		for range r.IntN(5) {
			p.Latencies = append(p.Latencies, Latency{fmt.Sprint("region-", r.IntN(regions)), int32(r.IntN(200))})
		}
		t.Players = append(t.Players, p)
	}
	return t
}

func playStrange(t *testing.T, rules *ruleset.RuleSet, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 3))
	m := New(rules, Config{Name: fmt.Sprint(seed), AdditionalPlayers: int32(r.IntN(3)), Budget: 300, Work: pick(r, 1, 1000, 0)})
	m.exact = pick(r, 0, 20)
	now := benchStart
	pool := map[uint64]Ticket{}
	key := uint64(0)
	for range 6 {
		for range r.IntN(80) {
			key++
			ticket := strangeTicket(r, rules, key, now)
			if err := m.Add(ticket); err != nil {
				t.Fatalf("%+v: %v", ticket, err)
			}
			pool[key] = ticket
		}
		for range r.IntN(5) {
			gone := uint64(r.IntN(int(key) + 1))
			m.Remove(gone)
			delete(pool, gone)
		}
		for passes := 0; m.Dirty(); passes++ {
			if passes > 10_000 {
				t.Fatal("passes do not come to an end")
			}
			for _, p := range m.Pass(now) {
				if wrong := illegal(rules, pool, &p, now, m.config.AdditionalPlayers); wrong != "" {
					t.Errorf("proposal %+v: %s\ntickets %+v", p, wrong, pool)
					return
				}
				for _, key := range p.Tickets {
					delete(pool, key)
				}
			}
		}
		if m.Len() != len(pool) || m.Stats().Tickets != len(pool) {
			t.Fatalf("%d tickets in the pool, want %d", m.Len(), len(pool))
		}
		m.Explain(uint64(r.IntN(int(key)+1)), now)
		at, ok := m.Due(now)
		if ok && at <= now {
			t.Fatalf("due at %d, now is %d", at, now)
		}
		now = max(at, now+domain.Time(r.IntN(20_000)))
	}
	for key := range pool {
		m.Remove(key)
	}
	m.Pass(now)
	if n := len(m.pool.groups) + len(m.pool.texts.numbers) + len(m.pool.regions.bits) + m.pool.ages.tickets + m.pool.players; n != 0 {
		t.Errorf("an empty pool keeps %d records", n)
	}
}

func TestStrangeTickets(t *testing.T) {
	runs := uint64(600)
	if testing.Short() {
		runs = 200
	}
	for seed := range runs {
		body := randomRules(rand.New(rand.NewPCG(seed, 9)))
		rules, problems := ruleset.Parse(body)
		if len(problems) > 0 {
			continue // such as an invalid expansion
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			playStrange(t, rules, seed)
			if t.Failed() {
				t.Log(body)
			}
		})
	}
}

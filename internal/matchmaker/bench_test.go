package matchmaker

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// BenchmarkTickets starts tickets of one player with 4 attributes and 5 latencies, and reports the memory of each
// while it waits.
func BenchmarkTickets(b *testing.B) {
	rules, _ := ruleset.Parse(duel)
	c := cell.New(cell.DefaultConfig())
	env := kernel.Env{Now: caseBegan, Number: 1}
	for _, cmd := range []kernel.Command{
		&matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: "duel", Body: duel}, Compiled: rules},
		&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{Name: "ranked", RuleSet: "duel", RequestTimeout: time.Hour, Standalone: true}},
	} {
		if _, err := c.Execute(cmd, &env); err != nil {
			b.Fatal(err)
		}
	}
	before := heapInUse()
	b.ResetTimer()
	for i := range b.N {
		cmd := &matchmaking.StartMatchmaking{Configuration: "ranked", ID: fmt.Sprintf("ticket-%012d-abcdefghijklmnop", i), Players: []matchmaking.Player{{
			ID: fmt.Sprintf("player-%012d-abcdefghijklmnop", i),
			Attributes: []ruleset.NamedValue{
				{Name: "skill", Value: ruleset.Value{Kind: ruleset.Number, Number: float64(i % 1000)}}, {Name: "mode", Value: ruleset.Value{Kind: ruleset.String, Text: "siege"}},
				{Name: "level", Value: ruleset.Value{Kind: ruleset.Number, Number: 7}}, {Name: "clan", Value: ruleset.Value{Kind: ruleset.String, Text: "owls"}},
			},
			Latencies: []matchmaking.Latency{{Region: "eu-central-1", Milliseconds: 20}, {Region: "eu-west-1", Milliseconds: 30}, {Region: "us-east-1", Milliseconds: 100},
				{Region: "us-west-2", Milliseconds: 150}, {Region: "ap-northeast-1", Milliseconds: 240}},
		}}}
		env.Batch = env.Batch[:0]
		if _, err := c.Execute(cmd, &env); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(heapInUse()-before)/float64(b.N), "bytes/ticket")
	runtime.KeepAlive(c)
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkDuels matches a loaded pool of tickets two by two, skill within 50, through the matcher and the core; one is a
// ticket that was matched.
func BenchmarkDuels(b *testing.B) {
	const waiting = 20_000
	rules, _ := ruleset.Parse(duel)
	for begun := 0; begun < b.N; begun += waiting {
		b.StopTimer()
		c := cell.New(cell.DefaultConfig())
		env := kernel.Env{Now: caseBegan, Number: 1}
		execute := func(cmd kernel.Command) {
			env.Batch = env.Batch[:0]
			if _, err := c.Execute(cmd, &env); err != nil {
				b.Fatal(err)
			}
		}
		execute(&matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: "duel", Body: duel}, Compiled: rules})
		execute(&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{Name: "ranked", RuleSet: "duel", RequestTimeout: time.Hour, Standalone: true}})
		v := c.View()
		made, _ := v.Configuration("ranked")
		pool := NewPool(made, rules)
		for i := range waiting {
			cmd := &matchmaking.StartMatchmaking{Configuration: "ranked", ID: fmt.Sprint("ticket-", i), Players: []matchmaking.Player{{
				ID: fmt.Sprint("player-", i), Attributes: []ruleset.NamedValue{{Name: "skill", Value: ruleset.Value{Kind: ruleset.Number, Number: float64(i * 7919 % 3000)}}},
			}}}
			execute(cmd)
			pool.Add(&cmd.Ticket.Ticket)
		}
		number := uint64(0)
		b.StartTimer()
		for _, cmd := range pool.News() {
			execute(cmd)
		}
		matched := 0
		for more := true; more; more = pool.matcher.Dirty() {
			for _, cmd := range pool.Pass(caseBegan, func() (id domain.UUID) {
				number++
				id[0], id[1], id[2] = byte(number), byte(number>>8), byte(number>>16)
				return id
			}) {
				execute(cmd)
				for i, refused := range cmd.Refused {
					if refused != nil {
						b.Fatal(refused)
					}
					matched += len(cmd.Proposals[i].Tickets)
				}
			}
		}
		if matched < waiting*995/1000 {
			b.Fatalf("%d of %d tickets matched", matched, waiting)
		}
	}
}

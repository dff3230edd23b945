package searchindex

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/musterhq/muster/internal/domain/search"
)

// large returns a fleet of n game sessions: eight seats each, a mode of five, a map of twenty, a rating that few share.
func large(n int) *world {
	w := newWorld(1)
	for i := range n {
		g := &game{Session: Session{
			ID: fmt.Sprintf("%s/custom-home/gsess-%08d", testFleet, i), Fleet: testFleet, Location: "custom-home",
			Name: fmt.Sprintf("game %d", i), Players: w.Int32N(9), PlayersMax: 8, Created: 1_700_000_000_000 + int64(i/2),
		}}
		g.properties = map[string]string{
			"mode": fmt.Sprintf("mode-%d", w.IntN(5)), "map": fmt.Sprintf("map-%d", w.IntN(20)), "rating": fmt.Sprint(1000 + w.IntN(50_000)),
		}
		g.Properties = maps.All(g.properties)
		ref := uint32(i + 1)
		w.games[ref], w.refs[g.ID] = g, ref
		w.index.Add(ref, g.Session)
	}
	return w
}

// BenchmarkSearch measures a first page among 100,000 game sessions.
func BenchmarkSearch(b *testing.B) {
	w := large(100_000)
	for _, filter := range []struct{ name, text string }{
		{"all", ""},
		{"most", "hasAvailablePlayerSessions=true"},
		{"few", "gameSessionProperties.mode = 'mode-1' AND gameSessionProperties.map = 'map-7' AND playerSessionCount>=6 AND hasAvailablePlayerSessions=true"},
		{"none", "gameSessionProperties.map <> 'map-1' AND playerSessionCount > 8 OR NOT (creationTimeMillis > 0)"},
		{"one", "gameSessionName = 'game 4711'"},
	} {
		for _, sort := range []string{"", "creationTimeMillis ASC", "playerSessionCount DESC", "gameSessionProperties.rating ASC", "gameSessionProperties.mode DESC"} {
			b.Run(filter.name+"/"+sort, func(b *testing.B) {
				q := Query{Fleet: testFleet, Most: 21}
				var err error
				if filter.text != "" {
					if q.Filter, err = search.ParseFilter(filter.text); err != nil {
						b.Fatal(err)
					}
				}
				if sort != "" {
					if q.Order, err = search.ParseOrder(sort); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportAllocs()
				began := processorTime(b)
				for b.Loop() {
					if sort == "" {
						q.Order.Start = rand.Uint64()
					}
					s := NewScan(q)
					for !s.Step(w.index, w) {
					}
				}
				b.ReportMetric(float64(processorTime(b)-began)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// processorTime returns the processor time of this process, which other processes distort less than the clock.
func processorTime(b *testing.B) int64 {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return use.Utime.Nano() + use.Stime.Nano()
}

// BenchmarkSetPlayers measures the cost of the index when a player takes a seat.
func BenchmarkSetPlayers(b *testing.B) {
	w := large(100_000)
	ref := uint32(0)
	for b.Loop() {
		ref = (ref*1664525 + 1013904223) % 100_000
		w.index.SetPlayers(ref+1, int32(ref%9), 0)
	}
}

// BenchmarkComeAndGo measures the cost of the index when a game session becomes ACTIVE and ends.
func BenchmarkComeAndGo(b *testing.B) {
	w := large(100_000)
	ref := uint32(0)
	for b.Loop() {
		ref = (ref*1664525 + 1013904223) % 100_000
		g := w.games[ref+1].Session
		w.index.Remove(ref+1, g)
		w.index.Add(ref+1, g)
	}
}

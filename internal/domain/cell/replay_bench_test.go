package cell

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// recorded returns the journal of a busy cell: game sessions fill up and end, players log in, form parties and play.
func recorded(b *testing.B) (Config, [][]byte) {
	w := newFlowWorld(b, nil)
	for i := range 100 {
		game := w.game(fmt.Sprintf("gsess-%032d", i), 200)
		for j := range 100 {
			id := playerID(i*100 + j)
			w.must(&hosting.ReservePlayers{Game: game, Players: []hosting.NewPlayer{{ID: id, Player: fmt.Sprintf("guest-%d-%d", i, j)}}})
			w.must(&hosting.AcceptPlayer{Process: processKey("p-" + fmt.Sprintf("gsess-%032d", i)), Game: game, Player: id, Request: uint64(i*100 + j)})
		}
	}
	for i := range 200 {
		name := func(j int) string { return fmt.Sprintf("p%d-%d", i, j) }
		w.party(name(0), name(1), name(2), name(3))
		for n := range 20 {
			w.must(&playerflow.SetReady{Caller: w.as(name(n % 4)), Ready: n/4%2 == 0})
		}
	}
	return w.cell.config, w.journal
}

// BenchmarkReplay measures how fast a journal is read back and applied.
func BenchmarkReplay(b *testing.B) {
	config, journal := recorded(b)
	events := 0
	for _, batch := range journal {
		_ = EachEvent(batch, func(_ domain.Time, _ kernel.Event) { events++ })
	}
	b.ReportAllocs()
	for b.Loop() {
		c := New(config)
		for i, batch := range journal {
			if err := c.Replay(uint64(i+1), batch); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
}

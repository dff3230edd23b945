package cell

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

// million fills a cell with game sessions of ten reserved player sessions each.
func million(b *testing.B, players int) (*world, []session.ID) {
	w := newWorld(b, DefaultConfig())
	w.hall()
	games := make([]session.ID, players/10)
	for i := range games {
		games[i] = w.game(fmt.Sprintf("gsess-%032d", i), 200)
		w.journal = w.journal[:0]
	}
	for i := range players {
		w.must(&hosting.ReservePlayers{Game: games[i%len(games)], Players: []hosting.NewPlayer{{ID: playerID(i), Player: fmt.Sprintf("player-%08d", i)}}})
		w.journal = w.journal[:0]
	}
	return w, games
}

// BenchmarkReserve measures the core alone: reservations on one core with at least 1,000,000 live player sessions, including the encoding
// of their events and garbage collection. After each further 1,000,000 the old ones leave memory. That time is not counted.
func BenchmarkReserve(b *testing.B) {
	const live = 1_000_000
	w, games := million(b, live)
	runtime.GC()
	env := kernel.Env{Now: w.now, Number: 2}
	n := live
	b.ReportAllocs()
	for b.Loop() {
		if len(env.Batch) > 1<<16 {
			env.Batch, env.Number = env.Batch[:0], env.Number+1
		}
		cmd := hosting.ReservePlayers{Game: games[n%len(games)], Players: []hosting.NewPlayer{{ID: playerID(n), Player: fmt.Sprintf("player-%08d", n)}}}
		if _, err := w.cell.Execute(&cmd, &env); err != nil {
			b.Fatal(err)
		}
		n++
		if n%live == 0 {
			b.StopTimer()
			empty(w, &env)
			b.StartTimer()
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reservations/s")
}

// empty lets all reservations except the last million expire and leave memory.
func empty(w *world, env *kernel.Env) {
	for r, p := range w.cell.hosting.Sessions.Players.All() {
		_ = r
		if w.cell.hosting.Sessions.Players.Len()-w.cell.Ended.Len() <= 1_000_000 {
			break
		}
		w.cell.hosting.Sessions.EndPlayer(r, p.Created, session.TimedOut, w.cell.Ended.Next())
		w.cell.Ended.Push(kernel.Ended{Room: hosting.Room, Ref: r.Any()})
	}
	_, _ = w.cell.Execute(&kernel.Forget{Count: w.cell.Ended.Len()}, env)
}

// BenchmarkMemory reports the live heap for each live player session.
func BenchmarkMemory(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w, _ := million(b, 1_000_000)
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1_000_000, "B/player")
	for b.Loop() {
	}
	runtime.KeepAlive(w)
}

// BenchmarkFreeze measures how long a snapshot of 1,000,000 player sessions stops the writer.
func BenchmarkFreeze(b *testing.B) {
	w, _ := million(b, 1_000_000)
	for b.Loop() {
		w.cell.Freeze()
	}
}

// BenchmarkLoad measures the load of a snapshot of 1,000,000 player sessions.
func BenchmarkLoad(b *testing.B) {
	w, _ := million(b, 1_000_000)
	var buf bytes.Buffer
	if err := w.cell.Freeze().Write(&buf); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(buf.Len()))
	for b.Loop() {
		if err := New(DefaultConfig()).Load(bytes.NewReader(buf.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/heap"
	"github.com/musterhq/muster/internal/settings"
)

// core measures without HTTP: the cell's rules on one processor core, and the engine with its journal.
func (b *bench) core(ctx context.Context) error {
	// The garbage collector runs as it does in the service.
	defaults := settings.Defaults()
	floor := heap.Tune(defaults.GCPercent, int64(defaults.HeapFloor))
	defer floor.Release()
	if err := b.coreAlone(); err != nil {
		return err
	}
	dir, err := b.freshDir("core")
	if err != nil {
		return err
	}
	games, err := b.fillCell(ctx, dir)
	if err != nil {
		return err
	}
	if err := b.coreDurable(ctx, dir, games); err != nil {
		return err
	}
	if err := b.coreSnapshots(ctx, dir, games); err != nil {
		return err
	}
	return b.coreReads(ctx, dir, games)
}

// coreAlone measures reservations on one processor core with many live player sessions, including the encoding of events.
func (b *bench) coreAlone() error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	c := cell.New(settings.Defaults().Cell())
	env := kernel.Env{Now: domain.TimeOf(time.Now()), Number: 1}
	do := func(cmd kernel.Command) error {
		if len(env.Batch) > 1<<16 { // the maximum size of an engine's group
			env.Batch, env.Number = env.Batch[:0], env.Number+1
		}
		_, err := c.Execute(cmd, &env)
		return err
	}
	if err := fillHosts(do); err != nil {
		return err
	}
	games := make([]localGame, b.sizes.coreGames)
	for i := range games {
		var err error
		if games[i], err = fillGame(do, i, b.sizes.corePlayers/b.sizes.coreGames); err != nil {
			return err
		}
		games[i].players = nil
	}
	runtime.GC()
	began, used := time.Now(), processorTime(nil)
	for i := range b.sizes.coreSteps {
		reserve := hosting.ReservePlayers{Game: games[i%len(games)].id, Players: []hosting.NewPlayer{{ID: domain.PlayerSessionID(randomID()), Player: "player-" + strconv.Itoa(i)}}}
		if err := do(&reserve); err != nil {
			return err
		}
	}
	took := processorTime(nil) - used // without the time of other processes
	if took == 0 {
		took = time.Since(began)
	}
	perSecond := float64(b.sizes.coreSteps) / took.Seconds()
	b.progress("  one core: %.0f reservations a second", perSecond)
	b.table.addFact(fmt.Sprintf("reservations on one core, %s live before, collector and encoding included", thousands(int64(b.sizes.corePlayers))),
		"200,000 a second", "%s a second", thousands(int64(perSecond)))
	runtime.KeepAlive(c)
	return nil
}

func (b *bench) fillCell(ctx context.Context, dir string) ([]localGame, error) {
	return b.fillCellWith(ctx, dir, b.sizes.coreGames, b.sizes.corePlayers)
}

func (b *bench) fillCellWith(ctx context.Context, dir string, games, players int) ([]localGame, error) {
	began := time.Now()
	c, err := openCell(ctx, dir, 0, nil)
	if err != nil {
		return nil, err
	}
	all, err := fill(ctx, c.Engine, games, players)
	err = errors.Join(err, c.close())
	b.progress("  %d player sessions in %d game sessions written in %s", players, games, time.Since(began).Round(time.Millisecond))
	return all, err
}

const callers = 64

// coreDurable measures durable changes by callers in this process.
func (b *bench) coreDurable(ctx context.Context, dir string, games []localGame) error {
	c, err := openCell(ctx, dir, 0, nil)
	if err != nil {
		return err
	}
	m, err := load{workers: callers, warm: b.sizes.coreMeasure / 5, measure: b.sizes.coreMeasure}.run(ctx, nil, newChanges(ctx, c.Engine, games, callers).unit)
	if err == nil {
		err = b.coreFind(ctx, c)
	}
	if err := errors.Join(err, c.close()); err != nil {
		return err
	}
	b.table.addLoad("engine in process, durable", "changes", 1, m, 0)
	b.table.addFact("durable changes, 64 callers in process", "100,000 a second, p99 3 ms", "%s a second, p99 %s", thousands(int64(m.perSecond())), milliseconds(m.latency.quantile(0.99)))
	b.progress("  %.0f durable changes a second, p50 %s, p99 %s", m.perSecond(), milliseconds(m.latency.quantile(0.5)), milliseconds(m.latency.quantile(0.99)))
	return nil
}

// coreFind measures lookups of players by id, one after another, in memory and archive.
func (b *bench) coreFind(ctx context.Context, c *localCell) error {
	inEach := b.sizes.corePlayers / b.sizes.coreGames
	m, err := load{workers: 1, measure: b.sizes.coreMeasure}.run(ctx, nil, func(int) error {
		player := playerOf(rand.IntN(b.sizes.coreGames), 1+rand.IntN(inEach))
		found, _, err := c.PlayersNamed(ctx, player, engine.PlayerPlace{}, 1)
		if err == nil && len(found) != 1 {
			err = fmt.Errorf("player %s was not found", player)
		}
		return err
	})
	if err != nil {
		return err
	}
	b.progress("  a player found by id: p50 %s, p99 %s", milliseconds(m.latency.quantile(0.5)), milliseconds(m.latency.quantile(0.99)))
	b.table.addFact(fmt.Sprintf("a player's sessions found by the player's id among %s, archive included, p99", thousands(int64(b.sizes.corePlayers))), "1 ms", "%s", milliseconds(m.latency.quantile(0.99)))
	return nil
}

// coreSnapshots measures how long snapshots that follow each other stop writers at 30,000 changes per second.
func (b *bench) coreSnapshots(ctx context.Context, dir string, games []localGame) error {
	stops := &stopLog{}
	c, err := openCell(ctx, dir, b.sizes.coreSnapshotEvery, slog.New(stops))
	if err != nil {
		return err
	}
	_, err = load{workers: callers, rate: 30_000, measure: b.sizes.coreMeasure}.run(ctx, nil, newChanges(ctx, c.Engine, games, callers).unit)
	snapshots, longest := stops.seen()
	if err := errors.Join(err, c.close()); err != nil {
		return err
	}
	b.progress("  %d snapshots; the longest stopped writers for %s", snapshots, milliseconds(longest))
	b.table.addFact(fmt.Sprintf("a snapshot at %s player sessions and 30,000 changes a second stops writers for (longest of %d)", thousands(int64(b.sizes.corePlayers)), snapshots),
		"5 ms", "%s", milliseconds(longest))
	return nil
}

// coreReads measures reads during 60,000 changes per second, with the default settings, for long enough that the journal grows to a snapshot.
func (b *bench) coreReads(ctx context.Context, dir string, games []localGame) error {
	c, err := openCell(ctx, dir, 0, nil)
	if err != nil {
		return err
	}
	var writing sync.WaitGroup
	var wrote *measured
	var writeErr error
	warm, measure := b.sizes.coreMeasure/2, 4*b.sizes.coreMeasure
	changes := newChanges(ctx, c.Engine, games, callers)
	writing.Go(func() {
		wrote, writeErr = load{workers: callers, rate: 60_000, warm: warm, measure: measure}.run(ctx, nil, changes.unit)
	})
	reads, err := load{workers: 16, rate: 5_000, warm: warm, measure: measure}.run(ctx, nil, func(int) error {
		g := &games[rand.IntN(len(games))]
		id := g.players[rand.IntN(len(g.players))]
		return c.Read(ctx, func(v *cell.View) error {
			if _, ok := v.PlayerSession(id); !ok {
				return fmt.Errorf("player session %s is missing", id)
			}
			return nil
		})
	})
	writing.Wait()
	if err := errors.Join(err, writeErr, c.close()); err != nil {
		return err
	}
	b.progress("  reads beside %.0f changes a second: p50 %s, p99 %s", wrote.perSecond(), milliseconds(reads.latency.quantile(0.5)), milliseconds(reads.latency.quantile(0.99)))
	b.table.addFact(fmt.Sprintf("a point read beside %s changes a second, p99", thousands(int64(wrote.perSecond()))), "1 ms", "%s", milliseconds(reads.latency.quantile(0.99)))
	return nil
}

// changes is a load of player sessions without a network: each caller reserves, accepts and removes players in turn.
type changes struct {
	ctx     context.Context
	cell    *engine.Engine
	games   []localGame
	callers []changing
}

// changing is one caller.
type changing struct {
	step, count int
	game        *localGame
	player      domain.PlayerSessionID
}

func newChanges(ctx context.Context, e *engine.Engine, games []localGame, callers int) *changes {
	return &changes{ctx: ctx, cell: e, games: games, callers: make([]changing, callers)}
}

// unit is one change.
func (c *changes) unit(caller int) error {
	x := &c.callers[caller]
	step := x.step
	x.step = (step + 1) % 3
	switch step {
	case 0:
		x.count++
		x.game, x.player = &c.games[(x.count*len(c.callers)+caller)%len(c.games)], domain.PlayerSessionID(randomID())
		return c.cell.Do(c.ctx, &hosting.ReservePlayers{Game: x.game.id, Players: []hosting.NewPlayer{{ID: x.player, Player: "caller-" + strconv.Itoa(caller)}}})
	case 1:
		return c.cell.Do(c.ctx, &hosting.AcceptPlayer{Process: x.game.process, Game: x.game.id, Player: x.player, Request: rand.Uint64() | 1})
	default:
		return c.cell.Do(c.ctx, &hosting.RemovePlayer{Process: x.game.process, Game: x.game.id, Player: x.player})
	}
}

// stopLog reads the pauses of writers by snapshots from the engine's log.
type stopLog struct {
	mu      sync.Mutex
	count   int
	longest time.Duration
}

func (l *stopLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *stopLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *stopLog) WithGroup(string) slog.Handler            { return l }

func (l *stopLog) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "writers_stopped" {
			l.mu.Lock()
			l.count++
			l.longest = max(l.longest, a.Value.Duration())
			l.mu.Unlock()
		}
		return true
	})
	return nil
}

func (l *stopLog) seen() (count int, longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count, l.longest
}

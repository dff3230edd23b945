package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/musterhq/muster/internal/linkclient"
)

// A soak is a small, constant load over a long time: a constant number of game sessions, players who come and go at a steady rate,
// game servers that start with a new process id for each game session, and pairs of friends who find a match, play it and log out. After the settling time,
// nothing may grow.
const (
	soakServers     = 32                    // game servers with lasting game sessions, for the players
	soakChanging    = 60                    // game servers that host one short game session after another
	soakGame        = 8 * time.Second       // how long a short game session lasts,
	soakGameLeast   = 2 * time.Second       // and in a soak of seconds
	soakPlayers     = 90.0                  // cycles of a player a second, three requests each
	soakConnections = 16                    // of the players' clients
	soakSample      = 10 * time.Second      // between two samples of the process's memory
	soakSettle      = 12 * time.Minute      // longer than anything is remembered: ended processes are remembered for ten minutes
	soakSlow        = 50 * time.Millisecond // answers that take longer are listed
	soakSlowMax     = 40                    // maximum number of slow answers that are listed

	// The limits of docs/performance.md for growth after the settling time.
	soakHeapGrowth    = 8 << 20  // bytes of live heap without the databases, and
	soakHeapShare     = 10       // percent of it
	soakRSSGrowth     = 32 << 20 // bytes of resident memory, and
	soakRSSShare      = 10       // percent of it
	soakGoroutineMore = 20       // goroutines
)

// errGrowth is the error of a soak in which the service grew.
var errGrowth = errors.New("the service grows under a constant load")

// soak runs the load for Options.Soak and fails when the service grows after the settling time: half of the run, or soakSettle.
func (b *bench) soak(ctx context.Context, s *server, setup *conn) error {
	h, err := b.setUp(setup)
	if err != nil {
		return err
	}
	defer h.close()
	if err := h.connectWithGames(ctx, s, setup, soakServers); err != nil {
		return err
	}
	c, err := newCycles(ctx, s, h, awsJSON, soakConnections)
	if err != nil {
		return err
	}
	defer c.close()
	running, stop := context.WithCancel(ctx)
	defer stop()
	churn := &soakChurn{server: s, hall: h, lasts: min(soakGame, max(b.options.Soak/10, soakGameLeast))}
	defer churn.wait.Wait()
	defer stop()
	if err := churn.start(running); err != nil {
		return err
	}
	evenings, err := b.soakEvenings(s, churn, setup)
	if err != nil {
		return err
	}
	if err := evenings.start(running); err != nil {
		return err
	}
	watch := &soakWatch{bench: b, server: s, began: time.Now(), settled: min(b.options.Soak/2, soakSettle)}
	watching := make(chan error, 1)
	go func() { watching <- watch.run(running, b.options.Soak) }()
	l := load{workers: soakConnections, rate: soakPlayers, warm: watch.settled, measure: b.options.Soak - watch.settled}
	m, err := l.run(ctx, s, func(worker int) error {
		if err := churn.failed(); err != nil {
			return err
		}
		began := time.Now()
		err := c.unit(worker)
		watch.slow(began, time.Since(began))
		return err
	})
	if err != nil {
		return err
	}
	if err := <-watching; err != nil {
		return err
	}
	b.progress("  %d game sessions without player flow, %d evenings of two friends, %d of these with a crash", churn.games.Load(), evenings.over.Load(), evenings.crashed.Load())
	b.progress("  players: %s, p99.9 %s, most %s", m, milliseconds(m.latency.quantile(0.999)), milliseconds(m.latency.quantile(1)))
	now, err := s.metrics(ctx)
	if err != nil {
		return err
	}
	b.reportWaits(watch.metrics, now)
	b.table.addLoad("soak, players of "+strconv.Itoa(soakServers)+" game sessions, JSON", "cycles", requestsInCycle, m, 0)
	return watch.verdict()
}

// soakChurn has the game servers that host one short game session after another, and the client that requests them.
type soakChurn struct {
	server *server
	hall   *hall
	lasts  time.Duration // of a game session
	wait   sync.WaitGroup
	first  atomic.Pointer[error]
	games  atomic.Int64
}

// keep keeps the first error of the work that runs in addition to the load.
func (c *soakChurn) keep(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		c.first.CompareAndSwap(nil, &err)
	}
}

func (c *soakChurn) failed() error {
	if err := c.first.Load(); err != nil {
		return *err
	}
	return nil
}

func (c *soakChurn) start(ctx context.Context) error {
	asker, err := dial(ctx, c.server.addr, awsJSON, c.server.key)
	if err != nil {
		return err
	}
	c.serve(ctx, c.hall, "soak", soakChanging, func(*linkclient.Client, string) {})
	c.wait.Go(func() {
		defer asker.close()
		for ctx.Err() == nil && c.failed() == nil {
			c.keep(ctx, c.hall.createGame(ctx, asker, "soak", 16))
			c.games.Add(1)
			wait(ctx, c.lasts/soakChanging*11/10) // so that sometimes a game server waits
		}
	})
	return nil
}

// serve runs n game servers of a fleet, each with one process after another, until the context ends. It passes each game session to begun before activating it.
func (c *soakChurn) serve(ctx context.Context, h *hall, name string, n int, begun func(link *linkclient.Client, game string)) {
	for i := range n {
		c.wait.Go(func() {
			for life := 0; ctx.Err() == nil && c.failed() == nil; life++ {
				c.keep(ctx, c.host(ctx, h, fmt.Sprintf("%s-%d-%d", name, i, life), begun))
			}
		})
	}
}

// host is the life of one server process.
func (c *soakChurn) host(ctx context.Context, h *hall, process string, begun func(*linkclient.Client, string)) error {
	told := make(chan string, 1)
	link, err := linkclient.Dial(ctx, linkclient.Options{
		URL: "ws://" + c.server.addr, Process: process, Compute: compute, Fleet: h.fleet, Token: h.token,
		OnPush: func(_ *linkclient.Client, p linkclient.Push) {
			if p.Action == "CreateGameSession" {
				told <- p.GameSessionID()
			}
		},
	})
	if err != nil {
		return err
	}
	defer link.Drop()
	if err := link.Activate(ctx, 7777); err != nil {
		return err
	}
	for {
		if err := link.Heartbeat(ctx, true); err != nil {
			return err
		}
		select {
		case game := <-told:
			begun(link, game)
			if err := link.ActivateGameSession(ctx, game); err != nil {
				return err
			}
			wait(ctx, c.lasts)
			return link.Terminate(ctx)
		case <-time.After(beat):
		case <-ctx.Done():
			return nil
		}
	}
}

// soakWatch samples the process while the load runs.
type soakWatch struct {
	bench   *bench
	server  *server
	began   time.Time
	settled time.Duration

	mu    sync.Mutex
	slows []string
	many  int

	from, to soakPoint
	metrics  map[string]*dto.MetricFamily // at from
}

// soakPoint is a sample of the process.
type soakPoint struct {
	after           time.Duration
	heap, databases int64 // live bytes without the databases, and those of the databases
	rss             int64 // bytes, the maximum of the samples of a minute
	goroutines      int64
}

func (w *soakWatch) slow(began time.Time, took time.Duration) {
	if took < soakSlow || began.Sub(w.began) < w.settled {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.many++
	if len(w.slows) < soakSlowMax {
		w.slows = append(w.slows, fmt.Sprintf("%s after %.2fs", milliseconds(took), began.Sub(w.began).Seconds()))
	}
}

// run samples until the time is over, and records the points at the end of the settling time and of the run.
func (w *soakWatch) run(ctx context.Context, whole time.Duration) error {
	var rss int64
	tick := time.NewTicker(min(soakSample, whole/10))
	defer tick.Stop()
	last := time.Duration(0)
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		rss = max(rss, w.server.resident())
		after := time.Since(w.began)
		over := after >= whole-whole/20
		if after-last < time.Minute && !over && (after < w.settled || w.from.after != 0) {
			continue
		}
		p, err := w.look(ctx, after, rss)
		if err != nil {
			return err
		}
		w.bench.progress("  after %s: live heap %s beside the databases' %s, resident %s, %d goroutines", after.Round(time.Second), megabytes(p.heap), megabytes(p.databases), megabytes(p.rss), p.goroutines)
		last, rss = after, 0
		if after >= w.settled && w.from.after == 0 {
			w.from = p
			if w.metrics, err = w.server.metrics(ctx); err != nil {
				return err
			}
			if err := w.bench.profileHeap(ctx, w.server, "soak-from"); err != nil {
				return err
			}
		}
		if w.to = p; over {
			return w.bench.profileHeap(ctx, w.server, "soak-to")
		}
	}
}

func (w *soakWatch) look(ctx context.Context, after time.Duration, rss int64) (soakPoint, error) {
	live, databases, err := w.server.liveHeapParts(ctx)
	if err != nil {
		return soakPoint{}, err
	}
	text, err := w.server.profile(ctx, "goroutine?debug=1")
	if err != nil {
		return soakPoint{}, err
	}
	// "goroutine profile: total 123"
	line, _, _ := strings.Cut(string(text), "\n")
	goroutines, err := strconv.ParseInt(line[strings.LastIndexByte(line, ' ')+1:], 10, 64)
	return soakPoint{after, live - databases, databases, rss, goroutines}, err
}

// verdict compares the growth since the settling time with the limits.
func (w *soakWatch) verdict() error {
	w.bench.progress("  %d answers took more than %s: %s", w.many, soakSlow, strings.Join(w.slows, ", "))
	from, to := w.from, w.to
	w.bench.progress("  between %s and %s the live heap went from %s to %s, resident memory from %s to %s", from.after.Round(time.Second),
		to.after.Round(time.Second), megabytes(from.heap), megabytes(to.heap), megabytes(from.rss), megabytes(to.rss))
	switch {
	case to.after-from.after < time.Minute && !w.bench.options.Quick:
		return fmt.Errorf("a soak of %s is too short to show growth: want at least three minutes", w.bench.options.Soak)
	case to.heap-from.heap > soakHeapGrowth+from.heap*soakHeapShare/100:
		return fmt.Errorf("%w: live heap from %s to %s", errGrowth, megabytes(from.heap), megabytes(to.heap))
	case to.rss-from.rss > soakRSSGrowth+from.rss*soakRSSShare/100:
		return fmt.Errorf("%w: resident memory from %s to %s", errGrowth, megabytes(from.rss), megabytes(to.rss))
	case to.goroutines-from.goroutines > soakGoroutineMore:
		return fmt.Errorf("%w: from %d to %d goroutines", errGrowth, from.goroutines, to.goroutines)
	}
	return nil
}

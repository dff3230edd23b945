// Package playerwatch has the metrics of players for operators: it counts committed events, regularly surveys
// all records, and checks the invariants of player flow on the running state. A violation is a defect of the service
// and is logged as an error.
//
// In a cluster only the leader counts events, so counters of all nodes can be added up. Each node surveys its own copy of the state,
// so the gauges are the same at every node.
package playerwatch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/playerflow/inspection"
	"github.com/musterhq/muster/internal/engine"
)

// Config is what a Watch needs.
type Config struct {
	Engine *engine.Engine
	Log    *slog.Logger
	Every  time.Duration // between two surveys; 0: DefaultEvery
}

// DefaultEvery is the interval between surveys. A million players take a few hundred milliseconds of one core.
const DefaultEvery = 15 * time.Second

const (
	surveyStep  = 256                  // records checked under one lock
	surveyPause = 2 * time.Millisecond // between two steps: commands take precedence
)

// Watch surveys until it is closed, and counts events from Lead to Rest. It is a prometheus.Collector.
type Watch struct {
	config   Config
	counters *counters
	unfollow func() // nil while this node is not the leader
	cancel   context.CancelFunc
	running  sync.WaitGroup

	surveying sync.Mutex      // one survey at a time
	known     map[string]bool // violations of the latest survey, which were logged

	lock     sync.Mutex
	latest   *inspection.Survey // nil: none is complete yet
	took     time.Duration
	violated uint64 // total of all surveys
}

// Start begins to survey the state.
func Start(c Config) *Watch {
	c.Every = cmp.Or(c.Every, DefaultEvery)
	w := &Watch{config: c, counters: newCounters()}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.running.Go(func() { w.survey(ctx) })
	return w
}

// Lead begins to count events.
func (w *Watch) Lead() { w.unfollow = w.config.Engine.Follow(counted, w.counters.follow) }

// Rest stops counting.
func (w *Watch) Rest() {
	if w.unfollow != nil {
		w.unfollow()
		w.unfollow = nil
	}
}

// Close stops the watch.
func (w *Watch) Close() {
	w.Rest()
	w.cancel()
	w.running.Wait()
}

func (w *Watch) survey(ctx context.Context) {
	again := time.NewTicker(w.config.Every)
	defer again.Stop()
	for {
		if err := w.Survey(ctx); err != nil {
			if !errors.Is(err, context.Canceled) && !errors.Is(err, engine.ErrStopped) {
				w.config.Log.Error("the survey of player flow failed and stopped", "error", err)
			}
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// Survey checks all records once, in steps.
func (w *Watch) Survey(ctx context.Context) error {
	w.surveying.Lock()
	defer w.surveying.Unlock()
	s := inspection.NewSurvey()
	began := time.Now()
	for done := false; !done; {
		err := w.config.Engine.ReadHere(ctx, func(v *cell.View) error {
			done = v.Survey(s, domain.TimeOf(w.config.Engine.Now()), surveyStep)
			return nil
		})
		if err != nil {
			return err
		}
		if !done {
			select {
			case <-time.After(surveyPause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	w.report(s)
	w.lock.Lock()
	defer w.lock.Unlock()
	w.latest, w.took = s, time.Since(began)
	w.violated += uint64(s.Violated)
	return nil
}

// report logs the violations that the previous survey did not find.
func (w *Watch) report(s *inspection.Survey) {
	found := map[string]bool{}
	for _, x := range s.Violations {
		found[x.String()] = true
		if !w.known[x.String()] {
			w.config.Log.Error("an invariant of player flow does not hold: this is a defect of the service", "invariant", x.Invariant,
				"meaning", x.Meaning(), "subject", x.Subject, "detail", x.Detail)
		}
	}
	if more := s.Violated - len(s.Violations); more > 0 {
		w.config.Log.Error("further violations of the invariants of player flow are not logged", "violations", more)
	}
	w.known = found
}

// snapshot returns the latest complete survey, or nil.
func (w *Watch) snapshot() (s *inspection.Survey, took time.Duration, violated uint64) {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.latest, w.took, w.violated
}

// overdue returns how late the next deadline is.
func (w *Watch) overdue() (late time.Duration) {
	_ = w.config.Engine.ReadHere(context.Background(), func(v *cell.View) error { // a stopped engine has no late deadlines
		late = v.Overdue(domain.TimeOf(w.config.Engine.Now()))
		return nil
	})
	return late
}

var _ prometheus.Collector = (*Watch)(nil)

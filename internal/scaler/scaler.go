// Package scaler drives the assignment of hosts to fleets. It runs on the leader: it makes the core plan every second, and scale every minute with the samples that
// it has taken. It makes no decisions itself.
//
// The samples are in memory. A new leader begins without samples, so policies act only once it has taken as many as they evaluate.
package scaler

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// planEvery is the time between two plans.
const planEvery = time.Second

// Engine executes commands and reads the state.
type Engine interface {
	Do(ctx context.Context, cmd kernel.Command) error
	ReadHere(ctx context.Context, f func(*cell.View) error) error
	Now() time.Time
}

// Scaler is an office.Part.
type Scaler struct {
	engine Engine
	log    *slog.Logger
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// New returns a Scaler that has not begun.
func New(engine Engine, log *slog.Logger) *Scaler { return &Scaler{engine: engine, log: log} }

// Lead implements office.Part.
func (s *Scaler) Lead() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.work.Go(func() { s.run(ctx) })
}

// Rest implements office.Part.
func (s *Scaler) Rest() {
	if s.cancel != nil {
		s.cancel()
		s.work.Wait()
	}
}

func (s *Scaler) run(ctx context.Context) {
	again := time.NewTicker(planEvery)
	defer again.Stop()
	for r := (round{Scaler: s, samples: map[place][]capacity.Sample{}}); ; {
		r.turn(ctx)
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

type place struct{ fleet, location string }

// round is the state of one term of office.
type round struct {
	*Scaler
	samples map[place][]capacity.Sample
	next    domain.Time // when the next samples are due, by the service's clock
}

// turn plans. When a minute is over, it also measures and scales.
func (r *round) turn(ctx context.Context) {
	if err := r.engine.Do(ctx, &capacity.Plan{}); err != nil {
		return // the engine stops, is short of something, or has lost its office: the next turn tries again
	}
	now := domain.TimeOf(r.engine.Now())
	if now < r.next {
		return
	}
	if r.next = r.next.Add(capacity.SampleEvery); r.next <= now {
		r.next = now.Add(capacity.SampleEvery)
	}
	var all []capacity.Measured
	if err := r.engine.ReadHere(ctx, func(v *cell.View) error { all = v.Measure(now); return nil }); err != nil {
		return
	}
	r.keep(all)
	for _, m := range all {
		cmd := capacity.ScaleFleet{Fleet: m.Fleet, Location: m.Location, Samples: r.samples[place{m.Fleet, m.Location}]}
		if err := r.engine.Do(ctx, &cmd); err != nil {
			return
		}
		if cmd.Changed {
			r.log.Info("fleet scaled", "fleet", m.Fleet, "location", m.Location, "desired", cmd.Change.To, "reason", cmd.Change.Why)
		}
	}
}

// keep adds the new samples and drops those that no policy evaluates any longer.
func (r *round) keep(all []capacity.Measured) {
	kept := make(map[place][]capacity.Sample, len(all))
	for _, m := range all {
		at := place{m.Fleet, m.Location}
		row := append(r.samples[at], m.Sample)
		kept[at] = row[max(0, len(row)-m.Remember):]
	}
	r.samples = kept
}

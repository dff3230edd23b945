package scaler

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// recorder is an engine that records commands.
type recorder struct {
	now   time.Time
	plans int
	err   error
	done  chan struct{}
}

func (r *recorder) Do(_ context.Context, cmd kernel.Command) error {
	if _, ok := cmd.(*capacity.Plan); ok {
		if r.plans++; r.plans == 1 {
			close(r.done)
		}
	}
	return r.err
}

func (r *recorder) ReadHere(_ context.Context, f func(*cell.View) error) error {
	v := cell.New(cell.DefaultConfig()).View()
	return f(&v)
}

func (r *recorder) Now() time.Time { return r.now }

// A term begins with a plan at once and ends when Rest returns. A failing engine does not end it.
func TestTermOfOffice(t *testing.T) {
	s := New(nil, slog.New(slog.DiscardHandler))
	s.Rest() // without Lead it does nothing
	for _, err := range []error{nil, errors.New("no office")} {
		e := &recorder{now: time.Now(), err: err, done: make(chan struct{})}
		s.engine = e
		s.Lead()
		<-e.done
		s.Rest()
		if e.plans == 0 {
			t.Error("nothing was planned")
		}
	}
}

// Samples are kept as long as a policy uses them, and are removed with it.
func TestSamplesAreBounded(t *testing.T) {
	r := round{samples: map[place][]capacity.Sample{}}
	for i := range 40 {
		r.keep([]capacity.Measured{{Fleet: "f", Location: "a", Remember: 15, Sample: capacity.Sample{QueueDepth: int32(i)}}, {Fleet: "f", Location: "b", Remember: 1}})
	}
	if got := r.samples[place{"f", "a"}]; len(got) != 15 || got[14].QueueDepth != 39 || len(r.samples[place{"f", "b"}]) != 1 {
		t.Errorf("kept %d and %d samples", len(got), len(r.samples[place{"f", "b"}]))
	}
	if r.keep(nil); len(r.samples) != 0 {
		t.Errorf("%d locations without a policy have samples", len(r.samples))
	}
}

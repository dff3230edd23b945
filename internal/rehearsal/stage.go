package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/simulate"
)

// Limits of a trial.
const (
	TicketsMax     = 20_000
	valuesMax      = 2_000_000        // attributes and latencies of all players
	trialTime      = 20 * time.Second // including rests
	turnWait       = 5 * time.Second  // for the previous trial
	processorShare = 0.5              // of one processor
	trialsWaiting  = 8
	seed           = 1 // the default of muster simulate
)

// Stage runs the trials of a node, one after another.
type Stage struct {
	turn    chan struct{} // has an element while a trial runs
	waiting chan struct{} // has an element for each trial that runs or waits for its turn
	time    time.Duration // of a trial
}

// NewStage returns an idle Stage.
func NewStage() *Stage {
	return &Stage{make(chan struct{}, 1), make(chan struct{}, trialsWaiting), trialTime}
}

// Set is a rule set with the name that reports give it.
type Set struct {
	Name  string
	Rules *ruleset.RuleSet
}

// Trial describes a simulation.
type Trial struct {
	Sets       []Set // one, or two to compare
	Timeout    time.Duration
	Additional int32
	Arrivals   []simulate.Arrival
}

// Result has a report for each set.
type Result struct {
	Reports     []*simulate.Report
	Differences *simulate.Differences // if there are two sets
}

// Run runs a trial. It refuses with Overloaded if others are running, and with Invalid if the trial would take too long or does not fit the rule sets. The trial ends with ctx.
func (s *Stage) Run(ctx context.Context, t Trial) (*Result, error) {
	if len(t.Arrivals) > TicketsMax {
		return nil, domain.Refuse(domain.Invalid, "%d tickets are too many for a trial; want at most %d", len(t.Arrivals), TicketsMax)
	}
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	timed, cancel := context.WithTimeout(ctx, s.time)
	defer cancel()
	r := &Result{}
	outcomes := make([][]simulate.Outcome, len(t.Sets))
	for i, set := range t.Sets {
		outcomes[i] = make([]simulate.Outcome, len(t.Arrivals))
		report, err := simulate.Run(timed, set.Rules, simulate.Settings{
			Name: set.Name, RequestTimeout: t.Timeout, Additional: t.Additional, Seed: seed, ProcessorShare: processorShare,
			OnEnd: func(arrival int, o simulate.Outcome) { outcomes[i][arrival] = o },
		}, t.Arrivals)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			return nil, domain.Refuse(domain.Invalid, "the trial was stopped after %s: fewer tickets or simpler rules take less; muster simulate has no such bound", s.time)
		case err != nil:
			return nil, domain.Refuse(domain.Invalid, "%s: %s", set.Name, err)
		}
		r.Reports = append(r.Reports, report)
	}
	if len(t.Sets) == 2 {
		d := simulate.Compare(t.Arrivals, outcomes[0], outcomes[1])
		r.Differences = &d
	}
	return r, nil
}

// enter waits for a turn.
func (s *Stage) enter(ctx context.Context) (leave func(), err error) {
	busy := domain.Refuse(domain.Overloaded, "another trial runs at this node; try again in a few seconds")
	select {
	case s.waiting <- struct{}{}:
	default:
		return nil, busy
	}
	timer := time.NewTimer(turnWait)
	defer timer.Stop()
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn; <-s.waiting }, nil
	case <-timer.C:
		err = busy
	case <-ctx.Done():
		err = fmt.Errorf("wait for the turn of a trial: %w", ctx.Err())
	}
	<-s.waiting
	return nil, err
}

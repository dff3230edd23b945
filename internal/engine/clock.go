package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Clock stands still until Engine.Advance moves it. Tests of a game's timeouts then need no real time, and nothing expires while a
// debugger holds the game.
type Clock struct {
	ms atomic.Int64 // Unix milliseconds: the precision of the core
}

// NewClock returns a clock that shows now.
func NewClock(now time.Time) *Clock {
	c := &Clock{}
	c.ms.Store(now.UnixMilli())
	return c
}

func (c *Clock) Now() time.Time { return time.UnixMilli(c.ms.Load()).UTC() }

// Skip moves a clock that no engine is using, to simulate downtime.
func (c *Clock) Skip(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// notBefore keeps time from running backward across a restart.
func (c *Clock) notBefore(t domain.Time) { c.ms.Store(max(c.ms.Load(), int64(t))) }

// AdvanceMax is the most by which one call may move the clock.
const AdvanceMax = 10 * 365 * 24 * time.Hour

// ErrRealTime is returned by Advance when the engine has no Clock.
var ErrRealTime = errors.New("the service runs on real time; its clock cannot be moved")

// Beside is time-dependent work outside the engine, such as matchmaking.
type Beside interface {
	// Due returns when the passage of time next gives it work; zero for never.
	Due() domain.Time
	// Settle does the work that is due now, and reports whether there was any.
	Settle(ctx context.Context) (did bool, err error)
}

// Attend makes each Advance stop when b is due and wait for b at every stop.
func (e *Engine) Attend(b Beside) {
	e.advancing.Lock()
	defer e.advancing.Unlock()
	e.besides = append(e.besides, b)
}

// Advance moves the engine's Clock by d. It stops at each deadline, in order, and continues once all consequences are decided and durable
// and all followers have received them. It does not wait for game servers or webhooks; to let those react in between, advance in two
// steps.
func (e *Engine) Advance(ctx context.Context, d time.Duration) error {
	c := e.config.Clock
	switch {
	case c == nil:
		return ErrRealTime
	case d < 0 || d > AdvanceMax:
		return fmt.Errorf("advance the clock by %s: want 0 to %s", d, AdvanceMax)
	}
	e.advancing.Lock()
	defer e.advancing.Unlock()
	target := domain.TimeOf(c.Now()) + domain.Time(d.Milliseconds())
	if err := e.endDue(ctx); err != nil { // what is already due happens at the current time
		return err
	}
	for due := e.nextStop(); due != 0 && due <= target; due = e.nextStop() {
		c.notBefore(due)
		if err := e.endDue(ctx); err != nil {
			return err
		}
	}
	c.notBefore(target)
	if err := e.endDue(ctx); err != nil {
		return err
	}
	return e.carryEnded(ctx)
}

// nextStop returns the next time at which something is due; zero for never.
func (e *Engine) nextStop() domain.Time {
	e.stateLock.RLock()
	next := e.seq.Cell().NextDue()
	e.stateLock.RUnlock()
	for _, b := range e.besides {
		if due := b.Due(); due != 0 && (next == 0 || due < next) {
			next = due
		}
	}
	return next
}

// endDue ends everything that is due and waits until all followers have received the events.
func (e *Engine) endDue(ctx context.Context) error {
	for more := true; more; {
		tick := &kernel.Tick{}
		if err := e.Do(ctx, tick); err != nil {
			return err
		}
		more = tick.More
	}
	for range tellRounds {
		if err := e.tellAll(ctx); err != nil {
			return err
		}
		busy := false
		for _, b := range e.besides {
			did, err := b.Settle(ctx)
			if err != nil {
				return err
			}
			busy = busy || did
		}
		if !busy {
			break
		}
	}
	return nil
}

// tellRounds bounds the rounds of tellAll: commands of followers and other clients cause further events, so it might never finish.
const tellRounds = 16

// tellAll waits until all followers have received all durable events.
func (e *Engine) tellAll(ctx context.Context) error {
	for range tellRounds {
		number := e.durable.reached.Load()
		if err := e.AwaitFollowers(ctx); err != nil {
			return err
		}
		if e.durable.reached.Load() == number {
			break
		}
	}
	return nil
}

// carryEnded archives the records that ended long enough ago and expires old archived ones.
func (e *Engine) carryEnded(ctx context.Context) error {
	r := e.run.Load()
	done := make(chan struct{})
	select {
	case r.carry <- done:
	case <-r.stopped:
		return r.stopError()
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-r.stopped:
		return r.stopError()
	case <-ctx.Done():
		return ctx.Err()
	}
}

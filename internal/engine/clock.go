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

// Clock stands still until Engine.Advance moves it: a game whose time-outs are tested needs no real minutes, and nothing
// ends while a debugger holds it.
type Clock struct {
	ms atomic.Int64 // Unix milliseconds: the precision of the core
}

// NewClock makes a clock that shows now.
func NewClock(now time.Time) *Clock {
	c := &Clock{}
	c.ms.Store(now.UnixMilli())
	return c
}

// Now is what the clock shows.
func (c *Clock) Now() time.Time { return time.UnixMilli(c.ms.Load()).UTC() }

// Skip moves a clock that no engine runs on at the moment: the time a service is down for.
func (c *Clock) Skip(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// notBefore keeps the time from running backward over a restart.
func (c *Clock) notBefore(t domain.Time) { c.ms.Store(max(c.ms.Load(), int64(t))) }

// AdvanceMax is how far one call moves the clock at most.
const AdvanceMax = 10 * 365 * 24 * time.Hour

// ErrRealTime is what Advance says when the engine has no Clock.
var ErrRealTime = errors.New("the service runs on real time; its clock cannot be moved")

// Beside is work that is done beside the engine and depends on the time, such as looking for matches.
type Beside interface {
	// Due is when it has something to do next although nothing happens; zero: never.
	Due() domain.Time
	// Settle does what there is to do now, and reports whether that was anything.
	Settle(ctx context.Context) (did bool, err error)
}

// Attend makes each Advance stop where b is due, and wait for it wherever it stops.
func (e *Engine) Attend(b Beside) {
	e.advancing.Lock()
	defer e.advancing.Unlock()
	e.besides = append(e.besides, b)
}

// Advance moves the engine's Clock. It stops at each deadline on the way, in order, and goes on when all that follows
// from it is decided and durable, and every follower has been told. Game servers and webhooks are not waited for: to
// let one react in time, advance in two steps.
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
	if err := e.endDue(ctx); err != nil { // what can happen at the present time happens in it
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

// nextStop is the next time at which something is due; zero when nothing is.
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

// endDue ends everything that is due and waits until all followers have received it.
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

// tellRounds bounds how often those are asked again whose own commands make news: other clients make news, too.
const tellRounds = 16

// tellAll waits until all followers have been told of what is durable.
func (e *Engine) tellAll(ctx context.Context) error {
	for range tellRounds {
		number := e.durable.reached.Load()
		if err := e.fed.wait(ctx, e, number); err != nil {
			return err
		}
		e.followersLock.Lock()
		all := append([]*follower(nil), e.followers...)
		e.followersLock.Unlock()
		for _, x := range all {
			if err := x.wait(ctx); err != nil {
				return err
			}
		}
		if e.durable.reached.Load() == number {
			break
		}
	}
	return nil
}

// carryEnded carries to the archive what has ended long enough ago, and lets go what was kept there long enough.
func (e *Engine) carryEnded(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case e.carry <- done:
	case <-e.stopped:
		return e.stopError()
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-e.stopped:
		return e.stopError()
	case <-ctx.Done():
		return ctx.Err()
	}
}

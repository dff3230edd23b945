package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// progress tracks the newest journal entry that has reached a stage, and the callers that wait for one, such as readers of changes
// that are not durable yet.
type progress struct {
	reached atomic.Uint64 // the newest entry that has reached the stage

	lock     sync.Mutex
	released bool
	waiting  []waiter
}

type waiter struct {
	number uint64
	done   chan struct{}
}

// wake wakes the callers that wait for entries up to reached. Call it after setting reached.
func (p *progress) wake(reached uint64) {
	p.lock.Lock()
	defer p.lock.Unlock()
	left := p.waiting[:0]
	for _, w := range p.waiting {
		if w.number <= reached {
			close(w.done)
		} else {
			left = append(left, w)
		}
	}
	clear(p.waiting[len(left):])
	p.waiting = left
}

// release wakes all waiting callers after the engine has stopped.
func (p *progress) release() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.released = true
	for _, w := range p.waiting {
		close(w.done)
	}
	p.waiting = nil
}

// again accepts waiting callers again after a release.
func (p *progress) again() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.released = false
}

// wait returns once the entry has reached the stage, or returns the reason why it may never do so.
func (p *progress) wait(ctx context.Context, number uint64, stopped func() error) error {
	w := waiter{number, make(chan struct{})}
	p.lock.Lock()
	switch {
	case p.reached.Load() >= number:
		p.lock.Unlock()
		return nil
	case p.released:
		p.lock.Unlock()
		return stopped()
	}
	p.waiting = append(p.waiting, w)
	p.lock.Unlock()
	select {
	case <-w.done:
	case <-ctx.Done():
		p.giveUp(w)
		return ctx.Err()
	}
	if p.reached.Load() < number {
		return stopped()
	}
	return nil
}

// giveUp removes a waiter, because its entry may be reached much later or never.
func (p *progress) giveUp(w waiter) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if i := slices.Index(p.waiting, w); i >= 0 {
		last := len(p.waiting) - 1
		p.waiting[i], p.waiting[last] = p.waiting[last], waiter{}
		p.waiting = p.waiting[:last]
	}
}

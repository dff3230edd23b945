package engine

import (
	"context"
	"sync"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Committed is what one journal entry says to a follower: the events of the kinds it asked for.
type Committed struct {
	Number uint64
	At     domain.Time
	Events []kernel.Emitted
}

// follower is a reader of committed events with a queue of its own, so that a slow one delays no other.
type follower struct {
	kinds kernel.KindMask
	lock  sync.Mutex
	queue []Committed
	idle  []chan struct{} // to be closed when all of the queue was given to f
	ended bool
	wake  chan struct{}
	done  chan struct{}
}

// Follow calls f, in a goroutine of its own, for every journal entry from now on that holds an event of the kinds, in
// order. The events must not be changed. f must be able to derive all its pushes from the state as well: after a
// restart events are not repeated. The returned function ends it and waits for f.
func (e *Engine) Follow(kinds kernel.KindMask, f func(Committed)) (end func()) {
	x := &follower{kinds: kinds, wake: make(chan struct{}, 1), done: make(chan struct{})}
	e.stateLock.Lock() // the kinds are read under it: from the next command on
	e.followersLock.Lock()
	e.followers = append(e.followers, x)
	e.followersLock.Unlock()
	e.stateLock.Unlock()
	go x.run(f)
	return func() {
		e.followersLock.Lock()
		for i, y := range e.followers {
			if y == x {
				e.followers = append(e.followers[:i:i], e.followers[i+1:]...)
			}
		}
		e.followersLock.Unlock()
		x.end()
	}
}

func (x *follower) run(f func(Committed)) {
	defer close(x.done)
	for range x.wake {
		x.lock.Lock()
		queue, idle, ended := x.queue, x.idle, x.ended
		x.queue, x.idle = nil, nil
		x.lock.Unlock()
		for _, c := range queue {
			f(c)
		}
		for _, waiting := range idle {
			close(waiting)
		}
		if ended {
			return
		}
	}
}

// wait returns once f has seen everything that is in the queue now.
func (x *follower) wait(ctx context.Context) error {
	seen := make(chan struct{})
	x.lock.Lock()
	x.idle = append(x.idle, seen)
	x.lock.Unlock()
	signal(x.wake)
	select {
	case <-seen:
	case <-x.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (x *follower) end() {
	x.lock.Lock()
	x.ended = true
	x.lock.Unlock()
	signal(x.wake)
	<-x.done
}

// Backlog is the number of journal entries that the slowest follower has not taken yet. A follower is never waited for, so
// nothing but its own speed bounds it.
func (e *Engine) Backlog() (most int) {
	e.followersLock.Lock()
	defer e.followersLock.Unlock()
	for _, x := range e.followers {
		x.lock.Lock()
		most = max(most, len(x.queue))
		x.lock.Unlock()
	}
	return most
}

// followed are all kinds that have a follower.
func (e *Engine) followed() kernel.KindMask {
	e.followersLock.Lock()
	defer e.followersLock.Unlock()
	var all kernel.KindMask
	for _, x := range e.followers {
		all.Add(x.kinds)
	}
	return all
}

// feed hands the events of a durable group to those who follow them.
func (e *Engine) feed(g *Group) {
	if len(g.Events) == 0 {
		return
	}
	e.followersLock.Lock()
	defer e.followersLock.Unlock()
	for _, x := range e.followers {
		var mine []kernel.Emitted
		for _, event := range g.Events {
			if x.kinds.Has(event.Event.Kind()) {
				mine = append(mine, event)
			}
		}
		if len(mine) == 0 {
			continue
		}
		x.lock.Lock()
		x.queue = append(x.queue, Committed{g.Number, g.At, mine})
		x.lock.Unlock()
		signal(x.wake)
	}
}

func (e *Engine) closeFollowers() {
	e.followersLock.Lock()
	all := e.followers
	e.followers = nil
	e.followersLock.Unlock()
	for _, x := range all {
		x.end()
	}
}

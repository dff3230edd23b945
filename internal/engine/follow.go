package engine

import (
	"context"
	"sync"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Committed holds the events of one journal entry that have a kind which the follower asked for.
type Committed struct {
	Number uint64
	At     domain.Time
	Events []kernel.Emitted
	// Gap reports that the follower missed the events of some entries up to Number, because this node received a snapshot in their place.
	// Events is empty; the follower must derive what happened from the state. The node does not decide at that time.
	Gap bool
}

// follower is a consumer of committed events. It has a queue of its own, so that a slow follower delays no other.
type follower struct {
	kinds kernel.KindMask
	lock  sync.Mutex
	queue []Committed
	idle  []chan struct{} // closed once f has received everything in the queue
	ended bool
	wake  chan struct{}
	done  chan struct{}
}

// Follow calls f, in a goroutine of its own, for every later journal entry with an event of the kinds, in order, and for every gap. f must not
// change the events. f must also be able to derive all its pushes from the state, because events are not repeated after a restart and those in
// a gap are never delivered. The returned function ends the follower and waits for f.
func (e *Engine) Follow(kinds kernel.KindMask, f func(Committed)) (end func()) {
	x := &follower{kinds: kinds, wake: make(chan struct{}, 1), done: make(chan struct{})}
	e.stateLock.Lock() // the next command reads the kinds under this lock
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

// AwaitFollowers returns once all followers have received the events of every entry that was durable at the call.
func (e *Engine) AwaitFollowers(ctx context.Context) error {
	if err := e.fed.wait(ctx, e.durable.reached.Load(), e.stopError); err != nil {
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
	return nil
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

// wait returns once f has received everything that is in the queue at the call.
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

// Backlog returns the number of journal entries in the queue of the slowest follower. The engine never waits for a follower, so only the
// follower's speed bounds it.
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

// followed returns all kinds that have a follower.
func (e *Engine) followed() kernel.KindMask {
	e.followersLock.Lock()
	defer e.followersLock.Unlock()
	var all kernel.KindMask
	if e.config.Tracing.On() {
		all = tracedKinds
	}
	for _, x := range e.followers {
		all.Add(x.kinds)
	}
	return all
}

// feed queues the events of a durable group for their followers.
func (e *Engine) feed(g *Group) {
	if len(g.Events) == 0 {
		return
	}
	e.followersLock.Lock()
	defer e.followersLock.Unlock()
	for _, x := range e.followers {
		wanted := 0
		for i := range g.Events {
			if x.kinds.Has(g.Events[i].Event.Kind()) {
				wanted++
			}
		}
		if wanted == 0 {
			continue
		}
		mine := make([]kernel.Emitted, 0, wanted)
		for _, event := range g.Events {
			if x.kinds.Has(event.Event.Kind()) {
				mine = append(mine, event)
			}
		}
		x.add(Committed{Number: g.Number, At: g.At, Events: mine})
	}
}

// feedGap tells every follower that it missed events of entries up to number.
func (e *Engine) feedGap(number uint64, at domain.Time) {
	e.followersLock.Lock()
	defer e.followersLock.Unlock()
	for _, x := range e.followers {
		x.add(Committed{Number: number, At: at, Gap: true})
	}
}

func (x *follower) add(c Committed) {
	x.lock.Lock()
	x.queue = append(x.queue, c)
	x.lock.Unlock()
	signal(x.wake)
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

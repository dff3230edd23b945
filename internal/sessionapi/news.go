package sessionapi

import (
	"context"
	"sync"

	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/engine"
)

// news wakes calls that wait for the end of a placement or for changes of a player session or a ticket. It follows the engine only after
// the first waiting call, so that commits cost no more in installations without such calls.
type news struct {
	engine *engine.Engine

	mu       sync.Mutex
	waiting  map[any]map[chan struct{}]struct{} // by placement or match id (string), domain.PlayerSessionID, matchmaking.TicketNo
	unfollow func()
}

// until returns once settled is true. It checks again at each change of the key, and when early is closed.
func (n *news) until(ctx context.Context, key any, early <-chan struct{}, settled func() (bool, error)) error {
	woken := make(chan struct{}, 1)
	n.add(key, woken)
	defer n.remove(key, woken)
	for {
		if done, err := settled(); done || err != nil {
			return err
		}
		select {
		case <-woken:
		case <-early:
		case <-n.engine.Stopped():
			return engine.ErrStopped
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (n *news) add(key any, woken chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.unfollow == nil {
		n.waiting = map[any]map[chan struct{}]struct{}{}
		n.unfollow = n.engine.Follow(kernel.Kinds(new(hosting.PlacementEnded), new(hosting.PlayerAccepted), new(hosting.PlayerEnded),
			new(matchmaking.TicketEnded), new(matchmaking.MatchProposed), new(matchmaking.MatchDropped), new(matchmaking.MatchCompleted)), n.committed)
	}
	if n.waiting[key] == nil {
		n.waiting[key] = map[chan struct{}]struct{}{}
	}
	n.waiting[key][woken] = struct{}{}
}

func (n *news) remove(key any, woken chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting[key] == nil {
		return
	}
	delete(n.waiting[key], woken)
	if len(n.waiting[key]) == 0 {
		delete(n.waiting, key)
	}
}

func (n *news) committed(c engine.Committed) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.Gap {
		for key := range n.waiting {
			n.wake(key)
		}
	}
	for _, e := range c.Events {
		switch e := e.Event.(type) {
		case *hosting.PlacementEnded:
			n.wake(e.ID)
		case *hosting.PlayerAccepted:
			n.wake(e.PlayerSession)
		case *hosting.PlayerEnded:
			n.wake(e.PlayerSession)
		case *matchmaking.TicketEnded:
			n.wake(e.Ticket)
		case *matchmaking.MatchProposed:
			for _, s := range e.Match.Seats {
				n.wake(matchmaking.TicketNo(s.Ticket))
			}
		case *matchmaking.MatchDropped:
			n.wake(e.ID)
		case *matchmaking.MatchCompleted:
			n.wake(e.ID)
		}
	}
}

func (n *news) wake(key any) {
	for woken := range n.waiting[key] {
		select {
		case woken <- struct{}{}:
		default: // it is already going to check
		}
	}
}

func (n *news) close() {
	n.mu.Lock()
	unfollow := n.unfollow
	n.mu.Unlock()
	if unfollow != nil {
		unfollow()
	}
}

// Package matchmaker runs the matchers: one for each configuration, which follows committed events. Their
// proposals go to the core as commands, and the core checks them again.
//
// Each configuration has a goroutine of its own, so that a slow rule set does not delay the others; how many of
// them search for matches at a time is bounded.
package matchmaker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/engine"
)

// Config is what a Runner needs.
type Config struct {
	Engine    *engine.Engine
	Log       *slog.Logger
	PassEvery time.Duration // shortest time between two passes of a configuration; 0: DefaultPassEvery
	Virtual   bool          // the engine's clock is moved by hand, so timers must not be used
	Busy      int           // configurations that search for matches at a time; 0: one less than there are processors
}

// DefaultPassEvery collects the tickets that arrive at the same time, and is too short for players to notice. B112.
const DefaultPassEvery = 100 * time.Millisecond

// Runner is the running matchers.
type Runner struct {
	config   Config
	ctx      context.Context
	cancel   context.CancelFunc
	unfollow func()
	done     sync.WaitGroup
	busy     chan struct{} // a place for each configuration that searches for matches
	loaded   chan struct{}
	idle     idleTurns

	mu    sync.RWMutex
	lanes map[string]*lane  // by configuration
	where map[uint64]string // the configuration of each ticket that waits, by number
}

// Start begins to search for matches among the waiting and new tickets.
func Start(c Config) *Runner {
	c.PassEvery = cmp.Or(c.PassEvery, DefaultPassEvery)
	c.Busy = cmp.Or(c.Busy, max(1, runtime.GOMAXPROCS(0)-1))
	r := &Runner{
		config: c, busy: make(chan struct{}, c.Busy), loaded: make(chan struct{}), lanes: map[string]*lane{}, where: map[uint64]string{},
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	// New events wait until the present tickets are loaded; some events may then come twice, which does no harm.
	r.unfollow = c.Engine.Follow(Followed(), func(committed engine.Committed) {
		select {
		case <-r.loaded:
		case <-r.ctx.Done():
			return
		}
		for _, e := range committed.Events {
			r.take(e.Event)
		}
	})
	r.done.Go(func() {
		if err := r.load(); err != nil && r.ctx.Err() == nil {
			c.Log.Error("the matchers could not start: tickets are not matched until the service restarts", "error", err)
			return
		}
		close(r.loaded)
	})
	return r
}

// Followed are the events that a Runner follows.
func Followed() kernel.KindMask {
	return kernel.Kinds(new(matchmaking.ConfigurationChanged), new(matchmaking.ConfigurationRemoved), new(matchmaking.TicketStarted), new(matchmaking.TicketEnded),
		new(matchmaking.MatchProposed), new(matchmaking.MatchDropped))
}

// Close stops the search for matches.
func (r *Runner) Close() {
	r.cancel()
	r.unfollow()
	r.done.Wait()
}

// loadStep is how many records one read of the state examines.
const loadStep = 512

// load adds all waiting tickets.
func (r *Runner) load() error {
	for after := ""; ; {
		var page []matchmaking.Configuration
		err := r.config.Engine.Read(r.ctx, func(v *cell.View) error { page = v.Configurations(after, "", 100); return nil })
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			r.configure(&page[i])
		}
		after = page[len(page)-1].Name
	}
	return r.eachWaiting(func(t *matchmaking.Ticket) { r.start(t) })
}

// eachWaiting yields all waiting tickets, some at a time.
func (r *Runner) eachWaiting(yield func(*matchmaking.Ticket)) error {
	for at := matchmaking.TicketRef(0); ; {
		var some []matchmaking.Ticket
		err := r.config.Engine.Read(r.ctx, func(v *cell.View) error { some, at = v.WaitingTickets(at, loadStep); return nil })
		if err != nil {
			return err
		}
		for i := range some {
			yield(&some[i])
		}
		if at == 0 {
			return nil
		}
	}
}

// take handles an event.
func (r *Runner) take(event kernel.Event) {
	switch e := event.(type) {
	case *matchmaking.ConfigurationChanged:
		r.configure(&e.Configuration)
	case *matchmaking.ConfigurationRemoved:
		r.remove(e.Name)
	case *matchmaking.TicketStarted:
		r.start(&e.Ticket)
	case *matchmaking.TicketEnded:
		r.forget(uint64(e.Ticket), true)
	case *matchmaking.MatchProposed:
		for _, s := range e.Match.Seats {
			r.forget(s.Ticket, false)
		}
	case *matchmaking.MatchDropped:
		for _, no := range e.Returned {
			r.comeBack(uint64(no))
		}
	}
}

// configure begins a configuration's lane, or informs it that the configuration has changed.
func (r *Runner) configure(c *matchmaking.Configuration) {
	r.mu.Lock()
	x, ok := r.lanes[c.Name]
	if !ok {
		x = newLane(r, c.Name)
		r.lanes[c.Name] = x
		r.done.Go(func() { x.run(r.ctx) })
	}
	r.mu.Unlock()
	x.tell(word{kind: configured})
}

func (r *Runner) remove(name string) {
	r.mu.Lock()
	x := r.lanes[name]
	delete(r.lanes, name)
	r.mu.Unlock()
	if x != nil {
		x.tell(word{kind: removed})
	}
}

func (r *Runner) start(t *matchmaking.Ticket) {
	r.mu.Lock()
	x := r.lanes[t.Configuration]
	if x != nil {
		r.where[t.No] = t.Configuration
	}
	r.mu.Unlock()
	if x != nil {
		x.tell(word{kind: started, ticket: *t})
	}
}

// forget removes a ticket from its pool; the explanation of an ended one is kept.
func (r *Runner) forget(no uint64, over bool) {
	r.mu.Lock()
	x := r.lanes[r.where[no]]
	delete(r.where, no)
	r.mu.Unlock()
	kind := proposed
	if over {
		kind = ended
	}
	if x != nil {
		x.tell(word{kind: kind, no: no})
	}
}

// comeBack returns a ticket to its pool when its match was dropped.
func (r *Runner) comeBack(no uint64) {
	var t matchmaking.TicketView
	err := r.config.Engine.Read(r.ctx, func(v *cell.View) error { t, _ = v.TicketNo(no); return nil })
	if err == nil && t.No == no && t.Status.Waits() {
		r.start(&t.Ticket)
	}
}

// find reads a configuration with its compiled rule set.
func (r *Runner) find(name string) (c matchmaking.Configuration, rules *ruleset.RuleSet, err error) {
	err = r.config.Engine.Read(r.ctx, func(v *cell.View) error {
		c, _ = v.Configuration(name)
		rules = v.CompiledRuleSet(c.RuleSet)
		return nil
	})
	return c, rules, err
}

// waiting reads those of the given tickets that wait now.
func (r *Runner) waiting(numbers []uint64) (tickets []matchmaking.Ticket, err error) {
	err = r.config.Engine.Read(r.ctx, func(v *cell.View) error {
		for _, no := range numbers {
			if t, ok := v.TicketNo(no); ok && t.Status.Waits() {
				tickets = append(tickets, t.Ticket)
			}
		}
		return nil
	})
	return tickets, err
}

// newID makes the id of a match.
func newID() domain.UUID { return domain.UUID(uuid.New()) }

// over reports whether an error means that the engine has stopped or the context has ended.
func over(err error) bool {
	return errors.Is(err, engine.ErrStopped) || errors.Is(err, context.Canceled)
}

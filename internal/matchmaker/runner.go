// Package matchmaker runs the matchers: one for each configuration, which follows committed events. Their
// proposals go to the core as commands, and the core checks them again.
//
// Each configuration has a goroutine of its own, so that a slow rule set does not delay the others. The number of configurations that search for
// matches at the same time is bounded.
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
	"github.com/musterhq/muster/internal/live"
)

// Config configures a Runner.
type Config struct {
	Engine    *engine.Engine
	Log       *slog.Logger
	PassEvery time.Duration // minimum interval between two passes of a configuration; 0: DefaultPassEvery
	Virtual   bool          // the engine's clock is moved manually, so timers must not be used
	Busy      int           // most configurations that search at a time; 0: one less than there are processors
}

// DefaultPassEvery is long enough to collect tickets that arrive together, and too short for players to notice. B112.
const DefaultPassEvery = 100 * time.Millisecond

// Runner runs the matchers while this node leads. Its methods may be called at any time; while another node leads, they return nothing.
type Runner struct {
	config    Config
	passEvery live.Value[time.Duration]
	idle      idleTurns

	mu  sync.RWMutex
	now *office // nil while another node leads
}

// office is the running matchers, from Lead to Rest.
type office struct {
	runner   *Runner
	config   *Config
	ctx      context.Context
	cancel   context.CancelFunc
	unfollow func()
	done     sync.WaitGroup
	busy     chan struct{} // a slot for each configuration that may search at a time
	loaded   chan struct{}

	mu    sync.RWMutex
	lanes map[string]*lane  // by configuration
	where map[uint64]string // the configuration of each waiting ticket, by number
}

// New returns a Runner that does not search yet; see Lead.
func New(c Config) *Runner {
	c.PassEvery = cmp.Or(c.PassEvery, DefaultPassEvery)
	c.Busy = cmp.Or(c.Busy, max(1, runtime.GOMAXPROCS(0)-1))
	r := &Runner{config: c}
	r.passEvery.Set(c.PassEvery)
	return r
}

// SetPassEvery changes the minimum interval between two passes of a configuration, from its next pass on.
func (r *Runner) SetPassEvery(every time.Duration) { r.passEvery.Set(every) }

// Lead starts to search for matches among the waiting and new tickets.
func (r *Runner) Lead() {
	o := &office{
		runner: r, config: &r.config, busy: make(chan struct{}, r.config.Busy), loaded: make(chan struct{}), lanes: map[string]*lane{}, where: map[uint64]string{},
	}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	// New events wait until the current tickets are loaded, so some events may be applied twice, which is harmless. There is no gap, because a
	// leader misses no events.
	o.unfollow = r.config.Engine.Follow(Followed(), func(committed engine.Committed) {
		select {
		case <-o.loaded:
		case <-o.ctx.Done():
			return
		}
		for _, e := range committed.Events {
			o.take(e.Event)
		}
	})
	o.done.Go(func() {
		if err := o.load(); err != nil {
			if !over(err) {
				r.config.Log.Error("the matchers could not start: tickets are not matched until the service restarts", "error", err)
			}
			return
		}
		close(o.loaded)
	})
	r.mu.Lock()
	r.now = o
	r.mu.Unlock()
}

// Rest stops searching for matches. Lead starts again, with the tickets in the state.
func (r *Runner) Rest() {
	r.mu.Lock()
	o := r.now
	r.now = nil
	r.mu.Unlock()
	if o == nil {
		return
	}
	o.cancel()
	o.unfollow()
	o.done.Wait()
}

// office returns the running matchers, or nil.
func (r *Runner) office() *office {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.now
}

// Followed returns the kinds of events that a Runner follows.
func Followed() kernel.KindMask {
	return kernel.Kinds(new(matchmaking.ConfigurationChanged), new(matchmaking.ConfigurationRemoved), new(matchmaking.TicketStarted), new(matchmaking.TicketEnded),
		new(matchmaking.MatchProposed), new(matchmaking.MatchDropped))
}

// loadStep is how many records one read of the state examines.
const loadStep = 512

// load adds all waiting tickets.
func (o *office) load() error {
	for after := ""; ; {
		var page []matchmaking.Configuration
		err := o.config.Engine.ReadHere(o.ctx, func(v *cell.View) error { page = v.Configurations(after, "", 100); return nil })
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			o.configure(&page[i])
		}
		after = page[len(page)-1].Name
	}
	return o.eachWaiting(o.start)
}

// eachWaiting yields all waiting tickets, in batches.
func (o *office) eachWaiting(yield func(*matchmaking.Ticket)) error {
	for at := matchmaking.TicketRef(0); ; {
		var some []matchmaking.Ticket
		err := o.config.Engine.ReadHere(o.ctx, func(v *cell.View) error { some, at = v.WaitingTickets(at, loadStep); return nil })
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
func (o *office) take(event kernel.Event) {
	switch e := event.(type) {
	case *matchmaking.ConfigurationChanged:
		o.configure(&e.Configuration)
	case *matchmaking.ConfigurationRemoved:
		o.remove(e.Name)
	case *matchmaking.TicketStarted:
		o.start(&e.Ticket)
	case *matchmaking.TicketEnded:
		o.forget(uint64(e.Ticket), ended)
	case *matchmaking.MatchProposed:
		for _, s := range e.Match.Seats {
			o.forget(s.Ticket, proposed)
		}
	case *matchmaking.MatchDropped:
		o.comeBack(e.Returned)
	}
}

// configure starts a configuration's lane, or tells it that the configuration has changed.
func (o *office) configure(c *matchmaking.Configuration) {
	o.mu.Lock()
	x, ok := o.lanes[c.Name]
	if !ok {
		x = newLane(o, c.Name)
		o.lanes[c.Name] = x
		o.done.Go(func() { x.run(o.ctx) })
	}
	o.mu.Unlock()
	x.tell(word{kind: configured})
}

func (o *office) remove(name string) {
	o.mu.Lock()
	x := o.lanes[name]
	delete(o.lanes, name)
	o.mu.Unlock()
	if x != nil {
		x.tell(word{kind: removed})
	}
}

func (o *office) start(t *matchmaking.Ticket) {
	o.mu.Lock()
	x := o.lanes[t.Configuration]
	if x != nil {
		o.where[t.No] = t.Configuration
	}
	o.mu.Unlock()
	if x != nil {
		x.tell(word{kind: started, ticket: *t})
	}
}

// forget removes a ticket that was proposed or has ended from its pool.
func (o *office) forget(no uint64, why wordKind) {
	o.mu.Lock()
	x := o.lanes[o.where[no]]
	delete(o.where, no)
	o.mu.Unlock()
	if x != nil {
		x.tell(word{kind: why, no: no})
	}
}

// comeBack returns tickets to their pool after their match was dropped.
func (o *office) comeBack(returned []matchmaking.TicketNo) {
	numbers := make([]uint64, len(returned))
	for i, no := range returned {
		numbers[i] = uint64(no)
	}
	back, err := o.waiting(numbers)
	if err != nil {
		return // the office ends
	}
	for i := range back {
		o.start(&back[i])
	}
}

// find reads a configuration with its compiled rule set.
func (o *office) find(name string) (c matchmaking.Configuration, rules *ruleset.RuleSet, err error) {
	err = o.config.Engine.ReadHere(o.ctx, func(v *cell.View) error {
		c, _ = v.Configuration(name)
		rules = v.CompiledRuleSet(c.RuleSet)
		return nil
	})
	return c, rules, err
}

// waiting returns those of the given tickets that are waiting now.
func (o *office) waiting(numbers []uint64) (tickets []matchmaking.Ticket, err error) {
	err = o.config.Engine.ReadHere(o.ctx, func(v *cell.View) error {
		tickets = nil
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

// over reports whether an error means that the office has ended, or the engine has stopped.
func over(err error) bool {
	return errors.Is(err, engine.ErrStopped) || errors.Is(err, engine.ErrNotLeading) || errors.Is(err, context.Canceled)
}

package matchmaker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
)

// lane handles one configuration: one goroutine updates the pool and searches for matches, and another one passes the proposals to the
// core.
type lane struct {
	office *office
	name   string
	wake   chan struct{}
	found  chan round
	over   chan struct{}  // closed when the lane has ended
	asked  chan chan bool // requests a pass now; the channel receives whether the pass produced commands

	unbrought sync.WaitGroup // passes whose commands the core may not have executed yet

	oldest atomic.Pointer[oldest]

	inboxLock sync.Mutex
	inbox     []word

	mu   sync.Mutex // held for a pass
	pool *Pool      // nil: there is no rule set yet
	took time.Duration
	ends lastEnds
	past map[string]RuleEvaluations      // by rule, for the tickets that left earlier pools
	lost atomic.Uint64                   // commands with refused proposals
	why  [domain.Stale + 1]atomic.Uint64 // refused proposals, by reason
}

// word is one message to a lane.
type word struct {
	kind   wordKind
	ticket matchmaking.Ticket // new
	no     uint64
	nos    []uint64 // refused
}

type wordKind uint8

const (
	configured wordKind = iota + 1
	removed
	started
	proposed
	ended
	refused
)

// round holds the commands of a pass for the core.
type round struct {
	news    []kernel.Command
	matches []*matchmaking.ProposeMatches
}

func newLane(o *office, name string) *lane {
	return &lane{office: o, name: name, wake: make(chan struct{}, 1), found: make(chan round, 1), asked: make(chan chan bool), over: make(chan struct{})}
}

func (l *lane) tell(w word) {
	l.inboxLock.Lock()
	l.inbox = append(l.inbox, w)
	l.inboxLock.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // already awake
	}
}

// run runs the lane until ctx ends or the configuration is removed.
func (l *lane) run(ctx context.Context) {
	defer close(l.over)
	bringing := make(chan struct{})
	go func() {
		defer close(bringing)
		for x := range l.found {
			l.bring(ctx, x)
			l.unbrought.Done()
		}
	}()
	defer func() {
		close(l.found)
		<-bringing
	}()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	slots := time.NewTicker(slotsEvery)
	defer slots.Stop()
	planned := time.Time{} // of the next pass; zero: none is planned
	for {
		if planned.IsZero() {
			timer.Reset(time.Hour)
		} else {
			timer.Reset(time.Until(planned))
		}
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
			more, err := l.hear()
			switch {
			case err != nil && over(err):
				return
			case err != nil:
				l.office.config.Log.Error("the matcher of a configuration stopped: its tickets are not matched until the service restarts", "configuration", l.name, "error", err)
				return
			case !more:
				return
			}
			if planned.IsZero() || l.dirty() && planned.After(time.Now().Add(l.office.runner.passEvery.Get())) {
				planned = l.next(time.Now())
			}
		case <-slots.C:
			if l.readSlots(ctx) && (planned.IsZero() || planned.After(time.Now().Add(l.office.runner.passEvery.Get()))) {
				planned = l.next(time.Now())
			}
		case answer := <-l.asked:
			said, ok := l.passNow(ctx)
			answer <- said
			if !ok {
				return
			}
			planned = l.next(time.Now())
		case <-timer.C:
			if planned.IsZero() {
				continue
			}
			began := time.Now()
			if !l.pass(ctx) {
				return
			}
			planned = l.next(began)
		}
	}
}

// slotsEvery is how often a lane with backfills reads how many players their game sessions can take, because a seat that becomes free
// causes no event about a ticket.
const slotsEvery = time.Second

// readSlots updates the pool with the free seats of its backfills' game sessions, and reports whether that requires a pass.
func (l *lane) readSlots(ctx context.Context) (asks bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pool == nil || len(l.pool.backfills) == 0 {
		return false
	}
	_ = l.office.config.Engine.ReadHere(ctx, func(v *cell.View) error { l.pool.Slots(v.FreeSlots); return nil }) // the core checks it again
	return l.pool.matcher.Dirty()
}

// next returns when the next pass is due after one that started at a time; zero if only an event can change the result.
func (l *lane) next(began time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.pool == nil:
		return time.Time{}
	case l.pool.dirty():
		return began.Add(l.office.runner.passEvery.Get())
	}
	var planned time.Time
	if l.pool.matcher.Unfinished() {
		planned = l.office.runner.idle.reserve(began.Add(l.office.runner.passEvery.Get()), l.took)
	}
	now := domain.TimeOf(l.office.config.Engine.Now())
	at, ok := l.pool.matcher.Due(now)
	if !ok {
		return planned
	}
	due := began.Add(max(at.Sub(now), l.office.runner.passEvery.Get()))
	if l.office.config.Virtual {
		due = began.Add(l.office.runner.passEvery.Get()) // passEvery may have been changed
	}
	if planned.IsZero() || due.Before(planned) {
		return due
	}
	return planned
}

func (l *lane) dirty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pool != nil && l.pool.dirty()
}

// hear handles the messages to the lane. It reports false if the configuration was deleted.
func (l *lane) hear() (bool, error) {
	l.inboxLock.Lock()
	words := l.inbox
	l.inbox = nil
	l.inboxLock.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range words {
		w := &words[i]
		switch w.kind {
		case removed:
			return false, nil
		case configured:
			if err := l.configure(); err != nil {
				return false, err
			}
			continue
		}
		if l.pool == nil {
			continue
		}
		switch w.kind {
		case started:
			l.pool.Add(&w.ticket)
		case ended:
			l.keepEnd(w.no)
			l.pool.Remove(w.no)
		case proposed:
			l.pool.Remove(w.no)
		case refused:
			// The current state is correct, and later changes of it arrive after this message.
			back, err := l.office.waiting(w.nos)
			if err != nil {
				return false, err
			}
			for j := range back {
				if back[j].Configuration == l.name {
					l.pool.Add(&back[j])
				}
			}
		}
	}
	return true, nil
}

// configure creates a pool that fits the lane's configuration, with all its waiting tickets.
func (l *lane) configure() error {
	c, rules, err := l.office.find(l.name)
	if err != nil || rules == nil || l.pool != nil && l.pool.Fits(&c) {
		return err
	}
	first := l.pool == nil
	l.past = l.evaluations()
	l.pool = NewPool(c, rules)
	if first {
		return nil // its tickets are about to arrive
	}
	return l.office.eachWaiting(func(t *matchmaking.Ticket) {
		if t.Configuration == l.name {
			l.pool.Add(t)
		}
	})
}

// pass searches for matches once. It reports false if the runner ends.
func (l *lane) pass(ctx context.Context) bool {
	o := l.office
	select {
	case o.busy <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	x := l.look(ctx)
	<-o.busy
	if len(x.news) == 0 && len(x.matches) == 0 {
		return true
	}
	l.unbrought.Add(1)
	select {
	case l.found <- x:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *lane) look(ctx context.Context) round {
	l.readSlots(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pool == nil {
		return round{}
	}
	began := time.Now()
	x := round{news: l.pool.News(), matches: l.pool.Pass(domain.TimeOf(l.office.config.Engine.Now()), newID)}
	l.took = time.Since(began)
	return x
}

// bringMost is how many commands of a lane may be in progress at a time.
const bringMost = 4

// bring sends a pass's commands to the core. Their order does not matter, because proposals are independent.
func (l *lane) bring(ctx context.Context, x round) {
	for _, cmd := range x.news {
		if err := l.do(ctx, cmd); err != nil && over(err) {
			return
		}
	}
	places := make(chan struct{}, bringMost)
	var all sync.WaitGroup
	for _, cmd := range x.matches {
		places <- struct{}{}
		all.Go(func() {
			err := l.do(ctx, cmd)
			<-places
			if err != nil && over(err) {
				return
			}
			if back := Refused(cmd, err); len(back) > 0 {
				l.lost.Add(1)
				l.countRefused(cmd, err)
				l.tell(word{kind: refused, nos: back})
			}
		})
	}
	all.Wait()
}

// countRefused counts the proposals that did not become matches.
func (l *lane) countRefused(cmd *matchmaking.ProposeMatches, err error) {
	if refusal, ok := errors.AsType[*domain.Refusal](err); ok {
		l.why[refusal.Reason].Add(uint64(len(cmd.Proposals)))
		return
	}
	for _, refusal := range cmd.Refused {
		if refusal != nil {
			l.why[refusal.Reason].Add(1)
		}
	}
}

// do executes a command; it retries while the core is overloaded.
func (l *lane) do(ctx context.Context, cmd kernel.Command) error {
	for {
		err := l.office.config.Engine.Do(ctx, cmd)
		if !domain.IsRefused(err, domain.Overloaded) {
			return err
		}
		select {
		case <-time.After(l.office.runner.passEvery.Get()):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

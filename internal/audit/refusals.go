package audit

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Limits on entries about refused attempts at each node. Attempts with the same principal, door, operation and refusal share an entry with a count.
// Beyond groupsMax such groups, all further ones of a door share one entry. So a flood of attempts costs no more than these entries.
const (
	groupsMax = 64

	// For callers with valid credentials: this many entries at once, and then one in each period.
	callersBurst  = 64
	callersPeriod = time.Minute
	// For all attempts without valid credentials.
	strangersBurst  = 8
	strangersPeriod = 10 * time.Minute

	noteEvery = 2 * time.Second
)

// Engine is what the log needs of the engine.
type Engine interface {
	Do(ctx context.Context, cmd kernel.Command) error
}

// Log records refused attempts, and operations outside of the state. A nil Log records nothing. Its methods are safe for concurrent use.
type Log struct {
	engine Engine
	log    *slog.Logger
	now    func() time.Time

	lock               sync.Mutex
	callers, strangers groups

	later string // file of operations that wait to be recorded; empty: none do

	cancel context.CancelFunc
	done   sync.WaitGroup
}

// group is the key of attempts that are counted together.
type group struct{ principal, door, operation, refused string }

type groups struct {
	waiting map[group]*audit.Refusal
	burst   float64
	period  time.Duration
	tokens  float64
	filled  time.Time
}

// NewLog starts to record, first the operations in the data directory (see Later). Close must be called before the engine is closed.
func NewLog(e Engine, dir string, now func() time.Time, log *slog.Logger) *Log {
	ctx, cancel := context.WithCancel(context.Background())
	l := &Log{
		engine: e, log: log, now: now, cancel: cancel, later: filepath.Join(dir, laterFile),
		callers:   groups{waiting: map[group]*audit.Refusal{}, burst: callersBurst, period: callersPeriod, tokens: callersBurst, filled: now()},
		strangers: groups{waiting: map[group]*audit.Refusal{}, burst: strangersBurst, period: strangersPeriod, tokens: strangersBurst, filled: now()},
	}
	l.done.Go(func() { l.run(ctx) })
	return l
}

// Close records as much as the limits allow, and stops.
func (l *Log) Close() {
	if l == nil {
		return
	}
	l.cancel()
	l.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), noteEvery)
	defer cancel()
	l.Note(ctx)
}

// Refused counts a refusal of the operation whose origin is in the context. It ignores errors that are not a *domain.Refusal, because their outcome
// is unknown or the service has failed.
func (l *Log) Refused(ctx context.Context, err error) {
	refusal, ok := errors.AsType[*domain.Refusal](err)
	if by, given := From(ctx); ok && given {
		l.RefusedAs(by, refusal.Reason.String())
	}
}

// RefusedAs counts a refusal whose text the door chooses, from a small fixed set.
func (l *Log) RefusedAs(by Origin, refused string) {
	if l != nil {
		l.count(&l.callers, by, refused)
	}
}

// SignInFailed counts an attempt without valid credentials. key is the id of the access key that it named, if there is one with that id.
func (l *Log) SignInFailed(door, address, key, reason string) {
	if l != nil {
		l.count(&l.strangers, Origin{Principal: key, Door: door, Address: address, Operation: "sign-in"}, reason)
	}
}

func (l *Log) count(g *groups, by Origin, refused string) {
	at := domain.TimeOf(l.now())
	l.lock.Lock()
	defer l.lock.Unlock()
	key := group{by.Principal, by.Door, by.Operation, refused}
	x := g.waiting[key]
	if x == nil && len(g.waiting) >= groupsMax {
		by, refused = Origin{Door: by.Door, Operation: "several"}, "several"
		key = group{door: by.Door, operation: "several", refused: refused}
		x = g.waiting[key]
	}
	if x == nil {
		x = &audit.Refusal{By: by.Cut(), Refused: refused, First: at}
		g.waiting[key] = x
	}
	x.Count++
	x.Last = at
}

func (l *Log) run(ctx context.Context) {
	every := time.NewTicker(noteEvery)
	defer every.Stop()
	for {
		l.recordLater(ctx)
		select {
		case <-every.C:
			l.Note(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Note records the counted attempts as far as the limits allow. The others stay counted.
func (l *Log) Note(ctx context.Context) {
	for _, g := range []*groups{&l.callers, &l.strangers} {
		some := l.take(g)
		if len(some) == 0 {
			continue
		}
		if err := l.engine.Do(Without(ctx), &audit.NoteRefusals{Refusals: some}); err != nil {
			l.log.Debug("refused attempts could not be recorded in the audit log: they are recorded later", "error", err)
			l.giveBack(g, some)
		}
	}
}

// take removes the groups that may be recorded now, the oldest first.
func (l *Log) take(g *groups) (some []audit.Refusal) {
	l.lock.Lock()
	defer l.lock.Unlock()
	now := l.now()
	g.tokens = min(g.burst, g.tokens+max(0, now.Sub(g.filled).Seconds()/g.period.Seconds()))
	g.filled = now
	keys := make([]group, 0, len(g.waiting))
	for key := range g.waiting {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b group) int {
		return cmp.Or(cmp.Compare(g.waiting[a].First, g.waiting[b].First), cmp.Compare(a.principal, b.principal), cmp.Compare(a.operation, b.operation), cmp.Compare(a.refused, b.refused))
	})
	for _, key := range keys {
		if g.tokens < 1 {
			break
		}
		g.tokens--
		some = append(some, *g.waiting[key])
		delete(g.waiting, key)
	}
	return some
}

func (l *Log) giveBack(g *groups, some []audit.Refusal) {
	l.lock.Lock()
	defer l.lock.Unlock()
	for _, r := range some {
		key := group{r.By.Principal, r.By.Door, r.By.Operation, r.Refused}
		if x := g.waiting[key]; x != nil {
			x.Count += r.Count
			x.First = min(x.First, r.First)
		} else {
			g.waiting[key] = &r
		}
		g.tokens = min(g.burst, g.tokens+1)
	}
}

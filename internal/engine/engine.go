// Package engine gives commands an order and makes them durable.
//
//	callers → queue → decide → the group being built → commitGroups → journal
//	                    ↓                                   ↓
//	                  cell (the state)           answers, readers, followers
//
// # Order
//
// One goroutine, decide, executes commands in the order of the queue. Each transaction is applied to the cell at once and appended
// to the group that is being built, so the next command sees it. The order of execution is the order in the journal: groups are numbered
// without gaps, and a group has whole transactions in their order. No other goroutine changes the cell. Readers share stateLock and wait
// for at most lockStep commands.
//
// # Group commit
//
// Another goroutine, commitGroups, takes the group and appends it to the journal with one sync. Meanwhile decide fills the next one.
// So at most one append is in progress, and the size of groups regulates itself: commands that arrive during a sync share the next one,
// and a command on an idle machine is synced alone. On a busy machine a small group waits up to gatherWait for further commands. Two
// limits bound the backlog while the disk hangs: decide stops at groupBytesMax, and the queue refuses at QueueMax.
//
// # When an answer leaves
//
// No answer contains a change that could still be lost:
//
//   - A command that changed something is answered when its group is durable.
//   - A command that changed nothing, or was refused, may have read changes that are not durable yet. It waits with the group being
//     built. If that group stays empty, TakeIdle answers it: commitGroups appends one group at a time, so when it finds nothing to
//     take, everything before is durable. It is answered at once only if no group is being built or appended.
//   - A read stores the number of the newest journal entry that it read (View.Seen) and waits until that is durable.
//
// # Followers
//
// A follower gets the events of durable groups, each group once and in order. It has a goroutine and a queue of its own, and the engine
// never waits for it; Backlog is the queue of the slowest. Callers are answered first, so an answer may arrive before the push that
// follows from the same command. After a restart no event is repeated: a follower derives what it still owes from the state.
//
// # Snapshots
//
// The state is frozen in the instant at which a group is taken, when the next one is still empty: it is exactly the state after that
// group. It is written to the disk once the group is durable, while appends continue, and then the journal before it is trimmed.
//
// # Failure
//
// A failed append is final. How much of it is durable is unknown, so the state in memory beyond the last durable group is void: every
// waiting command gets ErrStopped, which means that its outcome is unknown, and so does a read that saw later changes. A new engine
// starts from the journal. While the owner reports a shortage of space (Config.Short), changes are refused before they are decided, so
// that none has to fail. The journal ensures that only one engine has it open.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	crand "crypto/rand"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/journal"
)

// ErrStopped is the error of commands and reads after the engine has stopped. It wraps the cause.
var ErrStopped = errors.New("the engine has stopped")

// Config has the parts of an engine. The caller closes Journal and Archive after Close.
type Config struct {
	Journal journal.Journal
	Archive archive.Archive
	Cell    cell.Config
	Log     *slog.Logger

	Now           func() time.Time // nil: the wall clock
	Clock         *Clock           // replaces Now by a clock that only Advance moves; nil: none
	SnapshotEvery int64            // bytes of journal after which the next snapshot is taken; 0: DefaultSnapshotEvery
	EndedLinger   time.Duration    // how long ended records stay in memory; 0: DefaultEndedLinger
	Retention     time.Duration    // how long the archive keeps them; 0: DefaultRetention
	Short         func() error     // why new changes are refused for now, such as a full disk; nil: never
	// Loaded checks the loaded state before anything is appended. Its error ends Open. nil: no check.
	Loaded   func(v *cell.View) error
	QueueMax int // commands that may wait; more are refused as Overloaded; 0: DefaultQueueMax
}

// Defaults of a Config.
const (
	DefaultSnapshotEvery = 128 << 20
	DefaultEndedLinger   = 20 * time.Second
	DefaultRetention     = 30 * 24 * time.Hour
	DefaultQueueMax      = 100_000
)

func (c *Config) setDefaults() {
	orDefault(&c.SnapshotEvery, DefaultSnapshotEvery)
	orDefault(&c.EndedLinger, DefaultEndedLinger)
	orDefault(&c.Retention, DefaultRetention)
	orDefault(&c.QueueMax, DefaultQueueMax)
	if c.Clock != nil {
		c.Now = c.Clock.Now
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Short == nil {
		c.Short = func() error { return nil }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

func orDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// Engine is a running cell.
type Engine struct {
	config Config
	log    *slog.Logger

	queueLock sync.Mutex
	queue     []*Call
	closed    bool          // no more commands
	wake      chan struct{} // something is in the queue, or Poke

	stateLock sync.RWMutex
	seq       *Sequencer
	poked     bool // a Tick must run, regardless of the plan

	commit  chan struct{} // the group being built is not empty
	taken   chan struct{} // the group was taken: there is room for more
	decided chan struct{} // closed when no more commands are decided
	durable progress
	fed     progress // to followers

	advancing sync.Mutex
	besides   []Beside
	carry     chan chan struct{} // asks for a pass over the ended records, after which the channel in it is closed

	followersLock sync.Mutex
	followers     []*follower

	snapshots  chan *pendingSnapshot
	saving     atomic.Bool  // a snapshot is being saved
	freezeTook atomic.Int64 // how long the last one stopped writers, in nanoseconds

	metrics   *metrics
	onRefusal atomic.Pointer[func(kernel.Command, *domain.Refusal)]

	failure atomic.Pointer[error]
	stopped chan struct{} // closed once failed or closed
	stop    sync.Once
	done    sync.WaitGroup
	cancel  context.CancelFunc
}

var calls = sync.Pool{New: func() any { return newCall(nil) }}

func newCall(cmd kernel.Command) *Call { return &Call{Cmd: cmd, done: make(chan struct{}, 1)} }

// groupBytesMax is the size of a group from which no more commands are added; while an append hangs, they wait. The journal takes 64 MiB,
// far more than this and the largest command.
const groupBytesMax = 8 << 20

// lockStep is the most commands under one lock of the state, which bounds how long readers wait.
const lockStep = 64

// Open loads the cell from the journal and starts it.
func Open(ctx context.Context, config Config) (*Engine, error) {
	config.setDefaults()
	c, last, unsaved, err := load(ctx, config)
	if err != nil {
		return nil, err
	}
	var seed [32]byte
	if _, err := crand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("seed for identifiers: %w", err)
	}
	e := &Engine{
		config:    config,
		log:       config.Log,
		wake:      make(chan struct{}, 1),
		commit:    make(chan struct{}, 1),
		taken:     make(chan struct{}, 1),
		decided:   make(chan struct{}),
		seq:       NewSequencer(c, last, seed),
		snapshots: make(chan *pendingSnapshot, 1),
		stopped:   make(chan struct{}),
		carry:     make(chan chan struct{}),
		metrics:   newMetrics(),
	}
	e.durable.reached.Store(last)
	e.fed.reached.Store(last)
	if config.Clock != nil {
		config.Clock.notBefore(c.Last())
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e.cancel = cancel
	e.metrics.unsaved.Store(unsaved)
	e.done.Go(func() { e.decide() })
	e.done.Go(func() { e.commitGroups(run, unsaved) })
	e.done.Go(func() { e.saveSnapshots(run) })
	if err := e.Do(ctx, &kernel.Resume{}); err != nil {
		e.Close()
		return nil, err
	}
	e.done.Go(func() { e.archiveEnded(run) })
	return e, nil
}

// load rebuilds the cell from the latest snapshot and the journal after it, whose size in bytes it returns.
func load(ctx context.Context, config Config) (c *cell.Cell, last uint64, unsaved int64, err error) {
	began := time.Now()
	c = cell.New(config.Cell)
	at, snapshot, err := config.Journal.LatestSnapshot(ctx)
	if err != nil {
		return nil, 0, 0, fmt.Errorf("find the latest snapshot: %w", err)
	}
	if snapshot != nil {
		err := c.Load(snapshot)
		snapshot.Close()
		if err != nil {
			return nil, 0, 0, fmt.Errorf("load the snapshot after journal entry %d: %w", at, err)
		}
	}
	last = at
	for entry, err := range config.Journal.Read(ctx, at+1) {
		if err != nil {
			return nil, 0, 0, fmt.Errorf("read the journal after entry %d: %w", last, err)
		}
		if err := c.Replay(entry.Number, entry.Batch); err != nil {
			return nil, 0, 0, fmt.Errorf("replay journal entry %d: %w", entry.Number, err)
		}
		last = entry.Number
		unsaved += int64(len(entry.Batch))
	}
	v := c.View()
	if config.Loaded != nil {
		if err := config.Loaded(&v); err != nil {
			return nil, 0, 0, err
		}
	}
	totals := v.Totals()
	config.Log.Info("state loaded", "snapshot", at, "journal", last, "took", time.Since(began).Round(time.Millisecond),
		"fleets", totals.Fleets, "game_sessions", totals.GameSessions, "player_sessions", totals.PlayerSessions)
	return c, last, unsaved, nil
}

// Do executes a command and returns once its outcome is durable. An error is a *domain.Refusal, and then nothing has changed; or it wraps
// ErrStopped, and then the outcome is unknown.
func (e *Engine) Do(ctx context.Context, cmd kernel.Command) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.config.Short() != nil && !hasHappened(cmd) {
		return domain.Refuse(domain.Overloaded, "the service has no room to record changes at the moment")
	}
	if claim, ok := kernel.ClaimIn(cmd); ok {
		return e.told(cmd, e.doClaim(ctx, cmd, claim))
	}
	return e.told(cmd, e.submit(cmd))
}

// hasHappened reports whether a command records what a refusal would not undo: opened and lost connections, and heartbeats. These are
// small, and are accepted as long as they can be written.
func hasHappened(cmd kernel.Command) bool {
	switch cmd.(type) {
	case *kernel.Resume, *hosting.ConnectProcess, *hosting.LoseLink, *hosting.SettleProcess, *hosting.RefreshProcess, *hosting.ReportHealth, *playerflow.AttachStream, *playerflow.LoseStream, *playerflow.PollEvents:
		return true
	}
	return false
}

func (e *Engine) submit(cmd kernel.Command) error {
	c := calls.Get().(*Call)
	c.Cmd, c.Err = cmd, nil
	e.queueLock.Lock()
	switch {
	case e.closed:
		e.queueLock.Unlock()
		return e.stopError()
	case len(e.queue) >= e.config.QueueMax:
		e.queueLock.Unlock()
		return domain.Refuse(domain.Overloaded, "%d commands are waiting", e.config.QueueMax)
	}
	e.queue = append(e.queue, c)
	first := len(e.queue) == 1
	e.queueLock.Unlock()
	if first {
		signal(e.wake)
	}
	<-c.done
	err := c.Err
	c.Cmd = nil
	calls.Put(c)
	return err
}

// Waiting returns the number of commands that wait to be executed, and its limit.
func (e *Engine) Waiting() (now, most int) {
	e.queueLock.Lock()
	defer e.queueLock.Unlock()
	return len(e.queue), e.config.QueueMax
}

// signal wakes a goroutine that waits on a channel with capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Poke makes the engine read the clock again, for tests that move it.
func (e *Engine) Poke() {
	e.stateLock.Lock()
	e.poked = true
	e.stateLock.Unlock()
	signal(e.wake)
}

// decide is the goroutine that executes commands in order.
func (e *Engine) decide() {
	defer close(e.decided)
	var taken []*Call
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-e.wake:
		case <-timer.C:
		case <-e.stopped:
			e.refuseQueue()
			return
		}
		letOthersRun()
		e.queueLock.Lock()
		taken, e.queue = e.queue, taken[:0]
		e.queueLock.Unlock()
		for rest := taken; len(rest) > 0; {
			n := min(lockStep, len(rest))
			if e.waitForRoom() {
				n = e.execute(rest[:n])
			} else {
				e.refuse(rest[:n])
			}
			rest = rest[n:]
			signal(e.commit)
		}
		clear(taken)
		if wait, ok := e.tick(); ok {
			timer.Reset(wait)
		}
	}
}

// waitForRoom waits while the group that is being built is full. It reports false if the engine stops meanwhile.
func (e *Engine) waitForRoom() bool {
	for {
		if e.gathered() < groupBytesMax {
			return true
		}
		select {
		case <-e.taken:
		case <-e.stopped:
			return false
		}
	}
}

// execute decides some commands under one lock, and returns their number.
func (e *Engine) execute(some []*Call) (decided int) {
	e.stateLock.Lock()
	defer e.stateLock.Unlock()
	if e.failure.Load() != nil {
		e.refuse(some)
		return len(some)
	}
	answered, decided := e.seq.Execute(e.config.Now(), e.followed(), some)
	if g := e.seq.building; g.began.IsZero() && len(g.Batch) > 0 {
		g.began = time.Now()
	}
	answer(answered)
	return decided
}

func (e *Engine) refuse(some []*Call) {
	for _, c := range some {
		c.Err = e.stopError()
	}
	answer(some)
}

// tick ends some of what is due and returns how long to wait for the next deadline. It ends many deadlines in steps, with waiting
// commands in between.
func (e *Engine) tick() (wait time.Duration, ok bool) {
	wait, ok = e.untilDue()
	e.stateLock.Lock()
	poked := e.poked
	e.poked = false
	e.stateLock.Unlock()
	if !ok || wait > 0 && !poked {
		return wait, ok
	}
	if !e.waitForRoom() {
		return 0, false
	}
	e.execute([]*Call{newCall(&kernel.Tick{})})
	signal(e.commit)
	if e.failure.Load() != nil {
		return 0, false
	}
	return e.untilDue()
}

// untilDue returns the time until the next Tick; not ok without deadlines.
func (e *Engine) untilDue() (wait time.Duration, ok bool) {
	e.stateLock.RLock()
	due := e.seq.Due()
	e.stateLock.RUnlock()
	return due.Sub(e.config.Now()), !due.IsZero()
}

// Read calls f with a view of the state, and returns once everything that f read is durable. f must be short, because commands wait
// meanwhile.
func (e *Engine) Read(ctx context.Context, f func(v *cell.View) error) error {
	v, err := e.look(f)
	if seen := v.Seen(); seen > e.durable.reached.Load() {
		if err := e.durable.wait(ctx, e, seen); err != nil {
			return err
		}
	}
	return err
}

// look releases the lock also when f panics, because the door may recover, and the engine continues.
func (e *Engine) look(f func(v *cell.View) error) (v cell.View, err error) {
	e.stateLock.RLock()
	defer e.stateLock.RUnlock()
	v = e.seq.Cell().View()
	err = f(&v)
	return v, err
}

// Err returns nil while the engine runs, and then why it stopped.
func (e *Engine) Err() error {
	if f := e.failure.Load(); f != nil {
		return *f
	}
	return nil
}

// Stopped is closed when the engine has stopped, by itself or by Close.
func (e *Engine) Stopped() <-chan struct{} { return e.stopped }

// CellConfig returns the limits and periods in force.
func (e *Engine) CellConfig() cell.Config { return e.config.Cell }

// Now returns the time of the engine's clock.
func (e *Engine) Now() time.Time { return e.config.Now() }

// fail stops the engine permanently.
func (e *Engine) fail(cause error) {
	e.failure.CompareAndSwap(nil, &cause)
	e.queueLock.Lock()
	e.closed = true
	e.queueLock.Unlock()
	e.stop.Do(func() { close(e.stopped) })
	e.release()
}

// release wakes all callers that wait for entries that may never come.
func (e *Engine) release() {
	e.durable.release()
	e.fed.release()
}

func (e *Engine) stopError() error {
	if err := e.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrStopped, err)
	}
	return ErrStopped
}

// refuseQueue answers the commands left in the queue.
func (e *Engine) refuseQueue() {
	e.queueLock.Lock()
	e.closed = true
	left := e.queue
	e.queue = nil
	e.queueLock.Unlock()
	e.refuse(left)
}

// Close stops the engine after all decided commands are durable. It returns the failure, if there was one.
func (e *Engine) Close() error {
	e.queueLock.Lock()
	e.closed = true
	e.queueLock.Unlock()
	e.stop.Do(func() { close(e.stopped) })
	e.cancel()
	e.done.Wait()
	e.release()
	e.closeFollowers()
	return e.Err()
}

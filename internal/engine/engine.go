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
// After a failed append it is unknown how much of it is durable. So the run ends, and the state in memory beyond the last durable group is void. Every
// waiting command gets ErrStopped, which means that its outcome is unknown, and so does a read that saw later changes. On a single machine, a new
// engine starts from the journal; in a cluster, the same engine becomes a replica. While the owner reports a shortage of space (Config.Short),
// changes are refused before they are decided, so that no append has to fail. The journal ensures that only one engine has it open.
//
// # Roles
//
// In a cluster each node has an engine. One decides: the leader. The others are replicas, which apply each entry as soon as it is committed and feed
// their own followers, so a takeover replays nothing (roles.go). A replica archives records before they leave memory (ahead.go). When a leader's
// append fails, its successor may or may not commit the entry: the engine rebuilds its state up to the last entry that it knows to be committed, and
// becomes a replica. A replica whose journal received a snapshot in place of entries loads the snapshot and continues from there (jump.go). Commands
// that were never submitted to the journal get ErrNotLeading, which means that nothing has happened; only the commands of the failed entry get
// ErrStopped.
//
// Each node keeps the cluster's time, which continues across takeovers regardless of the machines' clocks (clustertime.go).
//
// With Config.Peers, Do and Read work on any node and wait out a change of leader (peers.go). A replica forwards a command to the leader, and repeats
// it while the outcome is unknown. The command still takes effect only once and gets the answer of that one execution (package answers). A read first
// learns the newest entry that any node has acknowledged and waits until this node has applied it: reads are linearizable.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	crand "crypto/rand"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/membership"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/live"
)

// ErrStopped is the error of commands and reads after the engine has stopped. It wraps the cause.
var ErrStopped = errors.New("the engine has stopped")

// Defaults of a Config.
const (
	DefaultSnapshotEvery = 128 << 20
	DefaultJournalKept   = 256 << 20
	DefaultEndedLinger   = 20 * time.Second
	DefaultRetention     = 30 * 24 * time.Hour
	DefaultQueueMax      = 100_000
	DefaultPatience      = 10 * time.Second // the SDKs of game servers wait 20 s for an answer
)

// Engine is a running cell. It either decides or is a replica of a cell that another node decides; see roles.go.
type Engine struct {
	config Config
	log    *slog.Logger

	cell      live.Value[cell.Config] // in force; config has that of the start
	stateLock sync.RWMutex
	seq       *Sequencer
	cells     uint64        // how often the cell was replaced, which invalidates positions in it
	voided    atomic.Uint64 // how often it was replaced because it had changes that may never be committed

	run        atomic.Pointer[run] // nil on a replica
	role       sync.Mutex          // serializes changes of roles
	replicates *replication        // nil while the engine decides

	durable progress
	fed     progress // to followers
	source  store
	cluster Log          // nil on a single machine
	time    *clusterTime // nil on a single machine
	wall    *wallTime    // of a single machine; nil: in a cluster, and with the clock of a test
	covers  coverage
	ahead   ahead
	asker   asker        // of commands that another node may have to execute
	unsaved int64        // bytes of journal after the latest snapshot; owned by whichever goroutine appends or applies
	written atomic.Int64 // bytes of journal since the start
	kept    keptJournal
	level   uint // in force when the latest snapshot was taken or loaded; same owner as unsaved

	advancing sync.Mutex
	besides   []Beside

	followersLock sync.Mutex
	followers     []*follower

	snapshots  chan *pendingSnapshot
	saving     atomic.Bool    // a snapshot is being saved
	freezes    []chan *Frozen // of backups that wait for the current group; guarded by stateLock
	freezeTook atomic.Int64   // how long the last one stopped writers, in nanoseconds

	metrics   *metrics
	onRefusal atomic.Pointer[func(kernel.Command, *domain.Refusal)]

	failure atomic.Pointer[error]
	stopped chan struct{} // closed once failed or closed
	stop    sync.Once
	done    sync.WaitGroup
	context context.Context // of its goroutines
	cancel  context.CancelFunc
}

// Open loads the cell from the journal and starts it.
func Open(ctx context.Context, config Config) (*Engine, error) {
	e, err := open(ctx, config, config.Journal, nil)
	if err != nil {
		return nil, err
	}
	if e.covers.known() { // it was a node of a cluster, whose archive may lack what left memory with the last entries
		err = e.catchUp(ctx, config.Journal)
		if e.wall != nil {
			e.wall.notBefore(e.seq.Cell().Last().Std())
		}
	}
	if err == nil {
		err = e.decideWith(ctx, config.Journal)
	}
	if err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// open loads the cell, but neither decides nor replicates yet. If this node is or was in a cluster, it loads only the latest snapshot.
func open(ctx context.Context, config Config, from store, cluster Log) (*Engine, error) {
	config.setDefaults()
	e := &Engine{
		source:    from,
		cluster:   cluster,
		config:    config,
		log:       config.Log,
		snapshots: make(chan *pendingSnapshot, 1),
		stopped:   make(chan struct{}),
		metrics:   newMetrics(),
		asker:     asker{first: 1},
	}
	e.cell.Set(config.Cell)
	if _, err := crand.Read(e.asker.id[:]); err != nil {
		return nil, fmt.Errorf("id of this process: %w", err)
	}
	until := uint64(math.MaxUint64)
	if err := e.covers.open(config.Archive); err != nil {
		return nil, err
	}
	if cluster != nil || e.covers.known() {
		until = 0
	}
	c, last, unsaved, err := load(ctx, config, from, until)
	e.config.Fill = nil
	if err == nil && cluster != nil {
		err = e.coverFrom(ctx, c, last)
	}
	if err == nil {
		err = config.loaded(c)
	}
	if err != nil {
		return nil, err
	}
	if err := e.have(c, last, unsaved); err != nil {
		return nil, err
	}
	e.durable.reached.Store(last)
	e.fed.reached.Store(last)
	if config.Clock != nil {
		config.Clock.notBefore(e.seq.Cell().Last())
	}
	if config.wall && cluster == nil {
		e.wall = newWallTime(e.seq.Cell().Last().Std())
	}
	e.context, e.cancel = context.WithCancel(context.WithoutCancel(ctx))
	e.done.Go(e.saveSnapshots)
	return e, nil
}

// have replaces the cell by one whose state is that after entry last.
func (e *Engine) have(c *cell.Cell, last uint64, unsaved int64) error {
	var seed [32]byte
	if _, err := crand.Read(seed[:]); err != nil {
		return fmt.Errorf("seed for identifiers: %w", err)
	}
	e.ahead.storing.Lock() // records that are being stored belong to the old cell
	defer e.ahead.storing.Unlock()
	e.stateLock.Lock()
	if e.seq != nil && e.seq.ahead() {
		e.voided.Add(1)
	}
	e.refuseFreezes()
	c.Configure(e.cell.Get())
	e.seq = NewSequencer(c, last, seed)
	e.seq.tracing = e.config.Tracing
	e.ahead.begin(c)
	e.cells++
	e.stateLock.Unlock()
	e.unsaved, e.level = unsaved, c.Level()
	e.metrics.unsaved.Store(unsaved)
	return nil
}

// Do executes a command and returns once its outcome is durable. The error is a *domain.Refusal if nothing has changed, and wraps ErrStopped if the
// outcome is unknown. If ctx ends first, the outcome is unknown too.
func (e *Engine) Do(ctx context.Context, cmd kernel.Command) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.config.Tracing.Traced(ctx) {
		return e.doTraced(ctx, cmd)
	}
	return e.do(ctx, cmd)
}

func (e *Engine) do(ctx context.Context, cmd kernel.Command) error {
	e.config.Quotas.Hold(ctx, cmd)
	given := e.recorded(ctx, cmd)
	if e.config.Peers != nil {
		return e.told(ctx, cmd, e.doOnce(ctx, given))
	}
	return e.told(ctx, cmd, e.decide(ctx, given))
}

// decide executes a command on this node.
func (e *Engine) decide(ctx context.Context, cmd kernel.Command) error {
	if why := e.config.Short(); why != nil && !hasHappened(cmd) {
		refusal := domain.Refuse(domain.Overloaded, "the service has no room to record changes at the moment")
		refusal.Cause = &Shortage{why}
		return refusal
	}
	if claim, ok := kernel.ClaimIn(cmd); ok {
		return e.doClaim(ctx, cmd, claim)
	}
	return e.submit(ctx, cmd)
}

// submit passes a command to the current run, or refuses it while space is short.
func (e *Engine) submit(ctx context.Context, cmd kernel.Command) error {
	if r := e.run.Load(); r != nil {
		if e.config.Tracing.Traced(ctx) {
			return r.submitTraced(ctx, cmd)
		}
		return r.submit(cmd)
	}
	if err := e.Err(); err != nil {
		return e.stopError()
	}
	return ErrNotLeading
}

// hasHappened reports whether a command records something that a refusal would not undo: an opened or lost connection, or a heartbeat. Such commands
// are small and are accepted as long as they can be written.
func hasHappened(cmd kernel.Command) bool {
	switch kernel.Unwrapped(cmd).(type) {
	case *kernel.Resume, *membership.BeginNode, *membership.LoseNode, *hosting.ConnectProcess, *hosting.LoseLink, *hosting.SettleProcess, *hosting.RefreshProcess, *hosting.ReportHealth, *playerflow.AttachStream, *playerflow.LoseStream, *playerflow.PollEvents:
		return true
	}
	return false
}

// signal wakes a goroutine that waits on a channel with capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Waiting returns the number of commands that wait to be executed, and its limit.
func (e *Engine) Waiting() (now, most int) {
	if r := e.run.Load(); r != nil {
		now = r.waiting()
	}
	return now, e.config.QueueMax
}

// Poke makes the engine read the clock again; for tests that move it.
func (e *Engine) Poke() {
	if r := e.run.Load(); r != nil {
		r.poke()
	}
}

// Read calls f with a view of the state, and returns once everything that f read is durable. f must be short, because commands wait meanwhile. The
// view contains everything that any node acknowledged before the call.
func (e *Engine) Read(ctx context.Context, f func(v *cell.View) error) error {
	if e.config.Peers != nil {
		if err := e.awaitIndex(ctx); err != nil {
			return err
		}
	}
	return e.read(ctx, f)
}

// ReadHere is Read without waiting for what other nodes have acknowledged. It is for followers: the state contains at least the events that they have
// received, and they will receive the missing ones. During a change of roles it waits and then calls f again.
func (e *Engine) ReadHere(ctx context.Context, f func(v *cell.View) error) error {
	for {
		err := e.read(ctx, f)
		if e.cluster == nil || !errors.Is(err, ErrStopped) || e.Err() != nil {
			return err
		}
		select {
		case <-time.After(retryFirst):
		case <-e.context.Done():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// read reads this node's state.
func (e *Engine) read(ctx context.Context, f func(v *cell.View) error) error {
	voided := e.voided.Load()
	v, err := e.look(f)
	if seen := v.Seen(); seen > e.durable.reached.Load() {
		if err := e.durable.wait(ctx, seen, e.stopError); err != nil {
			return err
		}
	}
	if e.voided.Load() != voided { // what f read may be void, and another entry may be durable under its number
		return e.stopError()
	}
	return err
}

// look calls f under the lock. It releases the lock even if f panics, because the door may recover and the engine continues.
func (e *Engine) look(f func(v *cell.View) error) (v cell.View, err error) {
	e.stateLock.RLock()
	defer e.stateLock.RUnlock()
	v = e.seq.Cell().View()
	err = f(&v)
	return v, err
}

// Err returns nil while the engine runs, then the reason for which it stopped.
func (e *Engine) Err() error {
	if f := e.failure.Load(); f != nil {
		return *f
	}
	return nil
}

// Stopped is closed when the engine has stopped, by itself or by Close.
func (e *Engine) Stopped() <-chan struct{} { return e.stopped }

// Applied returns the number of the last journal entry that this node has applied and knows to be durable.
func (e *Engine) Applied() uint64 { return e.durable.reached.Load() }

// Short returns why new changes are refused at the moment, or nil.
func (e *Engine) Short() error { return e.config.Short() }

// CellConfig returns the limits and periods in force.
func (e *Engine) CellConfig() cell.Config { return e.cell.Get() }

// Configure changes limits and periods of a running engine; see cell.Configure.
func Configure(e *Engine, config cell.Config) {
	e.stateLock.Lock()
	defer e.stateLock.Unlock()
	was := e.cell.Get()
	config.PlayerFlow.Flow, config.PlayerFlow.Tokens, config.Pool, config.Quotas = was.PlayerFlow.Flow, was.PlayerFlow.Tokens, was.Pool, was.Quotas
	e.cell.Set(config)
	e.seq.Cell().Configure(config)
}

// fail stops the engine permanently.
func (e *Engine) fail(cause error) {
	e.failure.CompareAndSwap(nil, &cause)
	e.stop.Do(func() { close(e.stopped) })
	e.release()
}

// release wakes all callers that wait for entries that may never come.
func (e *Engine) release() {
	e.durable.release()
	e.fed.release()
}

// stopError returns the error for a caller whose outcome is unknown.
func (e *Engine) stopError() error {
	if err := e.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrStopped, err)
	}
	return ErrStopped
}

// Close stops the engine after all decided commands are durable. It returns the engine's failure, if any.
func (e *Engine) Close() error {
	e.cancel()
	e.role.Lock()
	if r := e.run.Load(); r != nil {
		r.close()
	}
	e.role.Unlock()
	e.done.Wait()
	e.stop.Do(func() { close(e.stopped) })
	e.release()
	e.closeFollowers()
	return e.Err()
}

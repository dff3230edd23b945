package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/journal"
)

// run is one period in which an engine decides: the queue of commands, the goroutines that decide commands and make them durable, and
// their shutdown.
type run struct {
	e       *Engine
	journal journal.Journal

	calls     sync.Pool // of *Call
	queueLock sync.Mutex
	queue     []*Call
	closed    bool          // no more commands
	wake      chan struct{} // receives when something is in the queue, or after Poke
	poked     bool          // a Tick must run although none is due; guarded by stateLock
	resumed   bool          // the first command of the run has been decided; guarded by stateLock

	commit  chan struct{} // receives when the current group is not empty
	taken   chan struct{} // receives when the group was taken and there is room again
	decided chan struct{} // closed when no more commands are decided

	ended endedRecords       // of the current pass; owned by archiveEnded
	carry chan chan struct{} // requests a pass over the ended records, which then closes the sent channel

	failure atomic.Pointer[error]
	stopped chan struct{} // closed once the run has failed or was closed
	over    chan struct{} // closed once the engine is a replica again
	stop    sync.Once
	done    sync.WaitGroup
	cancel  context.CancelFunc
}

func newRun(e *Engine, j journal.Journal) *run {
	return &run{
		e:       e,
		journal: j,
		calls:   sync.Pool{New: func() any { return newCall(nil) }},
		wake:    make(chan struct{}, 1),
		commit:  make(chan struct{}, 1),
		taken:   make(chan struct{}, 1),
		decided: make(chan struct{}),
		carry:   make(chan chan struct{}),
		stopped: make(chan struct{}),
		over:    make(chan struct{}),
	}
}

// start starts the goroutines of the run and executes its first commands.
func (r *run) start(ctx context.Context) error {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.cancel = cancel
	r.done.Go(r.decide)
	r.done.Go(func() { r.commitGroups(run) })
	if err := r.submit(&kernel.Resume{Cluster: r.e.cluster != nil}); err != nil {
		return err
	}
	r.e.stateLock.Lock()
	r.resumed = true
	r.e.stateLock.Unlock()
	if err := r.beginLevel(); err != nil {
		return err
	}
	r.done.Go(func() { r.archiveEnded(run) })
	if office, ok := r.journal.(Office); ok {
		r.done.Go(func() { r.endWith(office) })
	}
	if r.e.config.Peers != nil {
		r.done.Go(func() { r.dropAnswers(run) })
	}
	if r.e.config.Levels != nil {
		r.done.Go(func() { r.watchLevels(run) })
	}
	return nil
}

// endWith ends the run when the node stops leading. Without commands, the run would not notice, and readers would wait for what other
// nodes decide.
func (r *run) endWith(office Office) {
	select {
	case <-office.Ended():
		r.fail(errLeadershipLost)
	case <-r.stopped:
	}
}

// end begins the shutdown: the run takes no more commands.
func (r *run) end() {
	r.queueLock.Lock()
	r.closed = true
	r.queueLock.Unlock()
	r.stop.Do(func() { close(r.stopped) })
}

// close waits until what was decided is durable, and stops.
func (r *run) close() {
	r.end()
	r.cancel()
	r.done.Wait()
	r.e.release()
}

func newCall(cmd kernel.Command) *Call { return &Call{Cmd: cmd, done: make(chan struct{}, 1)} }

// groupBytesMax is the size from which on no more commands are added to a group; they wait, for example while an append hangs. The
// journal accepts 64 MiB, far more than this plus the largest command.
const groupBytesMax = 8 << 20

// lockStep is the most commands executed while the state is locked once. It bounds how long readers wait.
const lockStep = 64

// submit executes a command and returns once its outcome is durable.
func (r *run) submit(cmd kernel.Command) error {
	c := r.calls.Get().(*Call)
	c.Cmd, c.Err = cmd, nil
	err := r.wait(c)
	c.Cmd = nil
	r.calls.Put(c)
	return err
}

// wait queues a call and waits for its outcome.
func (r *run) wait(c *Call) error {
	r.queueLock.Lock()
	switch {
	case r.closed:
		r.queueLock.Unlock()
		return r.closedError()
	case len(r.queue) >= r.e.config.QueueMax:
		r.queueLock.Unlock()
		return domain.Refuse(domain.Overloaded, "%d commands are waiting", r.e.config.QueueMax)
	}
	r.queue = append(r.queue, c)
	first := len(r.queue) == 1
	r.queueLock.Unlock()
	if first {
		signal(r.wake)
	}
	<-c.done
	return c.Err
}

// decide is the goroutine that executes commands in order.
func (r *run) decide() {
	defer close(r.decided)
	var taken []*Call
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.wake:
		case <-timer.C:
		case <-r.stopped:
			r.refuseQueue()
			return
		}
		letOthersRun()
		r.queueLock.Lock()
		taken, r.queue = r.queue, taken[:0]
		r.queueLock.Unlock()
		for rest := taken; len(rest) > 0; {
			n := min(lockStep, len(rest))
			if r.waitForRoom() {
				n = r.execute(rest[:n])
			} else {
				r.refuse(rest[:n], r.closedError())
			}
			rest = rest[n:]
			signal(r.commit)
		}
		clear(taken)
		if wait, ok := r.tick(); ok {
			timer.Reset(wait)
		}
	}
}

// waitForRoom waits while the current group is full. It reports false if the engine stops meanwhile.
func (r *run) waitForRoom() bool {
	for {
		if r.gathered() < groupBytesMax {
			return true
		}
		select {
		case <-r.taken:
		case <-r.stopped:
			return false
		}
	}
}

// execute decides some commands under one lock and returns how many it decided.
func (r *run) execute(some []*Call) (decided int) {
	r.e.stateLock.Lock()
	defer r.e.stateLock.Unlock()
	if r.failure.Load() != nil {
		r.refuse(some, r.closedError())
		return len(some)
	}
	now := r.e.Now()
	r.afterPause(now)
	answered, decided := r.e.seq.Execute(now, r.e.followed(), some)
	if g := r.e.seq.building; g.began.IsZero() && len(g.Batch) > 0 {
		g.began = time.Now()
	}
	answer(answered)
	return decided
}

func (r *run) refuse(some []*Call, err error) {
	for _, c := range some {
		c.Err = err
	}
	answer(some)
}

// tick ends some of what is due and returns how long to wait for the next deadline. It ends many deadlines in steps, so that waiting
// commands run in between.
func (r *run) tick() (wait time.Duration, ok bool) {
	wait, ok = r.untilDue()
	r.e.stateLock.Lock()
	poked := r.poked
	r.poked = false
	r.e.stateLock.Unlock()
	if !ok || wait > 0 && !poked {
		return wait, ok
	}
	if !r.waitForRoom() {
		return 0, false
	}
	r.execute([]*Call{newCall(&kernel.Tick{})})
	signal(r.commit)
	if r.failure.Load() != nil {
		return 0, false
	}
	return r.untilDue()
}

// untilDue returns the time until the next Tick; ok is false if there is no deadline.
func (r *run) untilDue() (wait time.Duration, ok bool) {
	r.e.stateLock.RLock()
	due := r.e.seq.Due()
	r.e.stateLock.RUnlock()
	return r.e.untilTime(due), !due.IsZero()
}

// fail stops the run: the state in memory beyond the journal is void. On a single machine, this stops the engine.
func (r *run) fail(cause error) {
	r.failure.CompareAndSwap(nil, &cause)
	r.end()
	if r.e.cluster == nil {
		r.e.fail(cause)
	}
	r.e.release()
}

func (r *run) stopError() error {
	if f := r.failure.Load(); f != nil {
		return fmt.Errorf("%w: %w", ErrStopped, *f)
	}
	return ErrStopped
}

// refuseQueue fails the commands left in the queue.
func (r *run) refuseQueue() {
	r.queueLock.Lock()
	r.closed = true
	left := r.queue
	r.queue = nil
	r.queueLock.Unlock()
	r.refuse(left, r.closedError())
}

// closedError returns the error for a command that was never submitted to the journal: nothing has happened.
func (r *run) closedError() error {
	if r.e.cluster != nil {
		return ErrNotLeading
	}
	return r.stopError()
}

func (r *run) waiting() int {
	r.queueLock.Lock()
	defer r.queueLock.Unlock()
	return len(r.queue)
}

func (r *run) poke() {
	r.e.stateLock.Lock()
	r.poked = true
	r.e.stateLock.Unlock()
	signal(r.wake)
}

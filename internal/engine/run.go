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

// run is an engine that decides: the queue of commands, the goroutines that decide them and make them durable, and the end of it.
type run struct {
	e       *Engine
	journal journal.Journal

	calls     sync.Pool // of *Call
	queueLock sync.Mutex
	queue     []*Call
	closed    bool          // no more commands
	wake      chan struct{} // something is in the queue, or Poke
	poked     bool          // a Tick must run, regardless of the plan; guarded by stateLock
	resumed   bool          // the first command of the run is decided; guarded by stateLock

	commit  chan struct{} // the group being built is not empty
	taken   chan struct{} // the group was taken: there is room for more
	decided chan struct{} // closed when no more commands are decided

	ended endedRecords       // of the present pass; of archiveEnded
	carry chan chan struct{} // asks for a pass over the ended records, after which the channel in it is closed

	failure atomic.Pointer[error]
	stopped chan struct{} // closed once failed or closed
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

// start begins to decide.
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

// endWith ends the run when the node leads no more. Without a command it would not notice, and readers would wait for what others decide.
func (r *run) endWith(office Office) {
	select {
	case <-office.Ended():
		r.fail(errLeadershipLost)
	case <-r.stopped:
	}
}

// end begins to stop: no more commands are taken.
func (r *run) end() {
	r.queueLock.Lock()
	r.closed = true
	r.queueLock.Unlock()
	r.stop.Do(func() { close(r.stopped) })
}

// close lets what was decided become durable and stops.
func (r *run) close() {
	r.end()
	r.cancel()
	r.done.Wait()
	r.e.release()
}

func newCall(cmd kernel.Command) *Call { return &Call{Cmd: cmd, done: make(chan struct{}, 1)} }

// groupBytesMax is the size of a group from which no more commands are added; while an append hangs, they wait. The journal takes 64 MiB,
// far more than this and the largest command.
const groupBytesMax = 8 << 20

// lockStep is the most commands under one lock of the state, which bounds how long readers wait.
const lockStep = 64

// submit has the command executed and waits until its outcome is durable.
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

// waitForRoom waits while the group that is being built is full. It reports false if the engine stops meanwhile.
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

// execute decides some commands under one lock, and returns their number.
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

// tick ends some of what is due and returns how long to wait for the next deadline. It ends many deadlines in steps, with waiting
// commands in between.
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

// untilDue returns the time until the next Tick; not ok without deadlines.
func (r *run) untilDue() (wait time.Duration, ok bool) {
	r.e.stateLock.RLock()
	due := r.e.seq.Due()
	r.e.stateLock.RUnlock()
	return r.e.untilTime(due), !due.IsZero()
}

// fail stops the run: what memory holds beyond the journal is void. Without a cluster that is the end of the engine.
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

// refuseQueue answers the commands left in the queue.
func (r *run) refuseQueue() {
	r.queueLock.Lock()
	r.closed = true
	left := r.queue
	r.queue = nil
	r.queueLock.Unlock()
	r.refuse(left, r.closedError())
}

// closedError is the error of a command that has never been on its way to the journal: nothing has happened.
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

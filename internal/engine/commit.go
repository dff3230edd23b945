package engine

import (
	"context"
	"runtime"
	"time"
)

// commitGroups is the goroutine that makes groups durable, one at a time, while the next group fills.
func (r *run) commitGroups(ctx context.Context) {
	spare := &Group{}
	for {
		select {
		case <-r.commit:
		case <-r.stopped:
			// Commands that were decided before the stop still become durable.
			<-r.decided
			for r.commitOne(ctx, &spare) {
			}
			r.refuseRest()
			return
		}
		for r.commitOne(ctx, &spare) {
		}
	}
}

// commitOne makes the current group durable. It reports false if the group was empty or the append failed.
func (r *run) commitOne(ctx context.Context, spare **Group) bool {
	r.gather()
	r.e.stateLock.Lock()
	if r.failure.Load() != nil {
		r.e.stateLock.Unlock()
		return false
	}
	g := r.e.seq.Take(*spare)
	if g == nil {
		idle := r.e.seq.TakeIdle()
		r.e.stateLock.Unlock()
		answer(idle)
		return false
	}
	snapshot := r.e.freezeIfDue(g)
	r.e.answerFreezes(g)
	r.e.stateLock.Unlock()
	signal(r.taken)

	appending := time.Now()
	if err := r.journal.Append(context.WithoutCancel(ctx), g.Number, g.Batch); err != nil {
		r.e.log.Error("the journal failed: the engine accepts no more commands before a restart from the journal", "entry", g.Number, "error", err)
		if snapshot != nil {
			r.e.saving.Store(false)
		}
		r.failGroup(g, err)
		return false
	}
	r.e.stateLock.Lock()
	r.e.seq.Durable(g.Number)
	r.e.stateLock.Unlock()
	r.e.durable.reached.Store(g.Number)
	r.e.metrics.committed(g, appending)
	g.traced(appending)
	answer(g.calls)
	r.e.tell(g)
	if snapshot != nil {
		r.e.snapshots <- snapshot
	}
	*spare = g
	return true
}

// tell wakes the readers that wait for a durable group, and feeds the followers.
func (e *Engine) tell(g *Group) {
	e.durable.wake(g.Number)
	e.feed(g)
	e.fed.reached.Store(g.Number)
	e.fed.wake(g.Number)
}

// On a busy machine a small group waits for further commands, because a sync and the wake-ups around it cost as much as forty small
// commands. It waits only while commands keep arriving.
const (
	gatherBytes = 4 << 10 // a group of this size does not wait
	gatherWait  = 500 * time.Microsecond
)

// gather waits for further commands to join the group.
func (r *run) gather() {
	began := time.Now()
	for size := r.gathered(); size < gatherBytes; {
		letOthersRun()
		before := size
		if size = r.gathered(); size == before || time.Since(began) > gatherWait {
			return
		}
	}
}

// gathered returns the size of the group that is being built, in bytes.
func (r *run) gathered() int {
	r.e.stateLock.RLock()
	defer r.e.stateLock.RUnlock()
	return r.e.seq.Gathered()
}

// letOthersRun yields to runnable goroutines, most of which submit commands on a busy machine. On an idle machine it returns at once.
func letOthersRun() {
	runtime.Gosched()
	runtime.Gosched() // for goroutines that the first ones woke
}

func answer(calls []*Call) {
	for _, c := range calls {
		c.done <- struct{}{}
	}
}

// failGroup fails all calls of a group that may not be durable.
func (r *run) failGroup(g *Group, cause error) {
	r.fail(cause)
	r.refuse(g.calls, r.stopError())
	r.refuseRest()
}

// refuseRest fails the calls of groups that will not be appended.
func (r *run) refuseRest() {
	r.e.stateLock.Lock()
	left := r.e.seq.Abandon()
	r.e.stateLock.Unlock()
	r.refuse(left, r.closedError())
}

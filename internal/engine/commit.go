package engine

import (
	"context"
	"runtime"
	"time"
)

// commitGroups is the goroutine that makes groups durable, one at a time, while the next one grows. unsaved is the size of the journal
// after the latest snapshot, in bytes.
func (e *Engine) commitGroups(ctx context.Context, unsaved int64) {
	spare := &Group{}
	for {
		select {
		case <-e.commit:
		case <-e.stopped:
			// Commands that were decided before the stop still become durable.
			<-e.decided
			for e.commitOne(ctx, &spare, &unsaved) {
			}
			e.refuseRest()
			return
		}
		for e.commitOne(ctx, &spare, &unsaved) {
		}
	}
}

// commitOne makes the present group durable. It reports false if there was none or it failed.
func (e *Engine) commitOne(ctx context.Context, spare **Group, unsaved *int64) bool {
	e.gather()
	e.stateLock.Lock()
	if e.failure.Load() != nil {
		e.stateLock.Unlock()
		return false
	}
	g := e.seq.Take(*spare)
	if g == nil {
		idle := e.seq.TakeIdle()
		e.stateLock.Unlock()
		answer(idle)
		return false
	}
	snapshot := e.freezeIfDue(g, unsaved)
	e.stateLock.Unlock()
	signal(e.taken)

	appending := time.Now()
	if err := e.config.Journal.Append(context.WithoutCancel(ctx), g.Number, g.Batch); err != nil {
		e.log.Error("the journal failed: the engine accepts no more commands before a restart from the journal", "entry", g.Number, "error", err)
		e.failGroup(g, err)
		return false
	}
	e.stateLock.Lock()
	e.seq.Durable(g.Number)
	e.stateLock.Unlock()
	e.durable.reached.Store(g.Number)
	e.metrics.committed(g, appending)
	answer(g.calls)
	e.durable.wake(g.Number)
	e.feed(g)
	e.fed.reached.Store(g.Number)
	e.fed.wake(g.Number)
	if snapshot != nil {
		e.snapshots <- snapshot
	}
	*spare = g
	return true
}

// On a busy machine a group waits for further commands, because its sync and the wake-ups around it cost as much as forty small commands.
// It waits only while commands keep arriving.
const (
	gatherBytes = 4 << 10 // enough in one group
	gatherWait  = 500 * time.Microsecond
)

// gather lets the group grow.
func (e *Engine) gather() {
	began := time.Now()
	for size := e.gathered(); size < gatherBytes; {
		letOthersRun()
		before := size
		if size = e.gathered(); size == before || time.Since(began) > gatherWait {
			return
		}
	}
}

// gathered returns the size of the group that is being built, in bytes.
func (e *Engine) gathered() int {
	e.stateLock.RLock()
	defer e.stateLock.RUnlock()
	return e.seq.Gathered()
}

// letOthersRun yields to ready goroutines, most of which bring commands on a busy machine. On an idle machine it returns at once.
func letOthersRun() {
	runtime.Gosched()
	runtime.Gosched() // goroutines that the first ones woke
}

func answer(calls []*Call) {
	for _, c := range calls {
		c.done <- struct{}{}
	}
}

// failGroup answers all callers whose commands may not be durable.
func (e *Engine) failGroup(g *Group, cause error) {
	e.fail(cause)
	e.refuse(g.calls)
	e.refuseRest()
}

// refuseRest answers the callers of groups that will not be appended.
func (e *Engine) refuseRest() {
	e.stateLock.Lock()
	left := e.seq.Abandon()
	e.stateLock.Unlock()
	e.refuse(left)
}

package engine

import (
	"sync"
	"time"
)

// wallTime is the time of a single machine: its clock, as long as that goes forward. After the clock was set back, the time follows the monotonic
// clock, slightly slower, until the clock has caught up. If the time stood still instead, no seat would become free and no search would end
// meanwhile. A start with a clock behind the last transaction is treated the same.
type wallTime struct {
	lock sync.Mutex
	at   time.Time // when now was last called, with the monotonic reading
	time time.Time // what that call returned
}

func newWallTime(last time.Time) *wallTime { return &wallTime{at: time.Now(), time: last} }

// now returns the time, which never goes back.
func (w *wallTime) now() time.Time {
	w.lock.Lock()
	defer w.lock.Unlock()
	at := time.Now()
	w.time = later(w.time, at.Sub(w.at), at.Round(0))
	w.at = at
	return w.time
}

// later returns the time at which `passed` has elapsed since before, given the clock's reading `wall`. If that is ahead of the clock, the time runs
// slower by one part in drawnBy, as in clusterTime.
func later(before time.Time, passed time.Duration, wall time.Time) time.Time {
	least := before.Add(passed - passed/drawnBy)
	if wall.After(least) {
		return wall
	}
	return least
}

// notBefore raises the time to that of a transaction.
func (w *wallTime) notBefore(t time.Time) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.time.Before(t) {
		w.time = t
	}
}

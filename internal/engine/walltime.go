package engine

import (
	"sync"
	"time"
)

// wallTime is the time of a single machine: its clock, as long as that goes forward. When the clock was set back, the time goes on by the monotonic clock, a little slower, until
// the clock has caught up: standing still that long, no seat would become free and no search would end. The same holds for a start with a clock that is behind the last transaction.
type wallTime struct {
	lock sync.Mutex
	at   time.Time // when the time was asked for last, with the monotonic reading
	time time.Time // then
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

// later is the time when so much has passed since it was `before`, and the clock shows wall. Ahead of the clock it is slower by as much as clusterTime is, which no client notices.
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

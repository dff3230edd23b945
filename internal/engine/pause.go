package engine

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// A process may stand still for minutes because its container or virtual machine is paused, a debugger holds it, or its machine swaps. To game
// servers and players this looks like downtime: they cannot reach it. When it resumes, their deadlines have passed, and the messages that would have
// moved those deadlines wait in its sockets. So the lost time does not count for contact deadlines, as after a restart. Unlike after a restart,
// connections are still open and stay open.
//
// While a contact deadline is set, transactions are at most a second apart. A longer gap means a pause, whatever its cause. It may also come from a
// laptop that slept or a clock that was set forward; no client's deadline should pass because of those either.

// pauseMin is the shortest gap that counts as a pause. It exceeds the delays of a process on a loaded machine and is below every deadline that a
// client must not miss.
const pauseMin = 5 * time.Second

// afterPause moves the contact clock if the process stood still until now. The caller holds stateLock.
func (r *run) afterPause(now time.Time) {
	if !r.resumed || !r.e.config.pauses { // the first command of the run handles a pause before it
		return
	}
	gap := r.e.seq.Cell().StoodStill(domain.TimeOf(now))
	if gap < pauseMin {
		return
	}
	r.e.log.Warn("the service was paused; the deadlines of game servers and players are extended by that time", "time", gap)
	answered, _ := r.e.seq.Execute(now, r.e.followed(), []*Call{newCall(&kernel.Resume{Cluster: r.e.cluster != nil, Paused: true})})
	answer(answered)
}

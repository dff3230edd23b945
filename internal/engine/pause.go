package engine

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// A process that stands still for minutes, because its container or its virtual machine is paused, because a debugger holds it or its machine swaps, is no different from
// one that is down: no game server and no player can reach it. When it goes on, their deadlines have passed, and the messages that would have moved them wait
// in its sockets. So the time that it lost does not count for contact deadlines, as after a restart. Connections are different: they are open, and stay.
//
// While a contact deadline waits, a transaction follows at most a second after the one before. A gap is the sign of a pause, whatever its cause: a laptop that slept, or a
// clock that was set forward, are two more, and no deadline of a client should pass by them either.

// pauseMin is the shortest gap that counts as a pause: longer than what a loaded machine does to a process, and shorter than every deadline that a client must not miss.
const pauseMin = 5 * time.Second

// afterPause moves the contact clock if the process stood still until now. The caller holds stateLock.
func (r *run) afterPause(now time.Time) {
	if !r.resumed || !r.e.config.pauses { // the first command of the run does it
		return
	}
	gap := r.e.seq.Cell().StoodStill(domain.TimeOf(now))
	if gap < pauseMin {
		return
	}
	r.e.log.Warn("the service stood still; game servers and players have that much longer to answer", "time", gap)
	answered, _ := r.e.seq.Execute(now, r.e.followed(), []*Call{newCall(&kernel.Resume{Cluster: r.e.cluster != nil, Paused: true})})
	answer(answered)
}

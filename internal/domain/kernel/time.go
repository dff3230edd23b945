package kernel

import (
	"math"
	"time"

	"github.com/musterhq/muster/internal/domain"
)

const (
	// tickStep bounds the deadlines that one Tick ends, so that a crowd of them delays no other command.
	tickStep = 128
	// tickEvery is how far the last durable sign of life may lie back while a contact deadline waits: the error of the downtime.
	tickEvery = time.Second
)

// Tick ends what is due.
type Tick struct {
	// Result
	More bool // something is still due
}

// Decide ends up to tickStep deadlines: contact deadlines before wall deadlines, each in the order of their instants.
func (cmd *Tick) Decide(t *Tx) error {
	k := t.k
	for range tickStep {
		if d, ok := k.Waiting.contact.next(); ok && d.At <= int64(t.Contact) {
			t.due(d)
			continue
		}
		if d, ok := k.Waiting.wall.next(); ok && d.At <= int64(t.Now) {
			if t.due(d) {
				cmd.More = true
				return nil
			}
			continue
		}
		if _, waits := k.Waiting.contact.next(); waits && !t.open && t.Now.Sub(k.last) >= tickEvery {
			t.Emit(&Ticked{})
		}
		return nil
	}
	cmd.More = true
	return nil
}

func (t *Tx) due(d Deadline) (heavy bool) {
	t.Cause = "" // of the deadline before
	return t.k.rooms[d.Kind.room()].Due(d)
}

// NextDeadline is when the next Tick has something to do; zero when nothing waits.
func (k *Kernel) NextDeadline() domain.Time {
	next := k.NextDue()
	if _, ok := k.Waiting.contact.next(); ok {
		// While clients or servers are waited for that cannot reach a service that is down, a sign of life is due, too.
		next = min(next, k.last.Add(tickEvery))
	}
	return next
}

// NextDue is when the first of all deadlines ends; zero when there is none.
func (k *Kernel) NextDue() domain.Time {
	next := domain.Time(math.MaxInt64)
	if d, ok := k.Waiting.contact.next(); ok {
		next = k.WallTime(domain.ContactTime(d.At))
	}
	if d, ok := k.Waiting.wall.next(); ok {
		next = min(next, domain.Time(d.At))
	}
	if next == math.MaxInt64 {
		return 0
	}
	return next
}

// Resume is the first command of a run. Each room that has a part in it moves what waits for clients or servers by the time
// that the service was down.
type Resume struct{}

// Resumer is a room with a part in Resume. Then is the contact time at which the service went down: the contact clock goes on
// from there once the downtime has been added.
type Resumer interface {
	Resume(down domain.Time, then domain.ContactTime)
}

// Decide has each room do its part, in the order of their numbers.
func (cmd *Resume) Decide(t *Tx) error {
	k := t.k
	if k.last == 0 {
		return nil // nothing has ever happened
	}
	down := t.Now - k.last
	then := t.Contact - domain.ContactTime(down)
	for _, room := range k.rooms {
		if r, ok := room.(Resumer); ok {
			r.Resume(down, then)
			t.Contact = k.ContactTime(t.Now)
		}
	}
	return nil
}

// Forget says that the Count records that ended first are durable in the archive. Only the engine issues it.
type Forget struct{ Count int }

// Decide emits Forgotten for records that are still in memory.
func (cmd *Forget) Decide(t *Tx) error {
	if cmd.Count > 0 {
		t.Emit(&Forgotten{int64(min(cmd.Count, t.k.Ended.used))})
	}
	return nil
}

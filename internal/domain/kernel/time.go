package kernel

import (
	"math"
	"time"

	"github.com/musterhq/muster/internal/domain"
)

const (
	// tickStep is the most deadlines that one Tick ends, so that a large number of them does not delay other commands.
	tickStep = 128
	// tickEvery is the greatest age of the last durable transaction while a contact deadline is set. It is therefore the greatest error of the
	// computed downtime.
	tickEvery = time.Second
)

// Tick ends what has passed its deadline.
type Tick struct {
	// Result
	More bool // something is still due
}

// Decide ends up to tickStep deadlines: contact deadlines before wall deadlines, each in order of time.
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
	t.Cause = "" // discard the cause of the previous deadline
	return t.k.rooms[d.Kind.room()].Due(d)
}

// NextDeadline returns when the next Tick is due; zero for never.
func (k *Kernel) NextDeadline() domain.Time {
	next := k.NextDue()
	if _, ok := k.Waiting.contact.next(); ok {
		// While a contact deadline is set, a Ticked is due every tickEvery.
		next = min(next, k.last.Add(tickEvery))
	}
	return next
}

// NextDue returns the earliest deadline; zero if there is none.
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

// Resume is the first command of a run, and is issued again after the service stood still. Each Resumer moves its contact deadlines by the downtime.
type Resume struct {
	// Cluster: another node may have decided before, and other nodes may have open connections. Only connections that no node holds any longer are
	// lost.
	Cluster bool
	// Paused: the process was alive but stalled, for example in a paused container. Its connections are still open.
	Paused bool
}

// Resumption describes the downtime or pause before a Resume.
type Resumption struct {
	Down    domain.Time        // for how long no node decided
	Then    domain.ContactTime // when that began; the contact clock continues from there once the downtime has been added
	Cluster bool               // see Resume
	Paused  bool               // likewise
}

// Resumer is a room that takes part in Resume.
type Resumer interface{ Resume(Resumption) }

// Decide calls the rooms in the order of their numbers.
func (cmd *Resume) Decide(t *Tx) error {
	k := t.k
	if k.last == 0 || cmd.Paused && k.level < pausedLevel {
		return nil // there was no transaction yet, or another node does not know the event
	}
	down := t.Now - k.last
	then := t.Contact - domain.ContactTime(down)
	for _, room := range k.rooms {
		if r, ok := room.(Resumer); ok {
			r.Resume(Resumption{down, then, cmd.Cluster, cmd.Paused})
			t.Contact = k.ContactTime(t.Now)
		}
	}
	return nil
}

// pausedLevel is the level from which the events of Resume may record a pause.
const pausedLevel = 2

// StoodStill returns how long the contact clock should have stood still until now, because no Tick ran. It is 0 without a contact deadline, because
// then no Ticks are due.
func (k *Kernel) StoodStill(now domain.Time) time.Duration {
	if _, waits := k.Waiting.contact.next(); !waits {
		return 0
	}
	return max(0, now.Sub(k.last))
}

// Forget records that the Count records that ended first are durable in the archive. Only the engine issues it.
type Forget struct{ Count int }

// Decide emits Forgotten for records that are still in memory.
func (cmd *Forget) Decide(t *Tx) error {
	if cmd.Count > 0 {
		t.Emit(&Forgotten{int64(min(cmd.Count, t.k.Ended.used))})
	}
	return nil
}

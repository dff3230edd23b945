// Package answers is the room of a cell that remembers which requests were carried out, with their answers. In a cluster a node that asks again,
// because the one that decided died before it answered, gets the first answer instead of a second effect, from whichever node decides by then: the answer is part
// of the transaction that it belongs to, so every node has both or neither.
//
// # Which answers are kept, and why that is enough
//
// An asker is one process of a node. It numbers its requests, and each request says which numbers are settled: those below it will not be asked for again.
// An answer is kept until its number is settled. A request with a settled number is refused, because it can only be a copy that was
// late on its way.
//
// A request that changed nothing is not remembered: the first attempt has no copies, and its outcome is final. An asker that does not know what became of an
// attempt numbers the next one. If that changes nothing either, Void is recorded before the asker is told, and earlier attempts that arrive later are refused.
//
// The answers in memory are those of the requests between the oldest unanswered one of each asker and its newest one. Of an asker that has been
// silent for long, such as a process that has ended, only the settled number is kept.
package answers

import (
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Room is the room's number, the last one: its part of a command settles when the answer is complete.
const Room kernel.RoomNo = 14

// Answer is what a request was answered.
type Answer struct {
	Asker   domain.UUID
	Request uint64 // its number among those of the asker
	Data    []byte // as Form.Answer wrote it
	Void    uint64 // the request had no effect in this attempt and those before it; 0: it had one
}

// Fields of an Answer.
func (a *Answer) Fields(c *wire.Codec) {
	c.UUID(1, &a.Asker)
	wire.Int(c, 2, &a.Request)
	c.Bytes(3, &a.Data)
	wire.Int(c, 4, &a.Void)
}

// Asker is a process of a node that has commands executed.
type Asker struct {
	ID      domain.UUID
	Settled uint64 // it will not ask again for requests with lower numbers

	answers map[uint64]outcome // by request
	lowest  uint64             // no answer has a lower number
}

type outcome struct {
	data []byte
	void uint64
}

// Fields of an Asker.
func (a *Asker) Fields(c *wire.Codec) {
	c.UUID(1, &a.ID)
	wire.Int(c, 2, &a.Settled)
}

// State is the room's records. There are few askers, and their answers do not last: a snapshot copies them.
type State struct {
	*kernel.Kernel
	askers map[domain.UUID]*Asker
}

// Tx is the room: its state, and its part of the present transaction.
type Tx struct {
	*kernel.Tx
	*State
	kernel.Plain
	once *Once
}

// New returns an empty room.
func New(k *kernel.Kernel) *Tx {
	return &Tx{Tx: k.Tx(), State: &State{Kernel: k, askers: map[domain.UUID]*Asker{}}}
}

// Events returns the constructors of the room's events.
func (*Tx) Events() []func() kernel.Event { return events }

// Standing is what the room knows of an asker.
type Standing struct {
	Settled uint64 // it will not ask again for requests with lower numbers
	Newest  uint64 // the highest number whose answer is remembered; 0: none is
	Kept    int    // answers that are remembered
}

// Askers returns what the room knows of each asker.
func (c *State) Askers() map[domain.UUID]Standing {
	all := map[domain.UUID]Standing{}
	for id, a := range c.askers {
		all[id] = Standing{a.Settled, a.newest(), len(a.answers)}
	}
	return all
}

func (c *State) Apply(_ domain.Time, event kernel.Event) {
	switch e := event.(type) {
	case *CommandAnswered:
		a := c.asker(e.Answer.Asker)
		a.keep(&e.Answer)
		a.Settled = max(a.Settled, e.Settled)
		a.forgetSettled()
	case *AnswersDropped:
		a := c.asker(e.Asker)
		a.Settled = max(a.Settled, e.Settled)
		a.forgetSettled()
	}
}

func (a *Asker) keep(x *Answer) {
	a.answers[x.Request] = outcome{x.Data, x.Void}
	a.lowest = min(a.lowest, x.Request)
}

// newest is the highest number that is remembered. While any is, no higher one was ever answered: settling forgets the lower numbers first.
func (a *Asker) newest() (newest uint64) {
	for request := range a.answers {
		newest = max(newest, request)
	}
	return newest
}

// forgetSettled walks over the numbers or over the answers, whichever are fewer.
func (a *Asker) forgetSettled() {
	if a.lowest < a.Settled && a.Settled-a.lowest > uint64(len(a.answers)) {
		maps.DeleteFunc(a.answers, func(request uint64, _ outcome) bool { return request < a.Settled })
		a.lowest = a.Settled
	}
	for ; a.lowest < a.Settled; a.lowest++ {
		delete(a.answers, a.lowest)
	}
}

func (c *State) asker(id domain.UUID) *Asker {
	a := c.askers[id]
	if a == nil {
		a = &Asker{ID: id, answers: map[uint64]outcome{}, lowest: 1<<64 - 1}
		c.askers[id] = a
	}
	return a
}

// Field numbers of message SnapshotPart in proto/journal.proto.
const (
	partAsker  = 70
	partAnswer = 71
)

// Freeze returns the room's part of a snapshot. It copies the maps; what they point to is never changed in place.
func (c *State) Freeze(*kernel.Head) []kernel.Frozen {
	var askers []Asker
	for _, a := range c.askers {
		copied := *a
		copied.answers = maps.Clone(a.answers)
		askers = append(askers, copied)
	}
	return []kernel.Frozen{func(w *kernel.PartWriter) {
		for i := range askers {
			w.Part(partAsker, &askers[i])
		}
		for _, a := range askers {
			for _, request := range slices.Sorted(maps.Keys(a.answers)) {
				x := a.answers[request]
				w.Part(partAnswer, &Answer{a.ID, request, x.data, x.void})
			}
		}
	}}
}

func (c *State) Load(l *kernel.Loader, kind uint64, body []byte) (known bool, err error) {
	switch kind {
	case partAsker:
		return true, kernel.LoadWith(l, body, func(x Asker) { c.asker(x.ID).Settled = x.Settled })
	case partAnswer:
		return true, kernel.LoadWith(l, body, func(x Answer) { c.asker(x.Asker).keep(&x) })
	}
	return false, nil
}

// Restore has nothing to rebuild.
func (c *State) Restore(*kernel.Head) error { return nil }

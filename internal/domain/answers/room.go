// Package answers is the room of a cell that remembers which requests were carried out, with their answers. In a cluster a node that asks again,
// because the one that decided died before it answered, gets the first answer instead of a second effect, from whichever node decides by then: the answer is part
// of the transaction that it belongs to, so every node has both or neither.
//
// # Which answers are kept, and why that is enough
//
// An asker is one process of a node. It numbers its requests, and each request says which numbers are settled: those below it will not be asked for again.
// An answer is kept until its number is settled. A request with a settled number is refused, because it can only be a copy that was
// late on its way: no delay of the network has a second effect. A request that changed nothing is not remembered, and may be decided again.
//
// So the answers in memory are those of the requests between the oldest unanswered one of each asker and its newest one.
package answers

import (
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Room is the room's number, the last one: its part of a command settles when the answer is complete.
const Room kernel.RoomNo = 7

// Answer is what a request was answered.
type Answer struct {
	Asker   domain.UUID
	Request uint64 // its number among those of the asker
	Data    []byte // as Form.Answer wrote it
}

// Fields of an Answer.
func (a *Answer) Fields(c *wire.Codec) {
	c.UUID(1, &a.Asker)
	wire.Int(c, 2, &a.Request)
	c.Bytes(3, &a.Data)
}

// Asker is a process of a node that has commands executed.
type Asker struct {
	ID      domain.UUID
	Settled uint64 // it will not ask again for requests with lower numbers

	answers map[uint64][]byte // by request
	lowest  uint64            // no answer has a lower number
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

// Askers returns what each asker has settled, and how many answers are remembered.
func (c *State) Askers() (settled map[domain.UUID]uint64, kept int) {
	settled = map[domain.UUID]uint64{}
	for id, a := range c.askers {
		settled[id] = a.Settled
		kept += len(a.answers)
	}
	return settled, kept
}

func (c *State) Apply(_ domain.Time, event kernel.Event) {
	switch e := event.(type) {
	case *CommandAnswered:
		a := c.asker(e.Answer.Asker)
		a.answers[e.Answer.Request] = e.Answer.Data
		a.lowest = min(a.lowest, e.Answer.Request)
		a.Settled = max(a.Settled, e.Settled)
		a.forgetSettled()
	case *AskerForgotten:
		delete(c.askers, e.Asker)
	}
}

// forgetSettled walks over the numbers or over the answers, whichever are fewer.
func (a *Asker) forgetSettled() {
	if a.lowest < a.Settled && a.Settled-a.lowest > uint64(len(a.answers)) {
		maps.DeleteFunc(a.answers, func(request uint64, _ []byte) bool { return request < a.Settled })
		a.lowest = a.Settled
	}
	for ; a.lowest < a.Settled; a.lowest++ {
		delete(a.answers, a.lowest)
	}
}

func (c *State) asker(id domain.UUID) *Asker {
	a := c.askers[id]
	if a == nil {
		a = &Asker{ID: id, answers: map[uint64][]byte{}, lowest: 1<<64 - 1}
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
				w.Part(partAnswer, &Answer{a.ID, request, a.answers[request]})
			}
		}
	}}
}

func (c *State) Load(l *kernel.Loader, kind uint64, body []byte) (known bool, err error) {
	switch kind {
	case partAsker:
		return true, kernel.LoadWith(l, body, func(x Asker) { c.asker(x.ID).Settled = x.Settled })
	case partAnswer:
		return true, kernel.LoadWith(l, body, func(x Answer) {
			a := c.asker(x.Asker)
			a.answers[x.Request] = x.Data
			a.lowest = min(a.lowest, x.Request)
		})
	}
	return false, nil
}

// Restore has nothing to rebuild.
func (c *State) Restore(*kernel.Head) error { return nil }

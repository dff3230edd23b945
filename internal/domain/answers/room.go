// Package answers is the room that stores the answers of executed requests. In a cluster, a node repeats a request if the leader failed before it
// answered. The node then gets the first answer from whichever node leads by then, instead of a second effect: the answer is part of the transaction
// to which it belongs, so every node has both or neither.
//
// # Which answers are kept, and why that is enough
//
// An asker is one process of a node. It numbers its requests, and each request says which numbers are settled: it will not send lower numbers again.
// An answer is kept until its number is settled. A request with a settled number is refused, because it can only be a delayed copy.
//
// A request that changed nothing is not stored: the first attempt has no copies, so its outcome is final. An asker that does not know the outcome of
// an attempt sends the next attempt, with a higher attempt number. If that changes nothing either, Void is recorded before the asker is told, and
// earlier attempts that arrive later are refused.
//
// The answers in memory are those between each asker's oldest unanswered request and its newest one. For an asker that has been silent for long, such
// as a process that has ended, only the settled number is kept.
package answers

import (
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Room is the room's number, the last one, so that its part of a command settles when the answer is complete.
const Room kernel.RoomNo = 14

// Answer is the stored answer to a request.
type Answer struct {
	Asker   domain.UUID
	Request uint64 // its number among those of the asker
	Data    []byte // encoded by Form.Answer
	Void    uint64 // the request had no effect up to this attempt; 0: it had one
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
	Settled uint64 // it will not send requests with lower numbers again

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

// State is the room's records. There are few askers, and their answers are short-lived, so a snapshot copies them.
type State struct {
	*kernel.Kernel
	askers map[domain.UUID]*Asker
}

// Tx is the room: its state and its part of the current transaction.
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

// Standing describes an asker.
type Standing struct {
	Settled uint64 // it will not send requests with lower numbers again
	Newest  uint64 // highest number with a stored answer; 0: none
	Kept    int    // number of stored answers
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

// newest returns the highest stored number. While there is one, no higher number was ever answered, because settling removes lower numbers first.
func (a *Asker) newest() (newest uint64) {
	for request := range a.answers {
		newest = max(newest, request)
	}
	return newest
}

// forgetSettled iterates over the numbers or over the answers, whichever are fewer.
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

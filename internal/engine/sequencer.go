package engine

import (
	"math/rand/v2"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Sequencer decides commands one after another and gathers their transactions in groups: the part of the engine that has no
// goroutines and no clock. The Engine runs it under its lock, and the simulator by hand, so that both run the same code.
//
// It keeps two numbers. Groups up to durable are in the journal; building.Number is that of the group which is being built. There
// are at most two groups: building.Number is durable+1 when nothing is on its way, and durable+2 while a group is being appended.
type Sequencer struct {
	cell     *cell.Cell
	building *Group
	durable  uint64
	seeds    *rand.ChaCha8
	due      time.Time
}

// Group is what one append to the journal carries.
type Group struct {
	Number uint64
	Batch  []byte
	Events []kernel.Emitted // of the kinds that are followed
	At     domain.Time
	calls  []*Call
	began  time.Time // when the engine had the first decision in it
}

// Call is a command on its way.
type Call struct {
	Cmd  kernel.Command
	Err  error
	done chan struct{} // receives once
}

// NewSequencer goes on with a cell whose last journal entry was `last`. Identifiers that commands make beside their own
// come from seed.
func NewSequencer(c *cell.Cell, last uint64, seed [32]byte) *Sequencer {
	return &Sequencer{cell: c, building: &Group{Number: last + 1}, durable: last, seeds: rand.NewChaCha8(seed)}
}

// Execute decides some commands at one time and tells how many of them, from the first one on: it stops when the group is
// full. Those that it returns can be answered: they changed nothing, and what they saw is durable. The others that it
// decided wait in the group that is being built.
func (s *Sequencer) Execute(now time.Time, follow kernel.KindMask, some []*Call) (answered []*Call, decided int) {
	g := s.building
	env := kernel.Env{Now: domain.TimeOf(now), Number: g.Number, Follow: follow, Batch: g.Batch, Events: g.Events}
	for _, c := range some {
		if decided > 0 && len(env.Batch) >= groupBytesMax {
			break
		}
		decided++
		_, _ = s.seeds.Read(env.Seed[:]) // never fails
		_, c.Err = s.cell.Execute(c.Cmd, &env)
		// A command that changed nothing may have seen what is not durable yet, and tells it by its answer.
		if len(env.Batch) > 0 || s.durable+1 < g.Number {
			g.calls = append(g.calls, c)
		} else {
			answered = append(answered, c)
		}
	}
	g.Batch, g.Events, g.At = env.Batch, env.Events, env.Now
	s.plan()
	return answered, decided
}

// plan notes when the next Tick has to run.
func (s *Sequencer) plan() {
	s.due = time.Time{}
	if next := s.cell.NextDeadline(); next != 0 {
		s.due = next.Std()
	}
}

// Due is when the next Tick has to run; zero while nothing waits.
func (s *Sequencer) Due() time.Time { return s.due }

// Take hands out what has gathered, or nil, and begins the next group in spare. The state is then what it is after the
// group that was handed out.
func (s *Sequencer) Take(spare *Group) *Group {
	g := s.building
	if len(g.Batch) == 0 {
		return nil
	}
	if cap(spare.Batch) > 1<<22 {
		spare.Batch = nil // one large group must not hold its memory for ever
	}
	clear(spare.calls)
	*spare = Group{Number: g.Number + 1, Batch: spare.Batch[:0], calls: spare.calls[:0]}
	s.building = spare
	return g
}

// Gathered is how many bytes have gathered.
func (s *Sequencer) Gathered() int { return len(s.building.Batch) }

// TakeIdle hands out the commands that changed nothing and only wait for the groups before them, when nothing else has
// gathered.
func (s *Sequencer) TakeIdle() []*Call {
	if len(s.building.Batch) > 0 {
		return nil
	}
	waiting := s.building.calls
	s.building.calls = nil
	return waiting
}

// Durable says that all groups up to number are in the journal.
func (s *Sequencer) Durable(number uint64) { s.durable = number }

// Abandon hands out every command that waits in the group being built: the journal has failed.
func (s *Sequencer) Abandon() []*Call {
	waiting := s.building.calls
	s.building.calls = nil
	return waiting
}

// Calls are the commands that wait for the group.
func (g *Group) Calls() []*Call { return g.calls }

// Cell is the state.
func (s *Sequencer) Cell() *cell.Cell { return s.cell }

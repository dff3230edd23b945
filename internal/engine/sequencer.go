package engine

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/tracing"
)

// Sequencer decides commands one after another and gathers their transactions in groups. It is the part of the engine without goroutines
// and clock: the Engine runs it under its lock, and the simulator calls it directly, so that both run the same code.
//
// It keeps two numbers: durable is that of the last group in the journal, and building.Number that of the group which is being built.
// There are at most two groups: building.Number is durable+1 if no append is in progress, and durable+2 while a group is being appended.
type Sequencer struct {
	cell     *cell.Cell
	building *Group
	durable  uint64
	seeds    *rand.ChaCha8
	due      time.Time
	env      kernel.Env      // of Execute, which would otherwise allocate one
	tracing  *tracing.Tracer // nil: nothing is traced
}

// Group is the content of one append to the journal.
type Group struct {
	Number uint64
	Batch  []byte
	Events []kernel.Emitted // of the followed kinds
	At     domain.Time
	calls  []*Call
	began  time.Time // when the first command was added to it
}

// Call is a command that waits for its outcome.
type Call struct {
	Cmd  kernel.Command
	Err  error
	done chan struct{} // receives once

	trace *commandTrace // nil: it is not traced
}

// NewSequencer continues a cell whose last journal entry was `last`. Commands derive further identifiers from seed.
func NewSequencer(c *cell.Cell, last uint64, seed [32]byte) *Sequencer {
	return &Sequencer{cell: c, building: &Group{Number: last + 1}, durable: last, seeds: rand.NewChaCha8(seed)}
}

// Execute decides commands in order at the same time until the group is full, and returns how many it decided. answered are those that
// can be answered at once, because they changed nothing and what they read is durable. The other decided commands wait in the group that
// is being built.
func (s *Sequencer) Execute(now time.Time, follow kernel.KindMask, some []*Call) (answered []*Call, decided int) {
	g := s.building
	env := &s.env
	*env = kernel.Env{Now: domain.TimeOf(now), Number: g.Number, Follow: follow, Batch: g.Batch, Events: g.Events}
	for _, c := range some {
		if decided > 0 && len(env.Batch) >= groupBytesMax {
			break
		}
		decided++
		_, _ = s.seeds.Read(env.Seed[:]) // never fails
		before := len(env.Events)
		_, c.Err = s.cell.Execute(c.Cmd, env)
		if c.trace != nil {
			c.trace.decided(env.Events[before:])
		}
		if s.tracing.On() {
			traceMatches(s.tracing, env.Events[before:])
		}
		// A command that changed nothing may have read changes that are not durable yet, and its answer would reveal them.
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

// plan stores when the next Tick must run.
func (s *Sequencer) plan() {
	s.due = time.Time{}
	if next := s.cell.NextDeadline(); next != 0 {
		s.due = next.Std()
	}
}

// Due returns when the next Tick must run; zero without deadlines.
func (s *Sequencer) Due() time.Time { return s.due }

// Take returns the current group, or nil if it is empty, and starts the next one in spare. At that moment the state is exactly that
// after the returned group.
func (s *Sequencer) Take(spare *Group) *Group {
	g := s.building
	if len(g.Batch) == 0 {
		return nil
	}
	if cap(spare.Batch) > 1<<22 { // do not keep the memory of one large group forever
		spare.Batch, spare.Events = nil, nil
	}
	clear(spare.calls)
	clear(spare.Events)
	*spare = Group{Number: g.Number + 1, Batch: spare.Batch[:0], Events: spare.Events[:0], calls: spare.calls[:0]}
	s.building = spare
	return g
}

// Gathered returns the size of the current group in bytes.
func (s *Sequencer) Gathered() int { return len(s.building.Batch) }

// TakeIdle returns the commands that changed nothing and only wait for earlier groups, if the current group is otherwise empty.
func (s *Sequencer) TakeIdle() []*Call {
	if len(s.building.Batch) > 0 {
		return nil
	}
	waiting := s.building.calls
	s.building.calls = nil
	return waiting
}

// Apply applies a group that another node has decided and made durable. The Sequencer must not hold commands.
func (s *Sequencer) Apply(number uint64, batch []byte, follow kernel.KindMask) (*Group, error) {
	if want := s.durable + 1; number != want || s.ahead() {
		return nil, fmt.Errorf("entry %d does not follow entry %d", number, s.durable)
	}
	events, err := s.cell.ReplayFor(number, batch, follow)
	if err != nil {
		return nil, err
	}
	s.durable, s.building.Number = number, number+1
	return &Group{Number: number, Batch: batch, Events: events, At: s.cell.Last()}, nil
}

// ahead reports whether the state has changes that are not known to be durable.
func (s *Sequencer) ahead() bool { return s.building.Number > s.durable+1 || len(s.building.Batch) > 0 }

// Durable records that all groups up to number are in the journal.
func (s *Sequencer) Durable(number uint64) { s.durable = number }

// Abandon returns every command in the group being built, after the journal has failed.
func (s *Sequencer) Abandon() []*Call {
	waiting := s.building.calls
	s.building.calls = nil
	return waiting
}

// Calls returns the commands that wait for the group.
func (g *Group) Calls() []*Call { return g.calls }

// Cell returns the state.
func (s *Sequencer) Cell() *cell.Cell { return s.cell }

package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/engine"
)

// Sixty-four commands of the largest size once exceeded a journal entry: the append failed, and the engine stopped.
func TestFullGroupEndsAStep(t *testing.T) {
	s := engine.NewSequencer(cell.New(cell.DefaultConfig()), 0, [32]byte{})
	queue := &engine.Call{Cmd: &hosting.CreateQueue{Queue: placement.Queue{Name: "cup", Timeout: time.Minute}}}
	if s.Execute(time.Now(), kernel.AllKinds(), []*engine.Call{queue}); queue.Err != nil {
		t.Fatal(queue.Err)
	}
	calls := make([]*engine.Call, 64)
	for i := range calls {
		calls[i] = &engine.Call{Cmd: &hosting.StartPlacement{Placement: placement.Placement{
			ID: fmt.Sprint("p-", i), Queue: "cup", PlayersMax: 1, Data: strings.Repeat("x", 1<<20),
		}}}
	}
	for rest, steps := calls, 1; len(rest) > 0; steps++ {
		_, decided := s.Execute(time.Now(), kernel.AllKinds(), rest)
		if bytes := s.Gathered(); decided == 0 || bytes > 10<<20 {
			t.Fatalf("step %d decided %d commands and gathered %d bytes", steps, decided, bytes)
		}
		for _, c := range rest[:decided] {
			if c.Err != nil {
				t.Fatal(c.Err)
			}
		}
		rest = rest[decided:]
		s.Take(&engine.Group{})
	}
}

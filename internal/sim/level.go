package sim

import (
	"fmt"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
)

// newCell returns a cell of a fictitious next release, in data that this release began.
func (w *World) newCell() *cell.Cell {
	c := cell.New(w.cell)
	c.Register(nextRoom, &next{k: c.Kernel})
	return c
}

// The additions of the next release: a room with an event and a snapshot part.
const (
	nextRoom  kernel.RoomNo = 15
	nextKind                = 255
	nextLevel               = kernel.Level + 1
)

type nextEvent struct{ Count uint64 }

func (*nextEvent) Kind() kernel.Kind      { return nextKind }
func (*nextEvent) Level() uint            { return nextLevel }
func (e *nextEvent) Fields(c *wire.Codec) { wire.Int(c, 1, &e.Count) }

type next struct {
	kernel.Plain
	k     *kernel.Kernel
	count uint64
}

func (*next) Events() []func() kernel.Event { return []func() kernel.Event{kernel.Empty[nextEvent]} }

// Apply counts the events, none of which may come before the level is in force.
func (n *next) Apply(_ domain.Time, e kernel.Event) {
	if n.k.Level() < nextLevel {
		panic(violation{fmt.Sprintf("an event of level %d at level %d", nextLevel, n.k.Level())})
	}
	n.count += e.(*nextEvent).Count
}

// Freeze also writes a part when there was no event.
func (n *next) Freeze(*kernel.Head) []kernel.Frozen {
	count := n.count
	return []kernel.Frozen{func(w *kernel.PartWriter) { w.Part(nextKind, &nextEvent{count}) }}
}

func (n *next) Load(l *kernel.Loader, kind uint64, body []byte) (known bool, err error) {
	if kind != nextKind {
		return false, nil
	}
	return true, kernel.LoadWith(l, body, func(x nextEvent) { n.count = x.Count })
}

func (*next) Restore(*kernel.Head) error { return nil }

// doNext is a command of the next release.
type doNext struct{}

func (*doNext) Decide(t *kernel.Tx) error {
	t.Emit(&nextEvent{1})
	return nil
}

// ofNextRelease makes commands of the next release, and raises the level at some point.
var ofNextRelease = []maker{
	{2, func(*Wishes, *cell.View) kernel.Command { return &doNext{} }},
	{1, func(*Wishes, *cell.View) kernel.Command { return &kernel.RaiseLevel{To: nextLevel} }},
}

package cell

import (
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/wire"
)

// QueueChanged is a queue as it is now: new, or with other attributes.
type QueueChanged struct{ Queue placement.Queue }

// QueueRemoved is the end of a queue. Its pending placements ended before, in the same transaction.
type QueueRemoved struct{ Name string }

// PlacementStarted is a new placement, pending.
type PlacementStarted struct{ Placement placement.Placement }

// PlacementRetried says that the attempt did not become an active game session; the placement waits for another one.
type PlacementRetried struct{ ID string }

// PlacementPassed says that the locations of the override had their one pass; from now on the queue's others count, too.
type PlacementPassed struct{ ID string }

// PlacementEnded is the end of a placement. When it was fulfilled, its players were reserved before, in the same
// transaction. Passed says why the places were not taken that it could not go to.
type PlacementEnded struct {
	ID     string
	Status placement.Status
	Passed []placement.Try
}

func (*QueueChanged) kind() Kind     { return KindQueueChanged }
func (*QueueRemoved) kind() Kind     { return KindQueueRemoved }
func (*PlacementStarted) kind() Kind { return KindPlacementStarted }
func (*PlacementRetried) kind() Kind { return KindPlacementRetried }
func (*PlacementPassed) kind() Kind  { return kindPlacementPassed }
func (*PlacementEnded) kind() Kind   { return KindPlacementEnded }

// Fields of the event.
func (e *QueueChanged) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Queue, true, (*placement.Queue).Fields)
}

// Fields of the event.
func (e *QueueRemoved) Fields(c *wire.Codec) { c.String(1, &e.Name) }

// Fields of the event.
func (e *PlacementStarted) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Placement, true, (*placement.Placement).Fields)
}

// Fields of the event.
func (e *PlacementRetried) Fields(c *wire.Codec) { c.String(1, &e.ID) }

// Fields of the event.
func (e *PlacementPassed) Fields(c *wire.Codec) { c.String(1, &e.ID) }

// Fields of the event.
func (e *PlacementEnded) Fields(c *wire.Codec) {
	c.String(1, &e.ID)
	wire.Int(c, 2, &e.Status)
	wire.Many(c, 3, &e.Passed, (*placement.Try).Fields)
}

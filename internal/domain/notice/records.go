// Package notice is the room of notices to external receivers: it has one record for each event and receiver, from the event until the
// receiver has received it. So no notice is lost when the service crashes, and a receiver that was unavailable gets all of them later.
package notice

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/wire"
)

// References to records in the tables of this package; see chunk.Ref.
type (
	Ref             = chunk.Ref[Notice]
	SubscriptionRef = chunk.Ref[Subscription]
)

// Bus is the topic of the event bus, which gets all notices.
const Bus = ""

// Notice is an event for one receiver. The event of a placement is composed when it is sent, because an ended placement no longer
// changes. A matchmaking event is stored completely, because its tickets change.
type Notice struct {
	No              uint64      // number among all notices of the cell, in order
	Topic           string      // ARN, or Bus
	ID              domain.UUID // of the event; the same for all receivers and attempts
	At              domain.Time // when it happened
	Until           domain.Time // when the notice is dropped
	Placement       string
	CustomEventData string // of its queue or matchmaking configuration at the time of the event
	Match           *Match // of a matchmaking event; Placement is then empty
}

func (n *Notice) Fields(c *wire.Codec) {
	wire.Int(c, 1, &n.No)
	c.Shared(2, &n.Topic)
	c.UUID(3, &n.ID)
	wire.Int(c, 4, &n.At)
	wire.Int(c, 5, &n.Until)
	c.String(6, &n.Placement)
	c.Shared(7, &n.CustomEventData)
	wire.Optional(c, 8, &n.Match, (*Match).Fields)
}

// Subscription records that the receiver at a URL wants the notices of a topic.
type Subscription struct {
	Topic, URL string
	Confirmed  domain.Time
	Changed    uint64
}

func (s *Subscription) Fields(c *wire.Codec) {
	c.String(1, &s.Topic)
	c.String(2, &s.URL)
	wire.Int(c, 3, &s.Confirmed)
}

// Package notice holds what is still to be told to receivers outside: a record for each thing to tell and each receiver
// of it, from the moment the thing happened until the receiver has it. So nothing is lost when the service dies, and a
// receiver that is away gets everything when it is back.
package notice

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/wire"
)

// These name a record inside one of this package's tables; see chunk.Ref.
type (
	Ref             = chunk.Ref[Notice]
	SubscriptionRef = chunk.Ref[Subscription]
)

// Bus is the topic of the event bus: it is told of everything.
const Bus = ""

// Notice is one thing to tell to one receiver. What exactly is told is looked up when it is sent: the placement has ended
// and does not change any more. Events of matchmaking are kept whole: their tickets go on.
type Notice struct {
	No              uint64      // counts the notices of the cell: their order
	Topic           string      // ARN, or Bus
	ID              domain.UUID // of the event; the same for all its receivers and for each time it is sent
	At              domain.Time // when it happened
	Until           domain.Time // after that nobody wants to hear it any more
	Placement       string
	CustomEventData string // of its queue or matchmaking configuration, as it was then
	Match           *Match // of an event of matchmaking; then Placement is empty
}

// Fields of a Notice.
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

// Subscription says that the receiver at a URL wants to hear of a topic.
type Subscription struct {
	Topic, URL string
	Confirmed  domain.Time
	Changed    uint64
}

// Fields of a Subscription.
func (s *Subscription) Fields(c *wire.Codec) {
	c.String(1, &s.Topic)
	c.String(2, &s.URL)
	wire.Int(c, 3, &s.Confirmed)
}

package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/wire"
)

// GameInstanceTold is one notice for the server of a game instance: its outbox takes it. First is the number of the oldest
// notice that is kept.
type GameInstanceTold struct {
	Instance domain.UUID
	Seq      uint64
	First    uint64
	Type     flow.NoticeType
	Body     string // a flow.Notice; see flow.DecodeNotice
}

// EventsSubscribed is a subscription of the studio as it is now.
type EventsSubscribed struct{ Subscription flow.Subscription }

// EventsUnsubscribed is the end of one.
type EventsUnsubscribed struct{ ID domain.UUID }

// EventsTaken says that the receiver of a subscription has the events up to a number, and until when it has time for the next;
// 0: none that it wants waits.
type EventsTaken struct {
	ID     domain.UUID
	No     uint64
	TakeBy domain.ContactTime
}

// SubscriptionLapsed says that nothing is kept for a subscription any more: its receiver has taken nothing for too long.
// Waiting is how many events were behind what it has.
type SubscriptionLapsed struct {
	ID      domain.UUID
	Waiting uint64
}

func (*GameInstanceTold) kind() Kind   { return KindGameInstanceTold }
func (*EventsSubscribed) kind() Kind   { return KindEventsSubscribed }
func (*EventsUnsubscribed) kind() Kind { return KindEventsUnsubscribed }
func (*EventsTaken) kind() Kind        { return kindEventsTaken }
func (*SubscriptionLapsed) kind() Kind { return KindSubscriptionLapsed }

// Fields of the event.
func (e *GameInstanceTold) Fields(c *wire.Codec) {
	c.UUID(1, &e.Instance)
	wire.Int(c, 2, &e.Seq)
	wire.Int(c, 3, &e.First)
	wire.Int(c, 4, &e.Type)
	c.String(5, &e.Body)
}

// Fields of the event.
func (e *EventsSubscribed) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Subscription, true, (*flow.Subscription).Fields)
}

// Fields of the event.
func (e *EventsUnsubscribed) Fields(c *wire.Codec) { c.UUID(1, &e.ID) }

// Fields of the event.
func (e *EventsTaken) Fields(c *wire.Codec) {
	c.UUID(1, &e.ID)
	wire.Int(c, 2, &e.No)
	wire.Int(c, 3, &e.TakeBy)
}

// Fields of the event.
func (e *SubscriptionLapsed) Fields(c *wire.Codec) {
	c.UUID(1, &e.ID)
	wire.Int(c, 2, &e.Waiting)
}

// newFeedEvent returns an empty event about what servers and the studio are told, or nil when the kind is none of these.
func newFeedEvent(k Kind) Event {
	switch k {
	case KindGameInstanceTold:
		return &GameInstanceTold{}
	case KindEventsSubscribed:
		return &EventsSubscribed{}
	case KindEventsUnsubscribed:
		return &EventsUnsubscribed{}
	case kindEventsTaken:
		return &EventsTaken{}
	case KindSubscriptionLapsed:
		return &SubscriptionLapsed{}
	}
	return nil
}

func (c *Cell) applyFeed(at domain.Time, event Event) {
	switch e := event.(type) {
	case *GameInstanceTold:
		r, _ := c.flow.Instance(e.Instance)
		c.flow.TellServer(r, flow.Noticed{At: at, Commit: c.number, Part: c.part, Type: e.Type, Body: e.Body}, e.First).Changed = c.touch()
	case *EventsSubscribed:
		x := e.Subscription
		x.Changed = c.touch()
		c.flow.Studio.Put(x)
	case *EventsUnsubscribed:
		c.flow.Studio.Remove(e.ID)
		c.touch()
	case *EventsTaken:
		x, _ := c.flow.Studio.Find(e.ID)
		x.Done, x.TakeBy, x.Lost, x.Changed = e.No, e.TakeBy, 0, c.touch()
		c.flow.Studio.Put(x)
	case *SubscriptionLapsed:
		x, _ := c.flow.Studio.Find(e.ID)
		x.Lapsed, x.TakeBy, x.Changed = at, 0, c.touch()
		c.flow.Studio.Put(x)
	}
	c.waitForReceivers()
}

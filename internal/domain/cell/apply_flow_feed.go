package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

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

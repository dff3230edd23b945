package playerflow

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
)

func (c *State) applyFeed(at domain.Time, event kernel.Event) {
	switch e := event.(type) {
	case *GameInstanceTold:
		r, _ := c.Flow.Instance(e.Instance)
		c.Flow.TellServer(r, flow.Noticed{At: at, Commit: c.Number(), Part: c.Part(), Type: e.Type, Body: e.Body}, e.First).Changed = c.Touch()
	case *EventsSubscribed:
		x := e.Subscription
		x.Changed = c.Touch()
		c.Flow.Studio.Put(x)
	case *EventsUnsubscribed:
		c.Flow.Studio.Remove(e.ID)
		c.Touch()
	case *EventsTaken:
		x, _ := c.Flow.Studio.Find(e.ID)
		x.Done, x.TakeBy, x.Lost, x.Changed = e.No, e.TakeBy, 0, c.Touch()
		c.Flow.Studio.Put(x)
	case *SubscriptionLapsed:
		x, _ := c.Flow.Studio.Find(e.ID)
		x.Lapsed, x.TakeBy, x.Changed = at, 0, c.Touch()
		c.Flow.Studio.Put(x)
	}
	c.waitForReceivers()
}

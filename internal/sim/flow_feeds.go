package sim

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// The studio's backends subscribe to players' events, and game servers search for more players.

var feedMakers = []maker{{1, subscribe}, {1, unsubscribe}, {4, takeEvents}, {6, enterBackfill}, {2, leaveBackfill}}

func subscribe(w *Wishes, v *cell.View) kernel.Command {
	all, _ := v.Subscriptions()
	for _, x := range all {
		if x.Lapsed != 0 && w.oneIn(2) {
			return &playerflow.SubscribeEvents{Subscription: flow.Subscription{ID: x.ID}} // continues, with a gap
		}
	}
	if len(all) > 2 {
		return nil
	}
	x := flow.Subscription{ID: flow.SubscriptionID(w.uuid()), By: "backend"}
	if w.oneIn(2) {
		x.Types = []string{"OnPartyChanged", "OnPenaltyApplied"}
	}
	if w.oneIn(3) {
		x.Players = []string{w.playerName()}
	}
	return &playerflow.SubscribeEvents{Subscription: x}
}

func (w *Wishes) subscription(v *cell.View) (flow.Subscription, uint64, bool) {
	all, head := v.Subscriptions()
	if len(all) == 0 {
		return flow.Subscription{}, 0, false
	}
	return all[w.chance.IntN(len(all))], head, true
}

func unsubscribe(w *Wishes, v *cell.View) kernel.Command {
	x, _, ok := w.subscription(v)
	if !ok {
		return nil
	}
	return &playerflow.UnsubscribeEvents{ID: x.ID}
}

func takeEvents(w *Wishes, v *cell.View) kernel.Command {
	x, head, ok := w.subscription(v)
	if !ok {
		return nil
	}
	return &playerflow.TakeEvents{ID: x.ID, No: x.Done + w.chance.Uint64N(head-x.Done+3)}
}

func enterBackfill(w *Wishes, v *cell.View) kernel.Command {
	s, _, g := w.played(v)
	if s.Game == nil {
		return nil
	}
	return &playerflow.EnterBackfill{Instance: g, Ticket: domain.BackfillID(w.uuid()), Slots: int32(w.chance.IntN(3))}
}

func leaveBackfill(w *Wishes, v *cell.View) kernel.Command {
	s, _, g := w.played(v)
	if s.Game == nil {
		return nil
	}
	return &playerflow.LeaveBackfill{Instance: g}
}

// feedsTold has what followers have read of the feeds.
type feedsTold struct {
	studio    uint64
	instances map[flow.InstanceID]uint64
}

// feedDurable reads a durable event like a follower: the numbers of the studio's events, and of each game server's notices, have no gaps.
func (w *World) feedDurable(e kernel.Event) {
	switch e := e.(type) {
	case *playerflow.PlayersTold:
		if e.No == 0 {
			return
		}
		if e.No != w.feeds.studio+1 || e.Kept == 0 || e.Kept > e.No {
			w.violated("the studio's event %d, kept from %d on, follows %d", e.No, e.Kept, w.feeds.studio)
		}
		w.feeds.studio = e.No
	case *playerflow.GameInstanceTold:
		if w.feeds.instances == nil {
			w.feeds.instances = map[flow.InstanceID]uint64{}
		}
		if last := w.feeds.instances[e.Instance]; e.Seq != last+1 {
			w.violated("%s: notice %d follows %d", e.Instance, e.Seq, last)
		}
		w.feeds.instances[e.Instance] = e.Seq
		if _, err := flow.DecodeNotice(e.Body); err != nil {
			w.violated("%s: %v", e.Type, err)
		}
	}
}

// checkFeeds: a receiver can get every event after those that it confirmed, or gets the number of lost ones; a lapsed subscription gets
// nothing.
func (w *World) checkFeeds(v *cell.View) {
	all, head := v.Subscriptions()
	for _, x := range all {
		page, ok := v.StudioEvents(x.ID, x.Done, 1<<20, 1<<30)
		if ok != (x.Lapsed == 0) || ok && page.Missed != x.Lost || x.Done > head {
			w.violated("subscription %s, lapsed at %d, has %d of %d events taken and lost %d, and has missed %d", x.ID, x.Lapsed, x.Done, head, x.Lost, page.Missed)
		}
	}
}

package playerflow

import (
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/wire"
)

// The feed of players' events for the studio's backends. It is separate from the players' outboxes, because those are trimmed when a
// client acknowledges events. It exists only while there is a subscription.

// tellStudio numbers an event in the studio's feed, if a subscription wants it.
func (t *transaction) tellStudio(e *PlayersTold) {
	s := &t.Flow.Studio
	if !s.Listens() || e.Type == flow.OnSync { // an OnSync is for one client and contains nothing new
		return
	}
	wanted, first := s.Wanted(e.Type, hearers(e))
	if !wanted {
		return
	}
	if first {
		e.TakeBy = t.takeBy()
	}
	e.No, e.Kept = s.Head()+1, s.KeptWith(flow.StudioEventSize(e.Body, len(e.To)))
}

// takeBy returns when a subscription lapses whose receiver takes none of the waiting events; 0: never.
func (t *transaction) takeBy() domain.ContactTime {
	if life := t.Config.Sessions.SubscriptionLife; life > 0 {
		return t.Contact.Add(life)
	}
	return 0
}

// receiversDue lapses the subscriptions whose receivers took no event in time.
func (t *transaction) receiversDue() {
	s := &t.Flow.Studio
	for _, x := range s.Subscriptions() {
		if x.TakeBy != 0 && x.TakeBy <= t.Contact {
			t.Emit(&SubscriptionLapsed{x.ID, s.Head() - x.Done})
		}
	}
}

// waitForReceivers sets the deadline of the subscription that lapses first.
func (c *State) waitForReceivers() {
	var next domain.ContactTime
	for _, x := range c.Flow.Studio.Subscriptions() {
		if x.TakeBy != 0 && (next == 0 || x.TakeBy < next) {
			next = x.TakeBy
		}
	}
	c.Waiting.Set(StudioReceivers, 0, next)
}

func hearers(e *PlayersTold) []flow.Hearer {
	all := make([]flow.Hearer, len(e.To))
	for i, to := range e.To {
		all[i] = flow.Hearer{Player: to.Player, Seq: to.Seq}
	}
	return all
}

// tellOnlyStudio queues an event about a player that only the studio gets.
func (t *transaction) tellOnlyStudio(kind flow.MessageType, m flow.Message, about string) {
	if t.Flow.Studio.Listens() {
		t.own().told = append(t.own().told, telling{kind: kind, body: m.Encode(), to: []string{about}, studio: true})
	}
}

// writeForStudio emits an event that no player gets.
func (t *transaction) writeForStudio(kind flow.MessageType, body string, about []string) {
	e := &PlayersTold{Type: kind, Body: body}
	for _, player := range about {
		e.To = append(e.To, Addressee{Player: player})
	}
	if t.tellStudio(e); e.No != 0 {
		t.Emit(e)
	}
}

func (c *State) applyStudioEvent(at domain.Time, e *PlayersTold) {
	c.Flow.Studio.Write(flow.StudioEvent{No: e.No, At: at, Commit: c.Number(), Part: c.Part(), Type: e.Type, Body: e.Body, To: hearers(e)}, e.Kept, e.TakeBy)
	if e.TakeBy != 0 {
		c.waitForReceivers()
	}
	c.Touch()
}

// SubscriptionsMax bounds the number of subscriptions.
const SubscriptionsMax = 64

// SubscribeEvents subscribes a backend to players' events from now on (Events.Subscribe). A repeat with the same id changes nothing,
// except that a lapsed subscription becomes active again.
type SubscribeEvents struct {
	Subscription flow.Subscription // ID, URL, Types, Players, By

	// Result: Subscription as it is now.
	Lapsed domain.Time // when it had lapsed, if this call renewed it; 0: it had not
}

// Hold implements quota.Taker.
func (cmd *SubscribeEvents) Hold(h quota.Holder) { cmd.Subscription.Holder = h }

func (cmd *SubscribeEvents) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if err := t.flowOn(); err != nil {
		return err
	}
	s := &t.Flow.Studio
	if x, ok := s.Find(cmd.Subscription.ID); ok {
		if x.Lapsed != 0 {
			if err := t.Quotas.Check(quota.Subscriptions, s.Held(), x.Holder, 1, SubscriptionsMax); err != nil {
				return err
			}
		}
		if cmd.Lapsed = x.Lapsed; x.Lapsed != 0 { // the next message reports the dropped events, whether or not it has a number
			x.Lost, x.Done = x.Lost+max(s.Head()-x.Done, 1), s.Head()
			x.Lapsed, x.TakeBy = 0, t.takeBy()
			t.Emit(&EventsSubscribed{x})
		}
		cmd.Subscription = x
		return nil
	}
	if err := t.Take(quota.Subscriptions, s.Held(), &cmd.Subscription.Holder, SubscriptionsMax); err != nil {
		return err
	}
	if n := len(s.Subscriptions()); n >= SubscriptionsMax {
		lapsed := slices.IndexFunc(s.Subscriptions(), func(x flow.Subscription) bool { return x.Lapsed != 0 })
		if lapsed < 0 {
			return flow.Refuse(flow.Refusal{Code: flow.InvalidArgument}, "subscriptions: %d exist; want at most %d", n, SubscriptionsMax)
		}
		t.Emit(&EventsUnsubscribed{s.Subscriptions()[lapsed].ID}) // the longest-lapsed one makes room
	}
	x := &cmd.Subscription
	x.Created, x.Done = t.Now, s.Head()
	x.Players = slices.Compact(slices.Sorted(slices.Values(x.Players)))
	t.Emit(&EventsSubscribed{*x})
	return nil
}

// UnsubscribeEvents ends a subscription (Events.Unsubscribe). An unknown id is not an error.
type UnsubscribeEvents struct {
	ID flow.SubscriptionID

	// Result
	Known bool
}

func (cmd *UnsubscribeEvents) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if _, cmd.Known = t.Flow.Studio.Find(cmd.ID); cmd.Known {
		t.Emit(&EventsUnsubscribed{cmd.ID})
	}
	return nil
}

// TakeEvents records that the receiver of a subscription has the events up to a number.
type TakeEvents struct {
	ID flow.SubscriptionID
	No uint64
}

func (cmd *TakeEvents) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	s := &t.Flow.Studio
	x, ok := s.Find(cmd.ID)
	no := min(cmd.No, s.Head())
	if !ok || x.Lapsed != 0 || no < x.Done || no == x.Done && x.Lost == 0 {
		return nil
	}
	e := &EventsTaken{ID: cmd.ID, No: no}
	if s.Waits(cmd.ID, no) {
		e.TakeBy = t.takeBy()
	}
	t.Emit(e)
	return nil
}

// StudioPage is the next batch of events for a subscription's receiver.
type StudioPage struct {
	Events []flow.StudioEvent // that the subscription wants; must not be changed
	Last   uint64             // number of the last event examined or dropped
	More   bool               // there are later events
	Missed uint64             // events dropped because too many were waiting
}

// studioLook is the most events that one call examines.
const studioLook = 2000

// StudioEvents returns the events of a subscription with numbers above `after`, as many as fit. ok is false if the subscription does not
// exist or has lapsed.
func (v *View) StudioEvents(id flow.SubscriptionID, after uint64, limit, bytes int) (page StudioPage, ok bool) {
	v.SawAll()
	s := &v.c.Flow.Studio
	x, ok := s.Find(id)
	if !ok || x.Lapsed != 0 {
		return page, false
	}
	page.Last = after
	if first := s.FirstKept(); after+1 < first {
		page.Missed, page.Last = first-1-after, first-1
	}
	if after <= x.Done {
		page.Missed += x.Lost
	}
	for i, e := range s.After(after) {
		if len(page.Events) == limit || bytes <= 0 || i == studioLook {
			page.More = true
			break
		}
		page.Last = e.No
		if x.Wants(e.Type, e.To) {
			page.Events = append(page.Events, e)
			bytes -= len(e.Body)
		}
	}
	return page, true
}

// Subscriptions returns the studio's subscriptions, oldest first, and the number of the latest event.
func (v *View) Subscriptions() (all []flow.Subscription, head uint64) {
	v.SawAll()
	return v.c.Flow.Studio.Subscriptions(), v.c.Flow.Studio.Head()
}

// LapsesAt returns when a subscription lapses unless its receiver takes an event; 0: no event waits for it.
func (v *View) LapsesAt(x *flow.Subscription) domain.Time {
	if x.TakeBy == 0 {
		return 0
	}
	return v.c.WallTime(x.TakeBy)
}

// FeedPart is a snapshot record about the feeds of servers and the studio; exactly one of its members is set.
type FeedPart struct {
	Server       *flow.ServerOutbox
	Subscription *flow.Subscription
	Event        *flow.StudioEvent
	Head         uint64
}

// Fields of the record.
func (p *FeedPart) Fields(c *wire.Codec) {
	wire.Optional(c, 1, &p.Server, (*flow.ServerOutbox).Fields)
	wire.Optional(c, 2, &p.Subscription, (*flow.Subscription).Fields)
	wire.Optional(c, 3, &p.Event, (*flow.StudioEvent).Fields)
	wire.Int(c, 4, &p.Head)
}

func freezeFeeds(instances chunk.Frozen[flow.Instance], studio flow.Studio) kernel.Frozen {
	return func(w *kernel.PartWriter) {
		for _, x := range instances.All() {
			if box := x.ServerOutbox(); box != nil {
				w.Part(partFlowFeed, &FeedPart{Server: box})
			}
		}
		if head := studio.Head(); head > 0 {
			w.Part(partFlowFeed, &FeedPart{Head: head})
		}
		for _, x := range studio.Subscriptions() {
			w.Part(partFlowFeed, &FeedPart{Subscription: &x})
		}
		for _, e := range studio.After(0) {
			w.Part(partFlowFeed, &FeedPart{Event: &e})
		}
	}
}

func (c *State) loadFeed(l *kernel.Loader, body []byte) error {
	var p FeedPart
	if err := l.Reader.Read(body, &p); err != nil {
		return err
	}
	if p.Server != nil && !c.Flow.RestoreServerOutbox(*p.Server) {
		return fmt.Errorf("snapshot: an outbox of %s, which there is not: %w", p.Server.Instance, wire.ErrMalformed)
	}
	c.Flow.Studio.Restore(p.Head, p.Subscription, p.Event)
	return nil
}

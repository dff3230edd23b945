package playerapi

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/webhook"
)

// feeds tell those who are no players: the servers of game instances, and the backends of the studio, by streams and by
// webhooks. What is to be told is in the state; this only says when to look.
type feeds struct {
	door    *Door
	ctx     context.Context // ends when the door closes
	stop    context.CancelFunc
	running sync.WaitGroup
	client  *http.Client

	unfollow func()
	turn     sync.Mutex // for one subscription that comes or goes at a time; taken before mu
	unlisten func()     // of what players are told; nil while nobody has subscribed
	reading  frames.Config

	mu         sync.Mutex
	servers    map[domain.UUID]map[*line]bool // by game instance
	studio     map[domain.UUID]*line          // by subscription
	deliveries map[domain.UUID]*delivery      // by subscription
	closed     bool
}

func newFeeds(d *Door) *feeds {
	x := &feeds{
		door: d, client: d.config.Webhooks.NewClient(2),
		servers: map[domain.UUID]map[*line]bool{}, studio: map[domain.UUID]*line{}, deliveries: map[domain.UUID]*delivery{},
	}
	x.client.Timeout = webhookPatience
	x.ctx, x.stop = context.WithCancel(context.Background())
	x.reading = frames.Config{MessageMax: messageMax, Pace: linePace, Running: &x.running, Panics: d.config.Panics, Door: panicDoor}
	x.unfollow = d.engine.Follow(cell.Kinds(
		cell.KindGameInstanceTold, cell.KindGameInstanceChanged, cell.KindEventsSubscribed, cell.KindEventsUnsubscribed,
		cell.KindSubscriptionLapsed,
	), x.follow)
	var all []flow.Subscription
	if err := d.engine.Read(x.ctx, func(v *cell.View) error { all, _ = v.Subscriptions(); return nil }); err != nil {
		d.log.Error("the subscriptions of players' events cannot be read", "err", err)
	}
	for _, s := range all {
		if s.Lapsed != 0 {
			d.log.Warn("a subscription of players' events has lapsed: nothing is told", "subscription", objects.SubscriptionID(s.ID), "since", objects.Stamp(s.Lapsed))
			continue
		}
		if s.URL != "" && webhook.CheckURL(s.URL) != nil {
			d.log.Warn("a webhook of players' events gets them without TLS, so others on the way can read them; subscribe anew with https",
				"subscription", objects.SubscriptionID(s.ID), "url", webhook.PlainURL(s.URL))
		}
		x.subscribed(s)
	}
	return x
}

// close ends all lines and webhooks. What is under way is told again by the next run.
func (x *feeds) close() {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.stop()
	x.unfollow()
	x.turn.Lock()
	if x.unlisten != nil {
		x.unlisten()
	}
	x.turn.Unlock()
	x.running.Wait()
	x.client.CloseIdleConnections()
}

// follow wakes those who have something to look at.
func (x *feeds) follow(c engine.Committed) {
	for _, e := range c.Events {
		switch e := e.Event.(type) {
		case *cell.GameInstanceTold:
			x.wakeServers(e.Instance)
		case *cell.GameInstanceChanged:
			if !e.Instance.Live() {
				x.wakeServers(e.Instance.ID)
			}
		case *cell.EventsSubscribed:
			x.subscribed(e.Subscription)
		case *cell.EventsUnsubscribed:
			x.unsubscribed(e.ID)
		case *cell.SubscriptionLapsed:
			x.door.log.Warn("a subscription of players' events lapses: its receiver has taken none for too long; Events.Subscribe with the same X-Request-Id lets it go on",
				"subscription", objects.SubscriptionID(e.ID), "waiting", e.Waiting)
			x.unsubscribed(e.ID)
		}
	}
}

func (x *feeds) wakeServers(instance domain.UUID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for l := range x.servers[instance] {
		l.wake()
	}
}

// subscribed begins to tell a subscription, or goes on with it. Players' events are followed only while there is one.
func (x *feeds) subscribed(s flow.Subscription) {
	x.turn.Lock()
	defer x.turn.Unlock()
	x.mu.Lock()
	if s.URL != "" && x.deliveries[s.ID] == nil && !x.closed {
		d := newDelivery(x, &s)
		x.deliveries[s.ID] = d
		x.running.Go(func() {
			defer d.stop()
			x.door.config.Panics.Restart(d.ctx, panicDoor, webhookLastRetry, d.run)
		})
	}
	first := x.unlisten == nil && !x.closed
	x.mu.Unlock()
	if first {
		x.unlisten = x.door.engine.Follow(cell.Kinds(cell.KindPlayersTold), x.wakeStudio)
		x.wakeStudio(engine.Committed{}) // for what happened before
	}
}

// unsubscribed ends a subscription, or leaves it alone.
func (x *feeds) unsubscribed(id domain.UUID) {
	x.turn.Lock()
	defer x.turn.Unlock()
	x.mu.Lock()
	if d := x.deliveries[id]; d != nil {
		d.stop()
		delete(x.deliveries, id)
	}
	if l := x.studio[id]; l != nil {
		l.end(closeEnded)
	}
	x.mu.Unlock()
	var left []flow.Subscription
	err := x.door.engine.Read(x.ctx, func(v *cell.View) error { left, _ = v.Subscriptions(); return nil })
	listens := slices.ContainsFunc(left, func(s flow.Subscription) bool { return s.Lapsed == 0 })
	if err == nil && !listens && x.unlisten != nil {
		x.unlisten()
		x.unlisten = nil
	}
}

func (x *feeds) wakeStudio(c engine.Committed) {
	wanted := len(c.Events) == 0
	for _, e := range c.Events {
		told, ok := e.Event.(*cell.PlayersTold)
		wanted = wanted || ok && told.No != 0
	}
	if !wanted {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range x.studio {
		l.wake()
	}
	for _, d := range x.deliveries {
		d.wake()
	}
}

// serve runs a line that enter has made known, until it ends; then leave forgets it.
func (x *feeds) serve(l *line, enter, leave func()) {
	if !x.begin(l, enter) {
		l.drop()
		return
	}
	x.running.Go(func() {
		defer x.forget(leave)
		defer func() { <-l.gone }()
		defer x.door.config.Panics.Confine(panicDoor, l.drop)
		l.run(x.ctx)
	})
}

// begin starts to read from a line; false when the door is closed.
func (x *feeds) begin(l *line, enter func()) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed {
		enter()
		frames.Read(l.conn, &x.reading, fromReceiver{l})
	}
	return !x.closed
}

func (x *feeds) forget(leave func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	leave()
}

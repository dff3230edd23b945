package feeds

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/live"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/playerapi/events"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/rates"
	"github.com/musterhq/muster/internal/playerapi/socket"
	"github.com/musterhq/muster/internal/playerapi/state"
	"github.com/musterhq/muster/internal/warm"
	"github.com/musterhq/muster/internal/webhook"
)

// Config has the dependencies and settings of the feeds.
type Config struct {
	State    *state.State
	Auth     *authentication.Authenticator
	Buckets  *rates.Buckets
	Webhooks *live.Value[webhook.Targets] // permitted URLs of subscriptions' webhooks
	Panics   *panics.Guard
}

// Feeds send events to game servers and the studio's backends, by streams and webhooks. The events are in the state; the feeds follow
// commits only to know when to read. Every node serves streams; only the leader calls webhooks.
type Feeds struct {
	Config
	events  events.Writer
	ctx     context.Context // ends when the door closes
	stop    context.CancelFunc
	running warm.Group // connections
	client  *http.Client

	unfollow func()
	turn     sync.Mutex // held while a subscription begins or ends; locked before mu
	unlisten func()     // stops following players' events; nil without subscriptions
	reading  frames.Config

	mu         sync.Mutex
	servers    map[flow.InstanceID]map[*connection]bool // by game instance
	studio     map[flow.SubscriptionID]*connection      // by subscription
	deliveries map[flow.SubscriptionID]*delivery        // by subscription; only while this node leads
	leads      bool
	closed     bool

	delivering sync.WaitGroup
}

// SetWebhooks changes the permitted URLs, also for existing subscriptions.
func (x *Feeds) SetWebhooks(t webhook.Targets) {
	x.Webhooks.Set(t)
	x.client.CloseIdleConnections() // the next message checks its address
}

// Open begins to follow the state. Feeds must be closed before the engine.
func Open(c Config) *Feeds {
	x := &Feeds{
		Config: c, events: events.Writer{State: c.State}, client: webhook.NewTargetsClient(c.Webhooks.Get, 2),
		servers: map[flow.InstanceID]map[*connection]bool{}, studio: map[flow.SubscriptionID]*connection{}, deliveries: map[flow.SubscriptionID]*delivery{},
	}
	x.client.Timeout = webhookPatience
	x.ctx, x.stop = context.WithCancel(context.Background())
	x.reading = frames.Config{MessageMax: socket.MessageMax, Pace: connectionPace, Running: &x.running, Panics: c.Panics, Door: state.PanicDoor}
	x.unfollow = c.State.Follow(kernel.Kinds(
		new(playerflow.GameInstanceTold), new(playerflow.GameInstanceChanged), new(playerflow.EventsSubscribed), new(playerflow.EventsUnsubscribed),
		new(playerflow.SubscriptionLapsed),
	), x.follow)
	all, err := x.subscriptions()
	if err != nil {
		c.State.Log.Error("the subscriptions of players' events cannot be read", "error", err)
	}
	for _, s := range all {
		if s.Lapsed == 0 {
			x.subscribed(s.ID)
		}
	}
	return x
}

func (x *Feeds) subscriptions() (all []flow.Subscription, err error) {
	err = x.State.ReadHere(x.ctx, func(v *cell.View) error { all, _ = v.Subscriptions(); return nil })
	return all, err
}

// Lead starts the webhooks of existing and new subscriptions.
func (x *Feeds) Lead() {
	x.mu.Lock()
	x.leads = true
	x.mu.Unlock()
	all, _ := x.subscriptions() // fails only if the door is closing, or the engine has stopped
	for _, s := range all {
		switch {
		case s.Lapsed != 0:
			x.State.Log.Warn("a subscription of players' events has lapsed: its receiver gets no events", "subscription", objects.ID(s.ID), "since", objects.Stamp(s.Lapsed))
			continue
		case s.URL != "" && webhook.CheckURL(s.URL) != nil:
			x.State.Log.Warn("a webhook of players' events gets them without TLS, so others on the network can read them; subscribe again with https",
				"subscription", objects.ID(s.ID), "url", webhook.PlainURL(s.URL))
		}
		x.subscribed(s.ID)
	}
}

// Rest stops the webhooks. It interrupts running requests; the next leader repeats them.
func (x *Feeds) Rest() {
	x.mu.Lock()
	x.leads = false
	for id, d := range x.deliveries {
		d.stop()
		delete(x.deliveries, id)
	}
	x.mu.Unlock()
	x.delivering.Wait()
	x.client.CloseIdleConnections()
}

// Drop closes all connections of receivers, which reconnect. It returns the number of closed connections.
func (x *Feeds) Drop() (closed int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, on := range x.servers {
		for l := range on {
			l.end(socket.Draining)
			closed++
		}
	}
	for _, l := range x.studio {
		l.end(socket.Draining)
		closed++
	}
	return closed
}

// Close ends all connections and webhooks. The next run repeats messages in progress.
func (x *Feeds) Close() {
	x.Rest()
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
}

// follow wakes the connections and webhooks with new events.
func (x *Feeds) follow(c engine.Committed) {
	if c.Gap {
		x.missed()
	}
	for _, e := range c.Events {
		switch e := e.Event.(type) {
		case *playerflow.GameInstanceTold:
			x.wakeServers(e.Instance)
		case *playerflow.GameInstanceChanged:
			if !e.Instance.Live() {
				x.wakeServers(e.Instance.ID)
			}
		case *playerflow.EventsSubscribed:
			x.subscribed(e.Subscription.ID)
		case *playerflow.EventsUnsubscribed:
			x.unsubscribed(e.ID)
		case *playerflow.SubscriptionLapsed:
			x.unsubscribed(e.ID)
			if x.isLeading() { // once per cluster
				x.State.Log.Warn("a subscription of players' events lapses: its receiver has accepted none for too long; Events.Subscribe with the same X-Request-Id resumes it",
					"subscription", objects.ID(e.ID), "waiting", e.Waiting)
			}
		}
	}
}

// missed examines the whole state after a gap in the events.
func (x *Feeds) missed() {
	all, err := x.subscriptions()
	if err != nil {
		return // the door is closing, or the engine has stopped
	}
	live := map[flow.SubscriptionID]bool{}
	for _, s := range all {
		if s.Lapsed == 0 {
			live[s.ID] = true
			x.subscribed(s.ID)
		}
	}
	x.mu.Lock()
	var over []flow.SubscriptionID
	for id := range x.deliveries {
		if !live[id] {
			over = append(over, id)
		}
	}
	for id := range x.studio {
		if !live[id] && x.deliveries[id] == nil {
			over = append(over, id)
		}
	}
	for _, on := range x.servers {
		for l := range on {
			l.wake()
		}
	}
	x.mu.Unlock()
	for _, id := range over {
		x.unsubscribed(id)
	}
}

func (x *Feeds) isLeading() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.leads
}

func (x *Feeds) wakeServers(instance flow.InstanceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for l := range x.servers[instance] {
		l.wake()
	}
}

// subscribed starts or continues a subscription, unless it has ended since its caller has seen it: then unsubscribed may have come before this call, and
// nothing would end its webhook. The feeds follow players' events only while a subscription exists.
func (x *Feeds) subscribed(id flow.SubscriptionID) {
	x.turn.Lock()
	defer x.turn.Unlock()
	all, _ := x.subscriptions() // fails only if the door is closing, or the engine has stopped
	at := slices.IndexFunc(all, func(s flow.Subscription) bool { return s.ID == id && s.Lapsed == 0 })
	if at < 0 {
		return
	}
	s := &all[at]
	x.mu.Lock()
	if s.URL != "" && x.deliveries[s.ID] == nil && x.leads {
		d := newDelivery(x, s)
		x.deliveries[s.ID] = d
		x.delivering.Go(func() {
			defer d.stop()
			x.Panics.Restart(d.ctx, state.PanicDoor, webhookLastRetry, d.run)
		})
	}
	first := x.unlisten == nil && !x.closed
	x.mu.Unlock()
	if first {
		x.unlisten = x.State.Follow(kernel.Kinds(new(playerflow.PlayersTold)), x.wakeStudio)
		x.wakeStudio(engine.Committed{}) // for earlier events
	}
}

// unsubscribed ends a subscription, if it exists.
func (x *Feeds) unsubscribed(id flow.SubscriptionID) {
	x.turn.Lock()
	defer x.turn.Unlock()
	x.mu.Lock()
	if d := x.deliveries[id]; d != nil {
		d.stop()
		delete(x.deliveries, id)
	}
	if l := x.studio[id]; l != nil {
		l.end(socket.Ended)
	}
	x.mu.Unlock()
	left, err := x.subscriptions()
	listens := slices.ContainsFunc(left, func(s flow.Subscription) bool { return s.Lapsed == 0 })
	if err == nil && !listens && x.unlisten != nil {
		x.unlisten()
		x.unlisten = nil
	}
}

func (x *Feeds) wakeStudio(c engine.Committed) {
	wanted := len(c.Events) == 0
	for _, e := range c.Events {
		told, ok := e.Event.(*playerflow.PlayersTold)
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

// serve registers a connection with enter, runs it until it ends, and removes it with leave.
func (x *Feeds) serve(l *connection, enter, leave func()) {
	if !x.begin(l, enter) {
		l.drop()
		return
	}
	x.running.Go(func() {
		defer x.forget(leave)
		defer func() { <-l.gone }()
		defer x.Panics.Confine(state.PanicDoor, l.drop)
		l.run(x.ctx)
	})
}

// begin starts to read from a connection. It returns false if the door is closed.
func (x *Feeds) begin(l *connection, enter func()) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed {
		enter()
		frames.Read(l.conn, &x.reading, fromReceiver{l})
	}
	return !x.closed
}

func (x *Feeds) forget(leave func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	leave()
}

package feeds

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/frames/framestest"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/live"
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/rates"
	"github.com/musterhq/muster/internal/playerapi/socket"
	"github.com/musterhq/muster/internal/playerapi/state"
	"github.com/musterhq/muster/internal/waittest"
	"github.com/musterhq/muster/internal/webhook"
)

// studio has the feeds of a cell, and its players, who act without the API.
type studio struct {
	testing.TB
	feeds *Feeds
}

func newStudio(t testing.TB) *studio {
	t.Helper()
	players := flow.DefaultConfig()
	config := cell.DefaultConfig()
	config.PlayerFlow.Flow = &players
	e := enginetest.Open(t, engine.Config{Cell: config})
	s := state.Open(e, objects.Translator{Sign: func(string, *flow.Host) string { return "token" }}, slog.New(slog.DiscardHandler), func(*flow.Config) {})
	t.Cleanup(s.Close)
	secret, err := identity.OpenCellSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	private, err := webhook.ParseTargets("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	x := &studio{t, Open(Config{
		State: s, Buckets: rates.New(time.Now, nil, 0), Webhooks: live.Of(private),
		Auth: &authentication.Authenticator{Config: authentication.Config{State: s, Secret: secret, Dev: true}},
	})}
	x.feeds.Lead()
	t.Cleanup(x.feeds.Close)
	return x
}

func (x *studio) do(cmd kernel.Command) {
	x.Helper()
	if err := x.feeds.State.Do(x.Context(), cmd); err != nil {
		x.Fatal(err)
	}
}

// subscribe makes a subscription of everything.
func (x *studio) subscribe() flow.SubscriptionID {
	x.Helper()
	id := objects.NewID()
	x.do(&playerflow.SubscribeEvents{Subscription: flow.Subscription{ID: flow.SubscriptionID(id)}})
	return flow.SubscriptionID(id)
}

// login logs a player in, who makes a party; the result sets whether the player is ready.
func (x *studio) login(player string) (ready func(bool)) {
	x.Helper()
	by := playerflow.Caller{Player: player, LoginSessionID: flow.LoginSessionID(objects.NewID())}
	x.do(&playerflow.Login{Player: player, LoginSessionID: by.LoginSessionID, Token: objects.NewID()})
	x.do(&playerflow.CreateParty{Caller: by, ID: flow.PartyID(objects.NewID())})
	return func(ready bool) { x.do(&playerflow.SetReady{Caller: by, Ready: ready}) }
}

// taken returns how far the state knows that the receiver of a subscription has acknowledged.
func (x *studio) taken(id flow.SubscriptionID) (done uint64) {
	x.Helper()
	err := x.feeds.State.Read(x.Context(), func(v *cell.View) error {
		all, _ := v.Subscriptions()
		for _, s := range all {
			if s.ID == id {
				done = s.Done
			}
		}
		return nil
	})
	if err != nil {
		x.Fatal(err)
	}
	return done
}

// connectionOf returns the open connection of a subscription.
func (x *studio) connectionOf(id flow.SubscriptionID) (c *connection) {
	for c == nil {
		runtime.Gosched()
		x.feeds.mu.Lock()
		c = x.feeds.studio[id]
		x.feeds.mu.Unlock()
	}
	return c
}

// receiver is the other end of a connection. It passes events on to the test.
type receiver struct {
	got   chan map[string]any
	ended chan int
}

func (c *receiver) read(s *websocket.Conn) {
	c.ended <- framestest.Listen(s, func(message []byte) {
		var o map[string]any
		_ = json.Unmarshal(message, &o)
		c.got <- o
	})
}

// open opens a connection. Something has to read from it before anything is received.
func (x *studio) open(serve http.HandlerFunc, protocol, token, query string) (*websocket.Conn, *receiver) {
	x.Helper()
	server := httptest.NewServer(serve)
	x.Cleanup(server.Close)
	head := http.Header{"Sec-WebSocket-Protocol": {protocol}}
	if token != "" {
		head.Set("Authorization", "Bearer "+token)
	}
	s, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http")+"/?"+query, head)
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { _ = s.NetConn().Close() })
	return s, &receiver{got: make(chan map[string]any, 1000), ended: make(chan int, 1)}
}

func (x *studio) openSubscription(id flow.SubscriptionID, query string) (*websocket.Conn, *receiver) {
	x.Helper()
	return x.open(x.feeds.ServeSubscription, eventsProtocol, "", "subscription_id="+objects.ID(id)+query)
}

// A receiver cannot keep a closed connection open by sending, and messages that it sends after the close have no effect.
func TestClosedConnectionEnds(t *testing.T) {
	x := newStudio(t)
	id := x.subscribe()
	s, _ := x.openSubscription(id, "") // does not read, so it does not know
	x.login("ann")
	c := x.connectionOf(id)
	c.close(socket.Superseded)
	talked := make(chan struct{})
	go func() { // for as long as the service listens
		defer close(talked)
		for s.WriteMessage(websocket.TextMessage, []byte(`{"type":"ack","no":1}`)) == nil {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	<-c.gone
	<-talked
	if taken := x.taken(id); taken != 0 {
		t.Errorf("%d events count as taken by a connection that was closed", taken)
	}
}

// An acknowledgement of events that were never sent does not count.
func TestAckOfWhatIsToCome(t *testing.T) {
	x := newStudio(t)
	f := &eventFeed{of: x.feeds, id: flow.SubscriptionID(x.subscribe())}
	tell := func() uint64 {
		if _, _, _, err := f.next(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		return f.after
	}
	ready := x.login("ann")
	told := tell()
	ready(true)
	f.take(t.Context(), 1<<63)
	if taken := x.taken(f.id); told == 0 || taken != told {
		t.Errorf("%d events are taken, %d were told", taken, told)
	}
	if tell(); x.taken(f.id) != told {
		t.Errorf("what came behind the acknowledgement counts as taken: %d, %d were told by then", x.taken(f.id), told)
	}
}

// A receiver that asks for events that are no longer stored is told of the gap once.
func TestGapIsToldOnce(t *testing.T) {
	x := newStudio(t)
	f := &eventFeed{of: x.feeds, id: flow.SubscriptionID(x.subscribe())}
	ready := x.login("ann")
	if _, _, _, err := f.next(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	f.take(t.Context(), f.after) // so nothing is kept
	s, c := x.openSubscription(f.id, "&after=0")
	go c.read(s)
	for _, want := range []string{"hello", "gap"} {
		if o := <-c.got; o["type"] != want {
			t.Fatalf("got %v, want %s", o, want)
		}
	}
	x.connectionOf(f.id).wake()
	if err := s.WriteMessage(websocket.TextMessage, []byte(`{"type":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	ready(true)
	for {
		o := <-c.got
		if o["type"] == "gap" {
			t.Fatalf("told of the gap again: %v", o)
		}
		if o["type"] == "OnPartyChanged" {
			return
		}
	}
}

// A game may have only a few streams at once, so it cannot take the connections of all others.
func TestGameHasFewStreams(t *testing.T) {
	x := newStudio(t)
	instance := objects.NewID()
	x.do(&playerflow.Login{Player: "ann", LoginSessionID: flow.LoginSessionID(objects.NewID()), Token: objects.NewID()})
	x.do(&hosting.CreateLocation{Name: "custom-a", Region: "eu-central-1"})
	x.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-1", Region: "eu-central-1", Name: "f"}, Locations: []string{"custom-a"}})
	x.do(&hosting.CreateQueue{Queue: placement.Queue{
		Name: "q", Region: "eu-central-1", Timeout: 10 * time.Minute, Destinations: []string{"arn:aws:gamelift:eu-central-1::fleet/fleet-1"},
	}})
	x.do(&playerflow.MakeGame{Plan: playerflow.GamePlan{ID: flow.InstanceID(instance), Queue: "q", PlayersMax: 1, Players: []playerflow.PlannedPlayer{{Player: "ann"}}}})
	token := x.feeds.Auth.ServerToken(flow.InstanceID(instance))
	for range connectionsMax {
		s, c := x.open(x.feeds.ServeGameServer, serverProtocol, token, "")
		go c.read(s)
		<-c.got
	}
	s, c := x.open(x.feeds.ServeGameServer, serverProtocol, token, "")
	go c.read(s)
	if code := <-c.ended; code != socket.RateLimited {
		t.Errorf("one more than %d was closed with %d, want %d", connectionsMax, code, socket.RateLimited)
	}
}

// TestNextOffice: another node becomes leader while a webhook has not answered a message. The new leader sends the outstanding events without waiting for a new one.
func TestNextOffice(t *testing.T) {
	x := newStudio(t)
	var hangs atomic.Bool
	hangs.Store(true)
	arrived, release, got := make(chan struct{}, 100), make(chan struct{}), make(chan uint64, 1000)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var message struct{ Events []struct{ No uint64 } }
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			t.Error(err)
		}
		hanging := hangs.Load() // as it is before the test goes on
		arrived <- struct{}{}
		if hanging {
			<-release
			return
		}
		for _, e := range message.Events {
			got <- e.No
		}
	}))
	defer receiver.Close()
	id := flow.SubscriptionID(objects.NewID())
	x.do(&playerflow.SubscribeEvents{Subscription: flow.Subscription{ID: id, URL: receiver.URL}})
	next := Open(x.feeds.Config)
	defer next.Close()
	ready := x.login("ann")
	<-arrived
	x.feeds.Rest()
	ready(true) // between two offices
	hangs.Store(false)
	close(release)
	next.Lead()
	var head uint64
	if err := x.feeds.State.Read(t.Context(), func(v *cell.View) error { _, head = v.Subscriptions(); return nil }); err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	for last < head {
		no := <-got
		if no <= last {
			t.Fatalf("event %d after %d", no, last)
		}
		last = no
	}
	waittest.Until(t, "all events are recorded as taken", func() bool { return x.taken(id) >= head })
	next.Rest()
	x.feeds.Lead() // and back: nothing is repeated
	ready(false)
	if no := <-got; no <= last {
		t.Errorf("event %d after %d", no, last)
	}
}

// A subscription that ends while its webhook is being started has none, so that it gets one when it is resumed.
func TestSubscriptionEndsDuringTheStart(t *testing.T) {
	x := newStudio(t)
	id := flow.SubscriptionID(objects.NewID())
	x.do(&playerflow.SubscribeEvents{Subscription: flow.Subscription{ID: id, URL: "http://127.0.0.1:1"}})
	delivers := func() bool {
		x.feeds.mu.Lock()
		defer x.feeds.mu.Unlock()
		return x.feeds.deliveries[id] != nil
	}
	waittest.Until(t, "the webhook is started", delivers)
	x.do(&playerflow.UnsubscribeEvents{ID: id})
	waittest.Until(t, "the webhook is stopped", func() bool { return !delivers() })
	x.feeds.subscribed(id) // by a start that saw the subscription before
	if delivers() {
		t.Error("a subscription that has ended has a webhook")
	}
}

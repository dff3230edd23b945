package playerapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/edge"
	"github.com/musterhq/muster/internal/frames/framestest"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// behindTLS trusts a proxy at any address to have taken TLS off.
var behindTLS = edge.Transport{Proxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}, BehindTLS: true}

// frontOf serves the partner realm, with a subscription of everything and the key to it.
func frontOf(x *lobby) (base string, auth http.Header, path string) {
	x.Helper()
	x.door.auth.Transport = behindTLS
	server := httptest.NewServer(x.door.Partner())
	x.Cleanup(server.Close)
	key, err := x.keys.Create(x.Context(), access.Actor{}, keyring.New{Role: identity.Backend})
	if err != nil {
		x.Fatal(err)
	}
	token := key.ID + "." + key.Secret
	status, o := x.send(x.door.Partner(), token, PartnerPrefix+"Events.Subscribe", `{}`)
	path, _ = o["stream_path"].(string)
	if status != http.StatusOK || path == "" {
		x.Fatalf("%d %v", status, o)
	}
	return "ws" + strings.TrimPrefix(server.URL, "http"), http.Header{"Authorization": {"Bearer " + token}, "Sec-WebSocket-Protocol": {eventsProtocol}}, path
}

// chatter is a receiver that passes on what it is told.
type chatter struct {
	got   chan map[string]any
	ended chan int
}

func (c *chatter) read(socket *websocket.Conn) {
	c.ended <- framestest.Listen(socket, func(message []byte) {
		var o map[string]any
		_ = json.Unmarshal(message, &o)
		c.got <- o
	})
}

// listen opens a stream; whoever wants to hear something has to read from it.
func (x *lobby) listen(base string, auth http.Header, path string) (*websocket.Conn, *chatter) {
	x.Helper()
	c := &chatter{got: make(chan map[string]any, 1000), ended: make(chan int, 1)}
	socket, _, err := websocket.DefaultDialer.Dial(base+path, auth.Clone())
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { _ = socket.NetConn().Close() })
	return socket, c
}

// Nobody holds a line that was closed by going on to talk, and what is said then does not count.
func TestClosedLineEnds(t *testing.T) {
	x := newLobby(t, nil)
	base, auth, path := frontOf(x)
	socket, _ := x.listen(base, auth, path) // does not read, so it does not know
	x.call(x.login("ann"), "Party.CreateParty", `{}`)
	_, o := x.send(x.door.Partner(), strings.TrimPrefix(auth.Get("Authorization"), "Bearer "), PartnerPrefix+"Events.List", `{}`)
	id := o["subscriptions"].([]any)[0].(map[string]any)["subscription_id"].(string)
	l := x.lineOf(id)
	l.close(closeSuperseded)
	talked := make(chan struct{})
	go func() { // for as long as anybody listens
		defer close(talked)
		for socket.WriteMessage(websocket.TextMessage, []byte(`{"type":"ack","no":1}`)) == nil {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	<-l.gone
	<-talked
	if taken := x.taken(id); taken != 0 {
		t.Errorf("%d events count as taken by a line that was closed", taken)
	}
}

// lineOf is the open line of a subscription.
func (x *lobby) lineOf(id string) (l *connection) {
	x.Helper()
	u, err := parseID("subscription_id", objects.SubscriptionPrefix, id)
	for err == nil && l == nil {
		runtime.Gosched()
		x.door.feeds.mu.Lock()
		l = x.door.feeds.studio[u]
		x.door.feeds.mu.Unlock()
	}
	return l
}

// taken is what the state knows that the receiver of a subscription has.
func (x *lobby) taken(id string) (done uint64) {
	x.Helper()
	err := x.door.state.Read(context.Background(), func(v *cell.View) error {
		all, _ := v.Subscriptions()
		for _, s := range all {
			if objects.SubscriptionID(s.ID) == id {
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

// What a receiver was never told it does not have, whatever it says.
func TestAckOfWhatIsToCome(t *testing.T) {
	x := newLobby(t, nil)
	f := &eventFeed{of: x.door.feeds, id: newID()}
	if err := x.door.state.Do(t.Context(), &cell.SubscribeEvents{Subscription: flow.Subscription{ID: f.id}}); err != nil {
		t.Fatal(err)
	}
	tell := func() uint64 {
		if _, _, _, err := f.next(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		return f.after
	}
	ann := x.login("ann")
	x.call(ann, "Party.CreateParty", `{}`)
	told := tell()
	x.call(ann, "Party.SetReady", `{"ready":true}`)
	f.take(t.Context(), 1<<63)
	if taken := x.taken(objects.SubscriptionID(f.id)); told == 0 || taken != told {
		t.Errorf("%d events are taken, %d were told", taken, told)
	}
	if tell(); x.taken(objects.SubscriptionID(f.id)) != told {
		t.Errorf("what came behind the acknowledgement counts as taken: %d, %d were told by then", x.taken(objects.SubscriptionID(f.id)), told)
	}
}

// Who comes for what is kept no more is told of the gap once.
func TestGapIsToldOnce(t *testing.T) {
	x := newLobby(t, nil)
	base, auth, path := frontOf(x)
	ann := x.login("ann")
	x.call(ann, "Party.CreateParty", `{}`)
	f := &eventFeed{of: x.door.feeds}
	f.id, _ = parseID("subscription_id", objects.SubscriptionPrefix, strings.TrimPrefix(path, EventsPath+"?subscription_id="))
	if _, _, _, err := f.next(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	f.take(t.Context(), f.after) // so nothing is kept
	socket, c := x.listen(base, auth, path+"&after=0")
	go c.read(socket)
	for _, want := range []string{"hello", "gap"} {
		if o := <-c.got; o["type"] != want {
			t.Fatalf("got %v, want %s", o, want)
		}
	}
	x.lineOf(path[strings.Index(path, objects.SubscriptionPrefix):]).wake()
	if err := socket.WriteMessage(websocket.TextMessage, []byte(`{"type":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	x.call(ann, "Party.SetReady", `{"ready":true}`)
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

// A game has a few streams at once, and cannot take the connections of all others.
func TestGameHasFewStreams(t *testing.T) {
	x := newLobby(t, nil)
	base, auth, _ := frontOf(x)
	x.login("ann")
	instance := newID()
	for _, cmd := range []cell.Command{
		&cell.CreateLocation{Name: "custom-a", Region: "eu-central-1"},
		&cell.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-1", Region: "eu-central-1", Name: "f"}, Locations: []string{"custom-a"}},
		&cell.CreateQueue{Queue: placement.Queue{
			Name: "q", Region: "eu-central-1", Timeout: 10 * time.Minute, Destinations: []string{"arn:aws:gamelift:eu-central-1::fleet/fleet-1"},
		}},
		&cell.MakeGame{Plan: cell.GamePlan{ID: instance, Queue: "q", PlayersMax: 1, Players: []cell.PlannedPlayer{{Player: "ann"}}}},
	} {
		if err := x.door.state.Do(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
	}
	auth.Set("Authorization", "Bearer "+serverPrefix+objects.GameInstanceID(instance)+"_"+x.keys.CellSecret().PartnerToken(objects.GameInstanceID(instance)))
	auth["Sec-WebSocket-Protocol"] = []string{serverProtocol}
	for range connectionsMax {
		socket, c := x.listen(base, auth, ServerStreamPath)
		go c.read(socket)
		<-c.got
	}
	socket, c := x.listen(base, auth, ServerStreamPath)
	go c.read(socket)
	if code := <-c.ended; code != closeRate {
		t.Errorf("one more than %d was closed with %d, want %d", connectionsMax, code, closeRate)
	}
}

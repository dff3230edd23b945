package playerapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/frames/framestest"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/journal/journaltest"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/socket"
	"github.com/musterhq/muster/internal/waittest"
)

// stalledJournal is a journal on a disk that a test stalls.
type stalledJournal struct {
	journal.Journal
	gate    atomic.Pointer[chan struct{}] // nil: the disk does not stall
	waiting atomic.Int32                  // appends
}

func (j *stalledJournal) Append(ctx context.Context, next uint64, batch []byte) error {
	if gate := j.gate.Load(); gate != nil {
		j.waiting.Add(1)
		<-*gate
		j.waiting.Add(-1)
	}
	return j.Journal.Append(ctx, next, batch)
}

func (j *stalledJournal) stall() { j.gate.Store(new(make(chan struct{}))) }

// letOne lets one append through.
func (j *stalledJournal) letOne() { *j.gate.Load() <- struct{}{} }

func (j *stalledJournal) goOn() {
	if gate := j.gate.Swap(nil); gate != nil {
		close(*gate)
	}
}

func stallingLobby(t *testing.T, players flow.Config) (*lobby, *stalledJournal) {
	t.Helper()
	disk, err := journaltest.NewMemory(1).Open()
	if err != nil {
		t.Fatal(err)
	}
	j := &stalledJournal{Journal: disk}
	x := newLobbyWith(t, engine.Config{Journal: j, Cell: cellOf(players)}, nil)
	t.Cleanup(j.goOn) // before the door and the engine are closed
	return x, j
}

// sees waits until the state has something that need not be durable.
func (x *lobby) sees(what string, has func(v *cell.View) bool) {
	x.Helper()
	waittest.Until(x, what, func() (ok bool) {
		now, cancel := context.WithCancel(x.Context())
		cancel() // the read does not wait
		_ = x.door.state.ReadHere(now, func(v *cell.View) error { ok = has(v); return nil })
		return ok
	})
}

// setAttributes changes a player's attributes, in the background.
func (x *lobby) setAttributes(player string) {
	go func() {
		_ = x.door.state.Do(context.WithoutCancel(x.Context()), &playerflow.SetPlayerAttributes{Player: player, Attributes: `{"a":1}`})
	}()
}

// streamed is a client's stream: its messages and its close code.
type streamed struct {
	messages chan string
	code     chan int
	conn     *websocket.Conn
}

func (s *streamed) drop() { _ = s.conn.NetConn().Close() }

// stream opens the stream of a player.
func (x *lobby) stream(server *httptest.Server, token string) *streamed {
	x.Helper()
	return x.dial(server.URL+"/playerflow/v1/player/stream", "playerflow.v1", token)
}

func (x *lobby) dial(url, protocol, token string) *streamed {
	x.Helper()
	header := http.Header{"Authorization": {"Bearer " + token}, "Sec-WebSocket-Protocol": {protocol}}
	c, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(url, "http"), header)
	if err != nil {
		x.Fatal(err)
	}
	s := &streamed{make(chan string, 1000), make(chan int, 1), c}
	x.Cleanup(s.drop)
	go func() { s.code <- framestest.Listen(c, func(message []byte) { s.messages <- string(message) }) }()
	return s
}

// A client whose state cannot be read while the service stops gets no OnSync, neither on a stream nor by a poll: it would take an empty one
// for its state, and its number for where to continue.
func TestNoSyncWithoutState(t *testing.T) {
	t.Run("stream", func(t *testing.T) {
		x, j := stallingLobby(t, flow.DefaultConfig())
		server := httptest.NewServer(x.door.Player())
		defer server.Close()
		token := x.login("anna")
		j.stall()
		s := x.stream(server, token)
		waittest.Until(x, "the attach is being written", func() bool { return j.waiting.Load() == 1 })
		x.setAttributes("ben")
		x.sees("a later change", func(v *cell.View) bool { _, ok := v.Record("ben"); return ok })
		j.letOne()
		waittest.Until(x, "the later change is being written", func() bool { return j.waiting.Load() == 1 })
		time.Sleep(20 * time.Millisecond) // the attach goes on to read the state, which waits for the later change
		closed := make(chan struct{})
		go func() { defer close(closed); x.door.Close() }()
		time.Sleep(20 * time.Millisecond) // the context of the streams ends
		j.goOn()
		<-closed
		if code := <-s.code; code != 4503 {
			t.Errorf("closed with %d, want 4503", code)
		}
		close(s.messages)
		for m := range s.messages {
			if strings.Contains(m, `"OnSync"`) {
				t.Errorf("got %s", m)
			}
		}
	})
	t.Run("poll", func(t *testing.T) {
		x, j := stallingLobby(t, flow.DefaultConfig())
		token := x.login("anna")
		j.stall()
		answered := make(chan map[string]any, 1)
		go func() {
			status, o := x.call(token, "Session.PollEvents", `{"after_seq": 1000}`)
			if status != http.StatusOK {
				t.Errorf("the poll got %d %v", status, o)
			}
			answered <- o
		}()
		waittest.Until(x, "the poll is being written", func() bool { return j.waiting.Load() == 1 })
		x.setAttributes("ben")
		x.sees("a later change", func(v *cell.View) bool { _, ok := v.Record("ben"); return ok })
		j.letOne()
		waittest.Until(x, "the later change is being written", func() bool { return j.waiting.Load() == 1 })
		time.Sleep(20 * time.Millisecond)
		closed := make(chan struct{})
		go func() { defer close(closed); x.door.Close() }()
		time.Sleep(20 * time.Millisecond)
		j.goOn()
		<-closed
		body, _ := json.Marshal(<-answered)
		if text := string(body); !strings.Contains(text, `"OnSync"`) || !strings.Contains(text, `"player_id":"anna"`) {
			t.Errorf("the poll got %s", text)
		}
	})
}

// A player whose stream ends while the engine takes no more commands is offline soon after it takes them again.
func TestLostStreamIsReported(t *testing.T) {
	x := newLobbyWith(t, engine.Config{QueueMax: 2}, nil)
	server := httptest.NewServer(x.door.Player())
	defer server.Close()
	s := x.stream(server, x.login("anna"))
	waittest.Until(x, "the client is greeted", func() bool { return len(s.messages) > 0 })

	release, reading := make(chan struct{}), make(chan struct{})
	go func() {
		_ = x.door.state.ReadHere(context.WithoutCancel(t.Context()), func(*cell.View) error { close(reading); <-release; return nil })
	}()
	<-reading // the engine decides nothing
	for now, most := x.door.state.Waiting(); now < most; now, most = x.door.state.Waiting() {
		x.setAttributes("ben")
		time.Sleep(time.Millisecond)
	}
	s.drop()
	waittest.Until(x, "the stream has ended", func() bool { return x.door.streams.Count() == 0 })
	time.Sleep(50 * time.Millisecond) // the report is refused
	close(release)
	x.becomesOffline("anna")
}

// A player whose stream was replaced by one that the core could not attach is offline after both have ended.
func TestLostStreamAfterRefusedAttach(t *testing.T) {
	var behind atomic.Pointer[func()] // called by the next attach before its command
	x := newLobbyWith(t, engine.Config{QueueMax: 2}, func(c *Config) {
		c.Node = func() (none domain.UUID) {
			if f := behind.Swap(nil); f != nil {
				(*f)()
			}
			return none
		}
	})
	server := httptest.NewServer(x.door.Player())
	defer server.Close()
	token := x.login("anna")
	first := x.stream(server, token)
	waittest.Until(x, "the client is greeted", func() bool { return len(first.messages) > 0 })

	release, reading := make(chan struct{}), make(chan struct{})
	behind.Store(new(func() {
		go func() {
			_ = x.door.state.ReadHere(context.WithoutCancel(t.Context()), func(*cell.View) error { close(reading); <-release; return nil })
		}()
		<-reading // the engine decides nothing
		for now, most := x.door.state.Waiting(); now < most; now, most = x.door.state.Waiting() {
			x.setAttributes("ben")
			time.Sleep(time.Millisecond)
		}
	}))
	second := x.stream(server, token)
	if code := <-second.code; code != socket.Draining {
		t.Errorf("the second stream was closed with %d, want %d", code, socket.Draining)
	}
	if code := <-first.code; code != socket.Superseded {
		t.Errorf("the first stream was closed with %d, want %d", code, socket.Superseded)
	}
	close(release)
	x.becomesOffline("anna")
}

// A player whose stream ends while a drain fails is offline afterwards.
func TestLostStreamInFailedDrain(t *testing.T) {
	var short atomic.Pointer[func() error]
	x := newLobbyWith(t, engine.Config{Short: func() error {
		if f := short.Load(); f != nil {
			return (*f)()
		}
		return nil
	}}, nil)
	server := httptest.NewServer(x.door.Player())
	defer server.Close()
	anna, ben := x.stream(server, x.login("anna")), x.stream(server, x.login("ben"))
	for _, s := range []*streamed{anna, ben} {
		waittest.Until(x, "the client is greeted", func() bool { return len(s.messages) > 0 })
	}
	short.Store(new(func() error {
		if x.door.streams.Draining() == nil {
			return nil
		}
		anna.drop()
		waittest.Until(x, "the stream has ended", func() bool { return x.door.streams.Count() == 1 })
		return errors.New("the disk is full")
	}))
	if _, err := x.door.streams.SendAway(t.Context(), time.Second, time.Hour); !domain.IsRefused(err, domain.Overloaded) {
		t.Fatalf("the drain: %v", err)
	}
	x.becomesOffline("anna")
	if n := x.door.streams.Count(); n != 1 {
		t.Errorf("%d streams are open, want 1", n)
	}
}

func (x *lobby) becomesOffline(player string) {
	x.Helper()
	waittest.Until(x, player+" is offline", func() (offline bool) {
		_ = x.door.state.ReadHere(x.Context(), func(v *cell.View) error {
			now, _ := v.FlowOf(player, x.door.state.Instant())
			offline = now.Presence == flow.Offline
			return nil
		})
		return offline
	})
}

// oftenRenewed is a sessionIdleExpiry with which a stream's sign of life is due within seven seconds. It is recorded if five have passed since the last.
const oftenRenewed = 70 * time.Second

// A sign of life that is recorded for the client of a stream does not keep the player online after the stream.
func TestSignOfLifeIsNoPoll(t *testing.T) {
	players := flow.DefaultConfig()
	players.Sessions.IdleExpiry = oftenRenewed
	x := newLobbyWith(t, engine.Config{Cell: cellOf(players)}, nil)
	server := httptest.NewServer(x.door.Player())
	defer server.Close()
	s := x.stream(server, x.login("anna"))
	waittest.Until(x, "the client is greeted", func() bool { return len(s.messages) > 0 })
	expires := func() (at domain.Time) {
		x.sees("anna", func(v *cell.View) bool {
			now, ok := v.FlowOf("anna", x.door.state.Instant())
			at = now.ExpiresAt
			return ok
		})
		return at
	}
	before := expires()
	x.pass(5 * time.Second)
	waittest.Until(x, "a sign of life", func() bool { return expires() > before })
	s.drop()
	x.becomesOffline("anna")
}

// While a sign of life waits for the journal, the streams get their heartbeats.
func TestHeartbeatsWhileStalled(t *testing.T) {
	players := flow.DefaultConfig()
	players.Sessions.PingInterval, players.Sessions.IdleExpiry = 20*time.Millisecond, oftenRenewed
	x, j := stallingLobby(t, players)
	server := httptest.NewServer(x.door.Player())
	defer server.Close()
	a, b := x.stream(server, x.login("anna")), x.stream(server, x.login("ben"))
	for _, s := range []*streamed{a, b} {
		waittest.Until(x, "the client is greeted", func() bool { return len(s.messages) > 0 })
	}
	x.pass(5 * time.Second)
	j.stall()
	waittest.Until(x, "a sign of life is being written", func() bool { return j.waiting.Load() == 1 })
	time.Sleep(50 * time.Millisecond)
	for _, s := range []*streamed{a, b} {
		for len(s.messages) > 0 {
			<-s.messages
		}
		waittest.Until(x, "a heartbeat", func() bool { return len(s.messages) > 0 && strings.Contains(<-s.messages, `"ping"`) })
	}
}

// While an acknowledgement waits for the journal, the client's answers to pings count as signs of life.
func TestAcknowledgementsWhileStalled(t *testing.T) {
	players := flow.DefaultConfig()
	players.Sessions.PingInterval, players.Sessions.DeadAfter = 500*time.Millisecond, 2*time.Second
	x, j := stallingLobby(t, players)
	server := httptest.NewServer(x.door.Player())
	defer server.Close()
	s := x.stream(server, x.login("anna"))
	waittest.Until(x, "the client is greeted", func() bool { return len(s.messages) > 0 })
	j.stall()
	x.setAttributes("ben")
	waittest.Until(x, "a change is being written", func() bool { return j.waiting.Load() == 1 })
	if err := s.conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"ack","seq":1}`)); err != nil {
		t.Fatal(err)
	}
	select {
	case code := <-s.code:
		t.Errorf("the stream was closed with %d", code)
	case <-time.After(2 * players.Sessions.DeadAfter):
	}
}

// While more acknowledgements wait for the journal than are recorded at once, the loss of a stream is still reported.
func TestLossWhileAcknowledgementsWait(t *testing.T) {
	players := flow.DefaultConfig()
	players.Logins.PerSecond = 0 // no limit
	x, j := stallingLobby(t, players)
	server := httptest.NewServer(x.door.Player())
	defer server.Close()
	var all []*streamed
	for i := range 100 {
		s := x.stream(server, x.login(fmt.Sprint("p-", i)))
		waittest.Until(x, "the client is greeted", func() bool { return len(s.messages) > 0 })
		all = append(all, s)
	}
	j.stall()
	x.setAttributes("ben")
	waittest.Until(x, "a change is being written", func() bool { return j.waiting.Load() == 1 })
	for _, s := range all {
		if err := s.conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"ack","seq":1}`)); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond) // the acknowledgements arrive
	all[0].drop()
	x.sees("the player is offline", func(v *cell.View) bool {
		now, _ := v.FlowOf("p-0", x.door.state.Instant())
		return now.Presence == flow.Offline
	})
}

// While an acknowledgement of the studio's backend waits for the journal, its stream gets pings, and the answers to them count as signs of life.
func TestPartnersStreamWhileStalled(t *testing.T) {
	players := flow.DefaultConfig()
	players.Sessions.PingInterval, players.Sessions.DeadAfter = 100*time.Millisecond, time.Second
	x, j := stallingLobby(t, players)
	key, err := x.keys.Create(t.Context(), access.Actor{}, keyring.New{Role: identity.Backend})
	if err != nil {
		t.Fatal(err)
	}
	backend := key.ID + "." + key.Secret
	server := httptest.NewServer(x.door.Partner())
	defer server.Close()
	path, _ := x.wants(200, "")(x.send(x.door.Partner(), backend, objects.PartnerPrefix+"Events.Subscribe", "{}"))["stream_path"].(string)
	s := x.dial(server.URL+path, "playerflow.events.v1", backend)
	receives := func(what string) {
		t.Helper()
		waittest.Until(x, what, func() bool { return len(s.messages) > 0 && strings.Contains(<-s.messages, what) })
	}
	player := x.login("ann")
	x.wants(200, "")(x.call(player, "Party.CreateParty", "{}"))
	receives("OnPartyChanged")

	j.stall()
	if err := s.conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"ack","no":1}`)); err != nil {
		t.Fatal(err)
	}
	waittest.Until(x, "the acknowledgement is being written", func() bool { return j.waiting.Load() == 1 })
	for range 2 * players.Sessions.DeadAfter / players.Sessions.PingInterval {
		receives(`"ping"`)
	}
	j.goOn()
	x.wants(200, "")(x.call(player, "Party.LeaveParty", "{}"))
	receives("OnRemovedFromParty")
}

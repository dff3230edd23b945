package playerapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/membership"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/frames/framestest"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/socket"
	"github.com/musterhq/muster/internal/playerapi/streams"
	"github.com/musterhq/muster/internal/waittest"
)

// lobbyNode is one of two nodes in front of the same cell.
type lobbyNode struct {
	*lobby
	node   atomic.Pointer[domain.UUID] // its present incarnation
	behind atomic.Pointer[func()]      // called once, after the door has read that
	door   *Door
	server *httptest.Server
}

// incarnation returns the node's present incarnation. The node's door calls it.
func (n *lobbyNode) incarnation() domain.UUID {
	id := *n.node.Load()
	if f := n.behind.Swap(nil); f != nil {
		(*f)()
	}
	return id
}

func (n *lobbyNode) renew() { n.node.Store(new(domain.UUID(uuid.New()))) }

func (n *lobbyNode) begin(name string) {
	n.Helper()
	if err := n.door.state.Do(n.Context(), &membership.BeginNode{Node: *n.node.Load(), Name: name}); err != nil {
		n.Fatal(err)
	}
}

func twoLobbies(t *testing.T) (a, b *lobbyNode) {
	t.Helper()
	a, b = &lobbyNode{}, &lobbyNode{}
	a.renew()
	b.renew()
	var config Config
	a.lobby = newLobby(t, func(c *Config) {
		config = *c
		config.Node, c.Node = b.incarnation, a.incarnation
	})
	a.door, b.lobby, b.door = a.lobby.door, a.lobby, NewDoor(config)
	t.Cleanup(b.door.Close)
	for name, n := range map[string]*lobbyNode{"a": a, "b": b} {
		n.server = httptest.NewServer(n.door.Player())
		t.Cleanup(n.server.Close)
		n.begin(name)
	}
	return a, b
}

// attach opens a player's stream at the node, and returns after its hello. The channel gets the stream's close code.
func (n *lobbyNode) attach(token string) (closed <-chan int) {
	n.Helper()
	c, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(n.server.URL, "http")+objects.PlayerPrefix+"stream",
		http.Header{"Authorization": {"Bearer " + token}, "Sec-WebSocket-Protocol": {"playerflow.v1"}})
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { _ = c.NetConn().Close() })
	code, greeted := make(chan int, 1), make(chan struct{}, 1)
	go func() {
		code <- framestest.Listen(c, func(message []byte) {
			var frame struct {
				Type string `json:"type"`
			}
			if json.Unmarshal(message, &frame) == nil && frame.Type == "hello" {
				greeted <- struct{}{}
			}
		})
	}()
	select {
	case <-greeted:
	case got := <-code:
		code <- got
	}
	return code
}

func (n *lobbyNode) presence(player string) (s flow.Presence) {
	n.Helper()
	err := n.door.state.Read(n.Context(), func(v *cell.View) error {
		x, _ := v.FlowOf(player, domain.TimeOf(n.clock()))
		s = x.Presence
		return nil
	})
	if err != nil {
		n.Fatal(err)
	}
	return s
}

func (n *lobbyNode) becomes(player string, want flow.Presence) {
	n.Helper()
	waittest.Until(n, fmt.Sprintf("%s is %s", player, want), func() bool { return n.presence(player) == want })
}

// TestStreamMovesToAnotherNode: the node with a player's old stream closes it when the player opens one at another node, and the player stays online.
func TestStreamMovesToAnotherNode(t *testing.T) {
	a, b := twoLobbies(t)
	token := a.login("anna")
	on := []*lobbyNode{a, b}
	closed := a.attach(token)
	for i := range 3 { // few attaches are permitted in a moment
		next := on[(i+1)%2].attach(token)
		if code := <-closed; code != socket.Superseded {
			t.Fatalf("stream %d was closed with %d, want %d", i, code, socket.Superseded)
		}
		if got := a.presence("anna"); got != flow.Online {
			t.Fatalf("she is %s", got)
		}
		closed = next
	}
}

// TestGivenUpNodeDropsItsStreams: a node that was given up attaches no stream. It sends its players away and accepts them again in its next
// incarnation. Players at another node are not affected.
func TestGivenUpNodeDropsItsStreams(t *testing.T) {
	a, b := twoLobbies(t)
	anna, ben := a.login("anna"), a.login("ben")
	closed := a.attach(anna)
	stays := b.attach(ben)
	polled := make(chan int)
	go func() {
		status, _ := a.send(a.door.Player(), a.login("carl"), objects.PlayerPrefix+"Session.PollEvents", `{"wait_ms":25000}`)
		polled <- status
	}()
	a.becomes("carl", flow.Online)
	if err := a.door.state.Do(t.Context(), &membership.LoseNode{Node: *a.node.Load()}); err != nil {
		t.Fatal(err)
	}
	if a.presence("anna") != flow.Unknown || a.presence("carl") != flow.Unknown || a.presence("ben") != flow.Online {
		t.Errorf("anna is %s, carl %s, ben %s", a.presence("anna"), a.presence("carl"), a.presence("ben"))
	}
	if code := <-a.attach(a.login("dora")); code != socket.Draining {
		t.Errorf("a stream at the lost node was closed with %d, want %d", code, socket.Draining)
	}
	if status, o := a.call(a.login("emil"), "Session.PollEvents", `{}`); status != http.StatusServiceUnavailable {
		t.Errorf("a poll at the lost node: %d %v", status, o)
	}
	a.renew()
	a.door.DropStreams()
	if code := <-closed; code != socket.Draining {
		t.Errorf("the stream was closed with %d, want %d", code, socket.Draining)
	}
	if status := <-polled; status != http.StatusOK {
		t.Errorf("the poll was answered with %d", status)
	}
	if a.presence("anna") != flow.Unknown {
		t.Errorf("anna is %s: the end of her stream counts", a.presence("anna"))
	}
	a.begin("a")
	a.attach(anna)
	a.becomes("anna", flow.Online)
	select {
	case code := <-stays:
		t.Errorf("the stream at the other node was closed with %d", code)
	default:
	}
}

// TestPollThatBeginsWhileItsNodeIsGivenUp: a poll that was recorded before the loss still ends.
func TestPollThatBeginsWhileItsNodeIsGivenUp(t *testing.T) {
	a, _ := twoLobbies(t)
	if err := a.door.state.Do(t.Context(), &playerflow.SetFlowConfig{Document: `{"SessionServiceConfig": {"deadAfter": "1h"}}`, By: "test", Reason: "a poll that waits long"}); err != nil {
		t.Fatal(err)
	}
	if err := a.door.state.Reconfigure(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, first := a.call(a.login("anna"), "Session.PollEvents", `{}`)
	head, _ := first["head_seq"].(float64)
	by := playerflow.Caller{Player: "anna", LoginSessionID: flow.LoginSessionID(a.sessionOf("anna"))}
	a.behind.Store(new(func() { a.door.DropStreams() }))
	ctx, giveUp := context.WithTimeout(t.Context(), time.Minute)
	defer giveUp()
	const wait = 50 * time.Minute // more than clients may ask for, and than a busy machine takes
	if _, err := a.door.streams.Poll(ctx, &by, &streams.PollRequest{AfterSeq: uint64(head), WaitMS: wait.Milliseconds()}); err != nil {
		t.Errorf("the poll waits on: %v", err)
	}
}

// TestDrainOfOneNode: Operator.Drain at a node affects only that node's players.
func TestDrainOfOneNode(t *testing.T) {
	a, b := twoLobbies(t)
	closed := a.attach(a.login("anna"))
	b.attach(a.login("ben"))
	left, leave := context.WithCancel(t.Context())
	leave() // the operator does not wait for the answer
	if _, err := a.door.streams.SendAway(left, time.Second, time.Hour); err != nil {
		t.Fatal(err)
	}
	<-closed
	if a.presence("anna") != flow.Unknown || a.presence("ben") != flow.Online {
		t.Errorf("anna is %s, ben %s; want UNKNOWN, ONLINE", a.presence("anna"), a.presence("ben"))
	}
}

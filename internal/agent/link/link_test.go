package link

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/agentproto"
)

// welcomes starts a service that answers hello, and returns its endpoint. The connection lasts until then returns.
func welcomes(t *testing.T, hello agentproto.HelloAnswer, then func(*websocket.Conn)) (endpoint string) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		socket, err := new(websocket.Upgrader).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer socket.Close()
		_, text, err := socket.ReadMessage()
		if err != nil {
			t.Error(err)
			return
		}
		_, action, id, err := agentproto.DecodeRequest(text)
		if err != nil {
			t.Error(err)
			return
		}
		answer, err := agentproto.EncodeAnswer(action, id, hello)
		if err != nil {
			t.Error(err)
			return
		}
		_ = socket.WriteMessage(websocket.TextMessage, answer)
		then(socket)
	}))
	t.Cleanup(service.Close)
	return "ws" + strings.TrimPrefix(service.URL, "http")
}

// at is the Target of an agent whose service has an endpoint.
func at(endpoint string) func(context.Context) (Target, error) {
	return func(context.Context) (Target, error) { return Target{Endpoint: endpoint}, nil }
}

func hello() *agentproto.AgentHello {
	return &agentproto.AgentHello{Version: "1", OS: "linux", Arch: "amd64", CPUs: 1, MemoryMB: 1}
}

// A push that arrives directly after the answer to hello is passed on after it, since it may be newer.
func TestPushesComeAfterHello(t *testing.T) {
	read := make(chan struct{}) // the agent has read the push
	endpoint := welcomes(t, agentproto.HelloAnswer{HostID: "h", ComputeName: "old", HeartbeatMillis: 1000}, func(socket *websocket.Conn) {
		var once sync.Once
		socket.SetPongHandler(func(string) error { once.Do(func() { close(read) }); return nil })
		push, err := agentproto.EncodePush(&agentproto.UpdateHost{HelloAnswer: agentproto.HelloAnswer{HostID: "h", ComputeName: "new", HeartbeatMillis: 1000}})
		if err != nil {
			t.Error(err)
			return
		}
		_ = socket.WriteMessage(websocket.TextMessage, push)
		_ = socket.WriteMessage(websocket.PingMessage, nil) // it is answered by the goroutine that has read the push
		for {
			if _, _, err := socket.ReadMessage(); err != nil {
				return
			}
		}
	})

	order := make(chan string, 2)
	ctx, stop := context.WithCancel(t.Context())
	l := New(Config{
		Target: at(endpoint), Hello: hello,
		Connected: func(hello agentproto.HelloAnswer) { <-read; order <- hello.ComputeName },
		Lost:      func() {},
		Push:      func(p agentproto.Push) { order <- p.(*agentproto.UpdateHost).ComputeName },
		Log:       slog.New(slog.DiscardHandler), Chance: func() float64 { return 0 },
	})
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(ctx) }()
	defer func() { stop(); <-ended }()
	if first, second := <-order, <-order; first != "old" || second != "new" {
		t.Errorf("%s, then %s", first, second)
	}
}

// An agent that was never connected does not report a lost connection, so that a wrong token or address is recognisable.
func TestNeverConnected(t *testing.T) {
	var log bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	tries := 0
	New(Config{
		Target: func(context.Context) (Target, error) {
			if tries++; tries == 2 {
				stop()
			}
			return Target{}, errors.New("no such token")
		},
		Log: slog.New(slog.NewTextHandler(&log, nil)), Chance: func() float64 { return 0 },
	}).Run(ctx)
	if text := log.String(); !strings.Contains(text, "not connected to the service yet") || !strings.Contains(text, "no such token") || strings.Contains(text, "is lost") {
		t.Errorf("got %s", text)
	}
}

// A connection on which the agent cannot write is lost at once, even if messages of the service still arrive.
func TestFailedWriteEndsTheConnection(t *testing.T) {
	done := make(chan struct{})
	endpoint := welcomes(t, agentproto.HelloAnswer{HostID: "h", ComputeName: "c", HeartbeatMillis: 1000}, func(*websocket.Conn) {
		<-done // it keeps the connection open
	})
	defer close(done)

	connected, lost := make(chan struct{}, 10), make(chan struct{}, 10)
	ctx, stop := context.WithCancel(t.Context())
	l := New(Config{
		Target: at(endpoint), Hello: hello,
		Connected: func(agentproto.HelloAnswer) { connected <- struct{}{} },
		Lost:      func() { lost <- struct{}{} },
		Log:       slog.New(slog.DiscardHandler), Chance: func() float64 { return 0 },
	})
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(ctx) }()
	defer func() { stop(); <-ended }()
	<-connected
	if err := l.current.socket.NetConn().(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := l.Call(ctx, new(agentproto.GetServerToken), nil); !errors.Is(err, ErrNotConnected) {
		t.Errorf("call: %v", err)
	}
	select {
	case <-lost:
	case <-time.After(20 * time.Second):
		t.Fatal("the connection is still in use")
	}
}

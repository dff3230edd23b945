package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	answerWithin = 20 * time.Second
	redialAfter  = time.Second
	messageMax   = 32 << 20 // bytes of one message of the service
)

// identity identifies a game server, in the query of its WebSocket's URL.
type identity struct {
	url                         string // ws://host:port
	token, fleet, host, process string
}

// link is the connection to the service: requests with their answers, and messages of the service. It reconnects
// when it is lost, and repeats requests without an answer; the service executes each request id once.
type link struct {
	log  *slog.Logger
	push func(action string, message []byte) // runs in a goroutine for each message

	mu      sync.Mutex
	who     identity
	conn    *websocket.Conn // nil while there is none
	closed  bool
	waiting map[string]*request
}

type request struct {
	frame  []byte
	answer chan answer
}

type answer struct {
	StatusCode   int
	ErrorMessage string
}

// refused is the service's refusal of a request.
type refused struct {
	action string
	answer
}

func (e *refused) Error() string {
	return fmt.Sprintf("%s: status %d: %s", e.action, e.StatusCode, e.ErrorMessage)
}

// dial opens the first connection.
func dial(who identity, log *slog.Logger, push func(string, []byte)) (*link, error) {
	l := &link{log: log, push: push, who: who, waiting: map[string]*request{}}
	return l, l.connect()
}

func (l *link) connect() error {
	l.mu.Lock()
	who := l.who
	l.mu.Unlock()
	query := url.Values{
		"Authorization": {who.token}, "FleetId": {who.fleet}, "ComputeId": {who.host}, "pID": {who.process},
		"sdkVersion": {sdkVersion}, "sdkLanguage": {sdkLanguage},
	}
	conn, _, err := websocket.DefaultDialer.Dial(who.url+"?"+query.Encode(), nil)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", who.url, err)
	}
	conn.SetReadLimit(messageMax)
	l.mu.Lock()
	old := l.conn
	l.conn = conn
	for _, r := range l.waiting {
		l.write(r.frame)
	}
	l.mu.Unlock()
	go l.read(conn)
	if old != nil {
		old.Close()
	}
	return nil
}

// write sends a frame; the caller holds the lock. If the connection is lost, the next one sends the frame again.
func (l *link) write(frame []byte) {
	if l.conn != nil {
		_ = l.conn.WriteMessage(websocket.TextMessage, frame)
	}
}

// do makes a request and waits for its answer.
func (l *link) do(action string, members map[string]any) error {
	id := rand.Text()
	message := map[string]any{"Action": action, "RequestId": id}
	for name, value := range members {
		message[name] = value
	}
	frame, err := json.Marshal(message)
	if err != nil {
		return err
	}
	r := &request{frame, make(chan answer, 1)}
	l.mu.Lock()
	l.waiting[id] = r
	l.write(frame)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, id)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	select {
	case a := <-r.answer:
		if a.StatusCode != 200 {
			return &refused{action, a}
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", action, errNoAnswer)
	}
}

var errNoAnswer = errors.New("the service has not answered")

// read reads until the connection ends, and then reconnects. The game continues meanwhile.
func (l *link) read(conn *websocket.Conn) {
	for {
		_, message, err := conn.ReadMessage()
		if err != nil {
			conn.Close()
			l.lose(conn, err)
			return
		}
		l.receive(message)
	}
}

// receive handles an answer, which has the id of its request, or a message that the service sent on its own, which has none.
func (l *link) receive(body []byte) {
	var head struct {
		Action, RequestId string
		answer
	}
	if err := json.Unmarshal(body, &head); err != nil {
		l.log.Warn("the service sent something that is no message", "error", err)
		return
	}
	if head.RequestId == "" {
		go l.push(head.Action, body)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.waiting[head.RequestId]; r != nil {
		r.answer <- head.answer
		delete(l.waiting, head.RequestId)
	}
}

func (l *link) lose(c *websocket.Conn, err error) {
	l.mu.Lock()
	lost := l.conn == c && !l.closed
	if l.conn == c {
		l.conn = nil
	}
	l.mu.Unlock()
	if lost {
		l.log.Warn("connection to the service lost", "error", err)
		go l.redial()
	}
}

func (l *link) redial() {
	for {
		err := l.connect()
		l.mu.Lock()
		over := l.closed
		l.mu.Unlock()
		if err == nil || over {
			return
		}
		l.log.Warn("come back", "error", err)
		time.Sleep(redialAfter)
	}
}

// refresh connects with a new address and token of the service.
func (l *link) refresh(url, token string) {
	l.mu.Lock()
	l.who.url, l.who.token = url, token
	l.mu.Unlock()
	if err := l.connect(); err != nil {
		l.log.Warn("the connection was not refreshed", "error", err) // the old one still works
	}
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.conn != nil {
		l.conn.Close()
	}
}

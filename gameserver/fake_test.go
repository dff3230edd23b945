package gameserver

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
)

// fakeService speaks the service's half of the server SDK protocol, as far as a single process needs it, and
// remembers what it heard. It answers as the protocol demands: Action and RequestId as received, StatusCode an
// integer, pushes without either.
type fakeService struct {
	t      *testing.T
	http   *httptest.Server
	answer func(frame) map[string]any // nil or a nil answer: plain success

	knocked func()        // called for a connection that has to wait for admit
	admit   chan struct{} // nil: connections are let in at once

	mu      sync.Mutex
	changed chan struct{} // closed and replaced with every frame
	heard   []frame
	queries []url.Values
	conn    *websocket.Conn
	gone    bool // the current connection was closed

	writing sync.Mutex
}

type frame map[string]any

func (f frame) action() string { s, _ := f["Action"].(string); return s }

func newFakeService(t *testing.T) *fakeService {
	f := &fakeService{t: t, changed: make(chan struct{})}
	var upgrader websocket.Upgrader
	f.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Sec-WebSocket-Version") != "13" { // it only asks whether it may come
			http.Error(w, "want WebSocket 13", http.StatusUpgradeRequired)
			return
		}
		if f.admit != nil {
			f.knocked()
			<-f.admit
		}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Errorf("upgrade: %v", err)
			return
		}
		f.note(func() { f.conn, f.gone = conn, false; f.queries = append(f.queries, r.URL.Query()) })
		go f.listen(conn)
	}))
	t.Cleanup(f.http.Close)
	return f
}

func (f *fakeService) url() string { return "ws" + strings.TrimPrefix(f.http.URL, "http") }

func (f *fakeService) note(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	close(f.changed)
	f.changed = make(chan struct{})
}

// until waits for a condition on what was heard.
func (f *fakeService) until(what string, ok func() bool) {
	f.t.Helper()
	for {
		f.mu.Lock()
		if ok() {
			f.mu.Unlock()
			return
		}
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
		case <-f.t.Context().Done():
			f.t.Fatalf("test over while waiting for %s", what)
		}
	}
}

func (f *fakeService) untilHeard(action string) frame {
	f.t.Helper()
	var found frame
	f.until(action, func() bool {
		i := slices.IndexFunc(f.heard, func(fr frame) bool { return fr.action() == action })
		if i >= 0 {
			found = f.heard[i]
		}
		return i >= 0
	})
	return found
}

func (f *fakeService) count(action string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, fr := range f.heard {
		if fr.action() == action {
			n++
		}
	}
	return n
}

func (f *fakeService) push(message map[string]any) {
	f.t.Helper()
	f.mu.Lock()
	conn := f.conn
	f.mu.Unlock()
	data, err := json.Marshal(message)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := f.write(conn, data); err != nil {
		f.t.Fatalf("push %s: %v", data, err)
	}
}

const testSession = "arn:aws:gamelift:us-east-1::gamesession/fleet-1/custom-home/gsess-1"

// pushSession asks for a session, after the first heartbeat as the service does: the SDK drops it before.
func (f *fakeService) pushSession() {
	f.t.Helper()
	f.untilHeard("HeartbeatServerProcess")
	f.push(map[string]any{
		"Action": "CreateGameSession", "GameSessionId": testSession, "GameSessionName": "Debug",
		"MaximumPlayerSessionCount": 4, "IpAddress": "127.0.0.1", "DnsName": "", "Port": 7777,
		"GameSessionData": "data", "MatchmakerData": "", "GameProperties": map[string]string{"level": "arena"},
	})
}

func (f *fakeService) write(c *websocket.Conn, data []byte) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	return c.WriteMessage(websocket.TextMessage, data)
}

func (f *fakeService) listen(c *websocket.Conn) {
	for {
		_, message, err := c.ReadMessage()
		if err != nil {
			f.note(func() { f.gone = f.gone || f.conn == c })
			_ = c.Close()
			return
		}
		f.hear(c, message)
	}
}

func (f *fakeService) hear(c *websocket.Conn, message []byte) {
	var fr frame
	if err := json.Unmarshal(message, &fr); err != nil {
		f.t.Errorf("not JSON: %s", message)
		return
	}
	answer := map[string]any{"StatusCode": 200}
	if id, one := fr["PlayerSessionId"]; one && fr.action() == "DescribePlayerSessions" {
		answer["PlayerSessions"] = []any{map[string]any{"PlayerSessionId": id, "PlayerId": "player-of-" + id.(string), "PlayerData": "data", "Status": "RESERVED"}}
	}
	if f.answer != nil {
		if a := f.answer(fr); a != nil {
			answer = a
		}
	}
	f.note(func() { f.heard = append(f.heard, fr) })
	if answer["StatusCode"] == 0 {
		return // this request gets no answer
	}
	answer["Action"], answer["RequestId"] = fr["Action"], fr["RequestId"]
	data, _ := json.Marshal(answer)
	_ = f.write(c, data) // a connection that broke meanwhile is the test's wish
}

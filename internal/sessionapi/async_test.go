package sessionapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/waittest"
)

// Every node with an asynchronous form completes exactly once: one event, and the same answer to polls.
func TestAsyncNodes(t *testing.T) {
	s := newStage(t)
	id, _ := s.create(4)
	seat := s.node("JoinSession", fields{"sessionId": id, "playerId": "ann"}).PlayerSessionID
	queue := s.fleet.NewQueue(60)
	events := s.listen("tool", "")
	for _, c := range []struct {
		node, event string
		in          fields
		status      float64
		want        string // in the text of the outcome
	}{
		{"CreateSessionOnQueue", "OnCreateSessionAsyncComplete", fields{"queueName": queue, "placementId": "p", "maxPlayer": 2, "wait": false}, 200, `"answer":{"result":"p"`},
		{"CreateSession", "OnCreateSessionAsyncComplete", fields{"fleetId": s.fleet.ID, "maxPlayer": 2}, 409, `"error":{"name":"NoFreeServer"`},
		{"SearchSessions", "OnSearchSessionsAsyncComplete", fields{"fleetId": s.fleet.ID}, 200, `"sessionConfigs":[{"sessionId":"` + id},
		{"LeaveSession", "OnLeaveSessionAsyncComplete", fields{"playerSessionId": seat}, 200, `"status":"COMPLETED"`},
		{"JoinSession", "OnJoinSessionAsyncComplete", fields{"sessionId": id + "x", "playerId": "ann"}, 404, `"error":{"name":"NotFound"`},
	} {
		begun := s.node(c.node+"?async=1", c.in, "X-Client-Id", "tool")
		if begun.status != http.StatusAccepted || begun.header.Get("Location") != "/session/v1/calls/"+begun.CallID {
			t.Errorf("%s: got %d %v %s", c.node, begun.status, begun.header, begun.text)
		}
		e := <-events
		if e.name != c.event || e.data.CallID != begun.CallID || e.data.Status != c.status || !strings.Contains(e.text, c.want) ||
			!strings.Contains(e.text, `"node":"`+c.node+`","state":"COMPLETED"`) {
			t.Errorf("%s: got event %s %s, want %s with %s", c.node, e.name, e.text, c.event, c.want)
		}
		if polled := s.call("GET", "calls/"+begun.CallID, ""); strings.TrimSpace(polled.text) != e.text {
			t.Errorf("%s: the event says %s, a poll %s", c.node, e.text, polled.text)
		}
	}
	select {
	case e := <-events:
		t.Errorf("one more event: %+v", e)
	default:
	}
	// An error in the request itself is returned at once, and no operation is started.
	s.fails("CreateSession?async=1", fields{"fleetId": s.fleet.ID}, 400, "InvalidRequest", "maxPlayer")
	s.fails("CreatePlayerId?async=1", nil, 400, "InvalidRequest", "async")
	s.fails("SearchSessions?async=maybe", fields{"fleetId": s.fleet.ID}, 400, "InvalidRequest", "async")
	if a := s.call("GET", "calls/call-none", ""); a.status != 404 || a.Error.Name != "UnknownCall" {
		t.Errorf("got %s", a.text)
	}
	// The core has finished: the placement exists.
	if got := s.call("GET", "placements/p", ""); got.Status != "PENDING" {
		t.Errorf("got %s", got.text)
	}
}

// A node returns true only if the seat was reserved and the connection made, whether the script or the game server reports it.
func TestAsyncJoin(t *testing.T) {
	s := newStage(t)
	id, server := s.create(8)
	events := s.listen("tool", "")
	join := func() (callID, seat string) {
		t.Helper()
		begun := s.node("JoinSession?async=1", fields{"sessionId": id, "playerId": "ann"}, "X-Client-Id", "tool")
		e := <-events
		if e.name != "OnJoinSessionReserved" || e.data.CallID != begun.CallID || e.data.State != "PENDING" || e.data.Progress["port"] != 7001. {
			t.Fatalf("got %s %s", e.name, e.text)
		}
		if polled := s.call("GET", "calls/"+begun.CallID, ""); strings.TrimSpace(polled.text) != e.text {
			t.Errorf("the event says %s, a poll %s", e.text, polled.text)
		}
		return begun.CallID, e.data.Progress["playerSessionId"].(string)
	}
	joined := func(how, callID string, want bool, reason string) {
		t.Helper()
		e := <-events
		if e.name != "OnJoinSessionAsyncComplete" || e.data.CallID != callID || e.data.Answer["result"] != want || !strings.Contains(e.text, reason) {
			t.Errorf("%s: got %s %s, want %t %s", how, e.name, e.text, want, reason)
		}
	}
	call, seat := join()
	if err := server.AcceptPlayer(seat); err != nil {
		t.Fatal(err)
	}
	joined("the game server took the player in", call, true, "")

	call, _ = join()
	s.srv.Advance(time.Minute)
	joined("nobody came", call, false, "reservation was over")

	call, _ = join()
	if a := s.call("POST", "calls/"+call+"/connected", `{"ok":true}`); a.status != 200 {
		t.Errorf("got %s", a.text)
	}
	joined("the script has connected", call, true, "")

	call, seat = join()
	s.call("POST", "calls/"+call+"/connected", `{"ok":false}`)
	joined("the script could not connect", call, false, "could not connect")
	if a := s.node("LeaveSession", fields{"playerSessionId": seat}); a.Status != "COMPLETED" {
		t.Errorf("got %s", a.text)
	}
	s.call("POST", "calls/"+call+"/connected", `{"ok":true}`) // too late: it has completed
	if a := s.call("GET", "calls/"+call, ""); a.Answer["result"] != false {
		t.Errorf("a completed call changed: %s", a.text)
	}

	call, _ = join()
	if err := server.End(); err != nil {
		t.Fatal(err)
	}
	joined("the game session ended", call, false, "reservation was over")

	if a := s.call("POST", "calls/"+call+"/connected", `{}`); a.status != 400 || a.Error.Field != "ok" {
		t.Errorf("got %s", a.text)
	}
	if a := s.call("POST", "calls/call-none/connected", `{"ok":true}`); a.status != 404 {
		t.Errorf("got %s", a.text)
	}
	search := s.node("SearchSessions?async=1", fields{"fleetId": s.fleet.ID})
	placement := s.node("CreateSessionOnQueue?async=1", fields{"queueName": s.fleet.NewQueue(60), "maxPlayer": 2})
	for _, other := range []string{search.CallID, placement.CallID} {
		if a := s.call("POST", "calls/"+other+"/connected", `{"ok":true}`); a.status != 409 {
			t.Errorf("got %s", a.text)
		}
	}
}

// A reader that returns gets the events that it missed, each once. A late one gets the stored events. Other clients get none.
func TestEventStreamResumes(t *testing.T) {
	s := newStage(t)
	search := func() string {
		t.Helper()
		id := s.node("SearchSessions?async=1", fields{"fleetId": s.fleet.ID}, "X-Client-Id", "tool").CallID
		waittest.Until(t, "the call is completed", func() bool { return s.call("GET", "calls/"+id, "").State == "COMPLETED" })
		return id
	}
	first := search()
	events := s.listen("tool", "")
	e := <-events
	if e.data.CallID != first {
		t.Errorf("got %+v, want what was before", e)
	}
	second, third := search(), search()
	resumed := s.listen("tool", e.id)
	for _, want := range []string{second, third} {
		if e := <-resumed; e.data.CallID != want {
			t.Errorf("got %+v, want %s", e, want)
		}
	}
	whole := s.listen("tool", "other-17") // of another run of the service
	for _, want := range []string{first, second, third} {
		if e := <-whole; e.data.CallID != want {
			t.Errorf("got %+v, want %s", e, want)
		}
	}
	stranger := s.listen("another", "")
	s.node("SearchSessions?async=1", fields{"fleetId": s.fleet.ID}, "X-Client-Id", "another")
	if e := <-stranger; e.data.CallID == "" || e.data.CallID == first {
		t.Errorf("got %+v", e)
	}
	if a := s.call("GET", "events", ""); a.status != 400 || a.Error.Field != "X-Client-Id" {
		t.Errorf("got %s", a.text)
	}
	if a := s.call("GET", "events?clientId=a/b", ""); a.status != 400 || a.Error.Field != "X-Client-Id" {
		t.Errorf("got %s", a.text)
	}
}

// Neither open streams nor waiting calls delay a restart, and a new run does not have them.
func TestStopEndsStreams(t *testing.T) {
	s := newStage(t)
	queue := s.fleet.NewQueue(600)
	events := s.listen("tool", "")
	begun := s.node("CreateSessionOnQueue?async=1", fields{"queueName": queue, "maxPlayer": 4, "wait": true}, "X-Client-Id", "tool")
	s.srv.Restart()
	for e := range events {
		if e.name == "OnCreateSessionOnQueueStarted" {
			continue
		}
		if e.data.Error == nil || e.data.Error.Name != "Unavailable" {
			t.Errorf("got %+v", e)
		}
	}
	if a := s.call("GET", "calls/"+begun.CallID, ""); a.status != 404 || !strings.Contains(a.Error.Message, "restarted") {
		t.Errorf("got %s", a.text)
	}
}

// Each node with an asynchronous form has it under the node library's name for it, too.
func TestAsyncNames(t *testing.T) {
	s := newStage(t)
	events := s.listen("tool", "")
	for _, name := range []string{"CreateSession", "CreateSessionOnQueue", "SearchSessions", "JoinSession", "LeaveSession", "StartMatchmaking", "StopMatchmaking", "AcceptMatch"} {
		s.fails(name+"Async", fields{"nonsense": 1}, 400, "InvalidRequest", "nonsense") // what is wrong is said at once
	}
	for _, name := range []string{"ConfigureGameLiftClient", "CreatePlayerId", "StartPolling"} {
		s.fails(name+"Async", nil, 404, "UnknownNode", "path")
	}
	begun := s.node("SearchSessionsAsync", fields{"fleetId": s.fleet.ID}, "X-Client-Id", "tool")
	if begun.status != http.StatusAccepted || begun.CallID == "" {
		t.Fatalf("got %d %s", begun.status, begun.text)
	}
	if e := <-events; e.name != "OnSearchSessionsAsyncComplete" || e.data.CallID != begun.CallID || e.data.Status != 200.0 {
		t.Errorf("got %s %s", e.name, e.text)
	}
	s.fails("SearchSessionsAsync?async=0", fields{"fleetId": s.fleet.ID}, 400, "InvalidRequest", "async")
}

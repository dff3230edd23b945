package playerapi_test

import (
	"net/http"
	"testing"
)

func (x *running) ready(want int) {
	x.t.Helper()
	response, err := http.Get("http://" + x.base + "ready")
	if err != nil {
		x.t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != want || (response.Header.Get("Retry-After") == "") != (want == http.StatusOK) {
		x.t.Errorf("ready: %d, Retry-After %q, want %d", response.StatusCode, response.Header.Get("Retry-After"), want)
	}
}

// A draining service refuses clients and tells them when to return. No player loses a key.
func TestDrain(t *testing.T) {
	x := run(t, nil)
	a, b := x.login("a"), x.login("b")
	f := x.stream(a)
	x.next(f, "hello")
	party := x.call(http.StatusOK, "player/Party.CreateParty", a, `{"joinability": "OPEN"}`)["party"].(answer)["party_id"].(string)
	head := x.call(http.StatusOK, "player/Party.JoinPartyById", b, `{"party_id": "`+party+`"}`)["flow"].(answer)["seq"]
	polled := make(chan answer)
	go func() {
		polled <- x.try(http.StatusOK, "player/Session.PollEvents", b, `{"after_seq": `+number(head)+`, "wait_ms": 20000}`)
	}()
	x.next(f, "OnPartyMemberPresence") // b is here since the poll has begun
	x.ready(http.StatusOK)

	got := x.call(http.StatusOK, "operator/Operator.Drain", "", `{"reason": "new disk", "reconnect_after_ms": 2500}`)
	if got["draining"] != true || got["streams_closed"] != 1.0 {
		t.Errorf("drain: %v", got)
	}
	if bye := x.next(f, "bye"); bye["reconnect_after_ms"] != 2500.0 {
		t.Errorf("bye: %v", bye)
	}
	if code := <-f.code; code != 4503 {
		t.Errorf("the stream was closed with %d, want 4503", code)
	}
	<-polled
	x.ready(http.StatusServiceUnavailable)
	for call, token := range map[string]string{"player/Session.Login": "", "player/Session.PollEvents": a} {
		body := `{"after_seq": 0}`
		if token == "" {
			body = loginBody("c")
		}
		if p := x.call(http.StatusServiceUnavailable, call, token, body); p["code"] != "MAINTENANCE" || p["action"] != "RETRY" || p["retry_after_ms"] != 2500.0 {
			t.Errorf("%s: %v", call, p)
		}
	}
	f = x.stream(a)
	if bye := x.next(f, "bye"); bye["reconnect_after_ms"] != 2500.0 {
		t.Errorf("bye of one who comes: %v", bye)
	}
	if code := <-f.code; code != 4503 {
		t.Errorf("who comes is closed with %d, want 4503", code)
	}
	// Calls that need no stream still work, and keys stay.
	if o := x.call(http.StatusOK, "player/Session.GetFlow", b, `{}`); o["flow"].(answer)["keys"].(answer)["PARTY_ID"] != party {
		t.Errorf("flow: %v", o["flow"])
	}
	x.call(http.StatusBadRequest, "operator/Operator.Drain", "", `{"reason": "new disk", "node": "elsewhere"}`)

	if got := x.call(http.StatusOK, "operator/Operator.Drain", "", `{"reason": "done", "drain": false}`); got["draining"] != false {
		t.Errorf("end of the drain: %v", got)
	}
	x.ready(http.StatusOK)
	x.login("c")
	f = x.stream(a)
	x.next(f, "hello")
	if o := x.call(http.StatusOK, "operator/Operator.GetPlayer", "", `{"reason": "look", "player_id": "a"}`); o["presence"] != "ONLINE" {
		t.Errorf("a is %v", o["presence"])
	}
	if o := x.call(http.StatusOK, "operator/Operator.Audit", "", `{"reason": "look"}`); len(o["violations"].([]any)) != 0 {
		t.Errorf("violations: %v", o["violations"])
	}
}

func TestAnnounceMaintenance(t *testing.T) {
	x := run(t, nil)
	a := x.login("a")
	f := x.stream(a)
	x.next(f, "hello")
	x.login("away")
	got := x.call(http.StatusOK, "operator/Operator.AnnounceMaintenance", "", `{"reason": "new disk", "starts_at": "2030-01-02T03:04:05Z", "message": "Back in an hour."}`)
	if got["players_told"] != 1.0 {
		t.Errorf("%v", got)
	}
	data := x.next(f, "OnMaintenance")["data"].(answer)
	if data["starts_at"] != "2030-01-02T03:04:05.000Z" || data["message"] != "Back in an hour." {
		t.Errorf("%v", data)
	}
	x.call(http.StatusBadRequest, "operator/Operator.AnnounceMaintenance", "", `{"reason": "new disk", "starts_at": "tomorrow", "message": ""}`)
}

// Streams that are opened too often are closed with a code of their own, and the one that is open stays.
func TestAttachesTooOften(t *testing.T) {
	x := run(t, nil)
	a := x.login("a")
	var last *frames
	for opened := 0; ; opened++ { // as many as the bucket holds, and those that it takes back while this goes on
		f := x.stream(a)
		select {
		case <-f.got: // the hello
			last = f
			continue
		case code := <-f.code:
			if code != 4429 || opened < 5 {
				t.Fatalf("after %d streams the next was closed with %d, want 4429 after 5", opened, code)
			}
		}
		break
	}
	x.call(http.StatusOK, "player/Party.CreateParty", a, `{}`)
	x.next(last, "OnPartyChanged")
}

// A service that stops says so to clients.
func TestStopSaysBye(t *testing.T) {
	x := run(t, nil)
	f := x.stream(x.login("a"))
	x.next(f, "hello")
	x.stop()
	x.next(f, "bye")
	if code := <-f.code; code != 4503 {
		t.Errorf("closed with %d, want 4503", code)
	}
}

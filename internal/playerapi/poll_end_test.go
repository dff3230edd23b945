package playerapi_test

import (
	"net/http"
	"testing"
)

// A waiting poll ends with its login session: the client is told at once, and gets no events of the player's next login session.
func TestPollEndsWithItsLoginSession(t *testing.T) {
	for name, end := range map[string]func(x *running, token string){
		"forced": func(x *running, _ string) {
			x.call(http.StatusOK, "operator/Operator.ForceLogout", "", `{"player_id": "b", "reason": "test"}`)
		},
		"banned": func(x *running, _ string) {
			x.call(http.StatusOK, "operator/Operator.BanPlayer", "", `{"player_id": "b", "banned": true, "reason": "test"}`)
		},
		"logged out": func(x *running, token string) { x.call(http.StatusOK, "player/Session.Logout", token, `{}`) },
	} {
		t.Run(name, func(t *testing.T) {
			x := run(t, nil)
			a, b := x.login("a"), x.login("b")
			f := x.stream(a)
			x.next(f, "hello")
			party := x.call(http.StatusOK, "player/Party.CreateParty", a, `{"joinability": "OPEN"}`)["party"].(answer)["party_id"].(string)
			x.call(http.StatusOK, "player/Party.JoinPartyById", b, `{"party_id": "`+party+`"}`)
			// Beside the events of the end there are none behind this number.
			head := x.call(http.StatusOK, "player/Session.PollEvents", b, `{}`)["head_seq"]
			head = x.call(http.StatusOK, "player/Session.PollEvents", b, `{"after_seq": `+number(head)+`}`)["head_seq"]
			x.next(f, "OnPartyMemberPresence")
			polled := make(chan answer)
			go func() {
				polled <- x.try(http.StatusUnauthorized, "player/Session.PollEvents", b, `{"after_seq": `+number(head)+`, "wait_ms": 20000}`)
			}()
			end(x, b)
			if got := <-polled; got["code"] != "SESSION_NOT_FOUND" || got["action"] != "LOGIN" {
				t.Errorf("the poll got %v", got)
			}
		})
	}
}

package playerapi

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/authentication"
)

// The answer of a login was lost: the repeat gets the same token, with the same proof only.
func TestLoginIsRepeated(t *testing.T) {
	x := newLobby(t, nil)
	const id = "X-Request-Id"
	_, first := x.call("", "Session.Login", devLogin("ann"), id, "r")
	_, again := x.call("", "Session.Login", devLogin("ann"), id, "r")
	if first["access_token"] != again["access_token"] || first["session_id"] != again["session_id"] || again["epoch"] != 1.0 {
		t.Errorf("the repeat: %v\nthe first: %v", again, first)
	}
	token, _ := first["access_token"].(string)
	x.wants(200, "")(x.call(token, "Session.GetFlow", `{}`))
	_, bob := x.call("", "Session.Login", devLogin("bob"), id, "r")
	_, other := x.call("", "Session.Login", devLogin("ann"), id, "r2")
	if bob["access_token"] == token || other["access_token"] == token {
		t.Error("another player or request gets the same token")
	}
	x.wants(409, "SESSION_REPLACED")(x.call("", "Session.Login", devLogin("ann"), id, "r"))
}

func TestTicketLoginIsRepeated(t *testing.T) {
	x := newLobby(t, nil)
	const id = "X-Request-Id"
	ticket, hash := authentication.NewTicket("ann")
	issue := &playerflow.IssueLoginTicket{Hash: hash, Player: "ann", Life: time.Minute, Once: true}
	if err := x.door.state.Do(t.Context(), issue); err != nil {
		t.Fatal(err)
	}
	login := func(ticket string) string {
		body, _ := json.Marshal(map[string]string{"provider": "backend", "token": ticket})
		return string(body)
	}
	first := x.wants(200, "")(x.call("", "Session.Login", login(ticket), id, "r"))
	again := x.wants(200, "")(x.call("", "Session.Login", login(ticket), id, "r"))
	if first["access_token"] != again["access_token"] {
		t.Errorf("the repeat: %v\nthe first: %v", again, first)
	}
	x.wants(401, "UNAUTHENTICATED")(x.call("", "Session.Login", login(ticket), id, "r2"))
	x.wants(401, "UNAUTHENTICATED")(x.call("", "Session.Login", login(ticket)))
	// A forged repeat with ann's name and request id gets no session of hers, and does not count as her login.
	for range 20 {
		forged, _ := authentication.NewTicket("ann")
		x.wants(401, "UNAUTHENTICATED")(x.call("", "Session.Login", login(forged), id, "r"))
	}
	x.wants(200, "")(x.call("", "Session.Login", devLogin("ann")))
}

func TestRefreshIsRepeated(t *testing.T) {
	x := newLobby(t, nil)
	const id = "X-Request-Id"
	old := x.login("ann")
	x.wants(200, "")(x.call(old, "Party.CreateParty", `{}`, id, "r")) // another call with the same id is another call
	first := x.wants(200, "")(x.call(old, "Session.Refresh", `{}`, id, "r"))
	again := x.wants(200, "")(x.call(old, "Session.Refresh", `{}`, id, "r")) // the old token is good for a while
	token, _ := first["access_token"].(string)
	if token == "" || token == old || again["access_token"] != token {
		t.Errorf("the repeat: %v\nthe first: %v", again, first)
	}
	x.wants(200, "")(x.call(token, "Session.GetFlow", `{}`))
	next := x.wants(200, "")(x.call(token, "Session.Refresh", `{}`, id, "r2"))
	if next["access_token"] == token {
		t.Error("another refresh gets the same token")
	}
	x.wants(200, "")(x.call(token, "Session.Refresh", `{}`)) // without an id each makes a new one
	x.wants(401, "UNAUTHENTICATED")(x.call("", "Session.Refresh", `{}`, id, "r"))
	x.wants(401, "SESSION_NOT_FOUND")(x.call("pfa_guessed", "Session.Refresh", `{}`, id, "r"))
}

// The player's record says that a login had no proof.
func TestInsecureLoginsAreMarked(t *testing.T) {
	x := newLobby(t, nil)
	ticket, hash := authentication.NewTicket("bob")
	if err := x.door.state.Do(t.Context(), &playerflow.IssueLoginTicket{Hash: hash, Player: "bob", Life: time.Minute, Once: true}); err != nil {
		t.Fatal(err)
	}
	body, _ := json.Marshal(map[string]string{"provider": "backend", "token": ticket})
	for login, want := range map[string]any{devLogin("ann"): true, string(body): nil} {
		o := x.wants(200, "")(x.call("", "Session.Login", login))
		session, _ := o["flow_snapshot"].(map[string]any)["session"].(map[string]any)
		if session["insecure"] != want {
			t.Errorf("%s: %v, want insecure %v", login, session, want)
		}
	}
}

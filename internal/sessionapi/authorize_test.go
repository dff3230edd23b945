package sessionapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/mustertest"
)

func TestCredentials(t *testing.T) {
	s := newStage(t, mustertest.Signed())
	key, other := s.srv.Credentials(mustertest.Client), s.srv.Credentials(mustertest.Client)
	basic := func(user, password string) string {
		r, _ := http.NewRequest("GET", "/", nil)
		r.SetBasicAuth(user, password)
		return r.Header.Get("Authorization")
	}
	for _, c := range []struct {
		what, header string
		status       int
		name         string
	}{
		{"bearer", "Bearer " + key.AccessKeyID + "." + key.SecretAccessKey, 200, ""},
		{"bearer in small letters", "bearer  " + key.AccessKeyID + "." + key.SecretAccessKey, 200, ""},
		{"basic", basic(key.AccessKeyID, key.SecretAccessKey), 200, ""},
		{"none", "", 401, "NotAuthorized"},
		{"another's secret", "Bearer " + key.AccessKeyID + "." + other.SecretAccessKey, 401, "NotAuthorized"},
		{"no secret", "Bearer " + key.AccessKeyID + ".", 401, "NotAuthorized"},
		{"no dot", "Bearer " + key.AccessKeyID, 401, "NotAuthorized"},
		{"an unknown key without a secret", "Bearer MUSTNONE.", 401, "NotAuthorized"},
		{"an unknown key", basic("MUSTNONE", "secret"), 401, "NotAuthorized"},
		{"another scheme", "Digest x", 401, "NotAuthorized"},
		{"broken basic", "Basic ***", 401, "NotAuthorized"},
	} {
		a := s.call("POST", "CreatePlayerId", "", "Authorization", c.header)
		if a.status != c.status || c.name != "" && (a.Error == nil || a.Error.Name != c.name) {
			t.Errorf("%s: got %d %s, want %d %s", c.what, a.status, a.text, c.status, c.name)
		}
		if challenges := strings.Join(a.header.Values("WWW-Authenticate"), " "); c.status == 401 != strings.Contains(challenges, "Basic") {
			t.Errorf("%s: challenged with %q", c.what, challenges)
		}
		if strings.Contains(a.text, key.SecretAccessKey) || strings.Contains(a.text, other.SecretAccessKey) {
			t.Errorf("%s: the answer has a secret in it: %s", c.what, a.text)
		}
	}
}

func TestRoles(t *testing.T) {
	s := newStage(t, mustertest.Signed())
	bearer := func(role string) string {
		key := s.srv.Credentials(role)
		return "Bearer " + key.AccessKeyID + "." + key.SecretAccessKey
	}
	client, reader := bearer(mustertest.Client), bearer(mustertest.ReadOnly)
	for _, c := range []struct {
		who, method, path, body string
		status                  int
	}{
		{client, "POST", "SearchSessions", `{"fleetId":"` + s.fleet.ID + `"}`, 200},
		{reader, "POST", "SearchSessions", `{"fleetId":"` + s.fleet.ID + `"}`, 200},
		{bearer(mustertest.Backend), "POST", "CreateSession", `{"fleetId":"` + s.fleet.ID + `","maxPlayer":2}`, 409},
		{bearer(mustertest.Admin), "POST", "CreateSession", `{"fleetId":"` + s.fleet.ID + `","maxPlayer":2}`, 409},
		{client, "POST", "CreateSession", `{"fleetId":"` + s.fleet.ID + `","maxPlayer":2}`, 409}, // no free server
		{reader, "POST", "CreateSession", `{"fleetId":"` + s.fleet.ID + `","maxPlayer":2}`, 403},
		{reader, "POST", "CreateSessionOnQueue", `{"queueName":"q","maxPlayer":2}`, 403},
		{reader, "POST", "JoinSession", `{"sessionId":"arn:x:gamesession/y","playerId":"p"}`, 403},
		{reader, "POST", "LeaveSession", `{"playerSessionId":"psess-x"}`, 403},
		{reader, "GET", "placements/none", "", 404},
		{"", "GET", "events?clientId=x", "", 401},
		{"", "GET", "calls/x", "", 401},
	} {
		if a := s.call(c.method, c.path, c.body, "Authorization", c.who); a.status != c.status {
			t.Errorf("%.12s %s %s: got %d %s, want %d", c.who, c.method, c.path, a.status, a.text, c.status)
		}
	}
	// A call belongs to the key that made it.
	begun := s.call("POST", "SearchSessions?async=1", `{"fleetId":"`+s.fleet.ID+`"}`, "Authorization", client)
	if a := s.call("GET", "calls/"+begun.CallID, "", "Authorization", client); a.status != 200 {
		t.Errorf("got %s", a.text)
	}
	if a := s.call("GET", "calls/"+begun.CallID, "", "Authorization", reader); a.status != 404 {
		t.Errorf("another key reads the call: %s", a.text)
	}
}

// In development all clients are admitted except web pages of other sites.
func TestDevelopment(t *testing.T) {
	s := newStage(t)
	if a := s.call("POST", "CreatePlayerId", ""); a.status != 200 {
		t.Errorf("got %s", a.text)
	}
	if a := s.call("POST", "CreatePlayerId", "", "Authorization", "Bearer any.thing"); a.status != 200 {
		t.Errorf("got %s", a.text)
	}
	if a := s.call("POST", "CreatePlayerId", "", "Sec-Fetch-Site", "cross-site"); a.status != 403 || a.Error.Name != "AccessDenied" {
		t.Errorf("got %d %s", a.status, a.text)
	}
	key := s.srv.Credentials(mustertest.ReadOnly)
	if a := s.call("POST", "LeaveSession", `{"playerSessionId":"x"}`, "Authorization", "Bearer "+key.AccessKeyID+".x"); a.status != 403 {
		t.Errorf("a known key keeps its role: got %s", a.text)
	}
}

func TestBodies(t *testing.T) {
	s := newStage(t)
	for _, c := range []struct {
		what, path, body, kind string
		status                 int
		name, field            string
	}{
		{"no body", "CreatePlayerId", "", "", 200, "", ""},
		{"spaces", "CreatePlayerId", " {} \n", "", 200, "", ""},
		{"with a charset", "CreatePlayerId", "{}", "application/json; charset=utf-8", 200, "", ""},
		{"a form", "CreatePlayerId", "a=b", "application/x-www-form-urlencoded", 415, "InvalidRequest", "Content-Type"},
		{"an array", "CreatePlayerId", "[]", "", 400, "InvalidRequest", "body"},
		{"null", "CreatePlayerId", "null", "", 400, "InvalidRequest", "body"},
		{"half", "CreatePlayerId", "{", "", 400, "InvalidRequest", "body"},
		{"two", "CreatePlayerId", "{}{}", "", 400, "InvalidRequest", "body"},
		{"no UTF-8", "CreatePlayerId", "{\"\xff\":1}", "", 400, "InvalidRequest", "body"},
		{"a wrong type", "CreatePlayerId", `{"includeDashes":"yes"}`, "", 400, "InvalidRequest", "includeDashes"},
		{"a slip", "CreatePlayerId", `{"includeDash":true}`, "", 400, "InvalidRequest", "includeDash"},
		{"too large", "CreatePlayerId", strings.Repeat(" ", 1<<20+1), "", 413, "BodyTooLarge", "body"},
		{"no node", "DestroySession", "", "", 404, "UnknownNode", "path"},
	} {
		header := []string{}
		if c.kind != "" {
			header = []string{"Content-Type", c.kind}
		}
		a := s.call("POST", c.path, c.body, header...)
		if a.status != c.status || c.name != "" && (a.Error == nil || a.Error.Name != c.name || a.Error.Field != c.field) {
			t.Errorf("%s: got %d %s, want %d %s of %s", c.what, a.status, a.text, c.status, c.name, c.field)
		}
	}
	if a := s.call("GET", "CreateSession", ""); a.status != 404 || !strings.Contains(a.Error.Expected, "POST /session/v1/ and one of") {
		t.Errorf("got %d %s", a.status, a.text)
	}
}

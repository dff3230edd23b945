package playerapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerrates"
)

// TestBudgetInHeaders: an answer has the caller's remaining budget, in the headers of the draft, and a refusal has the time of the next
// possible attempt.
func TestBudgetInHeaders(t *testing.T) {
	kinds, err := playerrates.Parse("party=1/m:3 get-flow=off partner=30/m:2")
	if err != nil {
		t.Fatal(err)
	}
	x := newLobby(t, func(c *Config) { c.Rates, c.Dev = kinds, true })
	token := x.login("ann")
	wants := func(answer http.Header, limit, policy, retry string) {
		t.Helper()
		for name, want := range map[string]string{"Ratelimit": limit, "Ratelimit-Policy": policy, "Retry-After": retry} {
			if got := strings.Join(answer.Values(name), ", "); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
	const policy = `"party";q=3;w=180`
	wants(x.headers(objects.PlayerPrefix+"Party.CreateParty", token, `{}`), `"party";r=2;t=60`, policy, "")
	x.pass(30 * time.Second)
	wants(x.headers(objects.PlayerPrefix+"Party.SetReady", token, `{"ready":true}`), `"party";r=1;t=90`, policy, "")
	x.headers(objects.PlayerPrefix+"Party.SetReady", token, `{"ready":true}`)
	wants(x.headers(objects.PlayerPrefix+"Party.SetReady", token, `{"ready":true}`), `"party";r=0;t=150`, policy, "30")
	for range 20 {
		wants(x.headers(objects.PlayerPrefix+"Session.GetFlow", token, `{}`), "", "", "")
	}
	wants(x.headers(objects.PlayerPrefix+"Session.Login", "", `{"provider":"dev","token":"{\"player_id\":\"bob\"}"}`), `"login";r=4;t=10`, `"login";q=5;w=50`, "")
	wants(x.headers(objects.PartnerPrefix+"Flow.GetPlayers", "", `{"player_ids":["ann"]}`), `"partner";r=1;t=2`, `"partner";q=2;w=4`, "")
}

// headers returns the headers of the answer to a call.
func (x *lobby) headers(path, token, body string) http.Header {
	x.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	x.door.All().ServeHTTP(w, r)
	return w.Result().Header
}

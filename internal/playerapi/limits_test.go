package playerapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/playerapi/events"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/rates"
	"github.com/musterhq/muster/internal/rate"
)

// TestRates checks the table of docs/spec/fair-play.md#rate-limits: each call has its rate and burst, and is refused over the limit.
func TestRates(t *testing.T) {
	perMinute := func(n int) time.Duration { return time.Minute / time.Duration(n) }
	classed := map[rates.Class]struct {
		rate  rate.Limit
		calls []string
	}{
		rates.Login:            {rate.Limit{Every: perMinute(6), Burst: 5}, []string{"Session.Login"}},
		rates.GetFlow:          {rate.Limit{Every: time.Second, Burst: 5}, []string{"Session.GetFlow"}},
		rates.Invite:           {rate.Limit{Every: perMinute(10), Burst: 5}, []string{"Party.SendInvite"}},
		rates.Code:             {rate.Limit{Every: perMinute(10), Burst: 5}, []string{"Party.JoinPartyByInviteCode"}},
		rates.Enter:            {rate.Limit{Every: perMinute(6), Burst: 3}, []string{"Matchmaking.EnterMatchmaking"}},
		rates.LeaveMatchmaking: {rate.Limit{Every: time.Second, Burst: 5}, []string{"Matchmaking.LeaveMatchmaking"}},
		rates.AcceptMatch:      {rate.Limit{Every: time.Second, Burst: 5}, []string{"Matchmaking.AcceptMatch"}},
		rates.Details:          {rate.Limit{Every: 2 * time.Second, Burst: 3}, []string{"GameInstance.GetHostConnectionDetails"}},
		// The ways out have buckets of their own.
		rates.LeaveParty: {rate.Limit{Every: time.Second / 5, Burst: 20}, []string{"Party.LeaveParty"}},
		rates.LeaveGame:  {rate.Limit{Every: time.Second / 5, Burst: 20}, []string{"GameInstance.LeaveGame"}},
		rates.Decline:    {rate.Limit{Every: time.Second / 5, Burst: 20}, []string{"GameInstance.DeclineReconnect"}},
		rates.Logout:     {rate.Limit{Every: time.Second / 5, Burst: 20}, []string{"Session.Logout"}},
		rates.Party: {rate.Limit{Every: time.Second / 2, Burst: 10}, []string{
			"Party.CreateParty", "Party.JoinPartyById", "Party.RespondToInvite", "Party.CancelInvite", "Party.KickPlayer", "Party.PromoteLeader", "Party.SetReady",
			"Party.SetPartyPreferences", "Party.SetPlayerPreferences", "Party.RotateInviteCode", "Party.DisbandParty",
		}},
	}
	x := newLobby(t, nil)
	named := map[string]bool{}
	for c, want := range classed {
		if got := x.door.buckets.Limit(c); got != want.rate {
			t.Errorf("%v: %v, want %v", want.calls, got, want.rate)
		}
		for _, call := range want.calls {
			named[call] = true
			if got, ok := x.door.player.Classes()[objects.PlayerPrefix+call]; !ok || got != c {
				t.Errorf("%s shares the bucket of class %d, want %d", call, got, c)
			}
		}
	}
	for path, c := range x.door.player.Classes() {
		if call := strings.TrimPrefix(path, objects.PlayerPrefix); !named[call] && c != rates.Other && c != rates.Party {
			t.Errorf("%s has the bucket of class %d: the table does not say so", call, c)
		}
	}
	for name, c := range map[string]struct {
		class rates.Class
		rate  rate.Limit
	}{
		"everything else":                  {rates.Other, rate.Limit{Every: time.Second / 5, Burst: 20}},
		"stream attach":                    {rates.Attach, rate.Limit{Every: perMinute(10), Burst: 5}},
		"invites of one player to another": {rates.InvitePair, rate.Limit{Every: perMinute(3), Burst: 3}},
		"wrong codes of one address":       {rates.CodeAddress, rate.Limit{Every: perMinute(20), Burst: 20}},
		"partner token":                    {rates.Partner, rate.Limit{Every: time.Second / 200, Burst: 400}},
	} {
		if got := x.door.buckets.Limit(c.class); got != c.rate {
			t.Errorf("%s: %v, want %v", name, got, c.rate)
		}
	}
	y := newLobby(t, func(c *Config) { c.LoginsPerAddress = 30 })
	if got := y.door.buckets.Limit(rates.LoginAddress); got != (rate.Limit{Every: perMinute(30), Burst: 5}) {
		t.Errorf("logins of one address: %v, want 30/min, 5", got)
	}

	for c, want := range classed {
		if c == rates.Login || c == rates.Logout { // a login has no player before, a logout none after it
			continue
		}
		player := fmt.Sprint("player-", c)
		token := x.login(player)
		for i := range want.rate.Burst {
			if status, o := x.call(token, want.calls[0], `{}`); status == 429 {
				t.Fatalf("%s: call %d of a burst of %d is refused: %v", want.calls[0], i+1, want.rate.Burst, o)
			}
		}
		before := x.stand(player)
		o := x.wants(429, "RATE_LIMITED")(x.call(token, want.calls[0], `{}`))
		if wait, _ := o["retry_after_ms"].(float64); wait <= 0 || time.Duration(wait)*time.Millisecond > want.rate.Every {
			t.Errorf("%s: retry after %v ms", want.calls[0], o["retry_after_ms"])
		}
		if after := x.stand(player); after != before {
			t.Errorf("%s over the limit changed the player: %v, %v", want.calls[0], before, after)
		}
		x.pass(want.rate.Every)
		if status, o := x.call(token, want.calls[0], `{}`); status == 429 {
			t.Errorf("%s is refused after the wait: %v", want.calls[0], o)
		}
	}
}

// stand returns the core's view of a player without a call at the door, which would count.
func (x *lobby) stand(player string) string {
	s, err := x.door.state.Stand(x.Context(), player)
	if err != nil {
		x.Fatal(err)
	}
	return fmt.Sprint(s)
}

func TestRatesOfPairsAndCodes(t *testing.T) {
	x := newLobby(t, nil)
	ann := x.login("ann")
	x.login("bob")
	x.login("carl")
	x.wants(200, "")(x.call(ann, "Party.CreateParty", `{}`))
	for range 3 {
		x.wants(200, "")(x.call(ann, "Party.SendInvite", `{"player_id":"bob"}`))
	}
	x.wants(429, "RATE_LIMITED")(x.call(ann, "Party.SendInvite", `{"player_id":"bob"}`))
	x.wants(200, "")(x.call(ann, "Party.SendInvite", `{"player_id":"carl"}`))

	for i := range 20 { // each player guesses a few times, all from one address
		if i%4 == 0 {
			ann = x.login(fmt.Sprint("guesser-", i))
		}
		x.wants(404, "PARTY_NOT_FOUND")(x.call(ann, "Party.JoinPartyByInviteCode", `{"code":"AAAAAA"}`))
	}
	x.wants(429, "RATE_LIMITED")(x.call(x.login("late"), "Party.JoinPartyByInviteCode", `{"code":"AAAAAA"}`))
}

// TestTransportLimits checks the rules of docs/spec/player-api.md#transport for every call.
func TestTransportLimits(t *testing.T) {
	x := newLobby(t, nil)
	token := x.login("ann")
	big := func(n int) string { return strings.Repeat("x", n) }
	made := x.wants(200, "")(x.call(token, "Party.CreateParty", `{"attributes":{"a":"`+big(objects.PartyAttributesMax-10)+`"}}`))
	rev := made["flow"].(map[string]any)["rev"].(float64)
	for _, c := range []struct {
		name, call, body string
		headers          []string
		status           int
		code             string
	}{
		{"party attributes over 16 KiB", "Party.SetPartyPreferences", `{"attributes":{"a":"` + big(objects.PartyAttributesMax) + `"}}`, nil, 400, "INVALID_ARGUMENT"},
		{"player attributes of 4 KiB", "Party.SetPlayerPreferences", `{"attributes":{"a":"` + big(objects.PlayerAttributesMax-10) + `"}}`, nil, 200, ""},
		{"player attributes over 4 KiB", "Party.SetPlayerPreferences", `{"attributes":{"a":"` + big(objects.PlayerAttributesMax) + `"}}`, nil, 400, "INVALID_ARGUMENT"},
		{"regions of 64 bytes", "Party.SetPartyPreferences", `{"regions":["` + big(64) + `"]}`, nil, 200, ""},
		{"a region over 64 bytes", "Party.SetPartyPreferences", `{"regions":["` + big(65) + `"]}`, nil, 400, "INVALID_ARGUMENT"},
		{"a region without a name", "Party.SetPartyPreferences", `{"regions":[""]}`, nil, 400, "INVALID_ARGUMENT"},
		{"a body over 64 KiB", "Party.SetPartyPreferences", `{"queue":"` + big(64<<10) + `"}`, nil, 413, "INVALID_ARGUMENT"},
		{"an unknown field", "Party.SetReady", `{"ready":true,"raedy":true}`, nil, 400, "INVALID_ARGUMENT"},
		{"an unknown field inside", "Party.SetPlayerPreferences", `{"latency_ms":"fast"}`, nil, 400, "INVALID_ARGUMENT"},
		{"no JSON", "Party.SetReady", `{"ready":`, nil, 400, "INVALID_ARGUMENT"},
		{"a list", "Party.SetReady", `[]`, nil, 400, "INVALID_ARGUMENT"},
		{"a request id over 64", "Party.SetReady", `{"ready":true}`, []string{"X-Request-Id", big(65)}, 400, "INVALID_ARGUMENT"},
		{"a request id of 64", "Party.SetReady", `{"ready":true}`, []string{"X-Request-Id", big(64)}, 200, ""},
		{"the revision that is", "Party.SetReady", `{"ready":false}`, []string{"X-If-Rev", fmt.Sprint(rev)}, 200, ""},
		{"another revision", "Party.SetReady", `{"ready":true}`, []string{"X-If-Rev", fmt.Sprint(rev + 1)}, 409, "REV_CONFLICT"},
		{"no revision", "Party.SetReady", `{"ready":true}`, []string{"X-If-Rev", "one"}, 400, "INVALID_ARGUMENT"},
	} {
		x.pass(time.Second)
		o := x.wants(c.status, c.code)(x.call(token, c.call, c.body, c.headers...))
		if _, ok := o["flow"].(map[string]any); !ok {
			t.Errorf("%s: no flow in %v", c.name, o)
		}
		if c.code != "" && (o["message"] == "" || o["action"] == nil) {
			t.Errorf("%s: %v", c.name, o)
		}
	}
	// Times with milliseconds, in UTC.
	snapshot := x.wants(200, "")(x.call(token, "Session.GetFlow", `{}`))["flow_snapshot"].(map[string]any)
	form := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
	for name, text := range map[string]any{
		"server_time": snapshot["server_time"], "expires_at": snapshot["session"].(map[string]any)["expires_at"],
		"joined_at": snapshot["party"].(map[string]any)["members"].([]any)[0].(map[string]any)["joined_at"],
	} {
		if s, _ := text.(string); !form.MatchString(s) {
			t.Errorf("%s: %v, want RFC 3339 in UTC with milliseconds", name, text)
		}
	}
}

// The results of a game are bounded: every player of the game keeps them for a day and gets them in an event.
func TestLimitOfResults(t *testing.T) {
	x := newLobby(t, func(c *Config) { c.Dev = true })
	result := func(size int) string { return `{"a":"` + strings.Repeat("x", size-len(`{"a":""}`)) + `"}` }
	for _, c := range []struct {
		call, fields string
		most         int
	}{
		{"Game.EndGame", `"result":%s`, objects.PartyAttributesMax},
		{"Game.EndGame", `"results":{"ann":%s}`, objects.PlayerAttributesMax},
		{"Game.ReleasePlayers", `"player_ids":["ann"],"result":%s`, objects.PlayerAttributesMax},
		{"Game.RemovePlayers", `"players":[{"player_id":"ann","reason":"OTHER","result":%s}]`, objects.PlayerAttributesMax},
	} {
		for size, code := range map[int]string{c.most: "GAME_INSTANCE_NOT_FOUND", c.most + 1: "INVALID_ARGUMENT"} {
			body := `{"game_instance_id":"gi-00000000-0000-4000-8000-000000000000",` + fmt.Sprintf(c.fields, result(size)) + `}`
			r := httptest.NewRequest(http.MethodPost, objects.PartnerPrefix+c.call, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			x.door.All().ServeHTTP(w, r)
			if !strings.Contains(w.Body.String(), code) {
				t.Errorf("%s with %s of %d bytes: %d %s, want %s", c.call, c.fields, size, w.Code, w.Body, code)
			}
		}
	}
}

// An answer about an invalid field names it in details.fields, whether the schema or the service has found it.
func TestInvalidFieldsAreNamed(t *testing.T) {
	x := newLobby(t, nil)
	token := x.login("ann")
	for _, c := range []struct{ call, body, field string }{
		{"Party.SetReady", `{"ready":7}`, "ready"},
		{"Party.JoinPartyById", `{"party_id":"none"}`, "party_id"},
		{"Party.CreateParty", `{"attributes":{"a":"` + strings.Repeat("x", objects.PartyAttributesMax) + `"}}`, "attributes"},
		{"Party.SetPlayerPreferences", `{"latency_ms":{"eu":-1}}`, "latency_ms"},
		{"GameInstance.JoinGameInstance", `{"game_instance_id":"gi-00000000-0000-4000-8000-000000000000","code":"1234"}`, "code"},
		{"Session.Login", `{"provider":"none","token":"x"}`, "provider"},
	} {
		x.pass(time.Second)
		details := x.wants(400, "INVALID_ARGUMENT")(x.call(token, c.call, c.body))["details"].(map[string]any)
		fields, _ := details["fields"].([]any)
		if len(fields) != 1 || fields[0].(map[string]any)["field"] != c.field || fields[0].(map[string]any)["message"] == "" {
			t.Errorf("%s %.80s: %v, want the field %s", c.call, c.body, details, c.field)
		}
	}
}

// The largest event of a party of the default size is that with the largest permitted attributes. Without latencies, it fits into a frame of 64 KiB.
func TestLargestEvent(t *testing.T) {
	x := newLobby(t, nil)
	leader := x.login("leader")
	attributes := `{"attributes":{"a":"` + strings.Repeat("x", objects.PlayerAttributesMax-10) + `"}}`
	party := x.wants(200, "")(x.call(leader, "Party.CreateParty", `{"joinability":"OPEN","attributes":{"a":"`+strings.Repeat("x", objects.PartyAttributesMax-10)+`"}}`))
	id := party["party"].(map[string]any)["party_id"].(string)
	x.call(leader, "Party.SetPlayerPreferences", attributes)
	for i := range 7 {
		token := x.login(fmt.Sprint("player-", i))
		x.wants(200, "")(x.call(token, "Party.JoinPartyById", `{"party_id":"`+id+`"}`))
		x.wants(200, "")(x.call(token, "Party.SetPlayerPreferences", attributes))
	}
	const frameMax = 64 << 10
	attached := &playerflow.AttachStream{Player: "leader", LoginSessionID: flow.LoginSessionID(x.sessionOf("leader")), Stream: 1}
	if err := x.door.state.Do(t.Context(), attached); err != nil {
		t.Fatal(err)
	}
	missed, _, _, err := x.door.state.EventsAfter(t.Context(), "leader", attached.Sync-2)
	if err != nil || len(missed) != 2 {
		t.Fatalf("the last events: %v, %v", missed, err)
	}
	change, sync := &missed[0], &missed[1]
	size := func(e *playerflow.PlayerEvent) int {
		tail, err := events.Writer{State: x.door.state}.Tail(t.Context(), e.Seq, &e.Told, "leader")
		if err != nil {
			t.Fatal(err)
		}
		return len(events.Whole(e.Seq, tail))
	}
	if got := size(sync); got > frameMax || got < objects.PartyAttributesMax+8*objects.PlayerAttributesMax-1000 {
		t.Errorf("OnSync has %d bytes, want at most %d", got, frameMax)
	}
	if got := size(change); got > frameMax {
		t.Errorf("the event has %d bytes, want at most %d", got, frameMax)
	}
}

// sessionOf returns the login session of a player.
func (x *lobby) sessionOf(player string) (id domain.UUID) {
	x.Helper()
	err := x.door.state.Read(x.Context(), func(v *cell.View) error {
		s, _ := v.FlowOf(player, domain.TimeOf(x.clock()))
		id = domain.UUID(s.Login.ID)
		return nil
	})
	if err != nil {
		x.Fatal(err)
	}
	return id
}

// TestLongLoginTokens: a token above the maximum length is refused with its length, whichever provider it is for.
func TestLongLoginTokens(t *testing.T) {
	x := newLobby(t, nil)
	for _, provider := range []string{"dev", "backend", "oidc"} {
		for name, token := range map[string]string{"letters": strings.Repeat("a", 20<<10), "letters of three bytes": strings.Repeat("\u20ac", 6000)} {
			body, err := json.Marshal(map[string]string{"provider": provider, "token": token})
			if err != nil {
				t.Fatal(err)
			}
			o := x.wants(400, "INVALID_ARGUMENT")(x.call("", "Session.Login", string(body)))
			message, _ := o["message"].(string)
			if !strings.Contains(message, "token") || !regexp.MustCompile(`20480|18000`).MatchString(message) || strings.Contains(message, "aaa") {
				t.Errorf("%s, %s: %s", provider, name, message)
			}
		}
	}
}

// TestLoggedInMost: targetCcu counts players. One who logs in again takes no further place, and the login session that was replaced takes none.
func TestLoggedInMost(t *testing.T) {
	players := flow.DefaultConfig()
	players.Logins.OnlineMax = 2
	x := newLobbyWith(t, engine.Config{Cell: cellOf(players)}, nil)
	queued := func(player string) {
		t.Helper()
		x.wants(http.StatusTooManyRequests, "LOGIN_QUEUED")(x.call("", "Session.Login", devLogin(player)))
	}
	x.login("anna")
	x.login("anna")
	ben := x.login("ben")
	queued("carl")
	anna := x.login("anna") // such as after a crash of the client
	x.wants(http.StatusOK, "")(x.call(ben, "Session.Logout", "{}"))
	x.login("carl")
	queued("ben")
	x.wants(http.StatusOK, "")(x.call(anna, "Session.Logout", "{}"))
	x.login("ben")
	queued("anna")
}

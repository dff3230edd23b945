package gameclient

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// loginUntil returns a login that expires after left.
func loginUntil(left time.Duration) string {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC).Add(left) // the snapshot's server_time, and more
	return strings.Replace(loginAnswer, `{"access_token":"pfa_1",`, fmt.Sprintf(`{"access_token":"pfa_1","expires_at":%q,`, at.Format(time.RFC3339Nano)), 1)
}

// untilCalled waits for a call.
func (d *desk) untilCalled(name string, times int) []deskCall {
	d.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if calls := d.calls(name); len(calls) >= times {
			return calls
		}
		if time.Now().After(end) {
			d.t.Fatalf("%s was not called %d times", name, times)
		}
	}
}

// The token is refreshed in time by the service's clock, and again when the service says that the login expires. Calls and
// streams use the latest token.
func TestLoginIsRefreshed(t *testing.T) {
	d := newDesk(t)
	d.answers["Session.Login"] = nil
	d.answer("Session.Login", 200, loginUntil(200*time.Millisecond))
	d.answer("Session.Refresh", 0, "") // its answer is lost
	d.answer("Session.Refresh", 200, `{"access_token":"pfa_2","expires_at":"2036-01-02T03:04:05.678Z","flow":{"rev":1,"seq":2,"phase":"IDLE","keys":{}}}`)
	p := d.login()
	s := d.stream()
	d.untilCalled("Session.Refresh", 2)
	for s.token != "pfa_2" { // the refresh is called before the answer is there
		_ = s.NetConn().Close()
		s = d.stream()
	}
	d.answer("Party.LeaveParty", 200, `{"flow":{"rev":2,"seq":2,"phase":"IDLE","keys":{}}}`)
	if err := p.LeaveParty(t.Context()); err != nil || d.calls("Party.LeaveParty")[0].token != "pfa_2" {
		t.Errorf("%v, %+v", err, d.calls("Party.LeaveParty"))
	}
	s.event(3, OnSessionExpiring, `{"expires_at":"2036-01-02T03:04:05.678Z"}`)
	d.untilCalled("Session.Refresh", 3)
}

// A login that has ended is not refreshed again and again.
func TestLoginThatEndsIsNotRefreshed(t *testing.T) {
	d := newDesk(t)
	d.answers["Session.Login"] = nil
	d.answer("Session.Login", 200, loginUntil(100*time.Millisecond))
	d.answer("Session.Refresh", 401, `{"code":"SESSION_NOT_FOUND","action":"LOGIN","message":"m"}`)
	p := d.login()
	s := d.stream()
	d.untilCalled("Session.Refresh", 1)
	s.end(closeEnded)
	if _, err := p.Next(t.Context()); !errors.Is(err, ErrLoggedOut) {
		t.Errorf("the end: %v", err)
	}
	p.running.Wait() // there is no other attempt
	if n := len(d.calls("Session.Refresh")); n != 1 {
		t.Errorf("%d refreshes", n)
	}
}

// Codes after which a client does not come back, and one after which it does.
func TestCloseCodes(t *testing.T) {
	for code, want := range map[int]error{4401: ErrLoggedOut, 4409: ErrReplaced, 4410: ErrLoggedOut} {
		d := newDesk(t)
		p := d.login()
		d.stream().end(code)
		if _, err := p.Next(t.Context()); !errors.Is(err, want) {
			t.Errorf("after %d: %v, want %v", code, err, want)
		}
		p.running.Wait()
		if len(d.streams) != 0 {
			t.Errorf("after %d it comes back", code)
		}
	}
	d := newDesk(t)
	p := d.login()
	for _, code := range []int{4406, 4408, 4429, 4503} {
		s := d.stream()
		s.send(`{"type":"bye","reconnect_after_ms":1}`)
		s.end(code)
	}
	d.stream().event(3, OnMaintenance, `{"message":"soon"}`)
	if e, err := p.Next(t.Context()); err != nil || e.Message != "soon" {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestPauses(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: 500 * time.Millisecond, 1: time.Second, 5: 16 * time.Second, 6: 30 * time.Second, 1 << 20: 30 * time.Second} {
		if got := pauseMax(failures); got != want {
			t.Errorf("after %d failures: at most %s, want %s", failures, got, want)
		}
	}
}

// The client acknowledges the events that the game has taken, in large steps, on the stream or by calls.
func TestTakenEventsAreAcknowledged(t *testing.T) {
	d := newDesk(t)
	p := d.login()
	s := d.stream()
	for i := range ackEvery {
		s.event(3+i, OnPartyChanged, `{}`)
	}
	for range ackEvery {
		if _, err := p.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.event(3+ackEvery, OnPartyChanged, `{}`)
	if got, want := <-s.said, fmt.Sprintf(`{"type":"ack","seq":%d}`, 2+ackEvery); got != want {
		t.Errorf("the client said %s, want %s", got, want)
	}

	d = newDesk(t)
	d.noStream = true
	var events []string
	for i := range ackEvery {
		events = append(events, fmt.Sprintf(`{"seq":%d,"commit":"7","ts":"2026-01-02T03:04:05.678Z","type":"OnPartyChanged","data":{}}`, 3+i))
	}
	d.answer("Session.PollEvents", 200, `{"events":[`+strings.Join(events, ",")+`]}`)
	d.answer("Session.PollEvents", 200, `{"events":[]}`)
	d.answer("Session.Ack", 200, `{"flow":{"rev":1,"seq":70,"phase":"IDLE","keys":{}}}`)
	p = d.login(func(o *PlayerOptions) { o.LongPoll = true })
	for range ackEvery {
		if _, err := p.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := d.untilCalled("Session.Ack", 1)[0].body["seq"]; got != float64(2+ackEvery) {
		t.Errorf("acknowledged up to %v", got)
	}
}

func TestIfRev(t *testing.T) {
	d := newDesk(t)
	p := d.login()
	d.answer("Party.LeaveParty", 409, `{"code":"REV_CONFLICT","action":"SYNC","message":"m"}`)
	if err := p.LeaveParty(IfRev(t.Context(), 41)); !errors.Is(err, ErrWrongStatus) || d.calls("Party.LeaveParty")[0].rev != "41" {
		t.Errorf("%v, %+v", err, d.calls("Party.LeaveParty"))
	}
	_, _ = p.Party(t.Context())
	if rev := d.calls("Party.GetParty")[0].rev; rev != "" {
		t.Errorf("a call without a condition has %q", rev)
	}
}

func TestJoinsSayWhatHappensToAnotherParty(t *testing.T) {
	d := newDesk(t)
	p := d.login()
	for _, call := range []string{"Party.JoinPartyById", "Party.JoinPartyByInviteCode", "Party.RespondToInvite"} {
		d.answer(call, 409, `{"code":"ALREADY_IN_PARTY","action":"SYNC","message":"m"}`)
	}
	_, _ = p.JoinParty(t.Context(), "pty-1")
	_, _ = p.JoinPartyByCode(t.Context(), "K7", OnExistingFail)
	_, _ = p.Respond(t.Context(), "inv-1", true, OnExistingFail)
	for call, want := range map[string]string{
		"Party.JoinPartyById": "map[party_id:pty-1]", "Party.JoinPartyByInviteCode": "map[code:K7 on_existing:FAIL]",
		"Party.RespondToInvite": "map[accept:true invite_id:inv-1 on_existing:FAIL]",
	} {
		if got := fmt.Sprint(d.calls(call)[0].body); got != want {
			t.Errorf("%s said %s, want %s", call, got, want)
		}
	}
}

// This tests the calls for a player's own games and for searches without a party.
func TestGamesWithoutMatchmaking(t *testing.T) {
	d := newDesk(t)
	p := d.login()
	d.stream()
	const game = `{"game_instance":{"game_instance_id":"gi-7","status":"PENDING"},"flow":{"rev":2,"seq":5,"phase":"IN_GAME","keys":{"GAME_INSTANCE_ID":"gi-7"}}}`
	for _, call := range []string{"CreateGameInstance", "JoinGameInstance", "UpdateGameInstance", "GetGameInstance"} {
		d.answer("GameInstance."+call, 200, game)
	}
	d.answer("Matchmaking.EnterMatchmaking", 200, `{"ticket":{"matchmaking_id":"mm-1"},"flow":{"rev":2,"seq":5,"phase":"MATCHMAKING","keys":{}}}`)
	g, err := p.CreateGame(t.Context(), CreateGameRequest{Attributes: []byte(`{"map":"moon"}`), MaxPlayers: 3})
	if err != nil || g.ID != "gi-7" || p.Flow().Keys.GameInstanceID != "gi-7" {
		t.Errorf("%+v, %v", g, err)
	}
	_, _ = p.JoinGame(t.Context(), "gi-8", "K7")
	_, _ = p.UpdateGame(t.Context(), []byte(`{"map":"mine"}`))
	_, _ = p.EnterMatchmakingWith(t.Context(), "ranked", []byte(`{"skill":7}`))
	for call, want := range map[string]string{
		"GameInstance.CreateGameInstance": "map[attributes:map[map:moon] max_players:3]", "GameInstance.JoinGameInstance": "map[code:K7 game_instance_id:gi-8]",
		"GameInstance.UpdateGameInstance": "map[attributes:map[map:mine]]", "Matchmaking.EnterMatchmaking": "map[attributes:map[skill:7] queue:ranked]",
	} {
		if got := fmt.Sprint(d.calls(call)[0].body); got != want {
			t.Errorf("%s said %s, want %s", call, got, want)
		}
	}
	if g, err := p.Game(t.Context()); err != nil || g.Status != "PENDING" {
		t.Errorf("%+v, %v", g, err)
	}
}

// Calls and the stream over TLS use the root certificates of the HTTP client.
func TestPlayerOverTLS(t *testing.T) {
	d := newDesk(t)
	d.Close()
	d.Server = httptest.NewTLSServer(d)
	p := d.login(func(o *PlayerOptions) { o.HTTPClient = d.Client() })
	d.stream().event(3, OnAddedToParty, `{"party_id":"pty-1"}`)
	if e, err := p.Next(t.Context()); err != nil || e.PartyID != "pty-1" {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := Login(t.Context(), PlayerOptions{Endpoint: d.URL, Provider: ProviderDev, Token: DevToken("ann")}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a client that does not know the authority: %v", err)
	}
}

package gameclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
)

// desk is the service as a player's client sees it: calls that return the test's answers, and streams that the test feeds.
type desk struct {
	t *testing.T
	*httptest.Server
	noStream bool // a proxy that lets no WebSocket through

	mu      sync.Mutex
	answers map[string][]deskAnswer // in turn; the last one stays
	asked   []deskCall
	streams chan *deskStream
}

type deskAnswer struct {
	status int
	body   string
}

type deskCall struct {
	name, request, token, rev string
	body                      object
}

// deskStream is one WebSocket of a client.
type deskStream struct {
	after, token string
	said         chan string // what the client says on it
	*websocket.Conn
}

// listen reads until the stream ends.
func (s *deskStream) listen() {
	for {
		_, message, err := s.ReadMessage()
		if err != nil {
			_ = s.Close()
			return
		}
		s.said <- string(message)
	}
}

func (s *deskStream) end(code int) {
	_ = s.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""))
}

func bearerOf(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func (s *deskStream) send(format string, args ...any) {
	_ = s.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, format, args...))
}

func (s *deskStream) event(seq int, kind EventType, data string) {
	s.send(`{"seq":%d,"commit":"7","ts":"2026-01-02T03:04:05.678Z","type":%q,"data":%s}`, seq, kind, data)
}

const (
	helloFrame  = `{"type":"hello","session_id":"s","epoch":1,"head_seq":9,"rev":1,"ping_interval_ms":15000,"dead_after_ms":40000,"resume":"REPLAY"}`
	loginAnswer = `{"access_token":"pfa_1","flow_snapshot":{"player_id":"ann","rev":1,"seq":2,"phase":"IN_GAME","server_time":"2026-01-02T03:04:05.678Z",` +
		`"keys":{"GAME_INSTANCE_ID":"gi-1"},"game_instance":{"game_instance_id":"gi-1","membership":{"status":"DISCONNECTED","can_decline":true}}},` +
		`"flow":{"rev":1,"seq":2,"phase":"IN_GAME","keys":{"GAME_INSTANCE_ID":"gi-1"}}}`
)

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, answers: map[string][]deskAnswer{}, streams: make(chan *deskStream, 16)}
	d.answer("Session.Login", 200, loginAnswer)
	d.Server = httptest.NewServer(d)
	t.Cleanup(func() { d.Close() })
	return d
}

func (d *desk) answer(name string, status int, body string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers[name] = append(d.answers[name], deskAnswer{status, body})
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/playerflow/v1/player/")
	if name == "stream" {
		if d.noStream {
			http.Error(w, "no upgrades here", http.StatusBadGateway)
			return
		}
		s := &deskStream{after: r.URL.Query().Get("after_seq"), token: bearerOf(r), said: make(chan string, 16)}
		upgrader := websocket.Upgrader{Subprotocols: []string{"playerflow.v1"}}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			d.t.Errorf("upgrade: %v", err)
			return
		}
		s.Conn = conn
		go s.listen()
		d.streams <- s
		return
	}
	var body object
	_ = json.NewDecoder(r.Body).Decode(&body)
	d.mu.Lock()
	d.asked = append(d.asked, deskCall{name, r.Header.Get("X-Request-Id"), bearerOf(r), r.Header.Get("X-If-Rev"), body})
	a := deskAnswer{http.StatusNotFound, ""}
	if turn := d.answers[name]; len(turn) > 0 {
		a = turn[0]
		if len(turn) > 1 {
			d.answers[name] = turn[1:]
		}
	}
	d.mu.Unlock()
	if a.status == 0 { // no answer
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(a.status)
	_, _ = w.Write([]byte(a.body))
}

func (d *desk) calls(name string) (calls []deskCall) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.asked {
		if c.name == name {
			calls = append(calls, c)
		}
	}
	return calls
}

func (d *desk) login(change ...func(*PlayerOptions)) *Player {
	d.t.Helper()
	o := PlayerOptions{Endpoint: d.URL, Provider: ProviderDev, Token: DevToken("ann")}
	for _, f := range change {
		f(&o)
	}
	p, err := Login(d.t.Context(), o)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(p.Close)
	return p
}

// stream returns the next stream that the client opens.
func (d *desk) stream() *deskStream {
	s := <-d.streams
	s.send(helloFrame)
	return s
}

func TestLoginWaitsInLine(t *testing.T) {
	d := newDesk(t)
	d.answers["Session.Login"] = nil
	d.answer("Session.Login", 429, `{"code":"LOGIN_QUEUED","message":"later","action":"RETRY","retry_after_ms":1,"details":{"position":3}}`)
	d.answer("Session.Login", 200, loginAnswer)
	position := 0
	p := d.login(func(o *PlayerOptions) {
		o.AutoReconnect, o.OnQueued = true, func(at int, _ time.Duration) { position = at }
	})
	if position != 3 || p.ID != "ann" || p.AtLogin.Game.Membership.Status != MembershipDisconnected || p.Flow().Keys.GameInstanceID != "gi-1" {
		t.Errorf("position %d, %+v", position, p.AtLogin)
	}
	said := d.calls("Session.Login")[1].body
	if fmt.Sprint(said["capabilities"]) != "[auto_reconnect]" || said["provider"] != "dev" || said["token"] != `{"player_id":"ann"}` {
		t.Errorf("the login said %v", said)
	}
	if s := d.stream(); s.after != "2" {
		t.Errorf("the stream begins behind %s, want the snapshot's event 2", s.after)
	}
}

// Changes directly after a new player's login arrive as events, not as an unexpected OnSync: a stream cannot
// begin after an event that does not exist yet.
func TestLoginOfANewPlayer(t *testing.T) {
	d := newDesk(t)
	d.answers["Session.Login"] = nil
	d.answer("Session.Login", 200, strings.ReplaceAll(loginAnswer, `"seq":2`, `"seq":0`))
	logged := make(chan *Player)
	go func() {
		p, err := Login(t.Context(), PlayerOptions{Endpoint: d.URL, Provider: ProviderDev, Token: DevToken("ann")})
		if err != nil {
			t.Error(err)
		}
		logged <- p
	}()
	s := <-d.streams
	select {
	case p := <-logged:
		p.Close()
		t.Fatal("logged in before anything can be heard")
	default:
	}
	s.send(helloFrame)
	p := <-logged
	s.event(1, OnAddedToParty, `{"party_id":"pty-1"}`)
	if e, err := p.Await(t.Context(), OnAddedToParty); err != nil || e.PartyID != "pty-1" {
		t.Errorf("%+v, %v", e, err)
	}
	p.Close()

	d.noStream = true // nor does a login wait for a stream that cannot be opened
	d.login()
}

func TestLoginChecks(t *testing.T) {
	for field, o := range map[string]PlayerOptions{
		"Endpoint": {Endpoint: "play.example.com", Provider: "dev", Token: "x"},
		"Provider": {Endpoint: "http://play.example.com", Token: "x"},
		"Token":    {Endpoint: "http://play.example.com", Provider: "dev"},
	} {
		_, err := Login(t.Context(), o)
		invalidField(t, "Login", err, field)
	}
}

func TestACallWithoutAnswerIsRepeated(t *testing.T) {
	d := newDesk(t)
	p := d.login()
	d.answer("Party.CreateParty", 0, "")
	d.answer("Party.CreateParty", 503, `{"code":"UNAVAILABLE","action":"RETRY","message":"m","retry_after_ms":1}`)
	d.answer("Party.CreateParty", 502, "<html>a proxy whose service is being restarted")
	d.answer("Party.CreateParty", 200, `{"party":{"party_id":"pty-1","invite_code":"K7"},"flow":{"rev":2,"seq":4,"phase":"IN_PARTY","keys":{"PARTY_ID":"pty-1"}}}`)
	party, err := p.CreateParty(t.Context(), CreatePartyRequest{Joinability: JoinabilityOpen})
	calls := d.calls("Party.CreateParty")
	if err != nil || party.InviteCode != "K7" || len(calls) != 4 || p.Flow().Keys.PartyID != "pty-1" {
		t.Fatalf("%+v, %v after %d calls, %+v", party, err, len(calls), p.Flow())
	}
	if calls[0].request == "" || calls[0].request != calls[3].request || calls[3].token != "pfa_1" || calls[3].body["joinability"] != "OPEN" {
		t.Errorf("the calls: %+v", calls)
	}
}

func TestFlowErrors(t *testing.T) {
	d := newDesk(t)
	p := d.login()
	d.stream() // a search waits for it
	for _, x := range []struct {
		status int
		body   string
		kind   error
	}{
		{409, `{"code":"PLAYER_IN_GAME","message":"m","action":"SYNC","details":{"players":["ann"],"can_decline":true},"flow":{"seq":9,"phase":"IN_GAME"}}`, ErrWrongStatus},
		{409, `{"code":"PARTY_FULL","message":"m","action":"NONE"}`, ErrFull},
		{409, `{"code":"SESSION_REPLACED","message":"m","action":"NONE"}`, ErrReplaced},
		{401, `{"code":"TOKEN_EXPIRED","message":"m","action":"LOGIN"}`, ErrUnauthorized},
		{404, `{"code":"QUEUE_NOT_FOUND","message":"m","action":"NONE"}`, ErrNotFound},
		{423, `{"code":"MATCHMAKING_LOCKED","message":"m","action":"RETRY","retry_after_ms":1500,"details":{"lock":{"kind":"DODGE"}}}`, ErrWrongStatus},
		{429, `{"code":"RATE_LIMITED","message":"m","action":"RETRY"}`, ErrUnavailable},
		{502, `<html>a proxy`, ErrUnavailable},
		{400, `{"code":"INVALID_ARGUMENT","message":"m","action":"NONE"}`, ErrRefused},
	} {
		d.mu.Lock()
		d.answers["Matchmaking.EnterMatchmaking"] = []deskAnswer{{x.status, x.body}}
		d.mu.Unlock()
		_, err := p.EnterMatchmaking(t.Context(), "ranked")
		if !errors.Is(err, x.kind) {
			t.Errorf("%d %s: %v, want %v", x.status, x.body, err, x.kind)
		}
		e, _ := errors.AsType[*FlowError](err)
		switch e.Code {
		case "PLAYER_IN_GAME":
			if !e.Details.CanDecline || e.Action != ActionSync || e.Flow.Phase != PhaseInGame {
				t.Errorf("%+v", e)
			}
		case "MATCHMAKING_LOCKED":
			if e.RetryAfter != 1500*time.Millisecond || e.Details.Lock.Kind != "DODGE" {
				t.Errorf("%+v", e)
			}
		}
	}
}

// Events are delivered once and in order when a connection is lost, repeats events, has a gap, or when its service
// no longer knows what was missed.
func TestEventsOverLostConnections(t *testing.T) {
	d := newDesk(t)
	p := d.login()
	next := func(want int, kind EventType) Event {
		t.Helper()
		e, err := p.Next(t.Context())
		if err != nil || e.Seq != uint64(want) || e.Type != kind {
			t.Fatalf("got %d %s, %v; want %d %s", e.Seq, e.Type, err, want, kind)
		}
		return e
	}
	s := d.stream()
	s.event(3, OnAddedToParty, `{"party_id":"pty-1"}`)
	if e := next(3, OnAddedToParty); e.PartyID != "pty-1" || e.At.Nanosecond() != 678e6 {
		t.Errorf("%+v", e)
	}
	_ = s.NetConn().Close()
	s = d.stream()
	if s.after != "3" {
		t.Errorf("the second stream is behind %s", s.after)
	}
	s.event(3, OnAddedToParty, `{}`) // known
	s.event(4, "OnSomethingNew", `{"deadline":"soon"}`)
	s.event(5, OnGameSessionChanged, `{"rev":8,"phase":"IN_PARTY","keys":{"PARTY_ID":"pty-2"},"cause":"x","allowed_actions":["LeaveParty"]}`)
	s.event(7, OnPartyChanged, `{}`) // a gap
	if e := next(4, "OnSomethingNew"); string(e.Data) != `{"deadline":"soon"}` {
		t.Errorf("%s", e.Data)
	}
	if e := next(5, OnGameSessionChanged); e.Flow.Rev != 8 || e.AllowedActions[0] != "LeaveParty" || p.Flow().Keys.PartyID != "pty-2" {
		t.Errorf("%+v", e)
	}
	s = d.stream()
	if s.after != "5" {
		t.Errorf("after a gap the stream is behind %s", s.after)
	}
	s.event(3, OnSync, `{"player_id":"ann","rev":9,"seq":3,"phase":"IDLE","keys":{}}`)
	s.event(4, OnHostConnectionDetailsReceived, `{"game_instance_id":"gi-2","host":{"ip_address":"127.0.0.1","port":7777},"player_session_id":"ps-1","cause":"ALLOCATED"}`)
	if e := next(3, OnSync); e.Snapshot.Rev != 9 || p.Flow().Phase != PhaseIdle {
		t.Errorf("%+v", e)
	}
	if e := next(4, OnHostConnectionDetailsReceived); e.Host.Address() != "127.0.0.1:7777" || e.Cause != "ALLOCATED" {
		t.Errorf("%+v", e)
	}
	s.event(5, OnSessionReplaced, `{"by":{"device_label":"phone"}}`)
	s.end(closeReplaced)
	next(5, OnSessionReplaced)
	if _, err := p.Next(t.Context()); !errors.Is(err, ErrReplaced) {
		t.Errorf("the end: %v", err)
	}
	if p.Online() {
		t.Error("still online")
	}
}

// The memory of a game that reads no events is bounded: one OnSync replaces them.
func TestTooManyEvents(t *testing.T) {
	d := newDesk(t)
	p := d.login()
	s := d.stream()
	for i := range eventsMax + 5 {
		s.event(3+i, OnPartyChanged, `{}`)
	}
	s = d.stream()
	if s.after != "0" {
		t.Errorf("the stream asks behind %s, want everything", s.after)
	}
	s.event(5000, OnSync, `{"player_id":"ann","rev":9,"seq":5000,"phase":"IDLE","keys":{}}`)
	if e, err := p.Next(t.Context()); err != nil || e.Type != OnSync || e.Seq != 5000 {
		t.Errorf("%v %v", e, err)
	}
	if e, ok := p.Poll(); ok {
		t.Errorf("and there is %v", e)
	}
}

func TestEventsByLongPoll(t *testing.T) {
	d := newDesk(t)
	d.noStream = true
	d.answer("Session.PollEvents", 200, `{"events":[{"seq":3,"commit":"7","ts":"2026-01-02T03:04:05.678Z","type":"OnAddedToParty","data":{"party_id":"pty-1"}}],"head_seq":3,"resume":"REPLAY"}`)
	d.answer("Session.PollEvents", 401, `{"code":"SESSION_NOT_FOUND","action":"LOGIN","message":"m"}`)
	p := d.login() // finds out by itself that no WebSocket gets through
	if e, err := p.Await(t.Context(), OnAddedToParty); err != nil || e.Seq != 3 {
		t.Fatal(e, err)
	}
	if _, err := p.Next(t.Context()); !errors.Is(err, ErrLoggedOut) {
		t.Errorf("the end: %v", err)
	}
	polls := d.calls("Session.PollEvents")
	if after := strconv.FormatFloat(polls[1].body["after_seq"].(float64), 'f', -1, 64); after != "3" {
		t.Errorf("the second poll is behind %s", after)
	}
}

func TestReconnectWaitsForTheGameServer(t *testing.T) {
	d := newDesk(t)
	p := d.login()
	d.answer("GameInstance.GetHostConnectionDetails", 409, `{"code":"NOT_DISCONNECTED","action":"SYNC","message":"m"}`)
	d.answer("GameInstance.GetHostConnectionDetails", 409, `{"code":"HOST_NOT_READY","action":"RETRY","message":"m"}`)
	d.answer("GameInstance.GetHostConnectionDetails", 200, `{"host":{"player_session_id":"ps-2","attempt":2,"host":{"dns_name":"a.example.com","port":7777}}}`)
	details, err := p.Reconnect(t.Context())
	if err != nil || details.Attempt != 2 || details.Address() != "a.example.com:7777" {
		t.Errorf("%+v, %v", details, err)
	}
	d.answer("GameInstance.LeaveGame", 200, `{"flow":{"rev":5,"seq":8,"phase":"IDLE","keys":{}}}`)
	if err := p.LeaveGame(t.Context()); err != nil {
		t.Error(err)
	}
	if got := d.calls("GameInstance.LeaveGame")[0].body["game_instance_id"]; got != "gi-1" {
		t.Errorf("left %v", got)
	}
	if e, ok := errors.AsType[*FlowError](p.DeclineReconnect(t.Context())); !ok || e.Code != "NOT_IN_GAME" {
		t.Errorf("without a game: %v", e)
	}
}

func TestNextEndsWithContextAndClose(t *testing.T) {
	d := newDesk(t)
	p := d.login()
	d.stream()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	p.Close()
	for _, err := range p.Events(t.Context()) {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%v", err)
		}
	}
}

// A return takes as long as the game server takes to notice the lost player. That is longer than the service's rate limit permits continuous calls.
func TestReconnectOutlastsTheLimitOfCalls(t *testing.T) {
	d := newDesk(t)
	const name = "GameInstance.GetHostConnectionDetails"
	d.answer(name, http.StatusConflict, `{"code":"NOT_DISCONNECTED","message":"m","action":"RETRY","retry_after_ms":1}`)
	d.answer(name, http.StatusTooManyRequests, `{"code":"RATE_LIMITED","message":"m","action":"RETRY","retry_after_ms":1}`)
	d.answer(name, http.StatusOK, `{"host":{"player_session_id":"psess-1"}}`)
	details, err := d.login().Reconnect(t.Context())
	if err != nil || details.PlayerSessionID != "psess-1" || len(d.calls(name)) != 3 {
		t.Errorf("%+v, %v after %d calls", details, err, len(d.calls(name)))
	}
}

// silence answers calls, but not the first attempt at one of them: the network has lost its connection without a trace.
type silence struct {
	call     string
	requests []string // ids of the attempts
}

func (x *silence) RoundTrip(r *http.Request) (*http.Response, error) {
	body := `{"flow":{"rev":1,"seq":2,"phase":"IDLE","keys":{}}}`
	switch path.Base(r.URL.Path) {
	case "Session.Login":
		body = loginAnswer
	case "Session.PollEvents":
		<-r.Context().Done()
		return nil, r.Context().Err()
	case x.call:
		if x.requests = append(x.requests, r.Header.Get("X-Request-Id")); len(x.requests) == 1 {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}, Request: r}, nil
}

// A call over a lost connection is repeated within a minute, although its context would let it wait for an hour.
func TestCallOverALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &silence{call: "Party.LeaveParty"}
		p, err := Login(t.Context(), PlayerOptions{
			Endpoint: "http://muster.example.com", Provider: ProviderDev, Token: DevToken("ann"), LongPoll: true, HTTPClient: &http.Client{Transport: network},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		if err := p.LeaveParty(ctx); err != nil || time.Since(began) > time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if ids := network.requests; len(ids) != 2 || ids[0] != ids[1] {
			t.Errorf("request ids %q, want one, twice", ids)
		}
	})
}

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/frames/framestest"
)

// flowPlayer is a hand-written player's client: HTTP calls and a WebSocket, no library of ours.
type flowPlayer struct {
	t       *testing.T
	service *service
	name    string
	token   string
	session string

	socket *websocket.Conn
	last   uint64 // number of the last received event

	mu     sync.Mutex
	frames []object
	code   int // how the stream was closed
	more   chan struct{}
}

// flowCall calls a realm. want is the HTTP status.
func (s *service) flowCall(t *testing.T, realm, call, token string, want int, body any) object {
	t.Helper()
	text, err := json.Marshal(body)
	must(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url()+"/playerflow/v1/"+realm+"/"+call, bytes.NewReader(text))
	must(t, err)
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	must(t, err)
	var o object
	if err := json.Unmarshal(got, &o); err != nil || answer.StatusCode != want {
		t.Fatalf("%s %.500s: status %d, want %d: %.2000s", call, text, answer.StatusCode, want, got)
	}
	if err := isAsDocumented(realm, call, answer.StatusCode, got); err != nil {
		t.Error(err)
	}
	return o
}

func (s *service) login(t *testing.T, name string) *flowPlayer {
	t.Helper()
	p := &flowPlayer{t: t, service: s, name: name, more: make(chan struct{})}
	p.loginAgain()
	return p
}

// loginAgain logs in as a newly started client does.
func (p *flowPlayer) loginAgain() object {
	p.t.Helper()
	token, _ := json.Marshal(map[string]string{"player_id": p.name})
	o := p.service.flowCall(p.t, "player", "Session.Login", "", http.StatusOK, object{"provider": "dev", "token": string(token), "device_label": "test"})
	p.token, p.session = o.text("access_token"), o.text("session_id")
	return o
}

func (p *flowPlayer) call(name string, body object) object {
	p.t.Helper()
	return p.fails(name, http.StatusOK, "", body)
}

// fails makes a call that must be refused with a code; "" means success. Every answer contains the player's state.
func (p *flowPlayer) fails(name string, status int, code string, body object) object {
	p.t.Helper()
	o := p.service.flowCall(p.t, "player", name, p.token, status, body)
	if got, _ := o["code"].(string); got != code {
		p.t.Fatalf("%s: code %q, want %q: %v", name, got, code, o)
	}
	if status != http.StatusUnauthorized && o.at("flow", "phase") == nil {
		p.t.Errorf("%s: the answer says nothing about the flow: %v", name, o)
	}
	return o
}

// attach opens the stream after the last event.
func (p *flowPlayer) attach() object {
	p.t.Helper()
	socket, _, err := websocket.DefaultDialer.Dial(p.service.ws()+"/playerflow/v1/player/stream?after_seq="+strconv.FormatUint(p.last, 10),
		http.Header{"Authorization": {"Bearer " + p.token}, "Sec-WebSocket-Protocol": {"playerflow.v1"}})
	must(p.t, err)
	p.mu.Lock()
	p.socket, p.frames, p.code = socket, nil, 0 // what an earlier stream said is of no interest any more
	p.mu.Unlock()
	go p.read(socket)
	p.t.Cleanup(func() { _ = socket.NetConn().Close() })
	return p.until("hello")
}

// crash ends the client without a message.
func (p *flowPlayer) crash() { _ = p.socket.NetConn().Close() }

// read reads the frames of a stream until it ends.
func (p *flowPlayer) read(c *websocket.Conn) {
	code := framestest.Listen(c, func(message []byte) { p.hear(c, message) })
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.socket != nil && c != p.socket {
		return // an earlier stream, which the test no longer reads
	}
	p.code = code
	p.tellMore()
}

func (p *flowPlayer) hear(c *websocket.Conn, message []byte) {
	var o object
	if err := json.Unmarshal(message, &o); err != nil {
		o = object{"type": "not JSON: " + string(message)}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.socket != nil && c != p.socket {
		return
	}
	p.frames = append(p.frames, o)
	p.tellMore()
}

func (p *flowPlayer) tellMore() {
	close(p.more)
	p.more = make(chan struct{})
}

// until reads frames until one has a type, and returns it. The numbers of events have no gap.
func (p *flowPlayer) until(kind string) object {
	p.t.Helper()
	return p.untilOne(kind, func(o object) bool { return o.text("type") == kind })
}

// untilOne waits for a frame.
func (p *flowPlayer) untilOne(what string, is func(object) bool) object {
	p.t.Helper()
	for timeout := time.After(patience); ; {
		p.mu.Lock()
		var o object
		if len(p.frames) > 0 {
			o, p.frames = p.frames[0], p.frames[1:]
		}
		code, more := p.code, p.more
		p.mu.Unlock()
		if o != nil {
			p.number(o)
			if is(o) {
				return o
			}
			continue
		}
		if code != 0 {
			p.t.Fatalf("%s: the stream was closed with %d before %s came", p.name, code, what)
		}
		select {
		case <-more:
		case <-timeout:
			p.t.Fatalf("%s: %s never came", p.name, what)
		}
	}
}

func (p *flowPlayer) number(o object) {
	p.t.Helper()
	seq, ok := o["seq"].(float64)
	if strings.HasPrefix(p.token, "pfa_") { // a player's stream, not one of the studio's
		if err := frameIsAsDocumented(o); err != nil {
			p.t.Error(err)
		}
	}
	switch {
	case !ok:
	case o.text("type") == "OnSync":
		p.last = uint64(seq)
	case uint64(seq) != p.last+1:
		p.t.Errorf("%s: event %d after %d: %v", p.name, uint64(seq), p.last, o)
	default:
		p.last++
	}
}

// untilClosed waits for the close code.
func (p *flowPlayer) untilClosed() int {
	p.t.Helper()
	for timeout := time.After(patience); ; {
		p.mu.Lock()
		code, more := p.code, p.more
		p.mu.Unlock()
		if code != 0 {
			return code
		}
		select {
		case <-more:
		case <-timeout:
			p.t.Fatalf("%s: the stream stays open", p.name)
		}
	}
}

func (s *service) partner(t *testing.T, call string, body object) object {
	t.Helper()
	return s.flowCall(t, "partner", call, "", http.StatusOK, body)
}

// noViolations asks the service whether all invariants hold.
func (s *service) noViolations(t *testing.T) {
	t.Helper()
	o := s.flowCall(t, "operator", "Operator.Audit", "", http.StatusOK, object{"reason": "test"})
	if o.count("violations") != 0 {
		t.Errorf("violations: %v", o)
	}
}

// Friends form a party, the studio makes a match for them, they get the address of the server and play. One crashes, starts the game
// again, and is back on the same seat. The game server has no code for player flow.
func TestPlayerFlow(t *testing.T) {
	t.Parallel()
	s := startService(t, "--player-flow")
	place := s.prepare()
	place.queue("cup")
	server := place.ready(sdkOptions{})

	ann, bob := s.login(t, "ann"), s.login(t, "bob")
	if hello := ann.attach(); hello.text("resume") != "SNAPSHOT" {
		t.Errorf("a first stream begins with %v", hello)
	}
	ann.until("OnSync")
	bob.attach()
	bob.until("OnSync")

	party := ann.call("Party.CreateParty", object{"attributes": object{"mode": "duo"}})
	ann.until("OnGameSessionChanged")
	ann.until("OnAddedToParty")
	bob.fails("Party.JoinPartyById", http.StatusConflict, "PARTY_CLOSED", object{"party_id": party.text("party", "party_id")})
	bob.call("Party.JoinPartyByInviteCode", object{"code": party.text("party", "invite_code")})
	bob.until("OnAddedToParty")
	for change := (object{}); change.text("data", "change", "kind") != "JOINED"; {
		change = ann.until("OnPartyChanged")
	}
	bob.fails("Party.KickPlayer", http.StatusForbidden, "NOT_LEADER", object{"player_id": "ann"})

	made := s.partner(t, "Flow.CreateGameInstance", object{
		"players": []object{{"player_id": "ann", "team": "red"}, {"player_id": "bob", "team": "blue"}}, "queue": "cup", "max_players": 4,
	})
	instance := made.text("game_instance_id")
	ann.until("OnAddedToGame")
	bob.until("OnAddedToGame")
	ann.fails("GameInstance.GetHostConnectionDetails", http.StatusConflict, "HOST_NOT_READY", object{"game_instance_id": instance})
	server.untilEvent("start", 1)
	server.must("activate")
	host := ann.until("OnHostConnectionDetailsReceived")
	if host.text("data", "cause") != "ALLOCATED" || host.at("data", "host", "port") != 7777.0 {
		t.Errorf("details: %v", host)
	}
	bob.until("OnHostConnectionDetailsReceived")
	seat, connection := host.text("data", "player_session_id"), host.text("data", "connection_token")
	if o := s.partner(t, "Game.VerifyPlayer", object{"game_instance_id": instance, "player_session_id": seat, "connection_token": connection}); o.text("player_id") != "ann" || o.text("team") != "red" {
		t.Errorf("verified: %v", o)
	}
	server.must("accept", seat)
	ann.until("OnGameMembershipChanged")
	ann.fails("Matchmaking.EnterMatchmaking", http.StatusConflict, "PLAYER_IN_GAME", object{"queue": "ranked"})

	// The client crashes: stream and game connection are gone.
	ann.crash()
	server.must("remove", seat)
	bob.until("OnPartyMemberPresence")
	again := ann.loginAgain()
	if got := again.text("flow_snapshot", "game_instance", "membership", "status"); got != "DISCONNECTED" {
		t.Fatalf("the login says %q: %v", got, again)
	}
	if actions, _ := again.at("flow_snapshot", "allowed_actions").([]any); !slices.Contains(actions, any("DeclineReconnect")) {
		t.Errorf("allowed: %v", actions)
	}
	ann.attach() // behind the last event: what was missed is replayed
	ann.until("OnReconnectAvailable")
	back := ann.call("GameInstance.GetHostConnectionDetails", object{"game_instance_id": instance})
	fresh := back.text("host", "player_session_id")
	if fresh == seat || back.at("host", "attempt") != 2.0 {
		t.Errorf("details of the reconnect: %v, the first player session was %s", back, seat)
	}
	for o := (object{}); o.text("data", "cause") != "RECONNECT"; {
		o = ann.until("OnHostConnectionDetailsReceived")
	}
	server.must("accept", fresh)
	for o := (object{}); o.text("data", "new") != "ACTIVE"; {
		o = ann.until("OnGameMembershipChanged")
	}
	s.noViolations(t)

	s.partner(t, "Game.EndGame", object{"game_instance_id": instance, "result": object{"winner": "red"}})
	ended := ann.until("OnGameEnded")
	if ended.text("data", "result", "winner") != "red" {
		t.Errorf("the end: %v", ended)
	}
	ann.until("OnRemovedFromGame")
	bob.until("OnRemovedFromGame")
	ann.fails("GameInstance.LeaveGame", http.StatusGone, "GAME_ENDED", object{"game_instance_id": instance})
	s.noViolations(t)
}

// All events of players exist after the service was killed: a client that comes back gets what it missed, in order; a repeated call gets
// the first answer.
func TestPlayerFlowSurvivesAKill(t *testing.T) {
	t.Parallel()
	s := startService(t, "--player-flow")
	ann := s.login(t, "ann")
	ann.attach()
	ann.until("OnSync")
	ann.call("Party.CreateParty", object{})
	ann.until("OnPartyChanged")
	s.kill()
	s.start()
	if hello := ann.attach(); hello.text("resume") != "REPLAY" {
		t.Errorf("after the restart: %v", hello)
	}
	party := ann.call("Party.GetParty", object{})
	ann.call("Party.SetReady", object{"ready": true})
	ann.until("OnPartyChanged")
	if party.text("party", "party_id") == "" {
		t.Errorf("the party is gone: %v", party)
	}
	s.noViolations(t)
}

// Two devices: the later login controls the player; the earlier one gets an event, and its stream is closed with 4409. Two streams of one login:
// 4406. After Logout: 4410. Without a token: 4401.
func TestPlayerFlowStreamsAreClosedWithCodes(t *testing.T) {
	t.Parallel()
	s := startService(t, "--player-flow")
	first := s.login(t, "ann")
	first.attach()
	first.until("OnSync")
	second := s.login(t, "ann")
	first.until("OnSessionReplaced")
	if code := first.untilClosed(); code != 4409 {
		t.Errorf("the first device was closed with %d", code)
	}
	first.fails("Party.CreateParty", http.StatusConflict, "SESSION_REPLACED", object{})
	second.attach()
	second.until("OnSync")

	twin := &flowPlayer{t: t, service: s, name: "ann", token: second.token, more: make(chan struct{})}
	twin.attach()
	if code := second.untilClosed(); code != 4406 {
		t.Errorf("the first stream of one login was closed with %d", code)
	}
	twin.call("Session.Logout", object{})
	if code := twin.untilClosed(); code != 4410 {
		t.Errorf("the stream of a login that ended was closed with %d", code)
	}
	stranger := &flowPlayer{t: t, service: s, name: "eve", token: "pfa_guessed", more: make(chan struct{})}
	socket, _, err := websocket.DefaultDialer.Dial(s.ws()+"/playerflow/v1/player/stream",
		http.Header{"Authorization": {"Bearer pfa_guessed"}, "Sec-WebSocket-Protocol": {"playerflow.v1"}})
	must(t, err)
	go stranger.read(socket)
	if code := stranger.untilClosed(); code != 4401 {
		t.Errorf("a stream without a login was closed with %d", code)
	}
	twin.fails("Session.GetFlow", http.StatusUnauthorized, "SESSION_NOT_FOUND", object{})
}

// Long polls return the same events as the stream, and a backend's login ticket works once.
func TestPlayerFlowByPollAndLoginTicket(t *testing.T) {
	t.Parallel()
	s := startService(t, "--player-flow")
	ticket := s.partner(t, "Identity.IssueLoginTicket", object{"player_id": "carl", "display_name": "Carl"}).text("login_ticket")
	login := s.flowCall(t, "player", "Session.Login", "", http.StatusOK, object{"provider": "backend", "token": ticket})
	carl := &flowPlayer{t: t, service: s, name: "carl", token: login.text("access_token")}
	if again := s.flowCall(t, "player", "Session.Login", "", http.StatusUnauthorized, object{"provider": "backend", "token": ticket}); again.text("code") != "UNAUTHENTICATED" {
		t.Errorf("the ticket a second time: %v", again)
	}
	answers := make(chan object)
	go func() { answers <- carl.call("Session.PollEvents", object{"after_seq": 0, "wait_ms": 20000}) }()
	carl.call("Party.CreateParty", object{})
	got := <-answers
	// A player who polls may search, which is an event of its own. The party is in OnAddedToParty, or in OnSync when it was
	// there before the poll.
	for got.count("events") > 0 && !strings.Contains(fmt.Sprint(got["events"]), "pty-") {
		got = carl.call("Session.PollEvents", object{"after_seq": got["head_seq"], "wait_ms": 20000})
	}
	if got.count("events") == 0 {
		t.Fatalf("the poll: %v", got)
	}
	next := carl.call("Session.PollEvents", object{"after_seq": got["head_seq"]})
	if next.count("events") != 0 || next.text("resume") != "REPLAY" {
		t.Errorf("a poll behind the head: %v", next)
	}
}

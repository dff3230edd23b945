package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/waittest"
	"github.com/musterhq/muster/internal/webhook"
)

// listen opens a stream of the partner realm without a library. Its frames are handled like a player's.
func (s *service) listen(t *testing.T, path, protocol string) *flowPlayer {
	t.Helper()
	p := &flowPlayer{t: t, service: s, name: path, more: make(chan struct{})}
	socket, _, err := websocket.DefaultDialer.Dial(s.ws()+"/playerflow/v1/partner/"+path, http.Header{"Sec-WebSocket-Protocol": {protocol}})
	must(t, err)
	p.socket = socket
	go p.read(socket)
	t.Cleanup(func() { _ = socket.NetConn().Close() })
	return p
}

// A game server gets notices about the players of its game: who returns with which player session, and who left and why. It loses its
// stream, and the service is killed meanwhile; no later notice is missing.
func TestGameServerIsTold(t *testing.T) {
	t.Parallel()
	s := startService(t, "--player-flow")
	place := s.prepare()
	place.queue("cup")
	server := place.ready(sdkOptions{})
	ann, bob := s.login(t, "ann"), s.login(t, "bob")
	ann.attach()
	bob.attach()
	instance := s.partner(t, "Flow.CreateGameInstance", object{
		"players": []object{{"player_id": "ann", "team": "red"}, {"player_id": "bob"}}, "queue": "cup", "max_players": 4,
	}).text("game_instance_id")
	game := server.untilEvent("start", 1).Session.GameSessionId

	const protocol = "playerflow.partner.v1"
	stream := s.listen(t, "stream?game_instance_id="+instance, protocol)
	if hello := stream.until("hello"); hello.text("resume") != "SNAPSHOT" || hello.text("game_instance_id") != instance {
		t.Errorf("a first stream begins with %v", hello)
	}
	if o := stream.until("OnSync"); o.count("data", "players") != 2 || o.text("data", "status") != "PENDING" {
		t.Errorf("the snapshot: %v", o)
	}
	server.must("activate")
	added, _ := stream.until("OnPlayersAdded").at("data", "players").([]any)
	if len(added) != 2 || added[0].(map[string]any)["team"] != "red" {
		t.Errorf("who belongs to the game: %v", added)
	}
	seat := ann.until("OnHostConnectionDetailsReceived").text("data", "player_session_id")
	server.must("accept", seat)
	server.must("remove", seat)
	ann.until("OnReconnectAvailable")
	back := ann.call("GameInstance.GetHostConnectionDetails", object{"game_instance_id": instance}).text("host", "player_session_id")
	if o := stream.until("OnPlayerReconnecting"); o.text("data", "player_session_id") != back || o.text("data", "player_id") != "ann" || o.at("data", "attempt") != 2.0 {
		t.Errorf("ann comes back with %s; the server is told %v", back, o)
	}
	stream.crash()
	ann.call("GameInstance.DeclineReconnect", object{"game_instance_id": instance})
	s.kill()
	s.start()
	again := s.listen(t, fmt.Sprintf("stream?game_session_id=%s&after_seq=%d", game, stream.last), protocol)
	again.last = stream.last
	if hello := again.until("hello"); hello.text("resume") != "REPLAY" {
		t.Errorf("after the restart: %v", hello)
	}
	again.until("OnPlayerDeclinedReconnect")
	if o := again.until("OnPlayerLeft"); o.text("data", "player_id") != "ann" || o.text("data", "reason") != "DECLINED" {
		t.Errorf("ann is gone: %v", o)
	}
	// A game that the studio has created has no matchmaking configuration, so the call must name one.
	s.flowCall(t, "partner", "Game.EnterMatchmaking", "", http.StatusBadRequest, object{"game_instance_id": instance})
	s.partner(t, "Game.EndGame", object{"game_instance_id": instance})
	if o := again.until("OnPlayerLeft"); o.text("data", "player_id") != "bob" || o.text("data", "reason") != "GAME_ENDED" {
		t.Errorf("the end: %v", o)
	}
	if code := again.untilClosed(); code != 4410 {
		t.Errorf("the stream of a game that is over was closed with %d", code)
	}
	s.flowCall(t, "partner", "Game.LeaveMatchmaking", "", http.StatusGone, object{"game_instance_id": instance})
	s.noViolations(t)
}

// A game searches for one more player and gets notices about the search and the newcomer: a game from a match, and one that the studio
// has created, which names the queue.
func TestGameSearchesForPlayers(t *testing.T) {
	t.Parallel()
	t.Run("of a match", func(t *testing.T) { t.Parallel(); gameSearches(t, false) })
	t.Run("of the studio", func(t *testing.T) { t.Parallel(); gameSearches(t, true) })
}

func gameSearches(t *testing.T, made bool) {
	s := startService(t, "--player-flow")
	place := s.prepare()
	place.queue("duel")
	place.matchOf("duel", "2")
	server := place.ready(sdkOptions{})
	ann, bob := s.login(t, "ann"), s.login(t, "bob")
	accept := func(p *flowPlayer) {
		t.Helper()
		id := p.until("OnMatchFound").text("data", "matchmaking_id")
		p.call("Matchmaking.AcceptMatch", object{"matchmaking_id": id, "accept": true})
	}
	for _, p := range []*flowPlayer{ann, bob} {
		if p.attach(); !made {
			p.call("Matchmaking.EnterMatchmaking", object{"queue": "duel"})
		}
	}
	body := object{"slots": 1}
	if made {
		s.partner(t, "Flow.CreateGameInstance", object{"players": []object{{"player_id": "ann"}, {"player_id": "bob"}}, "queue": "duel", "max_players": 2})
		body["queue"] = "duel"
	} else {
		accept(ann)
		accept(bob)
	}
	server.untilEvent("start", 1)
	server.must("activate")
	host := ann.until("OnHostConnectionDetailsReceived")
	instance := host.text("data", "game_instance_id")
	server.must("accept", host.text("data", "player_session_id"))
	bob.until("OnHostConnectionDetailsReceived")
	bob.call("GameInstance.LeaveGame", object{"game_instance_id": instance})

	stream := s.listen(t, "stream?game_instance_id="+instance, "playerflow.partner.v1")
	stream.until("OnSync")
	body["game_instance_id"] = instance
	search := s.partner(t, "Game.EnterMatchmaking", body).text("matchmaking_id")
	if o := stream.until("OnGameInstanceEnteredMatchmaking"); o.text("data", "matchmaking_id") != search || o.at("data", "slots") != 1.0 || o.text("data", "queue") != "duel" {
		t.Errorf("the search %s: %v", search, o)
	}
	cyd := s.login(t, "cyd")
	cyd.attach()
	cyd.call("Matchmaking.EnterMatchmaking", object{"queue": "duel"})
	accept(cyd)
	if o := cyd.until("OnAddedToGame"); o.text("data", "game_instance_id") != instance {
		t.Errorf("cyd plays in %v", o)
	}
	if o := stream.until("OnGameInstanceLeftMatchmaking"); o.text("data", "reason") != "MATCHED" {
		t.Errorf("the search ended: %v", o)
	}
	stream.until("OnPlayersAdded")
	if o := s.partner(t, "Game.LeaveMatchmaking", object{"game_instance_id": instance}); o.text("matchmaking_id") != "" {
		t.Errorf("a search that is over ended again: %v", o)
	}
	s.noViolations(t)
}

// studio is a backend that receives events by a webhook.
type studio struct {
	t      *testing.T
	server *httptest.Server

	mu     sync.Mutex
	key    string
	broken bool
	told   int // messages that it refused
	events []object
}

func newStudio(t *testing.T) *studio {
	x := &studio{t: t}
	x.server = httptest.NewServer(x)
	t.Cleanup(x.server.Close)
	return x
}

func (x *studio) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.broken {
		x.told++
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	var at int64
	header := r.Header.Get(webhook.SignatureHeader)
	if _, err := fmt.Sscanf(header, "t=%d,", &at); err != nil || webhook.Sign(time.Unix(at, 0), body, x.key) != header {
		x.t.Errorf("signature %q does not fit", header)
	}
	var message struct {
		Missed uint64   `json:"missed"`
		Events []object `json:"events"`
	}
	if err := json.Unmarshal(body, &message); err != nil || message.Missed != 0 || len(message.Events) == 0 {
		x.t.Errorf("message %s: %v", body, err)
	}
	x.events = append(x.events, message.Events...)
}

// is sets whether the backend works, and returns how many messages it refused.
func (x *studio) is(broken bool) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.broken = broken
	return x.told
}

// until waits for a fitting event, and returns the types of all distinct events in the order of their numbers.
func (x *studio) until(what string, fits func(object) bool) (types []string) {
	x.t.Helper()
	waittest.Until(x.t, what, func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, e := range x.events {
			if fits(e) {
				return true
			}
		}
		return false
	})
	x.mu.Lock()
	defer x.mu.Unlock()
	last, commit := 0.0, ""
	for _, e := range x.events {
		no, _ := e["no"].(float64)
		switch {
		case no > last+1:
			x.t.Errorf("event %v comes behind %v", no, last)
		case no == last+1:
			last = no
			types = append(types, strings.TrimPrefix(e.text("type"), "On"))
			if len(e.text("commit")) == len(commit) && e.text("commit") < commit {
				x.t.Errorf("commit %s comes behind %s", e.text("commit"), commit)
			}
			commit = e.text("commit")
		}
	}
	return types
}

// The studio gets players' events by a webhook that is down for a while, and the service is killed meanwhile. Every event arrives at
// least once and in order, including events that the player's client has acknowledged.
func TestStudioIsTold(t *testing.T) {
	t.Parallel()
	s := startService(t, "--player-flow")
	backend := newStudio(t)
	made := s.partner(t, "Events.Subscribe", object{"url": backend.server.URL + "/events"})
	backend.key = made.text("signing_key")
	ann := s.login(t, "ann")
	ann.attach()
	ann.call("Party.CreateParty", object{})
	is := func(kind string) func(object) bool { return func(e object) bool { return e.text("type") == kind } }
	backend.until("the party is told", is("OnPartyChanged"))

	backend.is(true)
	for i := range 4 {
		ann.call("Party.SetReady", object{"ready": i%2 == 0})
	}
	waittest.Until(t, "the webhook fails", func() bool { return backend.is(true) > 0 })
	waittest.Until(t, "the list to tell of the failure", func() bool {
		list, _ := s.partner(t, "Events.List", object{})["subscriptions"].([]any)
		x := object(list[0].(map[string]any))
		return x.at("failures") != nil && strings.Contains(x.text("last_error"), "did not accept the last message") && x.text("subscription_id") == made.text("subscription_id")
	})
	s.kill()
	s.start()
	ann.call("Party.DisbandParty", object{})
	backend.is(false)
	types := backend.until("the end of the party is told", is("OnRemovedFromParty"))
	want := "GameSessionChanged AddedToParty PartyChanged PartyChanged PartyChanged PartyChanged PartyChanged GameSessionChanged RemovedFromParty"
	if got := strings.Join(types, " "); got != want {
		t.Errorf("the studio heard\n %s\nwant\n %s", got, want)
	}
	if o := s.partner(t, "Events.Unsubscribe", object{"subscription_id": made.text("subscription_id")}); o["known"] != true {
		t.Errorf("the end of the subscription: %v", o)
	}
	ann.call("Party.CreateParty", object{})
	if o := s.partner(t, "Events.List", object{}); o.count("subscriptions") != 0 {
		t.Errorf("the list: %v", o)
	}
}

// A subscription without a webhook uses a stream, which continues after the acknowledged events although the service is killed meanwhile.
// A second stream replaces the first; the end of the subscription closes it.
func TestStudioListens(t *testing.T) {
	t.Parallel()
	s := startService(t, "--player-flow")
	made := s.partner(t, "Events.Subscribe", object{"types": []string{"OnPartyChanged"}, "player_ids": []string{"ann"}})
	const protocol = "playerflow.events.v1"
	path := strings.TrimPrefix(made.text("stream_path"), "/playerflow/v1/partner/")
	stream := s.listen(t, path, protocol)
	stream.until("hello")
	ann, eve := s.login(t, "ann"), s.login(t, "eve")
	eve.call("Party.CreateParty", object{})
	ann.call("Party.CreateParty", object{})
	ann.call("Party.SetReady", object{"ready": true})
	first, second := stream.until("OnPartyChanged"), stream.until("OnPartyChanged")
	if kind := second.text("data", "change", "kind"); first.text("data", "change", "kind") != "CREATED" || kind != "READY" {
		t.Errorf("first %v, then %v", first, second)
	}
	must(t, stream.socket.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"type":"ack","no":%v}`, first["no"])))
	waittest.Until(t, "the event is taken", func() bool {
		list, _ := s.partner(t, "Events.List", object{})["subscriptions"].([]any)
		return object(list[0].(map[string]any))["taken"] == first["no"]
	})
	s.kill()
	s.start()
	stream = s.listen(t, path, protocol)
	if o := stream.until("OnPartyChanged"); o["no"] != second["no"] {
		t.Errorf("behind %v comes %v", first["no"], o)
	}
	later := s.listen(t, path+fmt.Sprintf("&after=%v", second["no"]), protocol)
	if code := stream.untilClosed(); code != 4406 {
		t.Errorf("the earlier stream was closed with %d", code)
	}
	ann.call("Party.SetReady", object{"ready": false})
	if o := later.until("OnPartyChanged"); o["no"].(float64) <= second["no"].(float64) {
		t.Errorf("behind %v comes %v", second["no"], o)
	}
	s.partner(t, "Events.Unsubscribe", object{"subscription_id": made.text("subscription_id")})
	if code := later.untilClosed(); code != 4410 {
		t.Errorf("the stream of a subscription that ended was closed with %d", code)
	}
	s.flowCall(t, "partner", "Events.Subscribe", "", http.StatusBadRequest, object{"types": []string{"OnNothing"}})
	s.flowCall(t, "partner", "Events.Subscribe", "", http.StatusBadRequest, object{"url": "ftp://somewhere"})
}

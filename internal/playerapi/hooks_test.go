package playerapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerhooks"
	"github.com/musterhq/muster/internal/waittest"
)

// backend is a studio's backend, with a door that calls its hooks, and players.
type backend struct {
	*testing.T
	engine *engine.Engine
	url    string
	tokens map[string]string
	door   *Door
	asks   *playerhooks.Hooks
	ids    byte

	mu      sync.Mutex
	answers map[playerhooks.Name]func(data map[string]any) (int, string)
	asked   []question
}

type question struct {
	hook playerhooks.Name
	data map[string]any
}

const yes = `{"allow":true}`

// newBackend opens a door with some hooks enabled. Their initial answer is yes.
func newBackend(t *testing.T, policy playerhooks.OnTimeout, on ...playerhooks.Name) *backend {
	t.Helper()
	s := &backend{T: t, tokens: map[string]string{}, answers: map[playerhooks.Name]func(map[string]any) (int, string){}}
	receiver := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(receiver.Close)
	hooks := playerhooks.Config{Hooks: map[playerhooks.Name]playerhooks.Hook{}, Concurrency: 8}
	for _, name := range on {
		hooks.Hooks[name] = playerhooks.Hook{URL: receiver.URL, Timeout: time.Minute, OnTimeout: policy}
	}
	config := cell.DefaultConfig()
	rules := flow.DefaultConfig()
	rules.Games.DirectCreate, rules.Games.DirectJoin, rules.Games.DirectQueue = true, true, "q"
	rules.Penalties.Mode = flow.PenaltiesEnforced
	config.PlayerFlow.Flow = &rules
	s.engine = enginetest.Open(t, engine.Config{Cell: config})
	log := slog.New(slog.DiscardHandler)
	asks := playerhooks.New(hooks, func() []string { return []string{"key"} }, log)
	door := NewDoor(Config{Engine: s.engine, Providers: map[string]authentication.Provider{"dev": authentication.Development{}}, Hooks: asks, Log: log})
	door.Lead()
	s.door, s.asks = door, asks
	server := httptest.NewServer(door.Player())
	s.url = server.URL
	t.Cleanup(func() {
		server.Close()
		door.Close()
		asks.Close()
	})
	s.hall()
	return s
}

// hall makes a fleet, a queue over it, and a matchmaking queue for two teams of one or two players.
func (s *backend) hall() {
	s.do(&hosting.CreateLocation{Name: "custom-a", Region: "eu-central-1"})
	s.do(&hosting.CreateFleet{Fleet: fleet.Fleet{ID: "fleet-1", Region: "eu-central-1", Name: "f"}, Locations: []string{"custom-a"}})
	s.do(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: "fleet-1", Name: "host", Location: "custom-a", IPAddress: "192.0.2.10"}})
	s.do(&hosting.CreateQueue{Queue: placement.Queue{
		Name: "q", Region: "eu-central-1", Timeout: 10 * time.Minute, Destinations: []string{"arn:aws:gamelift:eu-central-1::fleet/fleet-1"},
	}})
	s.do(&matchmaking.CreateRuleSet{RuleSet: matchmaking.RuleSet{Name: "rules", Region: "eu-central-1", Body: `{"name":"r","ruleLanguageVersion":"1.0",
		"playerAttributes":[{"name":"skill","type":"number","default":10}],
		"teams":[{"name":"red","minPlayers":1,"maxPlayers":2},{"name":"blue","minPlayers":1,"maxPlayers":2}]}`}})
	s.do(&matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{
		Name: "duel", Region: "eu-central-1", RuleSet: "rules", RequestTimeout: 5 * time.Minute,
		Queues: []string{"arn:aws:gamelift:eu-central-1::gamesessionqueue/q"},
	}})
}

func (s *backend) do(cmd kernel.Command) {
	s.Helper()
	if err := s.engine.Do(s.Context(), cmd); err != nil {
		s.Fatalf("%T: %v", cmd, err)
	}
}

func (s *backend) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m struct {
		Hook playerhooks.Name
		Data map[string]any
	}
	if err := json.Unmarshal(body, &m); err != nil {
		s.Errorf("%v in %s", err, body)
	}
	s.mu.Lock()
	s.asked = append(s.asked, question{m.Hook, m.Data})
	answer := s.answers[m.Hook]
	s.mu.Unlock()
	status, text := http.StatusOK, yes
	if answer != nil {
		status, text = answer(m.Data)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// says sets the further answers of a hook.
func (s *backend) says(n playerhooks.Name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[n] = func(map[string]any) (int, string) { return http.StatusOK, text }
}

// breaks makes a hook answer with an error.
func (s *backend) breaks(n playerhooks.Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[n] = func(map[string]any) (int, string) { return http.StatusInternalServerError, yes }
}

// questions returns the hook calls since the last call of questions.
func (s *backend) questions() (all []question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, s.asked = s.asked, nil
	return all
}

func (s *backend) wantAsked(names ...playerhooks.Name) []question {
	s.Helper()
	all := s.questions()
	var got []playerhooks.Name
	for _, q := range all {
		got = append(got, q.hook)
	}
	if !slices.Equal(got, names) {
		s.Fatalf("asked %v, want %v", got, names)
	}
	return all
}

// call makes a player's call, and logs the player in before the first one.
func (s *backend) call(player, name, body string) (status int, answer map[string]any) {
	s.Helper()
	if s.tokens[player] == "" && name != "Session.Login" {
		_, login := s.call(player, "Session.Login", `{"provider":"dev","token":"{\"player_id\":\"`+player+`\"}"}`)
		s.tokens[player], _ = login["access_token"].(string)
		id, _ := domain.ParseUUID(strings.TrimPrefix(login["session_id"].(string), "fs-"))
		s.ids++
		s.do(&playerflow.AttachStream{Player: player, LoginSessionID: flow.LoginSessionID(id), Stream: uint64(s.ids)})
	}
	r, _ := http.NewRequestWithContext(s.Context(), http.MethodPost, s.url+objects.PlayerPrefix+name, bytes.NewReader([]byte(body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+s.tokens[player])
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		s.Fatal(err)
	}
	return response.StatusCode, answer
}

func (s *backend) ok(player, name, body string) map[string]any {
	s.Helper()
	status, answer := s.call(player, name, body)
	if status != http.StatusOK {
		s.Fatalf("%s of %s: %d %v", name, player, status, answer)
	}
	return answer
}

func (s *backend) refused(player, name, body, code string) map[string]any {
	s.Helper()
	status, answer := s.call(player, name, body)
	if status == http.StatusOK || answer["code"] != code {
		s.Fatalf("%s of %s: %d %v, want %s", name, player, status, answer, code)
	}
	details, _ := answer["details"].(map[string]any)
	return details
}

func (s *backend) party(player string) string {
	s.Helper()
	return s.ok(player, "Party.CreateParty", `{"joinability":"OPEN"}`)["party"].(map[string]any)["party_id"].(string)
}

// activate gives the placement of a game a server process, which activates it.
func (s *backend) activate(id string) {
	s.Helper()
	key := fleet.Key{Fleet: "fleet-1", Compute: "host", Process: "server of " + id}
	game := session.MakeID("fleet-1", "custom-a", id)
	s.do(&hosting.ConnectProcess{Process: key, Link: 7})
	s.do(&hosting.ActivateProcess{Process: key, Link: 7, Port: 7777, Request: 1})
	s.do(&hosting.ReportHealth{Process: key, Healthy: true})
	s.do(&hosting.PromptGameSession{Process: key, Game: game})
	s.do(&hosting.ActivateGameSession{Process: key, Game: game})
}

// A refusal by the studio fails the call, and nothing is changed. If the studio does not answer, the policy decides.
func TestHooksOfParties(t *testing.T) {
	for hook, tc := range map[playerhooks.Name]struct {
		name, code string
		body       func(s *backend) string
		data       map[string]any // some of what is asked
	}{
		playerhooks.BeforeCreateParty: {"Party.CreateParty", "PERMISSION_DENIED",
			func(*backend) string { return `{"joinability":"CLOSED","attributes":{"a":1}}` },
			map[string]any{"player_id": "ann", "joinability": "CLOSED", "attributes": map[string]any{"a": 1.0}}},
		playerhooks.BeforeJoinParty: {"Party.JoinPartyById", "JOIN_NOT_ALLOWED",
			func(s *backend) string { return `{"party_id":"` + s.party("bob") + `"}` },
			map[string]any{"player_id": "ann", "by": "ID", "members": []any{"bob"}}},
	} {
		t.Run(string(hook), func(t *testing.T) {
			s := newBackend(t, playerhooks.Deny, hook)
			body := tc.body(s)
			s.questions()
			s.says(hook, `{"allow":false,"message":"not on a Monday"}`)
			if details := s.refused("ann", tc.name, body, tc.code); details["hook"] != string(hook) || details["hook_message"] != "not on a Monday" {
				t.Errorf("details %v", details)
			}
			q := s.wantAsked(hook)[0]
			for field, want := range tc.data {
				if fmt.Sprint(q.data[field]) != fmt.Sprint(want) {
					t.Errorf("%s is %v, want %v", field, q.data[field], want)
				}
			}
			s.breaks(hook)
			if details := s.refused("ann", tc.name, body, "UNAVAILABLE"); details["hook"] != string(hook) {
				t.Errorf("details %v", details)
			}
			if phase := s.ok("ann", "Session.GetFlow", `{}`)["flow_snapshot"].(map[string]any)["phase"]; phase != "IDLE" {
				t.Errorf("phase %v", phase)
			}
			s.questions()
			s.says(hook, yes)
			s.ok("ann", tc.name, body)
			s.wantAsked(hook)
		})
	}
	s := newBackend(t, playerhooks.Allow, playerhooks.BeforeCreateParty)
	s.breaks(playerhooks.BeforeCreateParty)
	s.ok("ann", "Party.CreateParty", `{}`)
	s.wantAsked(playerhooks.BeforeCreateParty)
}

// No hook is called for requests that the service itself refuses, or for repeats.
func TestHooksAreNotAskedInVain(t *testing.T) {
	s := newBackend(t, playerhooks.Deny, playerhooks.BeforeJoinParty, playerhooks.BeforeInvite)
	s.refused("ann", "Party.JoinPartyById", `{"party_id":"pty-00000000-0000-4000-8000-000000000000"}`, "PARTY_NOT_FOUND")
	s.refused("ann", "Party.JoinPartyByInviteCode", `{"code":"NOSUCH22"}`, "PARTY_NOT_FOUND")
	s.refused("ann", "Party.SendInvite", `{"player_id":"bob"}`, "NOT_IN_PARTY")
	s.wantAsked()
	party := s.party("bob")
	s.ok("ann", "Session.GetFlow", `{}`)
	invite := s.ok("bob", "Party.SendInvite", `{"player_id":"ann"}`)["invite_id"]
	q := s.wantAsked(playerhooks.BeforeInvite)[0]
	if q.data["player_id"] != "bob" || q.data["target_id"] != "ann" || q.data["party_id"] != party {
		t.Errorf("%v", q.data)
	}
	if again := s.ok("bob", "Party.SendInvite", `{"player_id":"ann"}`)["invite_id"]; again != invite {
		t.Errorf("invite %v, want %v", again, invite)
	}
	s.wantAsked()
	s.ok("ann", "Party.RespondToInvite", fmt.Sprintf(`{"invite_id":%q,"accept":true}`, invite))
	if q := s.wantAsked(playerhooks.BeforeJoinParty)[0]; q.data["by"] != "INVITE" || q.data["party_id"] != party {
		t.Errorf("%v", q.data)
	}
}

// The studio adds attributes, PlayerData and the order of locations to a search. They are in the match.
func TestHooksOfSearches(t *testing.T) {
	all := []playerhooks.Name{playerhooks.BeforeEnterMatchmaking, playerhooks.BuildPlayerData, playerhooks.ChooseRegions}
	s := newBackend(t, playerhooks.Deny, all...)
	s.says(playerhooks.BeforeEnterMatchmaking, `{"allow":false}`)
	s.refused("ann", "Matchmaking.EnterMatchmaking", `{"queue":"duel","attributes":{"skill":3}}`, "PERMISSION_DENIED")
	q := s.wantAsked(playerhooks.BeforeEnterMatchmaking)[0]
	if q.data["queue"] != "duel" || fmt.Sprint(q.data["attributes"]) != "map[skill:3]" || len(q.data["players"].([]any)) != 1 {
		t.Errorf("%v", q.data)
	}
	s.says(playerhooks.BeforeEnterMatchmaking, `{"allow":true,"players":{"ann":{"attributes":{"skill":77}}}}`)
	s.says(playerhooks.BuildPlayerData, `{"players":{"ann":"skin=3","eve":"not in it"}}`)
	s.says(playerhooks.ChooseRegions, `{"regions":["custom-b","custom-a"]}`)
	ticket := s.ok("ann", "Matchmaking.EnterMatchmaking", `{"queue":"duel","attributes":{"skill":3}}`)["ticket"].(map[string]any)["matchmaking_id"].(string)
	s.wantAsked(all...)
	s.ok("ann", "Matchmaking.EnterMatchmaking", `{"queue":"duel"}`) // the same search
	s.wantAsked()
	s.ok("bob", "Matchmaking.EnterMatchmaking", `{"queue":"duel","attributes":{"skill":5}}`)
	s.match(ticket)
	s.wantAsked(all...)
	game := s.ok("ann", "GameInstance.GetGameInstance", `{}`)["game_instance"].(map[string]any)
	s.activate(game["match_id"].(string))
	host := s.ok("ann", "GameInstance.GetHostConnectionDetails", fmt.Sprintf(`{"game_instance_id":%q}`, game["game_instance_id"]))["host"].(map[string]any)
	s.wantAsked() // the reservation of the placement is good
	if got := s.dataOf(host["player_session_id"].(string)); got != "skin=3" {
		t.Errorf("PlayerData is %q", got)
	}
}

// match proposes a match of all searching players, and compares the first one's skill with the studio's answer.
func (s *backend) match(first string) {
	s.Helper()
	var tickets []matchmaking.ProposedTicket
	var version uint64
	err := s.engine.Read(s.Context(), func(v *cell.View) error {
		c, _ := v.Configuration("duel")
		version = c.Version
		waiting, _ := v.WaitingTickets(0, 100)
		for i, x := range waiting {
			tickets = append(tickets, matchmaking.ProposedTicket{TicketKey: matchmaking.TicketKey{No: x.No, Generation: x.Generation}, Team: []string{"red", "blue"}[i]})
			if players := matchmaking.DecodeRoster(x.Roster); x.ID == first && players[0].Attributes[0].Value.Number != 77 {
				s.Errorf("the skill is %v", players[0].Attributes)
			}
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	cmd := &matchmaking.ProposeMatches{Configuration: "duel", Version: version, Proposals: []matchmaking.Proposal{{ID: objects.NewID(), PlayersMax: 2, Tickets: tickets}}}
	s.do(cmd)
	if cmd.Refused[0] != nil {
		s.Fatal(cmd.Refused[0])
	}
}

func (s *backend) dataOf(playerSession string) (data string) {
	s.Helper()
	id, _ := domain.ParseID[domain.PlayerSessionID](playerSession)
	if err := s.engine.Read(s.Context(), func(v *cell.View) error {
		p, _ := v.PlayerSession(id)
		data = p.Data
		return nil
	}); err != nil {
		s.Fatal(err)
	}
	return data
}

// A player joins a party while the studio is asked about it: the answer does not apply to the new member.
func TestPartyChangesWhileAsked(t *testing.T) {
	s := newBackend(t, playerhooks.Deny, playerhooks.BeforeEnterMatchmaking)
	party := s.party("ann")
	s.ok("bob", "Session.GetFlow", `{}`)
	s.ok("ann", "Party.SetReady", `{"ready":true}`)
	joined := false
	s.mu.Lock()
	s.answers[playerhooks.BeforeEnterMatchmaking] = func(data map[string]any) (int, string) {
		if !joined {
			joined = true
			s.ok("bob", "Party.JoinPartyById", `{"party_id":"`+party+`"}`)
			s.ok("bob", "Party.SetReady", `{"ready":true}`)
		}
		return http.StatusOK, yes
	}
	s.mu.Unlock()
	s.ok("ann", "Matchmaking.EnterMatchmaking", `{"queue":"duel"}`)
	both := s.wantAsked(playerhooks.BeforeEnterMatchmaking, playerhooks.BeforeEnterMatchmaking)
	if n := len(both[1].data["players"].([]any)); n != 2 {
		t.Errorf("asked about %d players at last", n)
	}
}

// For a player's own game the studio chooses location and properties, and decides about joins with a code and about changes of
// attributes.
func TestHooksOfDirectGames(t *testing.T) {
	s := newBackend(t, playerhooks.Deny, playerhooks.BeforeDirectJoin, playerhooks.BuildPlayerData, playerhooks.BeforePlayerUpdate, playerhooks.ChooseRegions)
	s.says(playerhooks.BeforeDirectJoin, `{"allow":false,"message":"members only"}`)
	if details := s.refused("ann", "GameInstance.CreateGameInstance", `{}`, "JOIN_NOT_ALLOWED"); details["hook_message"] != "members only" {
		t.Errorf("details %v", details)
	}
	s.questions()
	s.says(playerhooks.BeforeDirectJoin, `{"allow":true,"queue":"q","max_players":3,"name":"sandbox","attributes":{"map":"dock"}}`)
	s.says(playerhooks.BuildPlayerData, `{"players":{"ann":"host","bob":"guest"}}`)
	s.says(playerhooks.ChooseRegions, `{"regions":["custom-a"]}`)
	game := s.ok("ann", "GameInstance.CreateGameInstance", `{"attributes":{"map":"moon"},"max_players":2}`)["game_instance"].(map[string]any)
	q := s.wantAsked(playerhooks.BeforeDirectJoin, playerhooks.BuildPlayerData, playerhooks.ChooseRegions)[0]
	if q.data["action"] != "CREATE" || q.data["max_players"] != 2.0 || fmt.Sprint(q.data["attributes"]) != "map[map:moon]" {
		t.Errorf("%v", q.data)
	}
	if fmt.Sprint(game["attributes"]) != "map[map:dock]" || game["status"] != "PENDING" {
		t.Errorf("%v", game)
	}
	id := game["game_instance_id"].(string)
	s.refused("bob", "GameInstance.JoinGameInstance", `{"game_instance_id":"`+id+`","code":"1234"}`, "HOST_NOT_READY")
	s.wantAsked()
	s.activate(id)
	s.says(playerhooks.BeforeDirectJoin, `{"allow":true,"team":"guests"}`)
	joined := s.ok("bob", "GameInstance.JoinGameInstance", `{"game_instance_id":"`+id+`","code":"1234"}`)["game_instance"].(map[string]any)
	q = s.wantAsked(playerhooks.BeforeDirectJoin, playerhooks.BuildPlayerData)[0]
	if q.data["action"] != "JOIN" || q.data["code"] != "1234" || q.data["game_instance_id"] != id || joined["team"] != "guests" {
		t.Errorf("%v, %v", q.data, joined)
	}
	host := joined["host"].(map[string]any)
	if got := s.dataOf(host["player_session_id"].(string)); got != "guest" {
		t.Errorf("PlayerData is %q", got)
	}
	s.says(playerhooks.BeforePlayerUpdate, `{"allow":false}`)
	s.refused("bob", "GameInstance.UpdateGameInstance", `{"attributes":{"map":"mine"}}`, "PERMISSION_DENIED")
	s.says(playerhooks.BeforePlayerUpdate, `{"allow":true,"attributes":{"map":"harbour"}}`)
	updated := s.ok("bob", "GameInstance.UpdateGameInstance", `{"attributes":{"map":"mine"}}`)["game_instance"].(map[string]any)
	if fmt.Sprint(updated["attributes"]) != "map[map:harbour]" {
		t.Errorf("%v", updated)
	}
	s.refused("eve", "GameInstance.UpdateGameInstance", `{"attributes":{}}`, "NOT_IN_GAME")
}

// Without hooks only the operator decides about players' own games. Attributes cannot be changed, and codes are not accepted.
func TestDirectGamesWithoutHooks(t *testing.T) {
	s := newBackend(t, playerhooks.Deny)
	id := s.ok("ann", "GameInstance.CreateGameInstance", `{}`)["game_instance"].(map[string]any)["game_instance_id"].(string)
	s.activate(id)
	s.refused("bob", "GameInstance.JoinGameInstance", `{"game_instance_id":"`+id+`","code":"1234"}`, "INVALID_ARGUMENT")
	s.ok("bob", "GameInstance.JoinGameInstance", `{"game_instance_id":"`+id+`"}`)
	s.refused("bob", "GameInstance.UpdateGameInstance", `{"attributes":{}}`, "PERMISSION_DENIED")
	s.refused("eve", "GameInstance.CreateGameInstance", `{"max_players":500}`, "INVALID_ARGUMENT")
	s.wantAsked()
}

// When a player returns to a game, the studio is asked for the PlayerData of the new reservation.
func TestHookOfReconnect(t *testing.T) {
	s := newBackend(t, playerhooks.Allow, playerhooks.BuildPlayerData)
	s.says(playerhooks.BuildPlayerData, `{"players":{"ann":"first"}}`)
	id := s.ok("ann", "GameInstance.CreateGameInstance", `{}`)["game_instance"].(map[string]any)["game_instance_id"].(string)
	s.activate(id)
	body := `{"game_instance_id":"` + id + `"}`
	details := func() string {
		return s.ok("ann", "GameInstance.GetHostConnectionDetails", body)["host"].(map[string]any)["player_session_id"].(string)
	}
	first := details()
	key, game := fleet.Key{Fleet: "fleet-1", Compute: "host", Process: "server of " + id}, session.MakeID("fleet-1", "custom-a", id)
	play := func(playerSession string, request uint64) {
		ps, _ := domain.ParseID[domain.PlayerSessionID](playerSession)
		s.do(&hosting.AcceptPlayer{Process: key, Game: game, Player: ps, Request: request})
		s.do(&hosting.RemovePlayer{Process: key, Game: game, Player: ps})
	}
	play(first, 10)
	s.questions()
	s.says(playerhooks.BuildPlayerData, `{"players":{"ann":"second"}}`)
	second := details()
	q := s.wantAsked(playerhooks.BuildPlayerData)[0]
	if q.data["purpose"] != "RECONNECT" || q.data["game_instance_id"] != id || s.dataOf(second) != "second" {
		t.Errorf("%v, PlayerData %q", q.data, s.dataOf(second))
	}
	play(second, 20)
	s.breaks(playerhooks.BuildPlayerData)
	if third := details(); third == second || s.dataOf(third) != "second" {
		t.Errorf("a silent studio: PlayerData %q", s.dataOf(third))
	}
}

// The studio decides about a penalty after it was imposed. If it does not answer, the penalty stays as computed.
func TestHookOfPenalties(t *testing.T) {
	for name, tc := range map[string]struct {
		policy playerhooks.OnTimeout
		answer string // empty: none
		locked bool
		level  int32 // one more than the step in the event
	}{
		"KEEP":          {playerhooks.Deny, `{"decision":"KEEP"}`, false, 1},
		"CLEAR":         {playerhooks.Deny, `{"decision":"CLEAR"}`, false, 0},
		"SET":           {playerhooks.Deny, `{"decision":"SET","level":4,"lock_ms":60000}`, true, 5},
		"silent, ALLOW": {playerhooks.Allow, "", false, 1},
		"silent, DENY":  {playerhooks.Deny, "", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBackend(t, tc.policy, playerhooks.DecidePenalty)
			if s.says(playerhooks.DecidePenalty, tc.answer); tc.answer == "" {
				s.breaks(playerhooks.DecidePenalty)
			}
			id := s.ok("ann", "GameInstance.CreateGameInstance", `{}`)["game_instance"].(map[string]any)["game_instance_id"].(string)
			s.activate(id)
			s.ok("ann", "GameInstance.LeaveGame", `{"game_instance_id":"`+id+`"}`)
			var last flow.Penalty
			for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
				s.mu.Lock()
				asked := len(s.asked)
				s.mu.Unlock()
				_ = s.engine.Read(t.Context(), func(v *cell.View) error {
					last = flow.Penalty{}
					for _, p := range v.Penalties("ann") {
						last = p
					}
					return nil
				})
				if asked > 0 && last.Level == tc.level {
					break
				}
			}
			q := s.wantAsked(playerhooks.DecidePenalty)[0]
			if q.data["kind"] != "DODGE" || q.data["level"] != 0.0 || q.data["reason"] != "LEFT" || q.data["game_instance_id"] != id {
				t.Errorf("%v", q.data)
			}
			if last.Level != tc.level || (last.Until != 0) != tc.locked {
				t.Errorf("%+v", last)
			}
			if status, answer := s.call("ann", "Matchmaking.EnterMatchmaking", `{"queue":"duel"}`); (answer["code"] == "MATCHMAKING_LOCKED") != tc.locked {
				t.Errorf("%d %v", status, answer)
			}
		})
	}
}

// If the leader changes while the studio is asked about a penalty, the new leader asks again, and the studio's decision counts once.
func TestPenaltyOverOffices(t *testing.T) {
	s := newBackend(t, playerhooks.Deny, playerhooks.DecidePenalty)
	asked, release := make(chan struct{}, 10), make(chan struct{})
	s.mu.Lock()
	s.answers[playerhooks.DecidePenalty] = func(map[string]any) (int, string) {
		asked <- struct{}{}
		<-release
		return http.StatusOK, `{"decision":"CLEAR"}`
	}
	s.mu.Unlock()
	next := NewDoor(Config{Engine: s.engine, Providers: s.door.config.Providers, Hooks: s.asks, Log: s.door.config.Log})
	defer next.Close()
	penalties := func() (all []flow.Penalty) {
		_ = s.engine.Read(t.Context(), func(v *cell.View) error { all = v.Penalties("ann"); return nil })
		return all
	}
	offend := func() {
		id := s.ok("ann", "GameInstance.CreateGameInstance", `{}`)["game_instance"].(map[string]any)["game_instance_id"].(string)
		s.activate(id)
		s.ok("ann", "GameInstance.LeaveGame", `{"game_instance_id":"`+id+`"}`)
	}
	offend()
	<-asked
	s.door.Rest()
	if all := penalties(); len(all) != 1 {
		t.Fatalf("an interrupted question changed the penalty: %v", all)
	}
	next.Lead()
	<-asked
	close(release)
	waittest.Until(t, "the penalty is cleared", func() bool { return len(penalties()) == 0 })
	next.Rest()
	waittest.Until(t, "the doors have the events", func() bool { return s.engine.Backlog() == 0 })
	s.door.Lead()
	s.door.Rest()
	s.wantAsked(playerhooks.DecidePenalty, playerhooks.DecidePenalty) // a decided penalty is not asked about again
}

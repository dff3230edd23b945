package sessionapi_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

func TestConfigureGameLiftClient(t *testing.T) {
	s := newStage(t)
	if a := s.node("ConfigureGameLiftClient", fields{"region": "eu-central-1"}); !a.OK {
		t.Errorf("got %s", a.text)
	}
	if a := s.node("ConfigureGameLiftClient", nil); !a.OK {
		t.Errorf("without a region: %s", a.text)
	}
	for _, known := range []string{"us-east-1", "us-gov-west-1", "ap-southeast-4", s.fleet.Location} {
		if a := s.node("ConfigureGameLiftClient", fields{"region": known}); !a.OK {
			t.Errorf("%s: got %s", known, a.text)
		}
	}
	for _, unknown := range []string{"eu central", "eu-centrall-1", "mars", "custom-nowhere", "us-east"} {
		s.fails("ConfigureGameLiftClient", fields{"region": unknown}, 400, "InvalidRequest", "region")
	}
}

func TestCreatePlayerId(t *testing.T) {
	s := newStage(t)
	for _, c := range []struct {
		in   fields
		form string
	}{
		{nil, `^[0-9A-F]{32}$`},
		{fields{"includeDashes": true}, `^[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}$`},
		{fields{"includeBrackets": true}, `^\{[0-9A-F]{32}\}$`},
		{fields{"includeBrackets": true, "includeDashes": true}, `^\{[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}\}$`},
	} {
		if a := s.node("CreatePlayerId", c.in); !regexp.MustCompile(c.form).MatchString(a.PlayerID) {
			t.Errorf("%v: got %s, want %s", c.in, a.PlayerID, c.form)
		}
	}
}

func TestGetResourceNameId(t *testing.T) {
	s := newStage(t)
	made, err := s.srv.GameLift().CreateAlias(t.Context(), &gamelift.CreateAliasInput{
		Name: aws.String("MyFleet"), RoutingStrategy: &types.RoutingStrategy{Type: types.RoutingStrategyTypeSimple, FleetId: &s.fleet.ID},
	})
	if err != nil {
		t.Fatal(err)
	}
	a := s.node("GetResourceNameId", fields{"name": "MyFleet"})
	if a.Result != *made.Alias.AliasId || a.FleetID != s.fleet.ID {
		t.Errorf("got %s", a.text)
	}
	s.fails("GetResourceNameId", fields{"name": "Other"}, 404, "NotFound", "")
	s.fails("GetResourceNameId", nil, 400, "InvalidRequest", "name")
	if got := s.node("SearchSessions", fields{"aliasId": a.Result}); len(got.SessionConfigs) != 0 {
		t.Errorf("got %s", got.text)
	}
}

// Each field of a CreateSession request reaches the game session, and the game server.
func TestCreateSession(t *testing.T) {
	s := newStage(t)
	server := s.fleet.StartGameServer()
	a := s.node("CreateSession", fields{
		"fleetId": s.fleet.ID, "creatorId": "ann", "sessionName": "duel", "sessionProperties": fields{"level": "harbour", "mode": "<1v1>"},
		"maxPlayer": 2, "sessionData": "seed=7", "location": s.fleet.Location, "idempotencyToken": "first",
	})
	id := "arn:aws:gamelift:us-east-1::gamesession/" + s.fleet.ID + "/" + s.fleet.Location + "/first"
	if a.Result != id || !strings.Contains(a.text, "<1v1>") {
		t.Errorf("got %s, want %s", a.text, id)
	}
	want := map[string]any{
		"sessionId": id, "sessionName": "duel", "status": "Activating", "statusReason": "NotSet", "creatorId": "ann",
		"creationTime": float64(s.srv.Now().UnixMilli()), "terminationTime": 0., "sessionProperties": map[string]any{"level": "harbour", "mode": "<1v1>"},
		"matchmakingData": "", "dnsName": "", "ipAddress": "127.0.0.1", "port": 7001., "maxPlayer": 2., "currentPlayer": 0.,
	}
	equal(t, a.SessionConfig, want)
	got := server.GameSession()
	if got.ID != id || got.Name != "duel" || got.Data != "seed=7" || got.MaxPlayers != 2 || got.Port != 7001 || got.Properties["level"] != "harbour" {
		t.Errorf("the game server was told %+v", got)
	}
	// A repeat with the same token returns the same session, even through the other door. Other parameters are refused.
	again := s.node("CreateSession", fields{"fleetId": s.fleet.ID, "creatorId": "ann", "sessionName": "duel", "maxPlayer": 2, "sessionData": "seed=7",
		"sessionProperties": fields{"mode": "<1v1>", "level": "harbour"}, "idempotencyToken": "first"})
	if again.Result != id {
		t.Errorf("a repeat: got %s", again.text)
	}
	other, err := s.srv.GameLift().CreateGameSession(t.Context(), &gamelift.CreateGameSessionInput{
		FleetId: &s.fleet.ID, Location: &s.fleet.Location, IdempotencyToken: aws.String("first"), CreatorId: aws.String("ann"), Name: aws.String("duel"),
		MaximumPlayerSessionCount: aws.Int32(2), GameSessionData: aws.String("seed=7"),
		GameProperties: []types.GameProperty{{Key: aws.String("level"), Value: aws.String("harbour")}, {Key: aws.String("mode"), Value: aws.String("<1v1>")}},
	})
	if err != nil || *other.GameSession.GameSessionId != id {
		t.Errorf("by the API: %v %v", other, err)
	}
	s.fails("CreateSession", fields{"fleetId": s.fleet.ID, "maxPlayer": 3, "idempotencyToken": "first"}, 409, "IdReused", "")
}

func TestCreateSessionRefuses(t *testing.T) {
	s := newStage(t)
	fleet := s.fleet.ID
	many := fields{}
	for i := range 17 {
		many[strings.Repeat("k", i+1)] = ""
	}
	for _, c := range []struct {
		in     fields
		status int
		name   string
		field  string
	}{
		{fields{"maxPlayer": 2}, 400, "InvalidRequest", "fleetId"},
		{fields{"fleetId": "flee", "maxPlayer": 2}, 400, "InvalidRequest", "fleetId"},
		{fields{"fleetId": fleet, "aliasId": "alias-1", "maxPlayer": 2}, 400, "InvalidRequest", "aliasId"},
		{fields{"aliasId": "x", "maxPlayer": 2}, 400, "InvalidRequest", "aliasId"},
		{fields{"fleetId": fleet}, 400, "InvalidRequest", "maxPlayer"},
		{fields{"fleetId": fleet, "maxPlayer": -1}, 400, "InvalidRequest", "maxPlayer"},
		{fields{"fleetId": fleet, "maxPlayer": 1 << 40}, 400, "InvalidRequest", "maxPlayer"},
		{fields{"fleetId": fleet, "maxPlayer": "2"}, 400, "InvalidRequest", "maxPlayer"},
		{fields{"fleetId": fleet, "maxPlayer": 201}, 400, "InvalidRequest", "maxPlayer"},
		{fields{"fleetId": fleet, "maxPlayer": 2, "location": "custom-moon"}, 400, "InvalidRequest", "location"},
		{fields{"fleetId": fleet, "maxPlayer": 2, "location": "a b"}, 400, "InvalidRequest", "location"},
		{fields{"fleetId": fleet, "maxPlayer": 2, "sessionName": strings.Repeat("n", 1025)}, 400, "InvalidRequest", "sessionName"},
		{fields{"fleetId": fleet, "maxPlayer": 2, "creatorId": strings.Repeat("n", 1025)}, 400, "InvalidRequest", "creatorId"},
		{fields{"fleetId": fleet, "maxPlayer": 2, "sessionProperties": many}, 400, "InvalidRequest", "sessionProperties"},
		{fields{"fleetId": fleet, "maxPlayer": 2, "sessionProperties": fields{"k": strings.Repeat("v", 97)}}, 400, "InvalidRequest", "sessionProperties.k"},
		{fields{"fleetId": fleet, "maxPlayer": 2, "sessionProperties": fields{"": "v"}}, 400, "InvalidRequest", "sessionProperties"},
		{fields{"fleetId": fleet, "maxPlayer": 2, "sessionProperties": fields{"k": 7}}, 400, "InvalidRequest", "sessionProperties"},
		{fields{"fleetId": fleet, "maxPlayer": 2, "idempotencyToken": "a/b"}, 400, "InvalidRequest", "idempotencyToken"},
		{fields{"fleetId": fleet, "maxPlayer": 2, "queueName": "q"}, 400, "InvalidRequest", "queueName"},
		{fields{"fleetId": "fleet-none", "maxPlayer": 2}, 404, "NotFound", ""},
		{fields{"aliasId": "alias-none", "maxPlayer": 2}, 404, "NotFound", ""},
		{fields{"fleetId": fleet, "maxPlayer": 2}, 409, "NoFreeServer", ""},
	} {
		s.fails("CreateSession", c.in, c.status, c.name, c.field)
	}
}

func TestCreateSessionOnQueue(t *testing.T) {
	s := newStage(t)
	queue := s.fleet.NewQueue(60)
	a := s.node("CreateSessionOnQueue", fields{"queueName": queue, "placementId": "p1", "maxPlayer": 4, "creatorId": "not sent", "sessionName": "n"})
	if a.Result != "p1" || a.Placement["status"] != "PENDING" || a.Placement["sessionId"] != "" {
		t.Errorf("got %s", a.text)
	}
	s.fails("CreateSessionOnQueue", fields{"queueName": queue, "placementId": "p1", "maxPlayer": 4}, 409, "IdReused", "")
	server := s.fleet.StartGameServer()
	server.GameSession()
	got := s.call("GET", "placements/p1", "")
	if got.Status != "FULFILLED" || got.SessionID == "" || got.IPAddress != "127.0.0.1" || got.Port != 7001 {
		t.Errorf("got %s", got.text)
	}
	s.srv.Advance(time.Minute)
	late := s.node("CreateSessionOnQueue", fields{"queueName": queue, "maxPlayer": 4})
	s.srv.Advance(time.Minute)
	if got := s.call("GET", "placements/"+late.Result.(string), ""); got.Status != "TIMED_OUT" || got.SessionID != "" {
		t.Errorf("got %s", got.text)
	}
	if got := s.call("GET", "placements/none", ""); got.status != 404 || got.Error.Name != "NotFound" {
		t.Errorf("got %s", got.text)
	}
	for _, c := range []struct {
		in     fields
		status int
		field  string
	}{
		{fields{"maxPlayer": 2}, 400, "queueName"},
		{fields{"queueName": "a b", "maxPlayer": 2}, 400, "queueName"},
		{fields{"queueName": queue, "placementId": "a b", "maxPlayer": 2}, 400, "placementId"},
		{fields{"queueName": queue}, 400, "maxPlayer"},
		{fields{"queueName": queue, "maxPlayer": 201}, 400, "maxPlayer"},
		{fields{"queueName": queue, "maxPlayer": 0, "players": []fields{{"playerId": "ann"}}}, 400, "players"},
		{fields{"queueName": queue, "maxPlayer": 2, "players": []fields{{"playerId": ""}}}, 400, "players[0].playerId"},
		{fields{"queueName": queue, "maxPlayer": 2, "latencies": []fields{{"playerId": "a", "location": "l", "milliseconds": -1}}}, 400, "latencies[0].milliseconds"},
	} {
		s.fails("CreateSessionOnQueue", c.in, c.status, "InvalidRequest", c.field)
	}
	s.fails("CreateSessionOnQueue", fields{"queueName": "none", "maxPlayer": 2}, 404, "NotFound", "")
}

// With wait, the default of an asynchronous call, the call completes when the placement is over: with the
// players' seats, or with the placement's outcome. Before that it reports the placement's id.
func TestCreateSessionOnQueueWaits(t *testing.T) {
	for _, name := range []string{"CreateSessionOnQueueAsync", "CreateSessionOnQueue?async=1"} {
		t.Run(name, func(t *testing.T) { queueWaits(newStage(t), t, name) })
	}
}

func queueWaits(s *stage, t *testing.T, name string) {
	queue := s.fleet.NewQueue(60)
	events := s.listen("tool", "")
	begun := s.node(name, fields{"queueName": queue, "maxPlayer": 4, "players": []fields{{"playerId": "ann", "playerData": "x"}}}, "X-Client-Id", "tool")
	e := <-events
	id, _ := e.data.Progress["result"].(string)
	if e.name != "OnCreateSessionOnQueueStarted" || e.data.CallID != begun.CallID || id == "" {
		t.Fatalf("got %s %s", e.name, e.text)
	}
	if got := s.call("GET", "calls/"+begun.CallID, ""); got.State != "PENDING" || !strings.Contains(got.text, id) {
		t.Errorf("got %s", got.text)
	}
	server := s.fleet.StartGameServer()
	server.GameSession()
	if e = <-events; e.name != "OnCreateSessionAsyncComplete" || e.data.CallID != begun.CallID {
		t.Fatalf("got %+v", e)
	}
	placement := e.data.Answer["placement"].(map[string]any)
	seat := placement["players"].([]any)[0].(map[string]any)
	if placement["status"] != "FULFILLED" || placement["placementId"] != id || seat["playerId"] != "ann" {
		t.Errorf("got %s", e.text)
	}
	if err := server.AcceptPlayer(seat["playerSessionId"].(string)); err != nil {
		t.Error(err)
	}
	s.node(name, fields{"queueName": queue, "maxPlayer": 4}, "X-Client-Id", "tool")
	<-events
	s.srv.Advance(time.Minute)
	if e = <-events; e.name != "OnCreateSessionAsyncComplete" || !strings.Contains(e.text, `"status":"TIMED_OUT"`) {
		t.Errorf("got %s %s", e.name, e.text)
	}
}

func TestSearchSessions(t *testing.T) {
	s := newStage(t)
	for _, level := range []string{"harbour", "castle", "harbour"} {
		server := s.fleet.StartGameServer()
		s.node("CreateSession", fields{"fleetId": s.fleet.ID, "maxPlayer": 4, "sessionProperties": fields{"level": level}, "sessionName": level})
		server.GameSession()
		s.srv.Advance(time.Second)
	}
	a := s.node("SearchSessions", fields{"fleetId": s.fleet.ID, "filterExpression": "gameSessionProperties.level = 'castle'"})
	if len(a.SessionConfigs) != 1 || a.NextToken != "" {
		t.Fatalf("got %s", a.text)
	}
	if c := a.SessionConfigs[0]; c["status"] != "Active" || c["sessionName"] != "castle" || c["ipAddress"] != "127.0.0.1" || c["port"] != 7002. {
		t.Errorf("got %v", c)
	}
	in := fields{"fleetId": s.fleet.ID, "sortExpression": "creationTimeMillis ASC", "maxResult": 2, "location": s.fleet.Location}
	first := s.node("SearchSessions", in)
	in["nextToken"] = first.NextToken
	second := s.node("SearchSessions", in)
	if len(first.SessionConfigs) != 2 || len(second.SessionConfigs) != 1 || second.NextToken != "" ||
		second.SessionConfigs[0]["port"] != 7003. {
		t.Errorf("got %s\nthen %s", first.text, second.text)
	}
	in["sortExpression"] = "creationTimeMillis DESC"
	s.fails("SearchSessions", in, 400, "InvalidRequest", "nextToken")
	bad := s.fails("SearchSessions", fields{"fleetId": s.fleet.ID, "filterExpression": "colour ="}, 400, "InvalidRequest", "filterExpression")
	if want := "filterExpression: character 1: got 'colour', want "; !strings.HasPrefix(bad.Error.Message, want) || strings.HasPrefix(bad.Error.Expected, "character") {
		t.Errorf("got %s, want a message that begins with %q", bad.text, want)
	}
	s.fails("SearchSessions", fields{"fleetId": s.fleet.ID, "sortExpression": "colour"}, 400, "InvalidRequest", "sortExpression")
	s.fails("SearchSessions", fields{"fleetId": s.fleet.ID, "location": "custom-moon"}, 400, "InvalidRequest", "location")
	s.fails("SearchSessions", fields{"fleetId": s.fleet.ID, "maxResult": 256}, 400, "InvalidRequest", "maxResult")
	s.fails("SearchSessions", nil, 400, "InvalidRequest", "fleetId")
	s.fails("SearchSessions", fields{"fleetId": "fleet-none"}, 404, "NotFound", "")
}

func TestJoinSession(t *testing.T) {
	s := newStage(t)
	id, server := s.create(2)
	a := s.node("JoinSession", fields{"sessionId": id, "playerId": "ann", "playerData": "hat"})
	if !a.Reserved || a.IPAddress != "127.0.0.1" || a.Port != 7001 || !strings.HasPrefix(a.PlayerSessionID, "psess-") {
		t.Errorf("got %s", a.text)
	}
	if err := server.AcceptPlayer(a.PlayerSessionID); err != nil {
		t.Error(err)
	}
	s.node("JoinSession", fields{"sessionId": id, "playerId": "bob"})
	s.fails("JoinSession", fields{"sessionId": id, "playerId": "cid"}, 409, "SessionFull", "")
	s.srv.Advance(time.Minute) // bob never came
	s.node("JoinSession", fields{"sessionId": id, "playerId": "cid"})
	if err := server.End(); err != nil {
		t.Fatal(err)
	}
	s.fails("JoinSession", fields{"sessionId": id, "playerId": "dan"}, 409, "SessionNotActive", "")
	s.srv.Advance(time.Hour) // only the archive has it now
	s.fails("JoinSession", fields{"sessionId": id, "playerId": "dan"}, 409, "SessionNotActive", "")
	s.fails("JoinSession", fields{"sessionId": strings.Replace(id, "gsess", "x", 1), "playerId": "dan"}, 404, "NotFound", "")
	s.fails("JoinSession", fields{"sessionId": "gsess-1", "playerId": "dan"}, 400, "InvalidRequest", "sessionId")
	s.fails("JoinSession", fields{"playerId": "dan"}, 400, "InvalidRequest", "sessionId")
	s.fails("JoinSession", fields{"sessionId": id}, 400, "InvalidRequest", "playerId")
	s.fails("JoinSession", fields{"sessionId": id, "playerId": "dan", "playerData": strings.Repeat("x", 2049)}, 400, "InvalidRequest", "playerData")
}

func TestLeaveSession(t *testing.T) {
	s := newStage(t)
	id, server := s.create(1)
	ann := s.node("JoinSession", fields{"sessionId": id, "playerId": "ann"}).PlayerSessionID
	if a := s.node("LeaveSession", fields{"playerSessionId": ann}); a.Status != "COMPLETED" {
		t.Errorf("a reserved seat: %s", a.text)
	}
	bob := s.node("JoinSession", fields{"sessionId": id, "playerId": "bob"}).PlayerSessionID // the seat is free again
	if err := server.AcceptPlayer(bob); err != nil {
		t.Fatal(err)
	}
	if a := s.node("LeaveSession", fields{"playerSessionId": bob}); a.Status != "ACTIVE" {
		t.Errorf("a connected player: %s; the game server gives the seat back", a.text)
	}
	if err := server.RemovePlayer(bob); err != nil {
		t.Fatal(err)
	}
	if a := s.node("LeaveSession", fields{"playerSessionId": bob}); a.Status != "COMPLETED" {
		t.Errorf("one who is gone: %s", a.text)
	}
	s.fails("LeaveSession", nil, 400, "InvalidRequest", "playerSessionId")
	s.fails("LeaveSession", fields{"playerSessionId": "bob"}, 400, "InvalidRequest", "playerSessionId")
	s.fails("LeaveSession", fields{"playerSessionId": "psess-00000000-0000-4000-8000-000000000000"}, 404, "NotFound", "")
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	g, _ := json.Marshal(got)
	w, _ := json.Marshal(want)
	if string(g) != string(w) {
		t.Errorf("got  %s\nwant %s", g, w)
	}
}

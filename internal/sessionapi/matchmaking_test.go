package sessionapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
)

// matchmaker makes a configuration for duels, whose players have to accept.
func (s *stage) matchmaker() (name string) {
	s.Helper()
	api, name := s.srv.GameLift(), "duel"
	queue, err := api.DescribeGameSessionQueues(s.Context(), &gamelift.DescribeGameSessionQueuesInput{Names: []string{s.fleet.NewQueue(60)}})
	if err != nil {
		s.Fatal(err)
	}
	_, err = api.CreateMatchmakingRuleSet(s.Context(), &gamelift.CreateMatchmakingRuleSetInput{Name: &name, RuleSetBody: aws.String(`{
		"name": "duel", "ruleLanguageVersion": "1.0", "playerAttributes": [{"name": "skill", "type": "number", "default": 10}],
		"teams": [{"name": "left", "minPlayers": 1, "maxPlayers": 1}, {"name": "right", "minPlayers": 1, "maxPlayers": 1}]}`)})
	if err != nil {
		s.Fatal(err)
	}
	_, err = api.CreateMatchmakingConfiguration(s.Context(), &gamelift.CreateMatchmakingConfigurationInput{
		Name: &name, RuleSetName: &name, AcceptanceRequired: aws.Bool(true), AcceptanceTimeoutSeconds: aws.Int32(30), RequestTimeoutSeconds: aws.Int32(120),
		GameSessionQueueArns: []string{*queue.GameSessionQueues[0].GameSessionQueueArn},
	})
	if err != nil {
		s.Fatal(err)
	}
	return name
}

func (s *stage) ticket(configuration, player string) (id string) {
	s.Helper()
	a := s.node("StartMatchmaking", fields{"configurationName": configuration, "ticketId": "t-" + player, "players": []fields{{
		"playerId": player, "latencyInMs": fields{s.fleet.Location: 20}, "playerAttributes": fields{"skill": `{"N":12}`},
	}}})
	if !strings.Contains(a.text, `"ticketId":"t-`+player) {
		s.Fatalf("got %s", a.text)
	}
	return "t-" + player
}

// From two tickets to a seat: each watcher gets each event once.
func TestMatchmaking(t *testing.T) {
	s := newStage(t)
	duel := s.matchmaker()
	server := s.fleet.StartGameServer()
	ann, bob := s.listen("ann", ""), s.listen("bob", "")
	annTicket, bobTicket := s.ticket(duel, "ann"), s.ticket(duel, "bob")
	s.node("StartPolling", fields{"ticketId": annTicket, "playerId": "ann"}, "X-Client-Id", "ann")
	s.node("StartPolling", fields{"ticketId": bobTicket, "playerId": "bob"}, "X-Client-Id", "bob")
	for who, events := range map[string]<-chan event{"ann": ann, "bob": bob} {
		if e := <-events; e.name != "OnMatchAcceptance" || !strings.Contains(e.text, `"status":"REQUIRES_ACCEPTANCE"`) {
			t.Errorf("%s hears %s %s", who, e.name, e.text)
		}
	}
	if a := s.call("GET", "tickets/"+annTicket, ""); a.Status != "REQUIRES_ACCEPTANCE" {
		t.Errorf("got %s", a.text)
	}
	s.node("AcceptMatch", fields{"ticketId": annTicket, "acceptMatch": true, "playerIds": []string{"ann"}})
	begun := s.node("AcceptMatch?async=1", fields{"ticketId": bobTicket, "acceptMatch": true, "playerIds": []string{"bob"}}, "X-Client-Id", "bob")
	server.GameSession()
	complete := <-ann
	if complete.name != "OnMatchComplete" || !strings.Contains(complete.text, `"ipAddress":"127.0.0.1"`) || !strings.Contains(complete.text, `"playerId":"ann","playerSessionId":"psess-`) {
		t.Errorf("ann hears %s %s", complete.name, complete.text)
	}
	if err := server.AcceptPlayer(complete.data.PlayerSessionID); err != nil {
		t.Error(err)
	}
	heard := map[string]int{}
	for range 2 {
		e := <-bob
		heard[e.name]++
		if e.name == "OnAcceptMatchAsyncComplete" && e.data.CallID != begun.CallID {
			t.Errorf("bob hears %s", e.text)
		}
	}
	if heard["OnAcceptMatchAsyncComplete"] != 1 || heard["OnMatchComplete"] != 1 {
		t.Errorf("bob hears %v", heard)
	}
	// A client that begins to watch late gets the end at once; a player who is not on the ticket has no seat.
	s.node("StartPolling", fields{"ticketId": annTicket, "playerId": "eve"}, "X-Client-Id", "ann")
	if e := <-ann; e.name != "OnMatchComplete" || e.data.PlayerSessionID != "" || e.data.PlayerID != "eve" {
		t.Errorf("hears %s %s", e.name, e.text)
	}
	s.fails("AcceptMatch", fields{"ticketId": annTicket, "acceptMatch": true, "playerIds": []string{"ann"}}, 400, "InvalidRequest", "")
	s.fails("StopMatchmaking", fields{"ticketId": annTicket}, 400, "InvalidRequest", "")
}

func TestMatchmakingComesToNothing(t *testing.T) {
	s := newStage(t)
	duel := s.matchmaker()
	events := s.listen("tool", "")
	watch := func(id string) {
		t.Helper()
		s.node("StartPolling", fields{"ticketId": id, "playerId": "p"}, "X-Client-Id", "tool")
	}
	failure := func(status string) {
		t.Helper()
		if e := <-events; e.name != "OnMatchFailure" || !strings.Contains(e.text, `"status":"`+status+`"`) {
			t.Errorf("hears %s %s, want %s", e.name, e.text, status)
		}
	}
	stopped := s.ticket(duel, "ann")
	watch(stopped)
	if a := s.try("StartPolling", fields{"ticketId": stopped, "playerId": "p"}, "X-Client-Id", "tool"); a.status != 409 || a.Error.Name != "AlreadyPolling" {
		t.Errorf("twice: got %s", a.text)
	}
	s.node("StopMatchmaking", fields{"ticketId": stopped})
	failure("CANCELLED")

	late := s.ticket(duel, "bob")
	watch(late)
	s.srv.Advance(2 * time.Minute)
	failure("TIMED_OUT")

	unheard := s.ticket(duel, "cid")
	watch(unheard)
	s.node("StopPolling", fields{"ticketId": unheard}, "X-Client-Id", "tool")
	s.node("StopPolling", fields{"ticketId": unheard}, "X-Client-Id", "tool") // does no harm
	for range 100 {                                                           // what was stopped is not in the way
		watch(unheard)
		s.node("StopPolling", fields{"ticketId": unheard}, "X-Client-Id", "tool")
	}
	s.fails("StopPolling", fields{"ticketId": unheard}, 400, "InvalidRequest", "X-Client-Id")
	if a := s.call("GET", "tickets/"+unheard, ""); a.Status != "QUEUED" && a.Status != "SEARCHING" {
		t.Errorf("to stop polling is not to stop matchmaking: %s", a.text)
	}

	s.fails("StartPolling", fields{"ticketId": unheard, "playerId": "p"}, 400, "InvalidRequest", "X-Client-Id")
	if a := s.try("StartPolling", fields{"ticketId": "none", "playerId": "p"}, "X-Client-Id", "tool"); a.status != 404 {
		t.Errorf("got %s", a.text)
	}
	if a := s.call("GET", "tickets/none", ""); a.status != 404 {
		t.Errorf("got %s", a.text)
	}
	player := []fields{{"playerId": "p"}}
	named := func(characters int) []fields {
		return []fields{{"playerId": "p", "playerAttributes": fields{"clan": fields{"S": strings.Repeat("é", characters)}}}}
	}
	if a := s.try("StartMatchmaking", fields{"configurationName": duel, "players": named(100)}); a.status != 200 {
		t.Errorf("a text of 100 characters: %s", a.text)
	}
	for _, c := range []struct {
		node   string
		in     fields
		status int
		field  string
	}{
		{"StartMatchmaking", fields{"players": player}, 400, "configurationName"},
		{"StartMatchmaking", fields{"configurationName": duel}, 400, "players"},
		{"StartMatchmaking", fields{"configurationName": duel, "players": []fields{{}}}, 400, "players[0].playerId"},
		{"StartMatchmaking", fields{"configurationName": duel, "ticketId": "a/b", "players": player}, 400, "ticketId"},
		{"StartMatchmaking", fields{"configurationName": duel, "players": []fields{{"playerId": "p", "latencyInMs": fields{"r": 0}}}}, 400, "players[0].latencyInMs.r"},
		{"StartMatchmaking", fields{"configurationName": duel, "players": []fields{{"playerId": "p", "playerAttributes": fields{"a": `{}`}}}}, 400, "players[0].playerAttributes.a"},
		{"StartMatchmaking", fields{"configurationName": duel, "players": []fields{{"playerId": "p", "playerAttributes": fields{"a": `{"S":"x","N":1}`}}}}, 400, "players[0].playerAttributes.a"},
		{"StartMatchmaking", fields{"configurationName": duel, "players": []fields{{"playerId": "p", "playerAttributes": fields{"a": 7}}}}, 400, "players[0].playerAttributes.a"},
		{"StartMatchmaking", fields{"configurationName": duel, "players": named(101)}, 400, "players[0].playerAttributes.clan"},
		{"StopMatchmaking", nil, 400, "ticketId"},
		{"AcceptMatch", fields{"acceptMatch": true, "playerIds": []string{"p"}}, 400, "ticketId"},
		{"AcceptMatch", fields{"ticketId": "t", "playerIds": []string{"p"}}, 400, "acceptMatch"},
		{"AcceptMatch", fields{"ticketId": "t", "acceptMatch": false}, 400, "playerIds"},
	} {
		s.fails(c.node, c.in, c.status, "InvalidRequest", c.field)
	}
	s.fails("StartMatchmaking", fields{"configurationName": "none", "players": player}, 404, "NotFound", "")
	s.fails("StopMatchmaking", fields{"ticketId": "none"}, 404, "NotFound", "")
	s.fails("AcceptMatch", fields{"ticketId": "none", "acceptMatch": true, "playerIds": []string{"p"}}, 404, "NotFound", "")
}

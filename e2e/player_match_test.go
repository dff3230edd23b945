package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
)

// The matchmaker proposes a match of a party of two and a single player. First one player declines, then one does not answer: the search of that
// player's party ends, and the others keep their place in the search. Then all accept, and play in one game.
func TestPlayersAnswerAMatch(t *testing.T) {
	t.Parallel()
	p := startFlow(t)
	p.queue("trio")
	p.matchOf("trio", "3")
	all := p.come("ann", "bob", "cyd")
	ann, bob, cyd := all[0], all[1], all[2]
	gather(ann, bob)
	entered := cyd.call("Matchmaking.EnterMatchmaking", object{"queue": "trio"}).text("ticket", "entered_at")

	found := func() (search map[string]string) {
		t.Helper()
		ann.call("Matchmaking.EnterMatchmaking", object{"queue": "trio"})
		search = map[string]string{}
		for _, player := range all {
			e := player.until("OnMatchFound")
			search[player.name] = e.text("data", "matchmaking_id")
			if e.at("data", "players_count") != 3.0 {
				t.Errorf("%s is told of %v", player.name, e)
			}
		}
		return search
	}
	answer := func(player *flowPlayer, search map[string]string, accept bool) {
		t.Helper()
		player.call("Matchmaking.AcceptMatch", object{"matchmaking_id": search[player.name], "accept": accept})
	}
	spoiled := func(reason string, search map[string]string) {
		t.Helper()
		for _, player := range []*flowPlayer{ann, bob} {
			e := player.hears("OnMatchmakingFailed", "reason", reason)
			if e.text("data", "by") != "bob" {
				t.Errorf("%s is told that %v spoiled it", player.name, e)
			}
			player.stands("IN_PARTY", "")
		}
		if e := cyd.until("OnMatchmakingResumed"); e.text("data", "ticket", "matchmaking_id") != search["cyd"] || e.text("data", "ticket", "entered_at") != entered {
			t.Errorf("who had accepted searches on with %v", e)
		}
	}

	search := found()
	answer(ann, search, true)
	answer(cyd, search, true)
	for o := (object{}); o.at("data", "accepted_count") != 2.0; {
		o = bob.until("OnMatchAcceptanceChanged")
	}
	answer(bob, search, false)
	spoiled("ACCEPT_DECLINED", search)

	search = found()
	answer(ann, search, true)
	answer(cyd, search, true)
	p.advance(61 * time.Second) // bob is in the kitchen
	spoiled("ACCEPT_TIMEOUT", search)

	server := p.ready(sdkOptions{})
	search = found()
	for _, player := range all {
		answer(player, search, true)
	}
	started := server.untilEvent("start", 1).Session
	server.must("activate")
	games := map[string]bool{}
	for _, player := range all {
		host := player.hears("OnHostConnectionDetailsReceived", "cause", "ALLOCATED")
		games[host.text("data", "game_instance_id")] = true
		server.must("accept", host.text("data", "player_session_id"))
		player.hears("OnGameMembershipChanged", "new", "ACTIVE")
	}
	if _, players := readMatchData(t, started.MatchmakerData); len(games) != 1 || !slices.Equal(players, []string{"all:ann", "all:bob", "all:cyd"}) {
		t.Errorf("games %v, the server was given %v", games, players)
	}
	if got := ann.snapshot().text("keys", "PARTY_ID"); got == "" {
		t.Error("the party is gone in the game")
	}
	p.noViolations(t)
}

// A running game requests more players over the server SDK. A player moves from the queue into that game; the other players
// are not affected.
func TestBackfillBringsAPlayerIntoTheGame(t *testing.T) {
	t.Parallel()
	p := startFlow(t)
	rules := `{"ruleLanguageVersion":"1.0","teams":[{"name":"red","minPlayers":1,"maxPlayers":2},{"name":"blue","minPlayers":1,"maxPlayers":2}]}`
	_, err := p.api().CreateMatchmakingRuleSet(t.Context(), &gamelift.CreateMatchmakingRuleSetInput{Name: aws.String("duos"), RuleSetBody: &rules})
	must(t, err)
	_, err = p.api().CreateMatchmakingConfiguration(t.Context(), &gamelift.CreateMatchmakingConfigurationInput{
		Name: aws.String("casual"), RuleSetName: aws.String("duos"), AcceptanceRequired: aws.Bool(false), RequestTimeoutSeconds: aws.Int32(600),
		GameSessionQueueArns: []string{"arn:aws:gamelift:us-east-1::gamesessionqueue/cup"},
	})
	must(t, err)
	all := p.come("ann", "bob", "cyd")
	ann, bob, cyd := all[0], all[1], all[2]
	server := p.ready(sdkOptions{})
	for _, player := range []*flowPlayer{ann, bob} {
		player.call("Matchmaking.EnterMatchmaking", object{"queue": "casual"})
	}
	started := server.untilEvent("start", 1).Session
	server.must("activate")
	for _, player := range []*flowPlayer{ann, bob} {
		server.must("accept", player.until("OnHostConnectionDetailsReceived").text("data", "player_session_id"))
		player.hears("OnGameMembershipChanged", "new", "ACTIVE")
	}
	before := ann.snapshot()

	data, players := readMatchData(t, started.MatchmakerData)
	server.must(append([]string{"backfill", data.ConfigurationARN, "more-1"}, players...)...)
	cyd.call("Matchmaking.EnterMatchmaking", object{"queue": "casual"})
	cyd.hears("OnAddedToGame", "game_instance_id", before.text("keys", "GAME_INSTANCE_ID"))
	server.must("accept", cyd.until("OnHostConnectionDetailsReceived").text("data", "player_session_id"))
	cyd.hears("OnGameMembershipChanged", "new", "ACTIVE")
	if _, now := readMatchData(t, server.untilEvent("update", 1).Update.GameSession.MatchmakerData); len(now) != 3 {
		t.Errorf("the server is told of %v", now)
	}
	after := ann.stands("IN_GAME", "ACTIVE")
	if before.at("rev") != after.at("rev") || after.at("game_instance", "members_count") != 3.0 {
		t.Errorf("who plays already: before %v, after %v", before, after)
	}
	p.noViolations(t)
}

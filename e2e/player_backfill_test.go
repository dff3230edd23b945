package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
)

// duels makes a matchmaking configuration for one against one, whose matches need no acceptance.
func (p *place) duels(name string) {
	p.t.Helper()
	rules := `{"ruleLanguageVersion":"1.0","teams":[{"name":"red","minPlayers":1,"maxPlayers":1},{"name":"blue","minPlayers":1,"maxPlayers":1}]}`
	_, err := p.api().CreateMatchmakingRuleSet(p.t.Context(), &gamelift.CreateMatchmakingRuleSetInput{Name: aws.String(name), RuleSetBody: &rules})
	must(p.t, err)
	_, err = p.api().CreateMatchmakingConfiguration(p.t.Context(), &gamelift.CreateMatchmakingConfigurationInput{
		Name: aws.String(name), RuleSetName: aws.String(name), AcceptanceRequired: aws.Bool(false), RequestTimeoutSeconds: aws.Int32(3600),
		GameSessionQueueArns: []string{"arn:aws:gamelift:us-east-1::gamesessionqueue/cup"},
	})
	must(p.t, err)
}

// The server of a duel loses a player and asks for another one, by the server SDK alone or by the partner API. While the seat is kept
// for a return, the search stays open and a newcomer waits; when the player is out, the newcomer comes into the running game.
func TestBackfillWaitsWhileASeatIsKept(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(p *place, server *sdkServer, instance, matchData string){
		"by the server SDK": func(p *place, server *sdkServer, _, matchData string) {
			data, players := readMatchData(p.t, matchData)
			for _, player := range players {
				if strings.HasSuffix(player, ":ann") {
					server.must("backfill", data.ConfigurationARN, "more-1", player)
				}
			}
		},
		"by the partner API": func(p *place, _ *sdkServer, instance, _ string) {
			p.partner(p.t, "Game.EnterMatchmaking", object{"game_instance_id": instance})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startFlow(t)
			p.duels("duel")
			all := p.come("ann", "bob", "cyd")
			ann, bob, cyd := all[0], all[1], all[2]
			server := p.ready(sdkOptions{})
			for _, player := range []*flowPlayer{ann, bob} {
				player.call("Matchmaking.EnterMatchmaking", object{"queue": "duel"})
			}
			started := server.untilEvent("start", 1).Session
			server.must("activate")
			seats := map[string]string{}
			for _, player := range []*flowPlayer{ann, bob} {
				seats[player.name] = player.until("OnHostConnectionDetailsReceived").text("data", "player_session_id")
				server.must("accept", seats[player.name])
				player.hears("OnGameMembershipChanged", "new", "ACTIVE")
			}
			instance := ann.snapshot().text("keys", "GAME_INSTANCE_ID")
			server.must("remove", seats["bob"])
			bob.until("OnReconnectAvailable")

			ask(p, server, instance, started.MatchmakerData)
			cyd.call("Matchmaking.EnterMatchmaking", object{"queue": "duel"})
			p.advance(2 * time.Minute) // with as many passes of the matchmaker as it takes
			if s := cyd.stands("MATCHMAKING", ""); s.text("ticket", "status") != "SEARCHING" {
				t.Errorf("while the seat is kept, the newcomer has %v", s.at("ticket"))
			}
			bob.stands("IN_GAME", "DISCONNECTED")
			p.advance(61 * time.Second)
			bob.hears("OnRemovedFromGame", "reason", "RECONNECT_EXPIRED")
			cyd.hears("OnAddedToGame", "game_instance_id", instance)
			server.must("accept", cyd.until("OnHostConnectionDetailsReceived").text("data", "player_session_id"))
			cyd.hears("OnGameMembershipChanged", "new", "ACTIVE")
			p.noViolations(t)
		})
	}
}

package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/waittest"
)

// settled are the statuses that do not change by themselves.
var settled = []types.MatchmakingConfigurationStatus{"REQUIRES_ACCEPTANCE", "COMPLETED", "CANCELLED", "TIMED_OUT", "FAILED"}

// untilSettled waits until these tickets no longer change.
func (s *service) untilSettled(ids ...string) []types.MatchmakingTicket {
	s.t.Helper()
	var tickets []types.MatchmakingTicket
	waittest.Until(s.t, "tickets "+strings.Join(ids, ", ")+" to settle", func() bool {
		out, err := s.api().DescribeMatchmaking(s.t.Context(), &gamelift.DescribeMatchmakingInput{TicketIds: ids})
		must(s.t, err)
		tickets = out.TicketList
		return len(tickets) == len(ids) && !slices.ContainsFunc(tickets, func(t types.MatchmakingTicket) bool { return !slices.Contains(settled, t.Status) })
	})
	return tickets
}

// TestGuideToMatchmaking runs the commands of docs/guide/matchmaking.md unchanged, and checks the page's statements about them.
func TestGuideToMatchmaking(t *testing.T) {
	t.Parallel()
	c := newCLI(startService(t, "--virtual-clock")) // so that the duration of commands does not matter
	g := &guide{cli: c, ids: map[string]string{}, answers: map[string]object{}}
	var described []object
	for _, command := range commandsOf(t, "../docs/guide/matchmaking.md") {
		command = strings.ReplaceAll(command, "file://examples", "file://../examples")
		describes := strings.HasPrefix(command, "gl describe-matchmaking ")
		if describes {
			_, ids, _ := strings.Cut(strings.Split(command, "#")[0], "--ticket-ids ")
			c.untilSettled(strings.Fields(ids)...)
		}
		g.do(command)
		if describes {
			described = append(described, g.answers["describe-matchmaking"])
		}
	}
	c.expect(g.answers["validate-matchmaking-rule-set"], map[string]any{"Valid": true})
	if len(described) != 5 {
		t.Fatalf("the page describes tickets %d times", len(described))
	}
	c.expect(described[0], map[string]any{"TicketList.Status": "REQUIRES_ACCEPTANCE"})
	c.expect(described[1], map[string]any{"TicketList.Status": "COMPLETED", "TicketList.GameSessionConnectionInfo.IpAddress": "127.0.0.1"})
	if n := described[1].count("TicketList", "GameSessionConnectionInfo", "MatchedPlayerSessions"); n != 2 {
		t.Errorf("%d players of the party have seats, want 2", n)
	}
	data := g.answers["describe-game-sessions"].text("MatchmakerData")
	for _, part := range []string{`"name":"red"`, `"name":"blue"`, `"playerId":"amy"`, `"attributeType":"DOUBLE","valueAttribute":20.0`} {
		if !strings.Contains(data, part) {
			t.Errorf("the match data does not say %s: %s", part, data)
		}
	}
	c.expect(described[3], map[string]any{"TicketList.Status": "COMPLETED", "TicketList.GameSessionConnectionInfo.GameSessionArn": g.ids["GAME"]})
	c.expect(described[4], map[string]any{"TicketList.Status": "CANCELLED", "TicketList.StatusMessage": "Cancelled by request."})
}

// matchData is the matchmaker data that a game server reads.
type matchData struct {
	MatchID          string `json:"matchId"`
	ConfigurationARN string `json:"matchmakingConfigurationArn"`
	Teams            []struct {
		Name    string
		Players []struct{ PlayerID string }
	}
}

func readMatchData(t *testing.T, text string) (d matchData, players []string) {
	t.Helper()
	must(t, json.Unmarshal([]byte(text), &d))
	for _, team := range d.Teams {
		for _, p := range team.Players {
			players = append(players, team.Name+":"+p.PlayerID)
		}
	}
	slices.Sort(players)
	return d, players
}

// The whole flow with the official server SDK: a match, its teams at the server, a backfill that the server requests, also
// across a crash of the service, and one that it cancels.
func TestMatchReachesTheGameServer(t *testing.T) {
	t.Parallel()
	s := startService(t)
	p := s.prepare()
	p.queue("arena")
	api := s.api()
	rules := `{"ruleLanguageVersion":"1.0","teams":[{"name":"red","minPlayers":1,"maxPlayers":2},{"name":"blue","minPlayers":1,"maxPlayers":2}]}`
	_, err := api.CreateMatchmakingRuleSet(t.Context(), &gamelift.CreateMatchmakingRuleSetInput{Name: aws.String("duos"), RuleSetBody: &rules})
	must(t, err)
	made, err := api.CreateMatchmakingConfiguration(t.Context(), &gamelift.CreateMatchmakingConfigurationInput{
		Name: aws.String("casual"), RuleSetName: aws.String("duos"), AcceptanceRequired: aws.Bool(false), RequestTimeoutSeconds: aws.Int32(600),
		GameSessionQueueArns: []string{"arn:aws:gamelift:us-east-1::gamesessionqueue/arena"}, GameSessionData: aws.String("level 3"),
	})
	must(t, err)
	search := func(id string, players ...string) {
		t.Helper()
		var wire []types.Player
		for _, player := range players {
			wire = append(wire, types.Player{PlayerId: &player})
		}
		_, err := s.api().StartMatchmaking(t.Context(), &gamelift.StartMatchmakingInput{ConfigurationName: made.Configuration.Name, TicketId: &id, Players: wire})
		must(t, err)
	}
	n := startNetwork(t, p.address)
	server := p.ready(sdkOptions{url: "ws://" + n.address})
	search("t1", "ann")
	search("t2", "bob")
	started := server.untilEvent("start", 1).Session
	server.must("activate")
	ticket := s.untilSettled("t1", "t2")[0]
	data, players := readMatchData(t, started.MatchmakerData)
	if ticket.Status != "COMPLETED" || *ticket.GameSessionConnectionInfo.GameSessionArn != started.GameSessionId || started.GameSessionData != "level 3" ||
		started.MaximumPlayerSessionCount != 4 || data.MatchID != started.Name || data.ConfigurationARN != *made.Configuration.ConfigurationArn || len(players) != 2 {
		t.Fatalf("ticket %+v, the server was given %+v", ticket, started)
	}
	server.must("accept", *ticket.GameSessionConnectionInfo.MatchedPlayerSessions[0].PlayerSessionId)

	backfill := append([]string{"backfill", data.ConfigurationARN, "more-1"}, players...)
	if got := server.must(backfill...).Value; got != "more-1" {
		t.Errorf("the backfill is %q", got)
	}
	release := n.hold()
	s.kill()
	s.start()
	release()
	search("t3", "cem")
	update := server.untilEvent("update", 1).Update
	_, now := readMatchData(t, update.GameSession.MatchmakerData)
	if update.UpdateReason != "MATCHMAKING_DATA_UPDATED" || update.BackfillTicketId != "more-1" || len(now) != 3 || update.GameSession.GameSessionId != started.GameSessionId {
		t.Errorf("after the backfill the server was told %+v", update)
	}
	if more := s.untilSettled("more-1", "t3"); more[0].Status != "COMPLETED" || *more[1].GameSessionConnectionInfo.GameSessionArn != started.GameSessionId {
		t.Errorf("after the backfill: %+v", more)
	}

	server.must(append([]string{"backfill", data.ConfigurationARN, ""}, now...)...)
	second := server.must(append([]string{"backfill", data.ConfigurationARN, "more-2"}, now...)...).Value
	server.must("stop-backfill", data.ConfigurationARN, second)
	update = server.untilEvent("update", 2).Update
	if update.UpdateReason != "BACKFILL_CANCELLED" || update.BackfillTicketId != "more-2" {
		t.Errorf("after the stop the server was told %+v", update)
	}
	if got := s.untilSettled("more-2")[0]; got.Status != "CANCELLED" {
		t.Errorf("after the stop: %+v", got)
	}
}

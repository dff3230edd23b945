package notify

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/notice"
)

// The details are the examples of the guide's event page, with the members in our order.
func TestMatchDocuments(t *testing.T) {
	start := domain.Time(1_772_389_230_900) // 2026-03-01T18:20:30.900Z
	ticket := func(id, player, team string) notice.MatchTicket {
		return notice.MatchTicket{No: 7, ID: id, Start: start, Players: []notice.MatchPlayer{{ID: player, Team: team}}}
	}
	both := []notice.MatchTicket{ticket("t-ann", "ann", "north"), ticket("t-bob", "bob", "south")}
	accepted := []notice.MatchTicket{ticket("t-ann", "ann", "north"), ticket("t-bob", "bob", "south")}
	accepted[0].Players[0].Answer = 1
	placed := []notice.MatchTicket{ticket("t-ann", "ann", "north")}
	placed[0].Players[0].Session = domain.PlayerSessionID{1}
	const match = "5b0f9d64-7f0c-4f2b-9a53-2d2a6f1f4c10"
	for _, tc := range []struct {
		event  notice.Match
		detail string
	}{
		{notice.Match{Type: "MatchmakingSearching", Tickets: []notice.MatchTicket{ticket("t-ann", "ann", "")}, WaitKnown: true, EstimatedWait: 12},
			`{"tickets":[{"ticketId":"t-ann","startTime":"2026-03-01T18:20:30.900Z","players":[{"playerId":"ann"}]}],"estimatedWaitMillis":12,` +
				`"type":"MatchmakingSearching","gameSessionInfo":{"players":[{"playerId":"ann"}]}}`},
		{notice.Match{Type: "MatchmakingSearching", Tickets: []notice.MatchTicket{ticket("t-ann", "ann", "")}},
			`{"tickets":[{"ticketId":"t-ann","startTime":"2026-03-01T18:20:30.900Z","players":[{"playerId":"ann"}]}],"estimatedWaitMillis":"NOT_AVAILABLE",` +
				`"type":"MatchmakingSearching","gameSessionInfo":{"players":[{"playerId":"ann"}]}}`},
		{notice.Match{Type: "PotentialMatchCreated", ID: match, Tickets: both, AcceptanceRequired: true, AcceptanceTimeout: 20,
			Rules: []notice.MatchRule{{Name: "Near", Passed: 4, Failed: 1}}},
			`{"tickets":[{"ticketId":"t-ann","startTime":"2026-03-01T18:20:30.900Z","players":[{"playerId":"ann","team":"north"}]},` +
				`{"ticketId":"t-bob","startTime":"2026-03-01T18:20:30.900Z","players":[{"playerId":"bob","team":"south"}]}],` +
				`"acceptanceTimeout":20,"acceptanceRequired":true,"ruleEvaluationMetrics":[{"ruleName":"Near","passedCount":4,"failedCount":1}],` +
				`"type":"PotentialMatchCreated","gameSessionInfo":{"players":[{"playerId":"ann","team":"north"},{"playerId":"bob","team":"south"}]},"matchId":"` + match + `"}`},
		{notice.Match{Type: "AcceptMatch", ID: match, Tickets: accepted[:1]},
			`{"tickets":[{"ticketId":"t-ann","startTime":"2026-03-01T18:20:30.900Z","players":[{"playerId":"ann","team":"north","accepted":true}]}],` +
				`"type":"AcceptMatch","gameSessionInfo":{"players":[{"playerId":"ann","team":"north","accepted":true}]},"matchId":"` + match + `"}`},
		{notice.Match{Type: "AcceptMatchCompleted", ID: match, Tickets: both[:1], Acceptance: "Accepted"},
			`{"tickets":[{"ticketId":"t-ann","startTime":"2026-03-01T18:20:30.900Z","players":[{"playerId":"ann","team":"north"}]}],` +
				`"acceptance":"Accepted","type":"AcceptMatchCompleted","gameSessionInfo":{"players":[{"playerId":"ann","team":"north"}]},"matchId":"` + match + `"}`},
		{notice.Match{Type: "MatchmakingSucceeded", ID: match, Tickets: placed, Game: "arn:aws:gamelift:eu-central-1::gamesession/f/l/g",
			IPAddress: "192.0.2.10", DNSName: "gs1.example.net", Port: 7777, Compute: "host-7", Location: "custom-berlin-1"},
			`{"tickets":[{"ticketId":"t-ann","startTime":"2026-03-01T18:20:30.900Z","players":[{"playerId":"ann","playerSessionId":"psess-01000000-0000-0000-0000-000000000000","team":"north"}]}],` +
				`"type":"MatchmakingSucceeded","gameSessionInfo":{"gameSessionArn":"arn:aws:gamelift:eu-central-1::gamesession/f/l/g","ipAddress":"192.0.2.10",` +
				`"dnsName":"gs1.example.net","port":7777,"playerGatewayStatus":"DISABLED","computeName":"host-7","gameSessionLocation":"custom-berlin-1",` +
				`"players":[{"playerId":"ann","playerSessionId":"psess-01000000-0000-0000-0000-000000000000","team":"north"}]},"matchId":"` + match + `"}`},
		{notice.Match{Type: "MatchmakingTimedOut", Reason: "TimedOut", Message: "Removed from matchmaking due to timing out.",
			Tickets: []notice.MatchTicket{ticket("t-cyd", "cyd", "")}, Rules: []notice.MatchRule{{Name: "Near"}}},
			`{"reason":"TimedOut","tickets":[{"ticketId":"t-cyd","startTime":"2026-03-01T18:20:30.900Z","players":[{"playerId":"cyd"}]}],` +
				`"ruleEvaluationMetrics":[{"ruleName":"Near","passedCount":0,"failedCount":41}],"type":"MatchmakingTimedOut",` +
				`"message":"Removed from matchmaking due to timing out.","gameSessionInfo":{"players":[{"playerId":"cyd"}]}}`},
	} {
		n := notice.Notice{ID: domain.UUID{9}, At: start, Match: &tc.event}
		tc.event.Configuration, tc.event.Region, tc.event.Account = "duo-ranked", "eu-central-1", "123456789012"
		counts := func(configuration string, ticket uint64) []notice.MatchRule {
			if configuration != "duo-ranked" || ticket != 7 {
				t.Errorf("asked for the counts of ticket %d of %s", ticket, configuration)
			}
			return []notice.MatchRule{{Failed: 41}}
		}
		got := string(matchDocumentOf(&n, counts))
		want := `{"version":"0","id":"09000000-0000-0000-0000-000000000000","detail-type":"GameLift Matchmaking Event","source":"aws.gamelift",` +
			`"account":"123456789012","time":"2026-03-01T18:20:30.900Z","region":"eu-central-1",` +
			`"resources":["arn:aws:gamelift:eu-central-1:123456789012:matchmakingconfiguration/duo-ranked"],"detail":` + tc.detail + "}"
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", tc.event.Type, got, want)
		}
	}
	n := notice.Notice{Match: &notice.Match{Type: "AcceptMatch"}, CustomEventData: "season-9"}
	if got := string(matchDocumentOf(&n, nil)); !strings.Contains(got, `"customEventData":"season-9"`) {
		t.Errorf("without the custom event data: %s", got)
	}
}

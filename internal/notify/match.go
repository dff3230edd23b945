package notify

import (
	"github.com/musterhq/muster/internal/domain/notice"
)

// matchDetail is the detail of a matchmaking event. Its members are in the order of the documentation's table.
type matchDetail struct {
	Reason                string        `json:"reason,omitempty"`
	Tickets               []matchTicket `json:"tickets"`
	CustomEventData       string        `json:"customEventData,omitempty"`
	EstimatedWaitMillis   any           `json:"estimatedWaitMillis,omitempty"` // seconds, or a text
	AcceptanceTimeout     int32         `json:"acceptanceTimeout,omitempty"`
	AcceptanceRequired    *bool         `json:"acceptanceRequired,omitempty"`
	Acceptance            string        `json:"acceptance,omitempty"`
	RuleEvaluationMetrics *[]matchRule  `json:"ruleEvaluationMetrics,omitempty"`
	Type                  string        `json:"type"`
	Message               string        `json:"message,omitempty"`
	GameSessionInfo       matchGame     `json:"gameSessionInfo"`
	MatchID               string        `json:"matchId,omitempty"`
}

type matchTicket struct {
	TicketID  string        `json:"ticketId"`
	StartTime string        `json:"startTime"`
	Players   []matchPlayer `json:"players"`
}

type matchPlayer struct {
	PlayerID        string `json:"playerId"`
	PlayerSessionID string `json:"playerSessionId,omitempty"`
	Team            string `json:"team,omitempty"`
	Accepted        *bool  `json:"accepted,omitempty"`
}

type matchRule struct {
	RuleName    string `json:"ruleName"`
	PassedCount uint64 `json:"passedCount"`
	FailedCount uint64 `json:"failedCount"`
}

type matchGame struct {
	GameSessionARN      string        `json:"gameSessionArn,omitempty"`
	IPAddress           string        `json:"ipAddress,omitempty"`
	DNSName             string        `json:"dnsName,omitempty"`
	Port                uint16        `json:"port,omitempty"` // a number here, unlike in placement events
	PlayerGatewayStatus string        `json:"playerGatewayStatus,omitempty"`
	ComputeName         string        `json:"computeName,omitempty"`
	GameSessionLocation string        `json:"gameSessionLocation,omitempty"`
	Players             []matchPlayer `json:"players"`
}

// Counts returns how often each rule was evaluated with a ticket that has just ended, by the position of the rule; nil if that
// is not known.
type Counts func(configuration string, ticket uint64) []notice.MatchRule

// matchDocumentOf encodes a matchmaking event. Source: docs/spec/flexmatch.md#events.
func matchDocumentOf(n *notice.Notice, counts Counts) []byte {
	m := n.Match
	d := document[matchDetail]{
		Version: "0", ID: n.ID.String(), DetailType: "GameLift Matchmaking Event", Source: "aws.gamelift",
		Account: m.Account, Time: milliseconds(n.At), Region: m.Region,
		Resources: []string{"arn:aws:gamelift:" + m.Region + ":" + m.Account + ":matchmakingconfiguration/" + m.Configuration},
		Detail: matchDetail{
			Type: m.Type, Reason: m.Reason, Message: m.Message, MatchID: m.ID, Acceptance: m.Acceptance,
			AcceptanceTimeout: m.AcceptanceTimeout, CustomEventData: n.CustomEventData, Tickets: []matchTicket{},
		},
	}
	x := &d.Detail
	x.GameSessionInfo = matchGame{
		GameSessionARN: m.Game, IPAddress: m.IPAddress, DNSName: m.DNSName, Port: m.Port, ComputeName: m.Compute,
		GameSessionLocation: m.Location, Players: []matchPlayer{},
	}
	if m.Game != "" {
		x.GameSessionInfo.PlayerGatewayStatus = "DISABLED"
	}
	for _, t := range m.Tickets {
		ticket := matchTicket{TicketID: t.ID, StartTime: milliseconds(t.Start), Players: []matchPlayer{}}
		for _, p := range t.Players {
			player := matchPlayer{PlayerID: p.ID, Team: p.Team}
			if p.Answer != 0 {
				player.Accepted = new(p.Answer == 1)
			}
			if !p.Session.IsZero() {
				player.PlayerSessionID = p.Session.String()
			}
			ticket.Players = append(ticket.Players, player)
			x.GameSessionInfo.Players = append(x.GameSessionInfo.Players, player)
		}
		x.Tickets = append(x.Tickets, ticket)
	}
	switch m.Type {
	case "MatchmakingSearching":
		x.EstimatedWaitMillis = "NOT_AVAILABLE"
		if m.WaitKnown {
			x.EstimatedWaitMillis = m.EstimatedWait
		}
	case "PotentialMatchCreated":
		x.AcceptanceRequired = &m.AcceptanceRequired
		x.RuleEvaluationMetrics = metrics(m.Rules)
	case "MatchmakingTimedOut", "MatchmakingCancelled", "MatchmakingFailed":
		x.RuleEvaluationMetrics = metrics(counted(m, counts))
	}
	return encode(d)
}

// counted returns the rules of an event of one ticket, with the counts of its matcher, which are not in the state.
func counted(m *notice.Match, counts Counts) []notice.MatchRule {
	if counts == nil || m.ID != "" || len(m.Tickets) != 1 {
		return m.Rules
	}
	rules := append([]notice.MatchRule(nil), m.Rules...)
	for i, n := range counts(m.Configuration, m.Tickets[0].No) {
		if i < len(rules) {
			rules[i].Passed, rules[i].Failed = n.Passed, n.Failed
		}
	}
	return rules
}

func metrics(rules []notice.MatchRule) *[]matchRule {
	told := make([]matchRule, len(rules))
	for i, r := range rules {
		told[i] = matchRule{r.Name, r.Passed, r.Failed}
	}
	return &told
}

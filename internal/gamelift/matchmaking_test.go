package gamelift

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/waittest"
)

const skillRules = `{"ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number"},{"name":"mode","type":"string"},
{"name":"maps","type":"string_list"},{"name":"taste","type":"string_number_map"}],"teams":[{"name":"red","minPlayers":1,"maxPlayers":2}]}`

// matchmaker makes a rule set and a configuration without a queue.
func (h *hall) matchmaker() {
	h.Helper()
	ctx := h.Context()
	must(h.sdk.CreateMatchmakingRuleSet(ctx, &gamelift.CreateMatchmakingRuleSetInput{Name: aws.String("rules"), RuleSetBody: aws.String(skillRules)}))(h.T)
	must(h.sdk.CreateMatchmakingConfiguration(ctx, &gamelift.CreateMatchmakingConfigurationInput{
		Name: aws.String("ranked"), RuleSetName: aws.String("rules"), FlexMatchMode: types.FlexMatchModeStandalone,
		AcceptanceRequired: aws.Bool(false), RequestTimeoutSeconds: aws.Int32(60),
	}))(h.T)
}

func TestTicketComesBackAsItWasSent(t *testing.T) {
	h := newHall(t, time.Second)
	h.matchmaker()
	ctx := t.Context()
	player := types.Player{
		PlayerId: aws.String("ann"), LatencyInMs: map[string]int32{"eu-central-1": 20, "us-east-1": 100}, Team: aws.String("ignored"),
		PlayerAttributes: map[string]types.AttributeValue{
			"skill": {N: aws.Float64(12.5)}, "mode": {S: aws.String("siege")}, "maps": {SL: []string{"b", "a", "b"}}, "taste": {SDM: map[string]float64{"x": 1, "y": -2}},
			"undeclared": {S: aws.String("kept")},
		},
	}
	started := must(h.sdk.StartMatchmaking(ctx, &gamelift.StartMatchmakingInput{ConfigurationName: aws.String("ranked"), Players: []types.Player{player}}))(t)
	id := started.MatchmakingTicket.TicketId
	if started.MatchmakingTicket.Status != types.MatchmakingConfigurationStatusQueued || len(*id) != 36 || started.MatchmakingTicket.EstimatedWaitTime != nil {
		t.Errorf("started: %+v", started.MatchmakingTicket)
	}
	got := must(h.sdk.DescribeMatchmaking(ctx, &gamelift.DescribeMatchmakingInput{TicketIds: []string{*id, "nobodys", *id}}))(t).TicketList
	if len(got) != 1 {
		t.Fatalf("%d tickets", len(got))
	}
	p := got[0].Players[0]
	if p.Team != nil || fmt.Sprint(p.LatencyInMs) != fmt.Sprint(player.LatencyInMs) || *p.PlayerAttributes["skill"].N != 12.5 || *p.PlayerAttributes["mode"].S != "siege" ||
		strings.Join(p.PlayerAttributes["maps"].SL, ",") != "b,a" || p.PlayerAttributes["taste"].SDM["y"] != -2 || *p.PlayerAttributes["undeclared"].S != "kept" {
		t.Errorf("got %+v, want what was sent", p)
	}
	if got[0].StatusReason != nil || got[0].EndTime != nil || got[0].GameSessionConnectionInfo != nil || !strings.HasSuffix(*got[0].ConfigurationArn, ":matchmakingconfiguration/ranked") {
		t.Errorf("got %+v", got[0])
	}
}

func TestTicketsThatCannotBe(t *testing.T) {
	h := newHall(t, time.Second)
	h.matchmaker()
	ctx := t.Context()
	many := map[string]types.AttributeValue{}
	for i := range 11 {
		many[fmt.Sprint("a", i)] = types.AttributeValue{N: aws.Float64(1)}
	}
	for name, players := range map[string][]types.Player{
		"PlayerId: required":                    {{}},
		"PlayerAttributes[mode]":                {{PlayerId: aws.String("p"), PlayerAttributes: map[string]types.AttributeValue{"mode": {}}}},
		"exactly one of S, N, SL and SDM":       {{PlayerId: aws.String("p"), PlayerAttributes: map[string]types.AttributeValue{"mode": {S: aws.String("x"), N: aws.Float64(1)}}}},
		"11 attributes":                         {{PlayerId: aws.String("p"), PlayerAttributes: many}},
		"\"skill\": got a string":               {{PlayerId: aws.String("p"), PlayerAttributes: map[string]types.AttributeValue{"skill": {S: aws.String("1")}}}},
		"Players[1].PlayerId: p is named twice": {{PlayerId: aws.String("p")}, {PlayerId: aws.String("p")}},
		"0 players; want 1 to 10":               {},
		"11 players; want 1 to 10":              make([]types.Player, 11),
	} {
		if len(players) == 11 {
			for i := range players {
				players[i].PlayerId = aws.String(fmt.Sprint("p", i))
			}
		}
		_, err := h.sdk.StartMatchmaking(ctx, &gamelift.StartMatchmakingInput{ConfigurationName: aws.String("ranked"), Players: players})
		if err == nil || !strings.Contains(err.Error(), "InvalidRequestException") || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want one that says %q", err, name)
		}
	}
}

func TestEndedTicketIsStillThere(t *testing.T) {
	h := newHall(t, time.Second)
	h.matchmaker()
	ctx := t.Context()
	start := func() error {
		_, err := h.sdk.StartMatchmaking(ctx, &gamelift.StartMatchmakingInput{
			ConfigurationName: aws.String("ranked"), TicketId: aws.String("t1"), Players: []types.Player{{PlayerId: aws.String("ann")}},
		})
		return err
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	must(h.sdk.StopMatchmaking(ctx, &gamelift.StopMatchmakingInput{TicketId: aws.String("t1")}))(t)
	h.later(time.Minute) // it leaves memory
	waittest.Until(h, "the ticket leaves memory", func() bool {
		there := true
		err := h.engine.Read(ctx, func(v *cell.View) error { _, there = v.Ticket("t1"); return nil })
		return err == nil && !there
	})
	got := must(h.sdk.DescribeMatchmaking(ctx, &gamelift.DescribeMatchmakingInput{TicketIds: []string{"t1"}}))(t).TicketList
	if len(got) != 1 || got[0].Status != types.MatchmakingConfigurationStatusCancelled || *got[0].StatusMessage != "Cancelled by request." || got[0].EndTime == nil {
		t.Errorf("got %+v", got)
	}
	if err := start(); err == nil || !strings.Contains(err.Error(), "t1 was used before") {
		t.Errorf("the id again: %v", err)
	}
	_, err := h.sdk.StopMatchmaking(ctx, &gamelift.StopMatchmakingInput{TicketId: aws.String("t1")})
	if err == nil || !strings.Contains(err.Error(), "is in CANCELLED status and cannot be canceled") {
		t.Errorf("stopped again: %v", err)
	}
	_, err = h.sdk.AcceptMatch(ctx, &gamelift.AcceptMatchInput{TicketId: aws.String("t1"), PlayerIds: []string{"ann"}, AcceptanceType: types.AcceptanceTypeAccept})
	if err == nil || !strings.Contains(err.Error(), "is in CANCELLED status") {
		t.Errorf("accepted: %v", err)
	}
}

func TestConfigurationsThatCannotBe(t *testing.T) {
	h := newHall(t, time.Second)
	h.matchmaker()
	for want, change := range map[string]func(*gamelift.CreateMatchmakingConfigurationInput){
		"NotFoundException": func(in *gamelift.CreateMatchmakingConfigurationInput) { in.RuleSetName = aws.String("none") },
		"GameSessionQueueArns: not allowed": func(in *gamelift.CreateMatchmakingConfigurationInput) {
			in.GameSessionQueueArns = []string{"arn:aws:gamelift:us-east-1::gamesessionqueue/q"}
		},
		"GameSessionQueueArns: required":     func(in *gamelift.CreateMatchmakingConfigurationInput) { in.FlexMatchMode = "" },
		"AcceptanceTimeoutSeconds: required": func(in *gamelift.CreateMatchmakingConfigurationInput) { in.AcceptanceRequired = aws.Bool(true) },
		"BackfillMode: AUTOMATIC":            func(in *gamelift.CreateMatchmakingConfigurationInput) { in.BackfillMode = types.BackfillModeAutomatic },
		"muster:on-placement-timeout": func(in *gamelift.CreateMatchmakingConfigurationInput) {
			in.Tags = []types.Tag{{Key: aws.String("muster:on-placement-timeout"), Value: aws.String("maybe")}}
		},
		"RequestTimeoutSeconds":                   func(in *gamelift.CreateMatchmakingConfigurationInput) { in.RequestTimeoutSeconds = aws.Int32(43_201) },
		"matchmaking configuration ranked exists": func(in *gamelift.CreateMatchmakingConfigurationInput) { in.Name = aws.String("ranked") },
	} {
		in := &gamelift.CreateMatchmakingConfigurationInput{
			Name: aws.String("other"), RuleSetName: aws.String("rules"), FlexMatchMode: types.FlexMatchModeStandalone,
			AcceptanceRequired: aws.Bool(false), RequestTimeoutSeconds: aws.Int32(60),
		}
		change(in)
		if _, err := h.sdk.CreateMatchmakingConfiguration(t.Context(), in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want one that says %q", err, want)
		}
	}
	_, err := h.sdk.ValidateMatchmakingRuleSet(t.Context(), &gamelift.ValidateMatchmakingRuleSetInput{RuleSetBody: aws.String(`{"teams":[{"name":"a"}]}`)})
	for _, part := range []string{"InvalidRequestException", "ruleLanguageVersion", "minPlayers", "maxPlayers"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want one that names %s", err, part)
		}
	}
}

package gamelift

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

func simple(fleetID string) *types.RoutingStrategy {
	return &types.RoutingStrategy{Type: types.RoutingStrategyTypeSimple, FleetId: &fleetID}
}

func TestAliasMovesFromFleetToFleet(t *testing.T) {
	h := newHall(t, time.Hour)
	ctx := t.Context()
	first := h.anywhere()
	second := *must(h.sdk.CreateFleet(ctx, &gamelift.CreateFleetInput{
		Name: aws.String("next"), ComputeType: types.ComputeTypeAnywhere, Locations: []types.LocationConfiguration{{Location: aws.String("custom-home")}},
	}))(t).FleetAttributes.FleetId
	alias := must(h.sdk.CreateAlias(ctx, &gamelift.CreateAliasInput{
		Name: aws.String("live"), Description: aws.String("in service"), RoutingStrategy: simple(first),
		Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("blue")}},
	}))(t).Alias
	if *alias.RoutingStrategy.FleetId != first || *alias.Description != "in service" || alias.CreationTime.IsZero() {
		t.Errorf("got %s", rewritten(t, alias))
	}
	h.serverReady(first, "p1")
	game := must(h.sdk.CreateGameSession(ctx, &gamelift.CreateGameSessionInput{
		AliasId: alias.AliasArn, Location: aws.String("custom-home"), MaximumPlayerSessionCount: aws.Int32(2),
	}))(t).GameSession
	if *game.FleetId != first {
		t.Errorf("the game session is in %s, want %s", *game.FleetId, first)
	}
	if got := must(h.sdk.DescribeGameSessions(ctx, &gamelift.DescribeGameSessionsInput{AliasId: alias.AliasId}))(t); len(got.GameSessions) != 1 {
		t.Errorf("DescribeGameSessions by alias: %d game sessions, want 1", len(got.GameSessions))
	}
	must(h.sdk.UpdateAlias(ctx, &gamelift.UpdateAliasInput{AliasId: alias.AliasId, RoutingStrategy: simple(second)}))(t)
	if got := must(h.sdk.ResolveAlias(ctx, &gamelift.ResolveAliasInput{AliasId: alias.AliasId}))(t); *got.FleetId != second || *got.FleetArn == "" {
		t.Errorf("ResolveAlias: got %s, want %s", *got.FleetId, second)
	}
	_, err := h.sdk.CreateGameSession(ctx, &gamelift.CreateGameSessionInput{
		AliasId: alias.AliasId, Location: aws.String("custom-home"), MaximumPlayerSessionCount: aws.Int32(2),
	})
	refused(t, err, "FleetCapacityExceededException") // the other fleet has no server yet
	if got := must(h.sdk.DescribeAlias(ctx, &gamelift.DescribeAliasInput{AliasId: alias.AliasArn}))(t).Alias; *got.Name != "live" || *got.RoutingStrategy.FleetId != second {
		t.Errorf("DescribeAlias: got %s", rewritten(t, got))
	}
	if got := must(h.sdk.ListTagsForResource(ctx, &gamelift.ListTagsForResourceInput{ResourceARN: alias.AliasArn}))(t); len(got.Tags) != 1 || *got.Tags[0].Value != "blue" {
		t.Errorf("tags of the alias: %s", rewritten(t, got.Tags))
	}
	must(h.sdk.DeleteAlias(ctx, &gamelift.DeleteAliasInput{AliasId: alias.AliasId}))(t)
	_, err = h.sdk.ResolveAlias(ctx, &gamelift.ResolveAliasInput{AliasId: alias.AliasId})
	refused(t, err, "NotFoundException")
}

func TestTerminalAliasSaysItsMessageAndNothingElse(t *testing.T) {
	h := newHall(t, time.Hour)
	const message = "This season is over. See you on the 1st!"
	alias := must(h.sdk.CreateAlias(t.Context(), &gamelift.CreateAliasInput{
		Name: aws.String("old"), RoutingStrategy: &types.RoutingStrategy{Type: types.RoutingStrategyTypeTerminal, Message: aws.String(message)},
	}))(t).Alias
	calls := map[string]func() error{
		"ResolveAlias": func() error {
			_, err := h.sdk.ResolveAlias(t.Context(), &gamelift.ResolveAliasInput{AliasId: alias.AliasId})
			return err
		},
		"CreateGameSession": func() error {
			_, err := h.sdk.CreateGameSession(t.Context(), &gamelift.CreateGameSessionInput{AliasId: alias.AliasId, MaximumPlayerSessionCount: aws.Int32(2)})
			return err
		},
		"DescribeGameSessions": func() error {
			_, err := h.sdk.DescribeGameSessions(t.Context(), &gamelift.DescribeGameSessionsInput{AliasId: alias.AliasId})
			return err
		},
		"DescribeGameSessionDetails": func() error {
			_, err := h.sdk.DescribeGameSessionDetails(t.Context(), &gamelift.DescribeGameSessionDetailsInput{AliasId: alias.AliasId})
			return err
		},
	}
	for name, call := range calls {
		err := call()
		if e, ok := errors.AsType[*types.TerminalRoutingStrategyException](err); !ok || e.ErrorMessage() != message {
			t.Errorf("%s: got %v, want TerminalRoutingStrategyException with the message", name, err)
		}
	}
}

func TestAliasesThatCannotBe(t *testing.T) {
	h := newHall(t, time.Hour)
	for name, strategy := range map[string]*types.RoutingStrategy{
		"no type":         {FleetId: aws.String("fleet-1")},
		"no fleet":        {Type: types.RoutingStrategyTypeSimple},
		"no message":      {Type: types.RoutingStrategyTypeTerminal},
		"unknown fleet":   simple("fleet-2b1e0c7a-6a0e-4c0e-8a57-0d9a4d1b7f10"),
		"both":            {Type: types.RoutingStrategyTypeTerminal, FleetId: aws.String("fleet-1"), Message: aws.String("bye")},
		"simple, message": {Type: types.RoutingStrategyTypeSimple, FleetId: aws.String("fleet-1"), Message: aws.String("bye")},
	} {
		_, err := h.sdk.CreateAlias(t.Context(), &gamelift.CreateAliasInput{Name: aws.String(name), RoutingStrategy: strategy})
		refused(t, err, codeInvalidRequest)
	}
	const none = "alias-2b1e0c7a-6a0e-4c0e-8a57-0d9a4d1b7f10"
	_, err := h.sdk.DescribeAlias(t.Context(), &gamelift.DescribeAliasInput{AliasId: aws.String(none)})
	refused(t, err, "NotFoundException")
	_, err = h.sdk.UpdateAlias(t.Context(), &gamelift.UpdateAliasInput{AliasId: aws.String(none)})
	refused(t, err, "NotFoundException")
	_, err = h.sdk.DeleteAlias(t.Context(), &gamelift.DeleteAliasInput{AliasId: aws.String(none)})
	refused(t, err, "NotFoundException")
	_, err = h.sdk.CreateGameSession(t.Context(), &gamelift.CreateGameSessionInput{AliasId: aws.String(none), MaximumPlayerSessionCount: aws.Int32(2)})
	refused(t, err, "NotFoundException")
}

func TestAliasesAreListedByNameAndKind(t *testing.T) {
	h := newHall(t, time.Hour)
	fleetID := h.anywhere()
	for _, name := range []string{"a", "b", "a", "c"} {
		must(h.sdk.CreateAlias(t.Context(), &gamelift.CreateAliasInput{Name: &name, RoutingStrategy: simple(fleetID)}))(t)
	}
	must(h.sdk.CreateAlias(t.Context(), &gamelift.CreateAliasInput{
		Name: aws.String("a"), RoutingStrategy: &types.RoutingStrategy{Type: types.RoutingStrategyTypeTerminal, Message: aws.String("bye")},
	}))(t)
	for _, each := range []struct {
		in   gamelift.ListAliasesInput
		want int
	}{
		{gamelift.ListAliasesInput{Limit: aws.Int32(2)}, 5},
		{gamelift.ListAliasesInput{Name: aws.String("a"), Limit: aws.Int32(1)}, 3},
		{gamelift.ListAliasesInput{RoutingStrategyType: types.RoutingStrategyTypeTerminal}, 1},
		{gamelift.ListAliasesInput{Name: aws.String("d")}, 0},
	} {
		seen := map[string]bool{}
		for pages := gamelift.NewListAliasesPaginator(h.sdk, &each.in); pages.HasMorePages(); {
			for _, a := range must(pages.NextPage(t.Context()))(t).Aliases {
				seen[*a.AliasId] = true
			}
		}
		if len(seen) != each.want {
			t.Errorf("%s: %d aliases, want %d", rewritten(t, each.in), len(seen), each.want)
		}
	}
}

// While a rollout shares an alias out, AWS clients see one of the type SIMPLE, and a request with an IdempotencyToken gets the game session of the first one, also when that has
// ended in the other fleet. What would disturb the rollout is refused with an error that each operation declares.
func TestRolloutForClients(t *testing.T) {
	h := newHall(t, time.Millisecond)
	ctx := t.Context()
	before := h.anywhere()
	after := h.fleetIn("custom-home")
	must(h.sdk.RegisterCompute(ctx, &gamelift.RegisterComputeInput{
		FleetId: &after, ComputeName: aws.String("DesktopPC"), IpAddress: aws.String("127.0.0.1"), Location: aws.String("custom-home"),
	}))(t)
	alias := *must(h.sdk.CreateAlias(ctx, &gamelift.CreateAliasInput{Name: aws.String("live"), RoutingStrategy: simple(before)}))(t).Alias.AliasId
	servers := map[string]fleet.Key{}
	for _, id := range []string{before, after} {
		servers[id] = h.serverReady(id, "p1")
		h.serverReady(id, "p2")
	}
	h.serverReady(before, "p3")
	create := func(token string) *types.GameSession {
		t.Helper()
		return must(h.sdk.CreateGameSession(ctx, &gamelift.CreateGameSessionInput{
			AliasId: &alias, Location: aws.String("custom-home"), MaximumPlayerSessionCount: aws.Int32(2), IdempotencyToken: &token,
		}))(t).GameSession
	}
	h.do(&hosting.StartRollout{Alias: "live", To: after, Weights: []int32{50, 100}, StepTime: time.Hour, Failures: 3, FailurePercent: 20})
	first, second := create("first-token"), create("second-token")
	if *first.FleetId != after || *second.FleetId != before {
		t.Fatalf("the first is in %s, the second in %s", *first.FleetId, *second.FleetId)
	}
	create("third-token") // takes the last server process of the new fleet
	if fourth, fifth := create("fourth-token"), create("fifth-token"); *fourth.FleetId != before || *fifth.FleetId != before {
		t.Errorf("while the new fleet is full, requests go to %s and %s", *fourth.FleetId, *fifth.FleetId)
	}
	if got := must(h.sdk.ResolveAlias(ctx, &gamelift.ResolveAliasInput{AliasId: &alias}))(t); *got.FleetId != before {
		t.Errorf("ResolveAlias: got %s", *got.FleetId)
	}
	for _, game := range []*types.GameSession{first, second} {
		h.do(&hosting.EndProcess{Process: servers[*game.FleetId], Request: 99})
		h.archived(*game.GameSessionId)
	}
	for token, game := range map[string]*types.GameSession{"first-token": first, "second-token": second} {
		if again := create(token); *again.GameSessionId != *game.GameSessionId || again.Status != types.GameSessionStatusTerminated {
			t.Errorf("a repeat got %s %s, want %s", *again.GameSessionId, again.Status, *game.GameSessionId)
		}
	}
	_, err := h.sdk.UpdateAlias(ctx, &gamelift.UpdateAliasInput{AliasId: &alias, RoutingStrategy: simple(after)})
	refused(t, err, codeInvalidRequest)
	_, err = h.sdk.DeleteAlias(ctx, &gamelift.DeleteAliasInput{AliasId: &alias})
	refused(t, err, codeInvalidRequest)
	_, err = h.sdk.DeleteFleet(ctx, &gamelift.DeleteFleetInput{FleetId: &after})
	refused(t, err, "InvalidFleetStatusException")
	must(h.sdk.UpdateAlias(ctx, &gamelift.UpdateAliasInput{AliasId: &alias, Name: aws.String("arena")}))(t)
}

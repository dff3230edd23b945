package gamelift

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
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

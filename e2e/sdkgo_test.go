package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/musterhq/muster/internal/waittest"
)

// refused checks that an error is the API's error with this code, with a message that contains all the parts.
func refused(t *testing.T, what string, err error, code string, parts ...string) {
	t.Helper()
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok || api.ErrorCode() != code {
		t.Errorf("%s: got %v, want %s", what, err, code)
		return
	}
	for _, part := range parts {
		if !strings.Contains(api.ErrorMessage(), part) {
			t.Errorf("%s: the message %q does not name %q", what, api.ErrorMessage(), part)
		}
	}
}

// Every served operation and its main error, with the current SDK, which uses CBOR.
func TestOperationsWithGoSDK(t *testing.T) {
	t.Parallel()
	s := newService(t, "--virtual-clock")
	s.calls = newCalls()
	s.start()
	t.Run("together", func(t *testing.T) {
		t.Run("resources", func(t *testing.T) { t.Parallel(); resources(t, s.in(t)) })
		t.Run("sessions", func(t *testing.T) { t.Parallel(); sessions(t, s.in(t)) })
		tellStories(t, s, sdkGo{s.api()})
	})
	s.calls.everyOperation(t, "the SDK for Go")
}

// resources tests fleets, locations, computes and tags.
func resources(t *testing.T, s *service) {
	ctx, api := t.Context(), s.api()

	loc, err := api.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: aws.String("custom-home"),
		Tags: []types.Tag{{Key: aws.String("room"), Value: aws.String("cellar")}}})
	must(t, err)
	_, err = api.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: aws.String("custom-home")})
	refused(t, "a location twice", err, "ConflictException")
	_, err = api.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: aws.String("home")})
	refused(t, "a location without custom-", err, "InvalidRequestException", "LocationName")
	_, err = api.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: aws.String("custom-attic")})
	must(t, err)

	_, err = api.CreateFleet(ctx, &gamelift.CreateFleetInput{Name: aws.String("dev"), ComputeType: types.ComputeTypeAnywhere,
		Locations: []types.LocationConfiguration{{Location: aws.String("custom-nowhere")}}})
	if !isError[*types.NotFoundException](err) && !isError[*types.InvalidRequestException](err) {
		t.Errorf("a fleet in an unknown location: got %v", err)
	}
	_, err = api.CreateFleet(ctx, &gamelift.CreateFleetInput{Name: aws.String(strings.Repeat("n", 1025)), ComputeType: types.ComputeTypeAnywhere,
		Locations: []types.LocationConfiguration{{Location: aws.String("custom-home")}}})
	refused(t, "a fleet name of 1025 characters", err, "InvalidRequestException", "Name", "1024")
	created, err := api.CreateFleet(ctx, &gamelift.CreateFleetInput{
		Name: aws.String("dev"), Description: aws.String("for developers"), ComputeType: types.ComputeTypeAnywhere,
		Locations:             []types.LocationConfiguration{{Location: aws.String("custom-home")}},
		AnywhereConfiguration: &types.AnywhereConfiguration{Cost: aws.String("1.5")},
		Tags:                  []types.Tag{{Key: aws.String("team"), Value: aws.String("red")}},
	})
	must(t, err)
	fleet, fleetARN := *created.FleetAttributes.FleetId, *created.FleetAttributes.FleetArn
	if at := created.FleetAttributes.CreationTime; at == nil || time.Since(*at).Abs() > time.Hour {
		t.Errorf("creation time of the fleet: got %v, want about now", at)
	}

	_, err = api.DeleteLocation(ctx, &gamelift.DeleteLocationInput{LocationName: aws.String("custom-home")})
	refused(t, "deleting a location in use", err, "InvalidRequestException")
	_, err = api.CreateFleetLocations(ctx, &gamelift.CreateFleetLocationsInput{FleetId: &fleet,
		Locations: []types.LocationConfiguration{{Location: aws.String("custom-attic")}}})
	must(t, err)
	locations, err := api.DescribeFleetLocationAttributes(ctx, &gamelift.DescribeFleetLocationAttributesInput{FleetId: &fleetARN})
	must(t, err)
	if len(locations.LocationAttributes) != 2 {
		t.Errorf("locations of the fleet: got %d, want 2", len(locations.LocationAttributes))
	}
	_, err = api.DeleteFleetLocations(ctx, &gamelift.DeleteFleetLocationsInput{FleetId: &fleet, Locations: []string{"custom-attic"}})
	must(t, err)

	_, err = api.UpdateFleetAttributes(ctx, &gamelift.UpdateFleetAttributesInput{FleetId: &fleet, Name: aws.String("renamed"),
		NewGameSessionProtectionPolicy: types.ProtectionPolicyFullProtection})
	must(t, err)
	attributes, err := api.DescribeFleetAttributes(ctx, &gamelift.DescribeFleetAttributesInput{FleetIds: []string{fleet}})
	must(t, err)
	if a := attributes.FleetAttributes[0]; *a.Name != "renamed" || *a.Description != "for developers" ||
		a.NewGameSessionProtectionPolicy != types.ProtectionPolicyFullProtection || *a.AnywhereConfiguration.Cost != "1.5" {
		t.Errorf("after the update: got %+v", a)
	}
	attributes, err = api.DescribeFleetAttributes(ctx, &gamelift.DescribeFleetAttributesInput{FleetIds: []string{"fleet-00000000-0000-0000-0000-000000000000"}})
	if must(t, err); len(attributes.FleetAttributes) != 0 {
		t.Errorf("an unknown fleet: got %+v", attributes.FleetAttributes)
	}

	for _, name := range []string{"pc-1", "pc-2", "pc-3"} {
		_, err = api.RegisterCompute(ctx, &gamelift.RegisterComputeInput{FleetId: &fleet, ComputeName: &name,
			IpAddress: aws.String("10.0.0.1"), Location: aws.String("custom-home"), CertificatePath: aws.String("/etc/cert.pem")})
		must(t, err)
	}
	again, err := api.RegisterCompute(ctx, &gamelift.RegisterComputeInput{FleetId: &fleet, ComputeName: aws.String("pc-1"),
		IpAddress: aws.String("10.0.0.9"), Location: aws.String("custom-home")})
	if err != nil || *again.Compute.IpAddress != "10.0.0.9" {
		t.Errorf("registering again with another address: got %+v, %v", again, err)
	}
	_, err = api.RegisterCompute(ctx, &gamelift.RegisterComputeInput{FleetId: &fleet, ComputeName: aws.String("pc-4"),
		IpAddress: aws.String("10.0.0.1"), Location: aws.String("custom-attic")})
	if err == nil {
		t.Error("a compute was registered in a location that is not the fleet's")
	}
	var names []string
	for pages := gamelift.NewListComputePaginator(api, &gamelift.ListComputeInput{FleetId: &fleet, Limit: aws.Int32(2)}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		must(t, err)
		if len(page.ComputeList) > 2 {
			t.Errorf("a page has %d computes, want at most 2", len(page.ComputeList))
		}
		for _, c := range page.ComputeList {
			names = append(names, *c.ComputeName)
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"pc-1", "pc-2", "pc-3"}) {
		t.Errorf("list of computes: got %v", names)
	}
	_, err = api.ListCompute(ctx, &gamelift.ListComputeInput{FleetId: &fleet, NextToken: aws.String("made-up")})
	refused(t, "a made-up token", err, "InvalidRequestException", "NextToken")
	_, err = api.DescribeCompute(ctx, &gamelift.DescribeComputeInput{FleetId: &fleet, ComputeName: aws.String("pc-9")})
	refused(t, "an unknown compute", err, "NotFoundException")
	_, err = api.GetComputeAuthToken(ctx, &gamelift.GetComputeAuthTokenInput{FleetId: &fleet, ComputeName: aws.String("pc-9")})
	refused(t, "a token for an unknown compute", err, "NotFoundException")
	token, err := api.GetComputeAuthToken(ctx, &gamelift.GetComputeAuthTokenInput{FleetId: &fleet, ComputeName: again.Compute.ComputeArn})
	if err != nil || token.ExpirationTimestamp == nil || time.Until(*token.ExpirationTimestamp) < time.Hour {
		t.Errorf("a token by ARN: got %+v, %v", token, err)
	}
	_, err = api.DeregisterCompute(ctx, &gamelift.DeregisterComputeInput{FleetId: &fleet, ComputeName: aws.String("pc-3")})
	must(t, err)
	_, err = api.DescribeCompute(ctx, &gamelift.DescribeComputeInput{FleetId: &fleet, ComputeName: aws.String("pc-3")})
	refused(t, "a compute that was deregistered", err, "NotFoundException")

	checkTags(ctx, t, api, fleetARN, map[string]string{"team": "red"})
	checkTags(ctx, t, api, *loc.Location.LocationArn, map[string]string{"room": "cellar"})
	_, err = api.TagResource(ctx, &gamelift.TagResourceInput{ResourceARN: &fleetARN, Tags: []types.Tag{
		{Key: aws.String("team"), Value: aws.String("blue")}, {Key: aws.String("stage"), Value: aws.String("")}}})
	must(t, err)
	_, err = api.UntagResource(ctx, &gamelift.UntagResourceInput{ResourceARN: &fleetARN, TagKeys: []string{"stage", "never-there"}})
	must(t, err)
	checkTags(ctx, t, api, fleetARN, map[string]string{"team": "blue"})
	_, err = api.ListTagsForResource(ctx, &gamelift.ListTagsForResourceInput{ResourceARN: aws.String(fleetARN[:len(fleetARN)-1] + "x")})
	refused(t, "tags of an unknown resource", err, "NotFoundException")

	for _, look := range []func() error{
		func() error {
			_, err := api.DescribeFleetCapacity(ctx, &gamelift.DescribeFleetCapacityInput{})
			return err
		},
		func() error {
			_, err := api.DescribeFleetUtilization(ctx, &gamelift.DescribeFleetUtilizationInput{})
			return err
		},
		func() error {
			_, err := api.DescribeFleetLocationCapacity(ctx, &gamelift.DescribeFleetLocationCapacityInput{FleetId: &fleet, Location: aws.String("custom-home")})
			return err
		},
		func() error {
			_, err := api.DescribeFleetLocationUtilization(ctx, &gamelift.DescribeFleetLocationUtilizationInput{FleetId: &fleet, Location: aws.String("custom-home")})
			return err
		},
	} {
		if err := look(); err != nil {
			t.Error(err)
		}
	}
	events, err := api.DescribeFleetEvents(ctx, &gamelift.DescribeFleetEventsInput{FleetId: &fleet})
	must(t, err)
	if !slices.ContainsFunc(events.Events, func(e types.Event) bool { return e.EventCode == types.EventCodeFleetCreated }) {
		t.Errorf("no FLEET_CREATED among the events %+v", events.Events)
	}

	_, err = api.CreateAlias(ctx, &gamelift.CreateAliasInput{Name: aws.String(""), RoutingStrategy: &types.RoutingStrategy{}})
	refused(t, "an alias with an empty name", err, "InvalidRequestException", "Name")

	_, err = api.DeleteFleet(ctx, &gamelift.DeleteFleetInput{FleetId: &fleet})
	must(t, err)
	waittest.Until(t, "the fleet to be gone", func() bool {
		list, err := api.ListFleets(ctx, &gamelift.ListFleetsInput{})
		must(t, err)
		return !slices.Contains(list.FleetIds, fleet)
	})
	_, err = api.DeleteLocation(ctx, &gamelift.DeleteLocationInput{LocationName: loc.Location.LocationArn})
	must(t, err)
	_, err = api.DeleteLocation(ctx, &gamelift.DeleteLocationInput{LocationName: aws.String("custom-home")})
	refused(t, "deleting a location twice", err, "NotFoundException")
}

func checkTags(ctx context.Context, t *testing.T, api *gamelift.Client, arn string, want map[string]string) {
	t.Helper()
	out, err := api.ListTagsForResource(ctx, &gamelift.ListTagsForResourceInput{ResourceARN: &arn})
	must(t, err)
	got := map[string]string{}
	for _, tag := range out.Tags {
		got[*tag.Key] = *tag.Value
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("tags of %s: got %v, want %v", arn, got, want)
	}
}

// sessions tests game sessions and player sessions.
func sessions(t *testing.T, s *service) {
	p := s.prepareAt("custom-arena")
	ctx, api := t.Context(), s.api()
	create := func(change func(*gamelift.CreateGameSessionInput)) (*types.GameSession, error) {
		in := &gamelift.CreateGameSessionInput{FleetId: &p.fleet, Location: &p.location, MaximumPlayerSessionCount: aws.Int32(2)}
		change(in)
		out, err := api.CreateGameSession(ctx, in)
		if err != nil {
			return nil, err
		}
		return out.GameSession, nil
	}
	_, err := create(func(*gamelift.CreateGameSessionInput) {})
	refused(t, "no server process", err, "FleetCapacityExceededException", p.fleet)
	_, err = create(func(in *gamelift.CreateGameSessionInput) { in.Location = nil })
	refused(t, "no location", err, "InvalidRequestException", "Location")
	_, err = create(func(in *gamelift.CreateGameSessionInput) { in.MaximumPlayerSessionCount = aws.Int32(201) })
	refused(t, "201 players", err, "InvalidRequestException", "MaximumPlayerSessionCount")
	_, err = create(func(in *gamelift.CreateGameSessionInput) { in.AliasId = aws.String("alias-1") })
	refused(t, "fleet and alias", err, "InvalidRequestException")
	_, err = create(func(in *gamelift.CreateGameSessionInput) {
		in.GameProperties = slices.Repeat([]types.GameProperty{{Key: aws.String("k"), Value: aws.String("v")}}, 17)
	})
	refused(t, "17 properties", err, "InvalidRequestException", "GameProperties")
	_, err = create(func(in *gamelift.CreateGameSessionInput) {
		in.FleetId = aws.String("fleet-00000000-0000-0000-0000-000000000000")
	})
	refused(t, "an unknown fleet", err, "NotFoundException")

	server := p.ready(sdkOptions{})
	withToken := func(in *gamelift.CreateGameSessionInput) {
		in.IdempotencyToken, in.Name, in.CreatorId = aws.String("token-1"), aws.String("Debug"), aws.String("me")
		in.GameProperties = []types.GameProperty{{Key: aws.String("mode"), Value: aws.String("duel")}}
		in.GameSessionData = aws.String("data")
	}
	var gs *types.GameSession
	waittest.Until(t, "a free process", func() bool {
		gs, err = create(withToken)
		return !isError[*types.FleetCapacityExceededException](err)
	})
	must(t, err)
	if want := "arn:aws:gamelift:us-east-1::gamesession/" + p.fleet + "/custom-arena/token-1"; *gs.GameSessionId != want {
		t.Errorf("id: got %s, want %s", *gs.GameSessionId, want)
	}
	again, err := create(withToken)
	if err != nil || *again.GameSessionId != *gs.GameSessionId {
		t.Errorf("the same token again: got %+v, %v", again, err)
	}
	_, err = create(func(in *gamelift.CreateGameSessionInput) { withToken(in); in.Name = aws.String("Other") })
	refused(t, "the token with another name", err, "IdempotentParameterMismatchException")

	id := *gs.GameSessionId
	if n := server.countEvents("start"); n > 1 {
		t.Errorf("the server was asked %d times, want once", n)
	}
	started := server.untilEvent("start", 1).Session
	if started.GameSessionId != id || started.Name != "Debug" || started.GameProperties["mode"] != "duel" ||
		started.GameSessionData != "data" || started.MaximumPlayerSessionCount != 2 || started.Port != 7777 {
		t.Errorf("what the server got: %+v", started)
	}
	_, err = s.reserve(id, "early")
	refused(t, "a player before the session is active", err, "InvalidGameSessionStatusException")
	server.must("activate")
	s.untilGameSession(id, types.GameSessionStatusActive)

	first := s.mustReserve(id, "p1")
	found, err := api.SearchGameSessions(ctx, &gamelift.SearchGameSessionsInput{
		FleetId: &p.fleet, FilterExpression: aws.String("gameSessionProperties.mode = 'duel' AND playerSessionCount = 1"),
	})
	must(t, err)
	if len(found.GameSessions) != 1 || *found.GameSessions[0].GameSessionId != id || *found.GameSessions[0].CurrentPlayerSessionCount != 1 {
		t.Errorf("found %+v, want %s with one player", found.GameSessions, id)
	}
	_, err = api.SearchGameSessions(ctx, &gamelift.SearchGameSessionsInput{FleetId: &p.fleet, FilterExpression: aws.String("playerSessionCount = '1'")})
	refused(t, "a number in quotes", err, "InvalidRequestException", "character 22")
	_, err = api.CreatePlayerSessions(ctx, &gamelift.CreatePlayerSessionsInput{GameSessionId: &id, PlayerIds: []string{"p2", "p3"}})
	refused(t, "two players for one place", err, "GameSessionFullException")
	two, err := api.CreatePlayerSessions(ctx, &gamelift.CreatePlayerSessionsInput{GameSessionId: &id, PlayerIds: []string{"p2"},
		PlayerDataMap: map[string]string{"p2": "blue", "p9": "ignored"}})
	must(t, err)
	if ps := two.PlayerSessions[0]; aws.ToString(ps.PlayerData) != "blue" || ps.Status != types.PlayerSessionStatusReserved {
		t.Errorf("player two: got %+v", ps)
	}
	_, err = s.reserve(id, "p3")
	refused(t, "a player too many", err, "GameSessionFullException")
	server.must("accept", first)
	s.untilPlayer(first, types.PlayerSessionStatusActive)
	if l := server.do("accept", first); !strings.Contains(l.Error, "has a status of ACTIVE instead of RESERVED") {
		t.Errorf("accepted twice: got %q", l.Error)
	}
	server.must("remove", first)
	if got := s.playerSession(first); got.Status != types.PlayerSessionStatusCompleted || got.TerminationTime == nil {
		t.Errorf("removed: got %+v", got)
	}
	if n := *s.gameSession(id).CurrentPlayerSessionCount; n != 1 {
		t.Errorf("places held: got %d, want 1", n)
	}

	updated, err := api.UpdateGameSession(ctx, &gamelift.UpdateGameSessionInput{GameSessionId: &id, MaximumPlayerSessionCount: aws.Int32(1),
		ProtectionPolicy: types.ProtectionPolicyFullProtection, GameProperties: []types.GameProperty{{Key: aws.String("map"), Value: aws.String("east")}}})
	must(t, err)
	if g := updated.GameSession; *g.MaximumPlayerSessionCount != 1 || len(g.GameProperties) != 2 || *g.Name != "Debug" {
		t.Errorf("updated: got %+v", g)
	}
	details, err := api.DescribeGameSessionDetails(ctx, &gamelift.DescribeGameSessionDetailsInput{GameSessionId: &id})
	if err != nil || details.GameSessionDetails[0].ProtectionPolicy != types.ProtectionPolicyFullProtection {
		t.Errorf("details: got %+v, %v", details, err)
	}
	_, err = s.reserve(id, "p4")
	refused(t, "a player above the lowered maximum", err, "GameSessionFullException")
	server.must("policy", "DENY_ALL")
	if got := s.gameSession(id).PlayerSessionCreationPolicy; got != types.PlayerSessionCreationPolicyDenyAll {
		t.Errorf("policy set by the server: got %s", got)
	}

	for what, in := range map[string]*gamelift.DescribePlayerSessionsInput{
		"by nothing": {}, "by two": {PlayerId: aws.String("p1"), GameSessionId: &id},
	} {
		_, err = api.DescribePlayerSessions(ctx, in)
		refused(t, "player sessions "+what, err, "InvalidRequestException")
	}
	list, err := api.DescribePlayerSessions(ctx, &gamelift.DescribePlayerSessionsInput{GameSessionId: &id, PlayerSessionStatusFilter: aws.String("RESERVED")})
	if err != nil || len(list.PlayerSessions) != 1 || *list.PlayerSessions[0].PlayerId != "p2" {
		t.Errorf("reserved player sessions: got %+v, %v", list, err)
	}

	_, err = api.TerminateGameSession(ctx, &gamelift.TerminateGameSessionInput{GameSessionId: &id, TerminationMode: types.TerminationModeForceTerminate})
	refused(t, "force on an Anywhere fleet", err, "InvalidRequestException")
	ended, err := api.TerminateGameSession(ctx, &gamelift.TerminateGameSessionInput{GameSessionId: &id, TerminationMode: types.TerminationModeTriggerOnProcessTerminate})
	if err != nil || ended.GameSession.Status != types.GameSessionStatusTerminating {
		t.Errorf("terminate: got %+v, %v", ended, err)
	}
	server.untilEvent("terminate", 1)
	server.must("ending")
	if got := s.untilGameSession(id, types.GameSessionStatusTerminated); got.StatusReason != types.GameSessionStatusReasonTriggeredOnProcessTerminate || got.TerminationTime == nil || *got.CurrentPlayerSessionCount != 0 {
		t.Errorf("terminated: got %+v", got)
	}
	s.untilPlayer(*two.PlayerSessions[0].PlayerSessionId, types.PlayerSessionStatusTimedout)
	_, err = api.TerminateGameSession(ctx, &gamelift.TerminateGameSessionInput{GameSessionId: &id, TerminationMode: types.TerminationModeTriggerOnProcessTerminate})
	refused(t, "terminating twice", err, "InvalidGameSessionStatusException")
	late, err := create(withToken)
	if err != nil || late.Status != types.GameSessionStatusTerminated {
		t.Errorf("the token of an ended session: got %+v, %v", late, err)
	}
}

func TestCallerIdentity(t *testing.T) {
	t.Parallel()
	s := startService(t)
	api := sts.New(sts.Options{Region: region, BaseEndpoint: aws.String(s.url()),
		Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")})
	out, err := api.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	must(t, err)
	if len(aws.ToString(out.Account)) != 12 || aws.ToString(out.Arn) == "" || aws.ToString(out.UserId) == "" {
		t.Errorf("got %v %v %v, want an account of 12 digits, an ARN and a user", out.Account, out.Arn, out.UserId)
	}
}

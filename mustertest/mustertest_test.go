package mustertest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/aws/smithy-go"

	"github.com/musterhq/muster/mustertest"
)

// stage is what most tests play on.
type stage struct {
	*testing.T
	srv   *mustertest.Server
	fleet *mustertest.Fleet
	api   *gamelift.Client
}

func newStage(t *testing.T, with ...mustertest.Option) *stage {
	t.Helper()
	t.Parallel()
	srv := mustertest.Start(t, with...)
	return &stage{t, srv, srv.NewFleet(), srv.GameLift()}
}

func (s *stage) create() *types.GameSession {
	s.Helper()
	out, err := s.api.CreateGameSession(s.Context(), &gamelift.CreateGameSessionInput{
		FleetId: &s.fleet.ID, Location: &s.fleet.Location, MaximumPlayerSessionCount: aws.Int32(4),
	})
	if err != nil {
		s.Fatal(err)
	}
	return out.GameSession
}

func (s *stage) join(game *types.GameSession, player string) *types.PlayerSession {
	s.Helper()
	out, err := s.api.CreatePlayerSession(s.Context(), &gamelift.CreatePlayerSessionInput{GameSessionId: game.GameSessionId, PlayerId: &player})
	if err != nil {
		s.Fatal(err)
	}
	return out.PlayerSession
}

func (s *stage) wantPlayer(p *types.PlayerSession, want types.PlayerSessionStatus) {
	s.Helper()
	out, err := s.api.DescribePlayerSessions(s.Context(), &gamelift.DescribePlayerSessionsInput{PlayerSessionId: p.PlayerSessionId})
	if err != nil || out.PlayerSessions[0].Status != want {
		s.Errorf("player %s at %s: %v %v, want %s", *p.PlayerId, s.srv.Now(), out, err, want)
	}
}

func (s *stage) wantGame(game *types.GameSession, want types.GameSessionStatus) {
	s.Helper()
	out, err := s.api.DescribeGameSessions(s.Context(), &gamelift.DescribeGameSessionsInput{GameSessionId: game.GameSessionId})
	if err != nil {
		s.Fatal(err)
	}
	if got := out.GameSessions[0].Status; got != want {
		s.Errorf("the game session is %s, want %s", got, want)
	}
}

func (s *stage) wantPlacement(id string, want types.GameSessionPlacementState) {
	s.Helper()
	out, err := s.api.DescribeGameSessionPlacement(s.Context(), &gamelift.DescribeGameSessionPlacementInput{PlacementId: &id})
	if err != nil {
		s.Fatal(err)
	}
	if got := out.GameSessionPlacement.Status; got != want {
		s.Errorf("placement %s is %s, want %s", id, got, want)
	}
}

func (s *stage) place(queue, id string) {
	s.Helper()
	_, err := s.api.StartGameSessionPlacement(s.Context(), &gamelift.StartGameSessionPlacementInput{
		PlacementId: &id, GameSessionQueueName: &queue, MaximumPlayerSessionCount: aws.Int32(4),
	})
	if err != nil {
		s.Fatal(err)
	}
}

func TestReservationTimesOut(t *testing.T) {
	s := newStage(t)
	server := s.fleet.StartGameServer()
	game := s.create()
	server.GameSession()
	late, fine := s.join(game, "late"), s.join(game, "fine")
	if err := server.AcceptPlayer(*fine.PlayerSessionId); err != nil {
		t.Fatal(err)
	}
	s.srv.Advance(59 * time.Second)
	s.wantPlayer(late, types.PlayerSessionStatusReserved)
	s.srv.Advance(time.Second)
	s.wantPlayer(late, types.PlayerSessionStatusTimedout)
	s.wantPlayer(fine, types.PlayerSessionStatusActive)
	if err := server.AcceptPlayer(*late.PlayerSessionId); err == nil {
		t.Error("a player came in on a reservation that was over")
	}
	if err := server.RemovePlayer(*fine.PlayerSessionId); err != nil {
		t.Error(err)
	}
	s.wantPlayer(fine, types.PlayerSessionStatusCompleted)
}

func TestPlacementTimesOut(t *testing.T) {
	s := newStage(t)
	queue := s.fleet.NewQueue(30)
	s.place(queue, "in-vain")
	s.srv.Advance(29 * time.Second)
	s.wantPlacement("in-vain", types.GameSessionPlacementStatePending)
	s.place(queue, "patient")
	s.srv.Advance(time.Second)
	s.wantPlacement("in-vain", types.GameSessionPlacementStateTimedOut)
	s.fleet.StartGameServer().GameSession()
	s.wantPlacement("patient", types.GameSessionPlacementStateFulfilled)
}

func TestActivationTimesOut(t *testing.T) {
	s := newStage(t, mustertest.Setting("activation-timeout", "2m"))
	told := make(chan struct{})
	server := s.fleet.StartGameServerWith(mustertest.GameServerOptions{
		OnGameSession: func(*mustertest.GameServer, mustertest.GameSession) {}, // it loads its level for ever
		OnTerminate:   func(*mustertest.GameServer) { close(told) },
	})
	game := s.create()
	server.GameSession()
	s.srv.Advance(2*time.Minute - time.Millisecond)
	s.wantGame(game, types.GameSessionStatusActivating)
	s.srv.Advance(time.Millisecond)
	s.wantGame(game, types.GameSessionStatusTerminated)
	<-told
}

// A server that is alive but stuck: its connection answers pings, its game sends no heartbeats.
func TestSilentServerIsEnded(t *testing.T) {
	s := newStage(t)
	told := make(chan struct{})
	server := s.fleet.StartGameServerWith(mustertest.GameServerOptions{OnTerminate: func(*mustertest.GameServer) { close(told) }})
	game := s.create()
	server.GameSession()
	s.srv.AdvanceLinks(130 * time.Second)
	s.wantGame(game, types.GameSessionStatusActive)
	s.srv.Advance(3 * time.Minute)
	<-told
	s.srv.Advance(5 * time.Minute) // it does not end by itself
	s.wantGame(game, types.GameSessionStatusTerminated)
}

// A server that crashes, and one that was only cut off for a moment.
func TestCrashedServerIsGivenUp(t *testing.T) {
	s := newStage(t)
	first := s.fleet.StartGameServer()
	game := s.create()
	first.GameSession()
	seat := s.join(game, "ann")
	first.Kill()
	s.srv.Advance(100*time.Second - time.Millisecond)
	s.wantGame(game, types.GameSessionStatusActive)
	s.wantPlayer(seat, types.PlayerSessionStatusTimedout)
	s.srv.Advance(time.Millisecond)
	s.wantGame(game, types.GameSessionStatusTerminated)
}

// A restart loses nothing, and deadlines of clients that could not reach the service move by the downtime.
func TestRestart(t *testing.T) {
	s := newStage(t)
	server := s.fleet.StartGameServer()
	game := s.create()
	server.GameSession()
	seat := s.join(game, "ann")
	endpoint, before := s.srv.Endpoint(), s.srv.Now()
	s.srv.Advance(50 * time.Second)
	s.srv.RestartAfter(time.Hour)
	if got := s.srv.Endpoint(); got != endpoint {
		t.Errorf("the endpoint is %s after a restart, before %s", got, endpoint)
	}
	if got, want := s.srv.Now().Sub(before), time.Hour+50*time.Second; got != want {
		t.Errorf("the clock moved by %s, want %s", got, want)
	}
	s.srv.Advance(34 * time.Second) // a seat lasts 35 s from a start, so that its game server can come back first
	s.wantPlayer(seat, types.PlayerSessionStatusReserved)
	s.srv.Advance(time.Second)
	s.wantPlayer(seat, types.PlayerSessionStatusTimedout)
	s.srv.Restart()
	s.wantGame(game, types.GameSessionStatusActive)
	back := s.join(game, "bob")
	if err := server.AcceptPlayer(*back.PlayerSessionId); err != nil {
		t.Errorf("a game server after a restart: %v", err)
	}
}

// A data directory that outlives a test serves the next one as the first.
func TestSameDataAgain(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			fleet := mustertest.Start(t, mustertest.Data(dir)).NewFleet()
			if a, b := fleet.NewQueue(30), fleet.NewQueue(60); a == b {
				t.Errorf("two queues are both %s", a)
			}
			fleet.StartGameServer()
		})
	}
}

// Nothing ends because the test is slow.
func TestClockStandsStill(t *testing.T) {
	s := newStage(t, mustertest.Setting("reservation", "1s"))
	server := s.fleet.StartGameServer()
	game := s.create()
	server.GameSession()
	seat, began := s.join(game, "ann"), s.srv.Now()
	time.Sleep(1100 * time.Millisecond) // longer than the reservation
	s.wantPlayer(seat, types.PlayerSessionStatusReserved)
	if got := s.srv.Now(); !got.Equal(began) {
		t.Errorf("the clock went from %s to %s by itself", began, got)
	}
}

func TestRolesAndSignatures(t *testing.T) {
	t.Parallel()
	srv := mustertest.Start(t, mustertest.Signed())
	ctx := t.Context()
	if _, err := srv.GameLift().ListFleets(ctx, &gamelift.ListFleetsInput{}); err != nil {
		t.Error(err)
	}
	client := gamelift.NewFromConfig(srv.AWSConfig(mustertest.Client))
	_, err := client.ListFleets(ctx, &gamelift.ListFleetsInput{})
	if e, ok := errors.AsType[smithy.APIError](err); !ok || e.ErrorCode() != "AccessDeniedException" {
		t.Errorf("a game client lists fleets: %v", err)
	}
	config := srv.AWSConfig(mustertest.Admin)
	config.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "MUSTAAAAAAAAAAAAAAAA", SecretAccessKey: "x"}, nil
	})
	_, err = gamelift.NewFromConfig(config).ListFleets(ctx, &gamelift.ListFleetsInput{})
	if e, ok := errors.AsType[smithy.APIError](err); !ok || e.ErrorCode() != "UnrecognizedClientException" {
		t.Errorf("a stranger lists fleets: %v", err)
	}
}

// Matches are found, rule sets relaxed and tickets timed out on the same clock, and an Advance waits for all of it.
func TestMatchmaking(t *testing.T) {
	s := newStage(t)
	queue := s.fleet.NewQueue(600)
	described, err := s.api.DescribeGameSessionQueues(t.Context(), &gamelift.DescribeGameSessionQueuesInput{Names: []string{queue}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.api.CreateMatchmakingRuleSet(t.Context(), &gamelift.CreateMatchmakingRuleSetInput{Name: aws.String("fair"), RuleSetBody: aws.String(`{
		"name": "fair", "ruleLanguageVersion": "1.0", "playerAttributes": [{"name": "skill", "type": "number"}],
		"teams": [{"name": "left", "minPlayers": 1, "maxPlayers": 1}, {"name": "right", "minPlayers": 1, "maxPlayers": 1}],
		"rules": [{"name": "close", "type": "distance", "measurements": ["flatten(teams[*].players.attributes[skill])"],
			"referenceValue": "avg(flatten(teams[*].players.attributes[skill]))", "maxDistance": 1}],
		"expansions": [{"target": "rules[close].maxDistance", "steps": [{"waitTimeSeconds": 30, "value": 100}]}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.api.CreateMatchmakingConfiguration(t.Context(), &gamelift.CreateMatchmakingConfigurationInput{
		Name: aws.String("fair"), RuleSetName: aws.String("fair"), AcceptanceRequired: aws.Bool(false), RequestTimeoutSeconds: aws.Int32(60),
		GameSessionQueueArns: []string{*described.GameSessionQueues[0].GameSessionQueueArn},
	})
	if err != nil {
		t.Fatal(err)
	}
	start := func(player string, skill float64) {
		t.Helper()
		_, err := s.api.StartMatchmaking(t.Context(), &gamelift.StartMatchmakingInput{ConfigurationName: aws.String("fair"), TicketId: &player, Players: []types.Player{{
			PlayerId: &player, PlayerAttributes: map[string]types.AttributeValue{"skill": {N: &skill}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(player string, status types.MatchmakingConfigurationStatus) {
		t.Helper()
		out, err := s.api.DescribeMatchmaking(t.Context(), &gamelift.DescribeMatchmakingInput{TicketIds: []string{player}})
		if err != nil {
			t.Fatal(err)
		}
		if got := out.TicketList[0].Status; got != status {
			t.Errorf("the ticket of %s is %s, want %s", player, got, status)
		}
	}
	start("ann", 10)
	start("bob", 50)
	s.srv.Advance(29 * time.Second)
	want("ann", types.MatchmakingConfigurationStatusSearching)
	s.srv.Advance(time.Second) // now they are close enough
	want("ann", types.MatchmakingConfigurationStatusPlacing)
	s.fleet.StartGameServer().GameSession()
	want("ann", types.MatchmakingConfigurationStatusCompleted)
	want("bob", types.MatchmakingConfigurationStatusCompleted)
	start("cid", 10)
	s.srv.Advance(time.Minute)
	want("cid", types.MatchmakingConfigurationStatusTimedOut)
	start("dan", 1)
	start("eve", 1.5)
	s.srv.Advance(0) // without waiting
	want("eve", types.MatchmakingConfigurationStatusPlacing)
}

// TestNoGameSession is not parallel, because it changes how long all tests wait.
func TestNoGameSession(t *testing.T) {
	mustertest.ShortenSessionWait(t)
	fake, finish := newT() // its Fatalf panics
	defer finish()
	server := mustertest.Start(fake).NewFleet().StartGameServer()
	defer func() {
		if recover() == nil {
			t.Error("GameSession returned, although there is no game session")
		}
	}()
	server.GameSession()
}

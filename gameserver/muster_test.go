package gameserver_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/gameclient"
	"github.com/musterhq/muster/gameserver"
	"github.com/musterhq/muster/mustertest"
)

const duo = `{"name":"duo","ruleLanguageVersion":"1.0","playerAttributes":[{"name":"skill","type":"number","default":10}],
"teams":[{"name":"all","minPlayers":2,"maxPlayers":3}]}`

// seats is a game's network layer that only remembers.
type seats struct{ at gameclient.Seat }

func (s *seats) Connect(_ context.Context, at gameclient.Seat) error { s.at = at; return nil }
func (s *seats) Disconnect(context.Context) error                    { return nil }

// Both libraries against the real service: a match is found, accepted and joined; one player leaves, and the server asks
// for another, who comes.
func TestMatchAndBackfillThroughMuster(t *testing.T) {
	if !gameserver.OwnProcess(t) {
		return
	}
	ctx := t.Context()
	srv := mustertest.Start(t, mustertest.LogLevel(slog.LevelError))
	fleet := srv.NewFleet()
	queue := fleet.NewQueue(60)
	api := srv.GameLift()
	_, err := api.CreateMatchmakingRuleSet(ctx, &gamelift.CreateMatchmakingRuleSetInput{Name: aws.String("duo"), RuleSetBody: aws.String(duo)})
	must(t, err)
	queueARN := "arn:aws:gamelift:" + mustertest.Region + ":123456789012:gamesessionqueue/" + queue
	_, err = api.CreateMatchmakingConfiguration(ctx, &gamelift.CreateMatchmakingConfigurationInput{
		Name: aws.String("duo"), RuleSetName: aws.String("duo"), RequestTimeoutSeconds: aws.Int32(600), AcceptanceRequired: aws.Bool(true),
		AcceptanceTimeoutSeconds: aws.Int32(60), GameSessionQueueArns: []string{queueARN}, BackfillMode: types.BackfillModeManual,
	})
	must(t, err)

	updates := make(chan gameserver.Update, 4)
	with := fleet.ServerParameters()
	server := gameserver.New(gameserver.Options{
		WebSocketURL: with.WebSocketURL, AuthToken: with.AuthToken, FleetID: with.FleetID, HostID: with.HostID, ProcessID: with.ProcessID,
		Port: 7777, KeepWhenEmpty: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, gameserver.Callbacks{OnUpdateSessionBegin: func(_ context.Context, u gameserver.Update) { updates <- u }})
	must(t, server.Start(ctx))
	defer func() { must(t, server.End(context.WithoutCancel(ctx))) }()

	match := func(player string) (*seats, chan error) {
		at, joined := &seats{}, make(chan error, 1)
		client := gameclient.New(srv.AWSConfig(mustertest.Client), at)
		ticket, err := client.StartMatchmaking(ctx, gameclient.StartMatchmakingRequest{
			Configuration: "duo", Players: []gameclient.MatchPlayer{{ID: player, Attributes: map[string]any{"skill": 12}}}})
		must(t, err)
		tracker := client.NewTracker(gameclient.MatchEvents{
			OnAcceptance: func(ticket gameclient.Ticket) {
				if err := client.AcceptMatch(ctx, gameclient.AcceptMatchRequest{TicketID: ticket.ID, PlayerIDs: []string{player}, Answer: gameclient.Accept}); err != nil {
					joined <- err
				}
			},
			OnComplete: func(_ gameclient.Ticket, _ gameclient.Seat, err error) { joined <- err },
			OnFailure: func(ticket gameclient.Ticket) {
				joined <- errors.New(string(ticket.Status) + " " + ticket.StatusMessage)
			},
		}, gameclient.TrackerOptions{Interval: 20 * time.Millisecond})
		t.Cleanup(tracker.Close)
		must(t, tracker.StartPolling(ticket.ID, player))
		return at, joined
	}
	ann, annJoined := match("ann")
	bob, bobJoined := match("bob")
	must(t, <-annJoined)
	must(t, <-bobJoined)
	for id, at := range map[uint64]*seats{1: ann, 2: bob} {
		must(t, server.ValidatePlayerJoin(ctx, id, at.at.PlayerSessionID))
	}
	s, _ := server.Session()
	players(t, s, "ann", "bob")

	must(t, server.HandlePlayerLeave(ctx, 2))
	ticket, err := server.StartMatchBackfill(ctx, "", nil)
	must(t, err)
	cyd, cydJoined := match("cyd")
	u := <-updates
	if u.Reason != gameserver.MatchmakingDataUpdated || u.BackfillTicketID != ticket {
		t.Errorf("got %+v, want the result of ticket %s", u, ticket)
	}
	players(t, u.Session, "ann", "cyd")
	must(t, <-cydJoined)
	must(t, server.ValidatePlayerJoin(ctx, 3, cyd.at.PlayerSessionID))

	ticket, err = server.StartMatchBackfill(ctx, "", nil)
	must(t, err)
	must(t, server.StopMatchBackfill(ctx, ticket))
	if u := <-updates; u.Reason != gameserver.BackfillCancelled {
		t.Errorf("got %+v, want BACKFILL_CANCELLED", u)
	}
}

// players compares who plays in a session, by the matchmaker's data.
func players(t *testing.T, s gameserver.Session, want ...string) {
	t.Helper()
	m, err := gameserver.ParseMatchData(s.MatchmakerData)
	must(t, err)
	var got []string
	for _, team := range m.Teams {
		for _, p := range team.Players {
			got = append(got, p.ID)
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the match has %v, want %v", got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

package libraries

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
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

// seats is a game's network layer that only records the seat.
type seats struct{ at gameclient.Seat }

func (s *seats) Connect(_ context.Context, at gameclient.Seat) error { s.at = at; return nil }
func (s *seats) Disconnect(context.Context) error                    { return nil }

// Both libraries against the real service: a match is found, accepted and joined; one player leaves, and the server asks
// for another, who comes.
func TestMatchAndBackfillThroughMuster(t *testing.T) {
	if !ownProcess(t) {
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
	with := fleet.ServerParameters().GameServerOptions()
	with.Port, with.KeepWhenEmpty, with.Logger = 7777, true, slog.New(slog.DiscardHandler)
	server := gameserver.New(with, gameserver.Callbacks{OnUpdateSessionBegin: func(_ context.Context, u gameserver.Update) { updates <- u }})
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
		admit(t, server, id, at.at.PlayerSessionID)
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
	admit(t, server, 3, cyd.at.PlayerSessionID)

	ticket, err = server.StartMatchBackfill(ctx, "", nil)
	must(t, err)
	must(t, server.StopMatchBackfill(ctx, ticket))
	if u := <-updates; u.Reason != gameserver.BackfillCancelled {
		t.Errorf("got %+v, want BACKFILL_CANCELLED", u)
	}
}

// players compares the players of a session according to the matchmaker's data.
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

// admit admits a player and checks the player's id.
func admit(t *testing.T, server *gameserver.Server, id gameserver.ConnectionID, playerSessionID string) {
	t.Helper()
	player, err := server.ValidatePlayerJoin(t.Context(), id, playerSessionID)
	must(t, err)
	if player.ID != playerSessionID || player.PlayerID == "" || player.Status != gameserver.PlayerActive || player.SessionID == "" {
		t.Errorf("let in: %+v", player)
	}
}

// A refusal by the real service is reported at once with its reason, and the check beforehand leaves no process behind.
func TestRefusedByMuster(t *testing.T) {
	srv := mustertest.Start(t, mustertest.LogLevel(slog.LevelError))
	fleet := srv.NewFleet()
	key := srv.Credentials(mustertest.Client)
	for name, c := range map[string]struct {
		change func(*gameserver.Options)
		says   string
	}{
		"a wrong token":         {func(o *gameserver.Options) { o.AuthToken = "wrong" }, "the auth token is not one of compute test-host"},
		"an unknown compute":    {func(o *gameserver.Options) { o.HostID = "elsewhere" }, "compute elsewhere is not registered in fleet"},
		"a key of another role": {sign(key.AccessKeyID, key.SecretAccessKey), "has role client; a game server needs backend or admin"},
		"a wrong secret":        {sign(key.AccessKeyID, "wrong"), "X-Amz-Signature does not match"},
	} {
		o := fleet.ServerParameters().GameServerOptions()
		o.Port, o.Logger = 7777, slog.New(slog.DiscardHandler)
		c.change(&o)
		err := gameserver.New(o).Start(t.Context())
		refused, ok := errors.AsType[*gameserver.ConnectError](err)
		if !ok || !errors.Is(err, gameserver.ErrUnauthorized) || refused.Status != 403 || !strings.Contains(refused.Reason, c.says) {
			t.Errorf("%s: got %v, want 403 and %q", name, err, c.says)
		}
	}
}

func sign(id, secret string) func(*gameserver.Options) {
	return func(o *gameserver.Options) {
		o.AuthToken, o.Region, o.AccessKey, o.SecretKey = "", mustertest.Region, id, secret
	}
}

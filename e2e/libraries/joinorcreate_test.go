package libraries

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/gameclient"
	"github.com/musterhq/muster/mustertest"
)

// nowhere connects to nothing.
type nowhere struct{}

func (nowhere) Connect(context.Context, gameclient.Seat) error { return nil }
func (nowhere) Disconnect(context.Context) error               { return nil }

// The first player makes a game session, the second joins it, the third finds it full and makes another one through a queue.
func TestJoinOrCreate(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := mustertest.Start(t, mustertest.LogLevel(slog.LevelError))
	fleet := srv.NewFleet()
	queue := fleet.NewQueue(60)
	fleet.StartGameServer()
	fleet.StartGameServer()
	wish := func(player string) gameclient.JoinOrCreateRequest {
		return gameclient.JoinOrCreateRequest{
			PlayerID: player, PlayerData: "of " + player,
			Search: gameclient.SearchSessionsRequest{FleetID: fleet.ID, Location: fleet.Location, Filter: "gameSessionProperties.level = 'arena'"},
			Create: gameclient.CreateSessionRequest{MaxPlayers: 2, Properties: map[string]string{"level": "arena"}},
		}
	}
	player := func() *gameclient.Client { return gameclient.New(srv.AWSConfig(mustertest.Client), nowhere{}) }
	var joiner gameclient.Joiner = player()
	ann, err := joiner.JoinOrCreate(ctx, wish("ann"))
	must(t, err)
	bob, err := player().JoinOrCreateAsync(ctx, wish("bob")).Await(ctx)
	must(t, err)
	if ann.SessionID == "" || bob.SessionID != ann.SessionID || bob.PlayerID != "bob" || bob.PlayerSessionID == ann.PlayerSessionID {
		t.Errorf("ann has %+v, bob has %+v", ann, bob)
	}
	full := wish("cyd")
	full.OnQueue = &gameclient.CreateSessionOnQueueRequest{Queue: queue, MaxPlayers: 2, Properties: map[string]string{"level": "arena"}}
	var backend gameclient.Reserver = gameclient.New(srv.AWSConfig(mustertest.Backend), nil, func(o *gameclient.Options) { o.PollInterval = time.Hour })
	cyd, err := backend.ReserveOrCreate(ctx, full)
	must(t, err)
	if cyd.PlayerID != "cyd" || cyd.SessionID == ann.SessionID || cyd.Port == 0 {
		t.Errorf("cyd has %+v", cyd)
	}
	dan, err := backend.ReserveOrCreate(ctx, wish("dan"))
	must(t, err)
	if dan.SessionID != cyd.SessionID {
		t.Errorf("dan has %+v, want a seat beside cyd", dan)
	}
	_, err = backend.ReserveOrCreate(ctx, wish("eve"))
	if !errors.Is(err, gameclient.ErrNoCapacity) || !strings.Contains(err.Error(), "ReserveOrCreate: CreateSession") {
		t.Errorf("without a free server: %v", err)
	}
	if _, err := backend.ReserveOrCreate(ctx, gameclient.JoinOrCreateRequest{PlayerID: "fay"}); err == nil || !strings.Contains(err.Error(), "Search.FleetID") {
		t.Errorf("without a fleet: %v", err)
	}
}

// Every error names its call.
func TestErrorsNameTheirCall(t *testing.T) {
	t.Parallel()
	srv := mustertest.Start(t, mustertest.LogLevel(slog.LevelError))
	ctx, cfg := t.Context(), srv.AWSConfig(mustertest.Client)
	none, some := gameclient.New(cfg, nil), gameclient.New(cfg, nowhere{})
	seat := gameclient.Seat{PlayerSessionID: "psess-1", IPAddress: "127.0.0.1", Port: 1}
	must(t, some.Connect(ctx, seat))
	tracker := none.NewTracker(gameclient.MatchEvents{}, gameclient.TrackerOptions{})
	defer tracker.Close()
	must(t, tracker.StartPolling("t-1", "ann"))
	join := gameclient.JoinSessionRequest{SessionID: "arn:g", PlayerID: "ann"}
	friend := gameclient.JoinFriendRequest{FriendID: "bob", PlayerID: "ann"}
	wish := gameclient.JoinOrCreateRequest{PlayerID: "ann", Search: gameclient.SearchSessionsRequest{FleetID: "fleet-1"}}
	second := func(_ any, err error) error { return err }
	for call, errs := range map[string][]error{
		"JoinSession":     {second(none.JoinSession(ctx, join)), second(some.JoinSession(ctx, join))},
		"Connect":         {none.Connect(ctx, seat), some.Connect(ctx, seat)},
		"JoinFriend":      {second(none.JoinFriend(ctx, friend)), second(some.JoinFriend(ctx, friend))},
		"JoinOrCreate":    {second(none.JoinOrCreate(ctx, wish)), second(some.JoinOrCreate(ctx, wish))},
		"ReserveOrCreate": {second(none.ReserveOrCreate(ctx, wish))},
		"LeaveSession":    {none.LeaveSession(ctx)},
		"StartPolling":    {tracker.StartPolling("t-1", "ann")},
		"AwaitPlacement":  {second(none.AwaitPlacement(ctx, "p-1"))},
		"Release":         {second(none.Release(ctx, "psess-00000000-0000-0000-0000-000000000000"))},
	} {
		for _, err := range errs {
			if err == nil || !strings.HasPrefix(err.Error(), "gameclient: "+call+": ") {
				t.Errorf("%s: %v", call, err)
			}
		}
	}
}

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

	"github.com/musterhq/muster/gameclient"
	"github.com/musterhq/muster/gameserver"
	"github.com/musterhq/muster/mustertest"
)

// The whole of a game instance with the real service: a match of two, one of whom quits, is added again, loses the connection and comes
// back, is removed; notices of all that over a restart of the service; and the results.
func TestGameInstanceThroughMuster(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	srv := mustertest.Start(t, mustertest.Setting("player-flow", "true"), mustertest.LogLevel(slog.LevelError))
	fleet := srv.NewFleet()
	queue, api := fleet.NewQueue(600), srv.GameLift()
	duo := `{"ruleLanguageVersion":"1.0","teams":[{"name":"all","minPlayers":2,"maxPlayers":3}]}`
	_, err := api.CreateMatchmakingRuleSet(ctx, &gamelift.CreateMatchmakingRuleSetInput{Name: aws.String("duo"), RuleSetBody: &duo})
	must(t, err)
	_, err = api.CreateMatchmakingConfiguration(ctx, &gamelift.CreateMatchmakingConfigurationInput{
		Name: aws.String("duo"), RuleSetName: aws.String("duo"), AcceptanceRequired: aws.Bool(false), RequestTimeoutSeconds: aws.Int32(600),
		GameSessionQueueArns: []string{"arn:aws:gamelift:us-east-1::gamesessionqueue/" + queue},
	})
	must(t, err)

	with := fleet.ServerParameters().GameServerOptions()
	with.Port, with.KeepWhenEmpty, with.Logger = 7777, true, slog.New(slog.DiscardHandler)
	server := gameserver.New(with)
	must(t, server.Start(ctx))
	defer func() { must(t, server.End(context.WithoutCancel(ctx))) }()
	at := gameserver.GameInstanceOptions{Endpoint: srv.Endpoint()}
	if _, err := server.GameInstance(ctx, at); !errors.Is(err, gameserver.ErrNoSession) {
		t.Errorf("before there is a game: %v", err)
	}

	login := func(name string) *gameclient.Player {
		p, err := gameclient.Login(ctx, gameclient.PlayerOptions{Endpoint: srv.Endpoint(), Provider: gameclient.ProviderDev, Token: gameclient.DevToken(name)})
		must(t, err)
		t.Cleanup(p.Close)
		return p
	}
	hostOf := func(p *gameclient.Player) gameclient.HostDetails {
		e, err := p.Await(ctx, gameclient.OnHostConnectionDetailsReceived)
		must(t, err)
		return *e.Host
	}
	ann, bob := login("ann"), login("bob")
	for _, p := range []*gameclient.Player{ann, bob} {
		_, err := p.EnterMatchmaking(ctx, "duo")
		must(t, err)
	}
	annAt, bobAt := hostOf(ann), hostOf(bob)

	game, err := server.GameInstance(ctx, at)
	must(t, err)
	if game.ID != annAt.GameInstanceID {
		t.Errorf("game instance %s, want %s", game.ID, annAt.GameInstanceID)
	}
	start, err := game.StartData(ctx)
	if err != nil || start.GameInstanceID != game.ID || start.Reconnect != "OPTIONAL" || len(start.Players) != 2 || start.Players[0].Team != "all" {
		t.Errorf("%+v, %v", start, err)
	}
	notices := make(chan gameserver.Notice, 100)
	heard := make(chan error, 1)
	go func() {
		for n, err := range game.Notices(ctx) {
			if err != nil {
				heard <- err
				return
			}
			notices <- n
		}
		close(heard)
	}()
	expect := func(kind gameserver.NoticeType) gameserver.Notice {
		t.Helper()
		for {
			select {
			case n := <-notices:
				if n.Type == kind {
					return n
				}
			case err := <-heard:
				t.Fatalf("the notices ended while %s was awaited: %v", kind, err)
			}
		}
	}
	if n := expect(gameserver.OnSync); len(n.StartData.Players) != 2 || n.StartData.Players[1].Status != "RESERVED" {
		t.Errorf("%+v", n.StartData)
	}

	// Verify both players.
	who, err := game.Verify(ctx, annAt.PlayerSessionID, annAt.ConnectionToken)
	if err != nil || who.PlayerID != "ann" || who.Team != "all" || who.Attempt != 1 {
		t.Errorf("%+v, %v", who, err)
	}
	_, err = game.Verify(ctx, annAt.PlayerSessionID, bobAt.ConnectionToken)
	if said, ok := errors.AsType[*gameserver.FlowError](err); !ok || said.Code != "INVALID_TOKEN" || !errors.Is(err, gameserver.ErrRefused) {
		t.Errorf("the token of another player: %v", err)
	}
	admit(t, server, 1, annAt.PlayerSessionID)
	admit(t, server, 2, bobAt.PlayerSessionID)

	// Bob quits, which a closed connection alone would not show.
	stale, err := game.PlayerDisconnected(ctx, bobAt.PlayerSessionID, gameserver.Quit)
	must(t, err)
	must(t, server.HandlePlayerLeave(ctx, 2))
	if n := expect(gameserver.OnPlayerLeft); stale || n.PlayerID != "bob" || n.Reason != "LEFT" {
		t.Errorf("%+v, stale %v", n, stale)
	}
	failed, err := game.AddPlayers(ctx, gameserver.AddedPlayer{PlayerID: "bob", Team: "all"}, gameserver.AddedPlayer{PlayerID: "ann"}, gameserver.AddedPlayer{PlayerID: "nobody"})
	if want := []gameserver.NotAdded{{PlayerID: "nobody", Code: "PLAYER_NOT_FOUND"}}; err != nil || !slices.Equal(failed, want) {
		t.Errorf("not added: %+v, %v; want %v", failed, err, want)
	}
	if n := expect(gameserver.OnPlayersAdded); len(n.Players) != 1 || n.Players[0].PlayerID != "bob" {
		t.Errorf("%+v", n)
	}
	admit(t, server, 3, hostOf(bob).PlayerSessionID)

	// A search for players, across a restart of the service.
	ticket, err := game.EnterMatchmaking(ctx, gameserver.GameSearch{Seats: 1})
	if err != nil || ticket.Queue != "duo" || ticket.ID == "" || !ticket.Expires.After(srv.Now()) {
		t.Errorf("%+v, %v", ticket, err)
	}
	if n := expect(gameserver.OnGameInstanceEnteredMatchmaking); n.MatchmakingID != ticket.ID || n.Seats != 1 {
		t.Errorf("%+v", n)
	}
	srv.Restart()
	left, err := game.LeaveMatchmaking(ctx)
	if err != nil || left != ticket.ID {
		t.Errorf("left %q, %v; want %s", left, err, ticket.ID)
	}
	if n := expect(gameserver.OnGameInstanceLeftMatchmaking); n.MatchmakingID != ticket.ID || n.Reason != "REQUESTED" {
		t.Errorf("%+v", n)
	}

	// Bob loses the connection and comes back.
	must(t, server.HandlePlayerLeave(ctx, 3))
	_, err = bob.Await(ctx, gameclient.OnReconnectAvailable)
	must(t, err)
	back, err := bob.Reconnect(ctx)
	must(t, err)
	if n := expect(gameserver.OnPlayerReconnecting); n.PlayerID != "bob" || n.PlayerSessionID != back.PlayerSessionID || n.Attempt != back.Attempt {
		t.Errorf("%+v, want %+v", n, back)
	}
	admit(t, server, 4, back.PlayerSessionID)

	must(t, game.KeepAlive(ctx))
	must(t, game.Update(ctx, gameserver.GameUpdate{Attributes: []byte(`{"round":2}`)}))
	e, err := ann.Await(ctx, gameclient.OnGameInstanceUpdated)
	if err != nil || string(e.Attributes) != `{"round":2}` {
		t.Errorf("%+v, %v", e, err)
	}
	err = game.Update(ctx, gameserver.GameUpdate{Attributes: []byte(`"round 2"`)})
	if said, ok := errors.AsType[*gameserver.FlowError](err); !ok || said.Code != "INVALID_ARGUMENT" || !strings.Contains(said.Message, "attributes") {
		t.Errorf("attributes that are no object: %v", err)
	}

	unknown, err := game.RemovePlayers(ctx, gameserver.Removal{PlayerID: "bob", Reason: gameserver.RemovedEliminated, Result: []byte(`{"place":2}`)}, gameserver.Removal{PlayerID: "cyd", Reason: gameserver.RemovedAFK})
	if err != nil || !slices.Equal(unknown, []string{"cyd"}) {
		t.Errorf("unknown %v, %v", unknown, err)
	}
	if e, err := bob.Await(ctx, gameclient.OnRemovedFromGame); err != nil || string(e.Result) != `{"place":2}` {
		t.Errorf("%+v, %v", e, err)
	}
	unknown, err = game.ReleasePlayers(ctx, nil, "bob")
	if err != nil || !slices.Equal(unknown, []string{"bob"}) {
		t.Errorf("unknown %v, %v", unknown, err)
	}

	for range 2 { // the second time nothing happens
		must(t, game.End(ctx, gameserver.GameResult{Result: []byte(`{"winner":"ann"}`)}))
	}
	if e, err := ann.Await(ctx, gameclient.OnGameEnded); err != nil || string(e.Result) != `{"winner":"ann"}` {
		t.Errorf("%+v, %v", e, err)
	}
	for {
		select {
		case <-notices:
			continue
		case err := <-heard:
			must(t, err)
		}
		break
	}
}

// Sessions of the plain API have no game instance, and a process without a token cannot request one.
func TestNoGameInstance(t *testing.T) {
	if !ownProcess(t) {
		return
	}
	ctx := t.Context()
	srv := mustertest.Start(t, mustertest.Setting("player-flow", "true"), mustertest.LogLevel(slog.LevelError))
	fleet := srv.NewFleet()
	with := fleet.ServerParameters().GameServerOptions()
	with.Port, with.KeepWhenEmpty, with.Logger = 7777, false, slog.New(slog.DiscardHandler)
	server := gameserver.New(with)
	must(t, server.Start(ctx))
	defer func() { must(t, server.End(context.WithoutCancel(ctx))) }()
	client := gameclient.New(srv.AWSConfig(mustertest.Client), nil)
	s, err := gameclient.Session{}, error(gameclient.ErrNoCapacity)
	for errors.Is(err, gameclient.ErrNoCapacity) { // until the server's first heartbeat has come
		s, err = client.CreateSession(ctx, gameclient.CreateSessionRequest{FleetID: fleet.ID, Location: fleet.Location, MaxPlayers: 2})
	}
	must(t, err)
	_, err = client.AwaitActive(ctx, s.ID)
	must(t, err)
	for endpoint, want := range map[string]error{srv.Endpoint(): gameserver.ErrNoFlow, "http://127.0.0.1:1": gameserver.ErrUnavailable} {
		if _, err := server.GameInstance(ctx, gameserver.GameInstanceOptions{Endpoint: endpoint}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", endpoint, err, want)
		}
	}
	if _, err := server.GameInstance(ctx, gameserver.GameInstanceOptions{Endpoint: "127.0.0.1:8081"}); err == nil || !strings.Contains(err.Error(), `option Endpoint is "127.0.0.1:8081"`) {
		t.Errorf("an address without a scheme: %v", err)
	}
}

package mustertest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/gameserver"
	"github.com/musterhq/muster/mustertest"
)

// run starts a game server of the library and waits until it was given a game session of its own.
func (s *stage) run(callbacks ...gameserver.Callbacks) (*gameserver.Server, *types.GameSession) {
	s.Helper()
	o := s.fleet.ServerOptions()
	o.KeepWhenEmpty = true
	active := make(chan struct{})
	server := gameserver.New(o, append(callbacks, gameserver.Callbacks{OnCreateSessionEnd: func(context.Context) { close(active) }})...)
	s.must(server.Start(s.Context()))
	for {
		out, err := s.api.CreateGameSession(s.Context(), &gamelift.CreateGameSessionInput{
			FleetId: &s.fleet.ID, Location: &s.fleet.Location, MaximumPlayerSessionCount: aws.Int32(4),
		})
		if _, full := errors.AsType[*types.FleetCapacityExceededException](err); full { // until its first heartbeat has come
			time.Sleep(time.Millisecond)
			continue
		}
		s.must(err)
		<-active
		return server, out.GameSession
	}
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// A test can run several game servers of the library, and so can several tests of one program: this one runs three times, in parallel.
func TestSeveralServersOfTheLibrary(t *testing.T) {
	for _, name := range []string{"one", "another", "a third"} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			var mu sync.Mutex
			var mine []*gameserver.Server
			note := gameserver.Callbacks{OnCreateSessionBegin: func(ctx context.Context, _ gameserver.Session) error {
				mu.Lock()
				defer mu.Unlock()
				mine = append(mine, gameserver.FromContext(ctx))
				return nil
			}}
			first, firstGame := s.run(note)
			second, secondGame := s.run(note)
			if !slices.Equal(mine, []*gameserver.Server{first, second}) || gameserver.FromContext(t.Context()) != nil {
				t.Errorf("the callbacks got %v, want %p and %p", mine, first, second)
			}
			for server, game := range map[*gameserver.Server]*types.GameSession{first: firstGame, second: secondGame} {
				if hosted, _ := server.Session(); hosted.ID != *game.GameSessionId || hosted.MaxPlayers != 4 || hosted.FleetID != s.fleet.ID {
					t.Errorf("hosts %+v, want %s", hosted, *game.GameSessionId)
				}
			}
			out, err := s.api.CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{
				GameSessionId: firstGame.GameSessionId, PlayerId: aws.String("ann"), PlayerData: aws.String("red hat"),
			})
			s.must(err)
			seat := out.PlayerSession
			if _, err := second.ValidatePlayerJoin(t.Context(), 1, *seat.PlayerSessionId); !errors.Is(err, gameserver.ErrRefused) {
				t.Errorf("a seat of another server: got %v, want ErrRefused", err)
			}
			player, err := first.ValidatePlayerJoin(t.Context(), 1, *seat.PlayerSessionId)
			if err != nil || player.PlayerID != "ann" || player.Data != "red hat" || player.Status != gameserver.PlayerActive || player.ID != *seat.PlayerSessionId {
				t.Errorf("let in: %+v, %v", player, err)
			}
			s.wantPlayer(seat, types.PlayerSessionStatusActive)
			s.must(first.AdmitPlayers(t.Context(), false))
			for p, err := range first.PlayerSessions(t.Context(), gameserver.PlayerActive) {
				if err != nil || p.PlayerID != "ann" {
					t.Errorf("plays: %+v, %v", p, err)
				}
			}
			s.must(first.HandlePlayerLeave(t.Context(), 1))
			s.wantPlayer(seat, types.PlayerSessionStatusCompleted)
			s.must(first.End(t.Context()))
			s.wantGame(firstGame, types.GameSessionStatusTerminated)
			s.wantGame(secondGame, types.GameSessionStatusActive)
		})
	}
}

// A server of the library survives a restart of the service, and ends when it is told to.
func TestServerOfTheLibraryComesBack(t *testing.T) {
	s := newStage(t)
	server, game := s.run()
	s.srv.RestartAfter(time.Minute)
	seat := s.join(game, "ann")
	_, err := server.ValidatePlayerJoin(t.Context(), 1, *seat.PlayerSessionId)
	for errors.Is(err, gameserver.ErrUnavailable) { // until it is back
		_, err = server.ValidatePlayerJoin(t.Context(), 1, *seat.PlayerSessionId)
	}
	s.must(err)
	s.wantGame(game, types.GameSessionStatusActive)
	_, err = s.api.TerminateGameSession(t.Context(), &gamelift.TerminateGameSessionInput{
		GameSessionId: game.GameSessionId, TerminationMode: types.TerminationModeTriggerOnProcessTerminate,
	})
	s.must(err)
	s.must(server.Wait())
	if _, told := server.TerminationTime(); !told {
		t.Error("the server was not told until when")
	}
	s.wantGame(game, types.GameSessionStatusTerminated)
}

func TestServerOfTheLibraryIsRefused(t *testing.T) {
	s := newStage(t)
	o := s.fleet.ServerOptions()
	o.AuthToken = "wrong"
	err := gameserver.New(o).Start(t.Context())
	if refused, ok := errors.AsType[*gameserver.ConnectError](err); !ok || refused.Status != 403 || !errors.Is(err, gameserver.ErrUnauthorized) {
		t.Errorf("a wrong token: %v", err)
	}
}

// The game's own server runs in the test, beside the service. Several servers may run at once.
func ExampleFleet_ServerOptions() {
	t, finish := newT() // in a test: its own t
	defer finish()

	srv := mustertest.Start(t)
	server := gameserver.New(srv.NewFleet().ServerOptions(), gameserver.Callbacks{ /* the game's */ })
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := server.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Output:
}

package mustertest_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/mustertest"
)

// seats is a backend under test: it reserves seats for players.
type seats struct{ api *gamelift.Client }

func (s seats) take(ctx context.Context, gameSession, player string) (playerSession string, err error) {
	out, err := s.api.CreatePlayerSession(ctx, &gamelift.CreatePlayerSessionInput{GameSessionId: &gameSession, PlayerId: &player})
	if err != nil {
		return "", err
	}
	return *out.PlayerSession.PlayerSessionId, nil
}

// Does the backend reserve a second seat for a player whose first reservation has ended? The test moves the clock by a minute.
func ExampleStart() {
	t, finish := newT() // in a test: its own t
	defer finish()

	srv := mustertest.Start(t)
	fleet := srv.NewFleet()
	server := fleet.StartGameServer()
	created, err := srv.GameLift().CreateGameSession(t.Context(), &gamelift.CreateGameSessionInput{
		FleetId: &fleet.ID, Location: &fleet.Location, MaximumPlayerSessionCount: aws.Int32(1),
	})
	if err != nil {
		t.Fatal(err)
	}
	server.GameSession() // it is active now

	backend := seats{gamelift.NewFromConfig(srv.AWSConfig(mustertest.Backend))}
	if _, err := backend.take(t.Context(), *created.GameSession.GameSessionId, "ann"); err != nil {
		t.Fatal(err)
	}
	srv.Advance(60 * time.Second)
	second, err := backend.take(t.Context(), *created.GameSession.GameSessionId, "ann")
	if err != nil {
		t.Fatal(err)
	}
	if err := server.AcceptPlayer(second); err != nil {
		t.Fatal(err)
	}
	fmt.Println("ann plays")
	// Output: ann plays
}

// The service ends a server that hangs: its connection is open, but its heartbeats have stopped.
func ExampleServer_AdvanceLinks() {
	t, finish := newT()
	defer finish()

	srv := mustertest.Start(t)
	fleet := srv.NewFleet()
	told := make(chan struct{})
	server := fleet.StartGameServerWith(mustertest.GameServerOptions{
		OnTerminate: func(*mustertest.GameServer) { close(told) },
	})
	srv.AdvanceLinks(130 * time.Second) // the server is unhealthy now
	srv.Advance(3 * time.Minute)        // the service ends a server that is unhealthy for so long
	<-told
	fmt.Println(server.ProcessID, "was told to end")
	// Output: process-1 was told to end
}

// Any client can use the service.
func ExampleServer_Endpoint() {
	t, finish := newT()
	defer finish()

	srv := mustertest.Start(t)
	answer, err := http.Get(srv.Endpoint() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	fmt.Println(answer.Status)
	// Output: 200 OK
}

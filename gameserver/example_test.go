package gameserver_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"sync/atomic"

	"github.com/musterhq/muster/gameserver"
)

// The whole of a server: one game session, then it exits.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	options := gameserver.Options{Port: 7777}
	options.AddFlags(flag.CommandLine)
	flag.Parse()

	srv := gameserver.New(options, gameserver.Callbacks{
		OnCreateSessionBegin: func(ctx context.Context, s gameserver.Session) error {
			log.Print("load ", s.Properties["level"])
			return nil
		},
		OnDestroySessionBegin: func(context.Context) error {
			log.Print("save")
			return nil
		},
	})
	players, err := net.Listen("tcp", fmt.Sprint(":", options.Port)) // before the process is reported ready
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		var last atomic.Uint64
		for {
			conn, err := players.Accept()
			if err != nil {
				return
			}
			go play(ctx, srv, gameserver.ConnectionID(last.Add(1)), conn)
		}
	}()
	if err := srv.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// play serves one connection of a game whose clients send their player session id first.
func play(ctx context.Context, srv *gameserver.Server, id gameserver.ConnectionID, conn net.Conn) {
	defer conn.Close()
	var session string
	if _, err := fmt.Fscanln(conn, &session); err != nil {
		return
	}
	player, err := srv.ValidatePlayerJoin(ctx, id, session)
	if errors.Is(err, gameserver.ErrUnavailable) {
		fmt.Fprintln(conn, "try again")
	}
	if err != nil {
		return
	}
	defer func() {
		if err := srv.HandlePlayerLeave(context.WithoutCancel(ctx), id); err != nil {
			log.Print(err)
		}
	}()
	fmt.Fprintln(conn, "welcome", player.PlayerID)
	// until the connection breaks
}

// The matchmaker's data about a session.
func ExampleParseMatchData() {
	m, err := gameserver.ParseMatchData(`{
		"matchId": "m-1", "matchmakingConfigurationArn": "arn:aws:gamelift:eu-central-1:123456789012:matchmakingconfiguration/duo",
		"teams": [{"name": "red", "players": [
			{"playerId": "ann", "attributes": {"skill": {"attributeType": "DOUBLE", "valueAttribute": 12.5}}}]}]}`)
	fmt.Println(m.Teams[0].Name, m.Teams[0].Players[0].ID, m.Teams[0].Players[0].Attributes["skill"], err)
	// Output: red ann 12.5 <nil>
}

// A session that a match made requests players when one has left for good.
func ExampleServer_StartMatchBackfill() {
	_ = gameserver.New(gameserver.Options{}, gameserver.Callbacks{
		OnUpdateSessionBegin: func(ctx context.Context, u gameserver.Update) {
			if u.Reason == gameserver.BackfillTimedOut { // no player was found: try again
				if _, err := gameserver.FromContext(ctx).StartMatchBackfill(ctx, "", nil); err != nil {
					log.Print(err)
				}
			}
		},
	})
}

package gameclient_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/musterhq/muster/gameclient"
)

// network is the game's network layer.
type network struct{}

func (network) Connect(ctx context.Context, seat gameclient.Seat) error {
	// Dial seat.Address(), send seat.PlayerSessionID first, and wait for the server's welcome.
	return nil
}

func (network) Disconnect(context.Context) error { return nil }

var (
	ctx = context.Background()
	cfg aws.Config // config.LoadDefaultConfig(ctx) reads it from the environment
)

// Find a session with a free seat and join it.
func Example() {
	client := gameclient.New(cfg, network{})
	player := gameclient.NewPlayerID(false, true)
	page, err := client.SearchSessions(ctx, gameclient.SearchSessionsRequest{
		FleetID: "fleet-1234", Filter: "hasAvailablePlayerSessions=true", Sort: "creationTimeMillis ASC",
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range page.Sessions {
		_, err := client.JoinSession(ctx, gameclient.JoinSessionRequest{SessionID: s.ID, PlayerID: player})
		if errors.Is(err, gameclient.ErrFull) {
			continue // another player took the last seat
		}
		if err != nil {
			log.Fatal(err)
		}
		break
	}
	// play
	if err := client.LeaveSession(ctx); err != nil {
		log.Print(err)
	}
}

func ExampleNewPlayerID() {
	fmt.Println(len(gameclient.NewPlayerID(false, false)), len(gameclient.NewPlayerID(true, true)))
	// Output: 32 38
}

// If the connection fails, the seat stays reserved: try again, then release it.
func ExampleClient_Release() {
	client := gameclient.New(cfg, network{})
	_, err := client.JoinSession(ctx, gameclient.JoinSessionRequest{SessionID: "arn:…", PlayerID: "ann"})
	if join, ok := errors.AsType[*gameclient.JoinError](err); ok && join.Stage == gameclient.StageConnect {
		time.Sleep(time.Second)
		if client.Connect(ctx, join.Seat) != nil {
			givenBack, err := client.Release(ctx, join.Seat.PlayerSessionID)
			log.Print("the seat is free again: ", givenBack, err)
		}
	}
}

// A backend creates a session with a seat for each player of a party, and sends the seats to their clients.
func ExampleClient_CreateSessionOnQueue() {
	client := gameclient.New(cfg, nil) // a backend needs no connector
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	placed, err := client.CreateSessionOnQueue(ctx, gameclient.CreateSessionOnQueueRequest{
		Queue: "europe", MaxPlayers: 4, Players: []gameclient.PlacedPlayer{{ID: "ann"}, {ID: "bob"}},
	})
	if p, ok := errors.AsType[*gameclient.PlacementError](err); ok && p.Status == gameclient.PlacementPending {
		log.Print("the placement continues: ", p.PlacementID) // AwaitPlacement or StopPlacement
	}
	for _, seat := range placed.Seats {
		fmt.Println(seat.PlayerID, seat.Address(), seat.PlayerSessionID)
	}
}

// A game loop polls in each frame and never waits.
func ExampleFuture_Poll() {
	client := gameclient.New(cfg, network{})
	join := client.JoinFriendAsync(ctx, gameclient.JoinFriendRequest{FriendID: "bob", PlayerID: "ann"})
	for range time.Tick(time.Second / 60) {
		// draw a frame
		if seat, completed, err := join.Poll(); completed {
			fmt.Println(seat.SessionID, err)
			return
		}
	}
}

// The client requests a match, polls the ticket, and joins the session of the match.
func ExampleClient_NewTracker() {
	client := gameclient.New(cfg, network{})
	tracker := client.NewTracker(gameclient.MatchEvents{
		OnAcceptance: func(t gameclient.Ticket) {
			_ = client.AcceptMatch(ctx, gameclient.AcceptMatchRequest{TicketID: t.ID, PlayerIDs: []string{"ann"}, Answer: gameclient.Accept})
		},
		OnComplete: func(_ gameclient.Ticket, s gameclient.Seat, err error) { fmt.Println("playing at", s.Address(), err) },
		OnFailure:  func(t gameclient.Ticket) { fmt.Println("no match:", t.Status, t.StatusMessage) },
	}, gameclient.TrackerOptions{})
	defer tracker.Close()
	ticket, err := client.StartMatchmaking(ctx, gameclient.StartMatchmakingRequest{
		Configuration: "duo",
		Players:       []gameclient.MatchPlayer{{ID: "ann", Attributes: map[string]any{"skill": 12.5, "mode": "siege"}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := tracker.StartPolling(ticket.ID, "ann"); err != nil {
		log.Fatal(err)
	}
}

// A player logs in, returns to a running game or searches for one, and connects.
func ExampleLogin() {
	ctx := context.Background()
	player, err := gameclient.Login(ctx, gameclient.PlayerOptions{
		Endpoint: "http://127.0.0.1:8080", Provider: gameclient.ProviderDev, Token: gameclient.DevToken("ann"), DeviceLabel: "Ann's laptop",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer player.Close()
	connect := func(host gameclient.HostDetails) { fmt.Println(host.Address(), host.PlayerSessionID) } // the game's own

	if player.AtLogin.Game != nil { // the program crashed during this game
		host, err := player.Reconnect(ctx)
		if err != nil {
			log.Fatal(err)
		}
		connect(host)
	} else if _, err := player.EnterMatchmaking(ctx, "casual"); err != nil {
		log.Fatal(err)
	}
	for e, err := range player.Events(ctx) {
		if err != nil {
			log.Fatal(err) // gameclient.ErrReplaced: another device has logged in
		}
		switch e.Type {
		case gameclient.OnMatchFound:
			err = player.AnswerMatch(ctx, e.SearchID, true)
		case gameclient.OnHostConnectionDetailsReceived:
			connect(*e.Host)
		case gameclient.OnReconnectAvailable:
			fmt.Println("the game continues: return until", e.Deadline)
		case gameclient.OnGameEnded:
			fmt.Println("the result:", string(e.Result))
			return
		}
		if err != nil {
			log.Print(err)
		}
	}
}

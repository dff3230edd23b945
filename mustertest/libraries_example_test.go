package mustertest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/gameclient"
	"github.com/musterhq/muster/gameserver"
	"github.com/musterhq/muster/mustertest"
)

// network is the network layer of a game that only remembers its seat.
type network struct{ seat gameclient.Seat }

func (n *network) Connect(_ context.Context, seat gameclient.Seat) error { n.seat = seat; return nil }
func (n *network) Disconnect(context.Context) error                      { return nil }

// newDuel makes matches of two or three players in a configuration "duel".
func newDuel(t testing.TB, srv *mustertest.Server, queue string) {
	rules := `{"ruleLanguageVersion":"1.0","teams":[{"name":"all","minPlayers":2,"maxPlayers":3}]}`
	_, err := srv.GameLift().CreateMatchmakingRuleSet(t.Context(), &gamelift.CreateMatchmakingRuleSetInput{Name: aws.String("duel"), RuleSetBody: &rules})
	if err == nil {
		_, err = srv.GameLift().CreateMatchmakingConfiguration(t.Context(), &gamelift.CreateMatchmakingConfigurationInput{
			Name: aws.String("duel"), RuleSetName: aws.String("duel"), AcceptanceRequired: aws.Bool(false), RequestTimeoutSeconds: aws.Int32(600),
			GameSessionQueueArns: []string{"arn:aws:gamelift:" + mustertest.Region + "::gamesessionqueue/" + queue}, BackfillMode: types.BackfillModeManual,
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The first player creates a game session, and the second one finds and joins it.
func Example_findOrCreateSession() {
	t, finish := newT() // in a test: its own t
	defer finish()

	srv := mustertest.Start(t)
	fleet := srv.NewFleet()
	fleet.StartGameServer()
	for _, name := range []string{"ann", "bob"} {
		client := gameclient.New(srv.AWSConfig(mustertest.Client), &network{})
		_, err := client.JoinOrCreate(t.Context(), gameclient.JoinOrCreateRequest{
			PlayerID: name,
			Search:   gameclient.SearchSessionsRequest{FleetID: fleet.ID, Location: fleet.Location},
			Create:   gameclient.CreateSessionRequest{MaxPlayers: 2},
		})
		if err != nil {
			t.Fatal(err)
		}
		seat, joined := client.Joined()
		session, err := client.Session(t.Context(), seat.SessionID)
		fmt.Println(seat.PlayerID, joined, session.Players, "of", session.MaxPlayers, err)
	}
	// Output:
	// ann true 1 of 2 <nil>
	// bob true 2 of 2 <nil>
}

// Two players request a match. Each client polls its ticket and joins the game session of the match.
func Example_matchmaking() {
	t, finish := newT()
	defer finish()

	srv := mustertest.Start(t)
	fleet := srv.NewFleet()
	newDuel(t, srv, fleet.NewQueue(60))
	fleet.StartGameServer()
	done := make(chan string)
	for _, name := range []string{"ann", "bob"} {
		client := gameclient.New(srv.AWSConfig(mustertest.Client), &network{})
		ticket, err := client.StartMatchmaking(t.Context(), gameclient.StartMatchmakingRequest{
			Configuration: "duel", Players: []gameclient.MatchPlayer{{ID: name}},
		})
		if err != nil {
			t.Fatal(err)
		}
		tracker := client.NewTracker(gameclient.MatchEvents{
			OnComplete: func(_ gameclient.Ticket, seat gameclient.Seat, err error) {
				done <- fmt.Sprint(seat.PlayerID, " joined: ", err == nil)
			},
			OnFailure: func(ticket gameclient.Ticket) { done <- ticket.StatusMessage },
		}, gameclient.TrackerOptions{Interval: 20 * time.Millisecond})
		defer tracker.Close()
		if err := tracker.StartPolling(ticket.ID, name); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println(<-done)
	fmt.Println(<-done)
	// Unordered output:
	// ann joined: true
	// bob joined: true
}

// With player flow, a player logs in, forms a party with a friend, searches, and gets the address of the game server.
func Example_playerFlow() {
	t, finish := newT()
	defer finish()

	srv := mustertest.Start(t, mustertest.Setting("player-flow", "true"))
	fleet := srv.NewFleet()
	newDuel(t, srv, fleet.NewQueue(60))
	server := fleet.StartGameServer()
	login := func(name string) *gameclient.Player {
		player, err := gameclient.Login(t.Context(), gameclient.PlayerOptions{
			Endpoint: srv.Endpoint(), Provider: gameclient.ProviderDev, Token: gameclient.DevToken(name),
		})
		if err != nil {
			t.Fatal(err)
		}
		return player
	}
	ann, bob := login("ann"), login("bob")
	defer ann.Close()
	defer bob.Close()
	party, err := ann.CreateParty(t.Context(), gameclient.CreatePartyRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bob.JoinPartyByCode(t.Context(), party.InviteCode); err != nil {
		t.Fatal(err)
	}
	for _, player := range []*gameclient.Player{ann, bob} {
		if _, err := player.SetReady(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ann.EnterMatchmaking(t.Context(), "duel"); err != nil {
		t.Fatal(err)
	}
	for e, err := range ann.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case gameclient.OnEnteredMatchmaking:
			fmt.Println("ann searches in", e.Search.Queue)
		case gameclient.OnHostConnectionDetailsReceived: // connect to e.Host.Address()
			fmt.Println("ann connects:", server.AcceptPlayer(e.Host.PlayerSessionID))
		case gameclient.OnGameMembershipChanged:
			if e.New == gameclient.MembershipActive {
				fmt.Println("ann plays:", ann.Flow().Phase)
				return
			}
		}
	}
	// Output:
	// ann searches in duel
	// ann connects: <nil>
	// ann plays: IN_GAME
}

// A game server hosts a session, accepts a player, and ends after the player has left.
func Example_gameServer() {
	t, finish := newT()
	defer finish()

	srv := mustertest.Start(t)
	fleet := srv.NewFleet()
	active := make(chan struct{})
	server := gameserver.New(fleet.ServerOptions(), gameserver.Callbacks{
		OnCreateSessionBegin: func(_ context.Context, s gameserver.Session) error {
			fmt.Println("load", s.Properties["level"])
			return nil
		},
		OnCreateSessionEnd:    func(context.Context) { close(active) },
		OnDestroySessionBegin: func(context.Context) error { fmt.Println("save"); return nil },
	})
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A backend reserves a seat in a new session. The queue waits for the server's first heartbeat.
	backend := gameclient.New(srv.AWSConfig(mustertest.Backend), nil)
	placed, err := backend.CreateSessionOnQueue(t.Context(), gameclient.CreateSessionOnQueueRequest{
		Queue: fleet.NewQueue(60), MaxPlayers: 4, Properties: map[string]string{"level": "arena"}, Players: []gameclient.PlacedPlayer{{ID: "ann"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	<-active
	const connection = 1 // the network layer's id of ann's connection
	player, err := server.ValidatePlayerJoin(t.Context(), connection, placed.Seats[0].PlayerSessionID)
	fmt.Println(player.PlayerID, player.Status, err)
	if err := server.HandlePlayerLeave(t.Context(), connection); err != nil {
		t.Fatal(err)
	}
	fmt.Println(server.Wait())
	// Output:
	// load arena
	// ann ACTIVE <nil>
	// save
	// <nil>
}

// A game server requests a player for the free seat of a match.
func Example_backfill() {
	t, finish := newT()
	defer finish()

	srv := mustertest.Start(t)
	fleet := srv.NewFleet()
	newDuel(t, srv, fleet.NewQueue(60))
	active, updated := make(chan struct{}), make(chan gameserver.Update, 1)
	server := gameserver.New(fleet.ServerOptions(), gameserver.Callbacks{
		OnCreateSessionEnd:   func(context.Context) { close(active) },
		OnUpdateSessionBegin: func(_ context.Context, u gameserver.Update) { updated <- u },
	})
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	client := gameclient.New(srv.AWSConfig(mustertest.Client), nil)
	request := func(players ...gameclient.MatchPlayer) (ticket gameclient.Ticket) {
		ticket, err := client.StartMatchmaking(t.Context(), gameclient.StartMatchmakingRequest{Configuration: "duel", Players: players})
		if err != nil {
			t.Fatal(err)
		}
		return ticket
	}
	party := request(gameclient.MatchPlayer{ID: "ann"}, gameclient.MatchPlayer{ID: "bob"})
	<-active
	for len(party.Seats) < 2 { // in a game: a Tracker
		var err error
		if party, err = client.Ticket(t.Context(), party.ID); err != nil {
			t.Fatal(err)
		}
	}
	for i, seat := range party.Seats {
		if _, err := server.ValidatePlayerJoin(t.Context(), uint64(i), seat.PlayerSessionID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := server.StartMatchBackfill(t.Context(), "", nil); err != nil {
		t.Fatal(err)
	}
	request(gameclient.MatchPlayer{ID: "cyd"})
	u := <-updated
	match, err := gameserver.ParseMatchData(u.Session.MatchmakerData)
	fmt.Println(u.Reason, len(match.Teams[0].Players), "players", err)
	if err := server.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Output: MATCHMAKING_DATA_UPDATED 3 players <nil>
}

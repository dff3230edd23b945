package gameclient

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
)

// Awaited, polled and observed: all see the same, once.
func TestFuture(t *testing.T) {
	c := newCloud(t)
	client := c.client(nil)
	release := make(chan struct{})
	f := Start(t.Context(), client, func(context.Context) (int, error) {
		<-release
		return 7, nil
	})
	if _, completed, _ := f.Poll(); completed {
		t.Error("completed before the work was")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Await(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that is given up: got %v", err)
	}
	order := make(chan string, 4)
	f.OnComplete(func(n int, err error) {
		if n != 7 || err != nil {
			t.Errorf("observed %d, %v", n, err)
		}
		order <- "first"
	})
	f.OnComplete(func(int, error) { panic("in a game's code") })
	f.OnComplete(func(int, error) { order <- "second" })
	close(release)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if n, err := f.Await(t.Context()); n != 7 || err != nil {
				t.Errorf("awaited %d, %v", n, err)
			}
		})
	}
	all.Wait()
	<-f.Done()
	if n, completed, err := f.Poll(); n != 7 || !completed || err != nil {
		t.Errorf("polled %d, %v, %v", n, completed, err)
	}
	if a, b := <-order, <-order; a != "first" || b != "second" {
		t.Errorf("observed in the order %s, %s", a, b)
	}
	f.OnComplete(func(int, error) { order <- "late" })
	if got := <-order; got != "late" || len(order) != 0 {
		t.Errorf("observed %s and %d more", got, len(order))
	}
}

// A function that ends its goroutine still completes its Future.
func TestFutureOfWorkThatDoesNotReturn(t *testing.T) {
	f := Start(t.Context(), newCloud(t).client(nil), func(context.Context) (int, error) {
		runtime.Goexit()
		return 7, nil
	})
	if n, err := f.Await(t.Context()); n != 0 || err == nil {
		t.Errorf("got %d, %v, want an error", n, err)
	}
}

func TestFutureIsCancelled(t *testing.T) {
	client := newCloud(t).client(nil)
	f := Start(t.Context(), client, func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	})
	f.Cancel()
	if _, err := f.Await(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Every call has its asynchronous form, and a request that cannot be meant completes like any other.
func TestAsyncForms(t *testing.T) {
	c := newCloud(t)
	c.answer("CreateGameSession", members{"GameSession": game(nil)})
	c.answer("SearchGameSessions", members{"GameSessions": []members{game(nil)}})
	c.answer("DescribeGameSessions", members{"GameSessions": []members{game(nil)}})
	c.answer("StartGameSessionPlacement", members{"GameSessionPlacement": members{"PlacementId": "p-1", "Status": "FULFILLED"}})
	c.answer("CreatePlayerSession", members{"PlayerSession": seat(nil)})
	c.answer("ReleasePlayerSession", members{})
	c.answer("StartMatchmaking", members{"MatchmakingTicket": members{"TicketId": "t-1"}})
	c.answer("StopMatchmaking", members{})
	c.answer("AcceptMatch", members{})
	client, ctx := c.client(&wire{}), t.Context()
	wait := func(name string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, err := client.CreateSessionAsync(ctx, CreateSessionRequest{FleetID: "fleet-1"}).Await(ctx)
	wait("create "+s.ID, err)
	page, err := client.SearchSessionsAsync(ctx, SearchSessionsRequest{FleetID: "fleet-1"}).Await(ctx)
	wait("search "+page.NextToken, err)
	_, err = client.CreateSessionOnQueueAsync(ctx, CreateSessionOnQueueRequest{Queue: "eu"}).Await(ctx)
	wait("place", err)
	_, err = client.JoinSessionAsync(ctx, JoinSessionRequest{SessionID: testGame, PlayerID: "ann"}).Await(ctx)
	wait("join", err)
	_, err = client.LeaveSessionAsync(ctx).Await(ctx)
	wait("leave", err)
	_, err = client.ConnectAsync(ctx, Seat{PlayerSessionID: testSeat, IPAddress: "127.0.0.1", Port: 7777}).Await(ctx)
	wait("connect", err)
	_, err = client.AwaitActiveAsync(ctx, testGame).Await(ctx)
	wait("await active", err)
	_, err = client.ReleaseAsync(ctx, testSeat).Await(ctx)
	wait("release", err)
	_, err = client.StartMatchmakingAsync(ctx, StartMatchmakingRequest{Configuration: "duo", Players: []MatchPlayer{{ID: "ann"}}}).Await(ctx)
	wait("start matchmaking", err)
	_, err = client.AcceptMatchAsync(ctx, AcceptMatchRequest{"t-1", []string{"ann"}, Accept}).Await(ctx)
	wait("accept", err)
	_, err = client.StopMatchmakingAsync(ctx, "t-1").Await(ctx)
	wait("stop matchmaking", err)
	_, err = client.JoinFriendAsync(ctx, JoinFriendRequest{}).Await(ctx)
	invalidField(t, "join friend", err, "FriendID")
	_, err = client.JoinSessionAsync(ctx, JoinSessionRequest{}).Await(ctx)
	invalidField(t, "join", err, "SessionID")
}

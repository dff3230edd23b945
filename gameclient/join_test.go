package gameclient

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestJoinAndLeave(t *testing.T) {
	c := newCloud(t)
	c.answer("CreatePlayerSession", members{"PlayerSession": seat(nil)})
	w := &wire{}
	client := c.client(w)
	got, err := client.JoinSession(t.Context(), JoinSessionRequest{SessionID: testGame, PlayerID: "ann", PlayerData: "d"})
	want := Seat{PlayerSessionID: testSeat, PlayerID: "ann", SessionID: testGame, IPAddress: "127.0.0.1", DNSName: "host.example", Port: 7777}
	if err != nil || got != want || got.Address() != "127.0.0.1:7777" {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	sent(t, c, "CreatePlayerSession", members{"GameSessionId": testGame, "PlayerId": "ann", "PlayerData": "d"})
	if len(w.seats) != 1 || w.seats[0] != want {
		t.Errorf("the connector got %+v, want %+v", w.seats, want)
	}
	if at, ok := client.Joined(); !ok || at != want {
		t.Errorf("joined: got %+v, %v", at, ok)
	}
	if _, err := client.JoinSession(t.Context(), JoinSessionRequest{SessionID: testGame, PlayerID: "ann"}); !errors.Is(err, ErrAlreadyJoined) {
		t.Errorf("a second join: got %v, want ErrAlreadyJoined", err)
	}
	if _, err := client.JoinFriend(t.Context(), JoinFriendRequest{FriendID: "bob", PlayerID: "ann"}); !errors.Is(err, ErrAlreadyJoined) {
		t.Errorf("a friend's session meanwhile: got %v, want ErrAlreadyJoined", err)
	}
	if err := client.LeaveSession(t.Context()); err != nil || w.open {
		t.Errorf("leave: got %v, open %v", err, w.open)
	}
	if asked := c.operations(); asked != "CreatePlayerSession" {
		t.Errorf("asked %s, want one reservation: leaving is between client and game server", asked)
	}
	if err := client.LeaveSession(t.Context()); !errors.Is(err, ErrNotJoined) {
		t.Errorf("leave again: got %v, want ErrNotJoined", err)
	}
	if _, err := client.JoinSession(t.Context(), JoinSessionRequest{SessionID: testGame, PlayerID: "ann"}); err != nil {
		t.Errorf("join again: %v", err)
	}
	w.open = false // the connection was lost
	if err := client.LeaveSession(t.Context()); err == nil {
		t.Error("the connector's error is lost")
	}
	if _, ok := client.Joined(); ok {
		t.Error("still joined after leaving with an error")
	}
}

func TestJoinWithoutASeat(t *testing.T) {
	c := newCloud(t)
	c.refuse("CreatePlayerSession", "GameSessionFullException")
	w := &wire{}
	client := c.client(w)
	_, err := client.JoinSession(t.Context(), JoinSessionRequest{SessionID: testGame, PlayerID: "ann"})
	join, ok := errors.AsType[*JoinError](err)
	if !ok || join.Stage != StageReserve || join.Seat.PlayerSessionID != "" || !errors.Is(err, ErrFull) {
		t.Errorf("got %v, want a JoinError of stage reserve with ErrFull", err)
	}
	if len(w.seats) != 0 {
		t.Error("connected without a seat")
	}
	if _, err := c.client(nil).JoinSession(t.Context(), JoinSessionRequest{SessionID: testGame, PlayerID: "ann"}); !errors.Is(err, ErrNoConnector) {
		t.Errorf("got %v, want ErrNoConnector", err)
	}
	if asked := c.operations(); asked != "CreatePlayerSession" {
		t.Errorf("asked %s: a client without a connector must not reserve", asked)
	}
}

// The seat stays: it can be tried again, or given back.
func TestJoinThatDoesNotConnect(t *testing.T) {
	c := newCloud(t)
	c.answer("CreatePlayerSession", members{"PlayerSession": seat(nil)})
	unreachable := errors.New("unreachable")
	w := &wire{fail: unreachable}
	client := c.client(w)
	_, err := client.JoinSession(t.Context(), JoinSessionRequest{SessionID: testGame, PlayerID: "ann"})
	join, ok := errors.AsType[*JoinError](err)
	if !ok || join.Stage != StageConnect || join.Seat.PlayerSessionID != testSeat || !errors.Is(err, unreachable) {
		t.Fatalf("got %v, want a JoinError of stage connect with the seat", err)
	}
	if _, ok := client.Joined(); ok {
		t.Error("the client takes itself for joined")
	}
	if err := client.Connect(t.Context(), join.Seat); !errors.Is(err, unreachable) {
		t.Errorf("again: got %v", err)
	}
	w.fail = nil
	if err := client.Connect(t.Context(), join.Seat); err != nil {
		t.Errorf("at last: got %v", err)
	}
	if at, ok := client.Joined(); !ok || at != join.Seat {
		t.Errorf("joined: got %+v, %v", at, ok)
	}
	if asked := c.operations(); asked != "CreatePlayerSession" {
		t.Errorf("asked %s, want one reservation", asked)
	}
}

// A backend reserves for others, as many as there are.
func TestReserve(t *testing.T) {
	c := newCloud(t)
	c.on("CreatePlayerSession", func(in members) (members, string) {
		return members{"PlayerSession": seat(members{"PlayerId": in["PlayerId"]})}, ""
	})
	client := c.client(nil)
	for _, player := range []string{"ann", "bob"} {
		if got, err := client.Reserve(t.Context(), JoinSessionRequest{SessionID: testGame, PlayerID: player}); err != nil || got.PlayerID != player {
			t.Errorf("%s: got %+v, %v", player, got, err)
		}
	}
	c.refuse("CreatePlayerSession", "GameSessionFullException")
	if _, err := client.Reserve(t.Context(), JoinSessionRequest{SessionID: testGame, PlayerID: "cyd"}); !errors.Is(err, ErrFull) {
		t.Errorf("got %v, want ErrFull", err)
	}
}

// One join at a time, however many want to.
func TestJoinsAtTheSameTime(t *testing.T) {
	c := newCloud(t)
	c.answer("CreatePlayerSession", members{"PlayerSession": seat(nil)})
	w := &wire{hold: make(chan struct{})}
	client := c.client(w)
	var joins []*Future[Seat]
	for range 5 {
		joins = append(joins, client.JoinSessionAsync(t.Context(), JoinSessionRequest{SessionID: testGame, PlayerID: "ann"}))
	}
	refused := make(chan error, len(joins))
	for _, j := range joins {
		j.OnComplete(func(_ Seat, err error) { refused <- err })
	}
	for range len(joins) - 1 {
		if err := <-refused; !errors.Is(err, ErrAlreadyJoined) {
			t.Errorf("got %v, want ErrAlreadyJoined", err)
		}
	}
	if err := client.LeaveSession(t.Context()); !errors.Is(err, ErrNotJoined) {
		t.Errorf("leave while joining: got %v, want ErrNotJoined", err)
	}
	close(w.hold)
	if err := <-refused; err != nil {
		t.Errorf("the one that came through: got %v", err)
	}
}

func TestReleaseAgainstMuster(t *testing.T) {
	c := newCloud(t)
	c.answer("ReleasePlayerSession", members{"PlayerSessions": []members{seat(members{"Status": "COMPLETED"})}})
	client := c.client(nil)
	if given, err := client.Release(t.Context(), testSeat); !given || err != nil {
		t.Errorf("got %v, %v, want it given back", given, err)
	}
	sent(t, c, "ReleasePlayerSession", members{"PlayerSessionId": testSeat})
	c.refuse("ReleasePlayerSession", "InvalidRequestException")
	if given, err := client.Release(t.Context(), testSeat); given || !errors.Is(err, ErrRefused) {
		t.Errorf("a seat in use: got %v, %v, want ErrRefused", given, err)
	}
}

// The cloud has no such operation: the seat times out, and the client does not ask again.
func TestReleaseAgainstTheCloud(t *testing.T) {
	c := newCloud(t)
	client := c.client(nil)
	for range 3 {
		if given, err := client.Release(t.Context(), testSeat); given || err != nil {
			t.Errorf("got %v, %v, want neither", given, err)
		}
	}
	if asked := c.operations(); asked != "ReleasePlayerSession" {
		t.Errorf("asked %s, want once", asked)
	}
}

func TestJoinFriend(t *testing.T) {
	c := newCloud(t)
	other := members{"PlayerSessionId": "psess-old", "PlayerId": "bob", "GameSessionId": "arn:old", "Status": "COMPLETED"}
	c.on("DescribePlayerSessions", func(in members) (members, string) {
		if in["PlayerId"] != "bob" {
			return members{}, ""
		}
		if in["NextToken"] == nil { // what bob played before fills a page
			return members{"PlayerSessions": []members{seat(other)}, "NextToken": "t1"}, ""
		}
		return members{"PlayerSessions": []members{seat(members{"PlayerSessionId": "psess-bob", "PlayerId": "bob", "Status": "ACTIVE"})}}, ""
	})
	c.answer("CreatePlayerSession", members{"PlayerSession": seat(nil)})
	for name, x := range map[string]struct {
		friend string
		game   members
		admits func(Session) bool
		want   error
	}{
		"not playing":   {"cyd", nil, nil, ErrNotPlaying},
		"still loading": {"bob", members{"Status": "ACTIVATING"}, nil, ErrWrongStatus},
		"closed":        {"bob", members{"PlayerSessionCreationPolicy": "DENY_ALL"}, nil, ErrWrongStatus},
		"full":          {"bob", members{"CurrentPlayerSessionCount": 4}, nil, ErrFull},
		"private":       {"bob", nil, func(s Session) bool { return s.Properties["friends"] == "yes" }, ErrWrongStatus},
		"open":          {"bob", members{"GameProperties": []members{{"Key": "friends", "Value": "yes"}}}, func(s Session) bool { return s.Properties["friends"] == "yes" }, nil},
	} {
		c.answer("DescribeGameSessions", members{"GameSessions": []members{game(x.game)}})
		w := &wire{}
		got, err := c.client(w).JoinFriend(t.Context(), JoinFriendRequest{FriendID: x.friend, PlayerID: "ann", Admits: x.admits})
		if !errors.Is(err, x.want) || (err == nil) != (x.want == nil) {
			t.Errorf("%s: got %v, want %v", name, err, x.want)
		}
		if joined := len(w.seats) == 1; joined != (x.want == nil) || joined && (w.seats[0] != got || got.PlayerID != "ann") {
			t.Errorf("%s: connected with %+v, got %+v", name, w.seats, got)
		}
	}
	where, err := c.client(nil).FindPlayer(t.Context(), "bob")
	if err != nil || where.SessionID != testGame || where.PlayerSessionID != "" {
		t.Errorf("where is bob: got %+v, %v, want the session without the seat", where, err)
	}
}

func TestPlacement(t *testing.T) {
	c := newCloud(t)
	c.on("StartGameSessionPlacement", func(in members) (members, string) {
		return members{"GameSessionPlacement": members{"PlacementId": in["PlacementId"], "Status": "PENDING"}}, ""
	})
	statuses := []string{"PENDING", "PENDING", "FULFILLED"} // looked at after 20 and 40 ms, however long the longest pause is
	c.on("DescribeGameSessionPlacement", func(in members) (members, string) {
		p := members{"PlacementId": in["PlacementId"], "Status": statuses[0]}
		if statuses = statuses[1:]; len(statuses) == 0 {
			p["GameSessionArn"], p["GameSessionRegion"], p["IpAddress"], p["DnsName"], p["Port"] = testGame, "custom-home", "127.0.0.1", "host.example", 7777
			p["PlacedPlayerSessions"] = []members{{"PlayerId": "ann", "PlayerSessionId": testSeat}}
		}
		return members{"GameSessionPlacement": p}, ""
	})
	client := c.client(&wire{})
	client.options.PollInterval = time.Hour
	placed, err := client.CreateSessionOnQueue(t.Context(), CreateSessionOnQueueRequest{
		Queue: "eu", PlacementID: "p-1", Name: "Debug", MaxPlayers: 4, Properties: map[string]string{"level": "arena"}, Data: "d",
		Players: []PlacedPlayer{{ID: "ann", Data: "x"}}, Latencies: []Latency{{"ann", "custom-home", 12}},
	})
	if err != nil || placed.ID != "p-1" || placed.SessionID != testGame || placed.Location != "custom-home" || len(placed.Seats) != 1 {
		t.Fatalf("got %+v, %v", placed, err)
	}
	if at := placed.Seats[0]; at.PlayerSessionID != testSeat || at.PlayerID != "ann" || at.SessionID != testGame || at.Address() != "127.0.0.1:7777" {
		t.Errorf("seat: got %+v", at)
	}
	if err := client.Connect(t.Context(), placed.Seats[0]); err != nil {
		t.Error(err)
	}
	want := members{"PlacementId": "p-1", "GameSessionQueueName": "eu", "MaximumPlayerSessionCount": uint64(4), "GameSessionName": "Debug",
		"GameProperties": []any{members{"Key": "level", "Value": "arena"}}, "GameSessionData": "d",
		"DesiredPlayerSessions": []any{members{"PlayerId": "ann", "PlayerData": "x"}},
		"PlayerLatencies":       []any{members{"PlayerId": "ann", "RegionIdentifier": "custom-home", "LatencyInMilliseconds": 12.0}}}
	c.mu.Lock()
	first := c.asked[0]
	c.asked = []asked{first}
	c.mu.Unlock()
	sent(t, c, "StartGameSessionPlacement", want)

	for _, status := range []string{"CANCELLED", "TIMED_OUT", "FAILED"} {
		statuses = []string{status, ""}
		_, err := client.CreateSessionOnQueue(t.Context(), CreateSessionOnQueueRequest{Queue: "eu", MaxPlayers: 2})
		ended, ok := errors.AsType[*PlacementError](err)
		if !ok || string(ended.Status) != status || ended.PlacementID == "" || ended.Cause != nil {
			t.Errorf("got %v, want a PlacementError that is %s", err, status)
		}
	}
}

// A caller that stops waiting can continue later: the error has the id.
func TestPlacementAfterTheWait(t *testing.T) {
	c := newCloud(t)
	pending := members{"GameSessionPlacement": members{"PlacementId": "p-1", "Status": "PENDING"}}
	c.answer("StartGameSessionPlacement", pending)
	c.answer("StopGameSessionPlacement", pending)
	ctx, cancel := context.WithCancel(t.Context())
	c.on("DescribeGameSessionPlacement", func(members) (members, string) {
		cancel()
		return pending, ""
	})
	client := c.client(nil)
	_, err := client.CreateSessionOnQueue(ctx, CreateSessionOnQueueRequest{Queue: "eu", PlacementID: "p-1"})
	waiting, ok := errors.AsType[*PlacementError](err)
	if !ok || waiting.Status != PlacementPending || waiting.PlacementID != "p-1" || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want a PlacementError that is PENDING", err)
	}
	c.answer("DescribeGameSessionPlacement", members{"GameSessionPlacement": members{"PlacementId": "p-1", "Status": "FULFILLED", "GameSessionArn": testGame}})
	if placed, err := client.AwaitPlacement(t.Context(), waiting.PlacementID); err != nil || placed.SessionID != testGame {
		t.Errorf("going on: got %+v, %v", placed, err)
	}
	if err := client.StopPlacement(t.Context(), "p-1"); err != nil {
		t.Error(err)
	}
	c.refuse("StartGameSessionPlacement", "InternalServiceException") // it may have started all the same
	_, err = client.CreateSessionOnQueue(t.Context(), CreateSessionOnQueueRequest{Queue: "eu"})
	if waiting, ok := errors.AsType[*PlacementError](err); !ok || waiting.PlacementID == "" || !errors.Is(err, ErrUnavailable) {
		t.Errorf("no answer to the start: got %v, want a PlacementError with an id", err)
	}
	c.refuse("StartGameSessionPlacement", "NotFoundException")
	if _, err := client.CreateSessionOnQueue(t.Context(), CreateSessionOnQueueRequest{Queue: "eu"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown queue: got %v, want ErrNotFound", err)
	}
}

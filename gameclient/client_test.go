package gameclient

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

func invalidField(t *testing.T, what string, err error, field string) {
	t.Helper()
	invalid, ok := errors.AsType[*InvalidRequestError](err)
	if !ok || invalid.Field != field {
		t.Errorf("%s: got %v, want field %s named", what, err, field)
	}
}

func sent(t *testing.T, c *cloud, operation string, want members) {
	t.Helper()
	if got := c.last(); got.operation != operation || !reflect.DeepEqual(got.in, want) {
		t.Errorf("sent %s %v\nwant %s %v", got.operation, got.in, operation, want)
	}
}

// Empty fields are not sent, except for the number of seats.
func TestCreateSessionSendsWhatIsSet(t *testing.T) {
	c := newCloud(t)
	c.answer("CreateGameSession", members{"GameSession": game(members{"Status": "ACTIVATING"})})
	client := c.client(nil)
	for _, x := range []struct {
		request CreateSessionRequest
		want    members
	}{
		{CreateSessionRequest{FleetID: "fleet-1"}, members{"FleetId": "fleet-1", "MaximumPlayerSessionCount": uint64(0)}},
		{CreateSessionRequest{AliasID: "alias-1", MaxPlayers: 4}, members{"AliasId": "alias-1", "MaximumPlayerSessionCount": uint64(4)}},
		{
			CreateSessionRequest{FleetID: "fleet-1", Location: "custom-home", CreatorID: "ann", Name: "Debug", MaxPlayers: 2, Data: "d",
				Properties: map[string]string{"level": "arena", "goal": "5"}, IdempotencyToken: "token-1"},
			members{"FleetId": "fleet-1", "Location": "custom-home", "CreatorId": "ann", "Name": "Debug", "MaximumPlayerSessionCount": uint64(2),
				"GameSessionData": "d", "IdempotencyToken": "token-1",
				"GameProperties": []any{members{"Key": "goal", "Value": "5"}, members{"Key": "level", "Value": "arena"}}},
		},
	} {
		s, err := client.CreateSession(t.Context(), x.request)
		if err != nil || s.ID != testGame || s.Status != SessionActivating {
			t.Errorf("got %+v, %v", s, err)
		}
		sent(t, c, "CreateGameSession", x.want)
	}
}

// Each member of a game session arrives where the game looks for it.
func TestSessionHasEveryMember(t *testing.T) {
	c := newCloud(t)
	ended := created.Add(time.Hour)
	c.answer("SearchGameSessions", members{"GameSessions": []members{
		game(members{"StatusReason": "INTERRUPTED", "TerminationTime": epoch(ended), "PlayerSessionCreationPolicy": "DENY_ALL"})}, "NextToken": "t1"})
	page, err := c.client(nil).SearchSessions(t.Context(), SearchSessionsRequest{
		FleetID: "fleet-1", Location: "custom-home", Filter: "f", Sort: "s", MaxResults: 7, NextToken: "t0"})
	if err != nil || page.NextToken != "t1" || len(page.Sessions) != 1 {
		t.Fatalf("got %+v, %v", page, err)
	}
	want := Session{
		ID: testGame, Name: "Debug", CreatorID: "ann", FleetID: "fleet-1", Location: "custom-home", Status: SessionActive, StatusReason: "INTERRUPTED",
		Created: created, Ended: ended, IPAddress: "127.0.0.1", DNSName: "host.example", Port: 7777, Players: 1, MaxPlayers: 4,
		Properties: map[string]string{"level": "arena"}, Data: "data", MatchmakerData: "{}",
	}
	got := page.Sessions[0]
	got.Created, got.Ended = got.Created.UTC(), got.Ended.UTC()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	sent(t, c, "SearchGameSessions", members{"FleetId": "fleet-1", "Location": "custom-home", "FilterExpression": "f", "SortExpression": "s",
		"Limit": uint64(7), "NextToken": "t0"})
	if _, err := c.client(nil).SearchSessions(t.Context(), SearchSessionsRequest{AliasID: "alias-1"}); err != nil {
		t.Error(err)
	}
	sent(t, c, "SearchGameSessions", members{"AliasId": "alias-1"})
}

func TestSessionsFollowsPages(t *testing.T) {
	c := newCloud(t)
	c.on("SearchGameSessions", func(in members) (members, string) {
		switch in["NextToken"] {
		case nil:
			return members{"GameSessions": []members{game(members{"Name": "a"}), game(members{"Name": "b"})}, "NextToken": "t1"}, ""
		case "t1":
			return members{"GameSessions": []members{game(members{"Name": "c"})}, "NextToken": "t2"}, ""
		}
		return nil, "InvalidRequestException"
	})
	var names string
	for s, err := range c.client(nil).Sessions(t.Context(), SearchSessionsRequest{FleetID: "fleet-1"}) {
		if err != nil {
			if !errors.Is(err, ErrRefused) {
				t.Errorf("got %v, want ErrRefused", err)
			}
			break
		}
		names += s.Name
	}
	if names != "abc" {
		t.Errorf("got %q before the error, want abc", names)
	}
	c.answer("SearchGameSessions", members{})
	if page, err := c.client(nil).SearchSessions(t.Context(), SearchSessionsRequest{FleetID: "fleet-1"}); err != nil || len(page.Sessions) != 0 {
		t.Errorf("none found: got %+v, %v, want an empty page", page, err)
	}
}

func TestAwaitActive(t *testing.T) {
	c := newCloud(t)
	looks := 0
	c.on("DescribeGameSessions", func(members) (members, string) {
		looks++
		return members{"GameSessions": []members{game(members{"Status": []string{"ACTIVATING", "ACTIVATING", "ACTIVE", "ERROR"}[looks-1]})}}, ""
	})
	client := c.client(nil)
	if s, err := client.AwaitActive(t.Context(), testGame); err != nil || s.Status != SessionActive || looks != 3 {
		t.Errorf("got %+v, %v after %d looks, want ACTIVE after 3", s, err, looks)
	}
	if _, err := client.AwaitActive(t.Context(), testGame); !errors.Is(err, ErrWrongStatus) {
		t.Errorf("a level that did not load: got %v, want ErrWrongStatus", err)
	}
	c.answer("DescribeGameSessions", members{"GameSessions": []members{game(members{"Status": "ACTIVATING"})}})
	ctx, cancel := context.WithCancel(t.Context())
	wait := Start(ctx, client, func(ctx context.Context) (Session, error) { return client.AwaitActive(ctx, testGame) })
	cancel()
	if _, err := wait.Await(t.Context()); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnavailable) {
		t.Errorf("cancelled: got %v", err)
	}
	c.answer("DescribeGameSessions", members{})
	if _, err := client.Session(t.Context(), testGame); !errors.Is(err, ErrNotFound) {
		t.Errorf("nothing described: got %v, want ErrNotFound", err)
	}
}

// A request that cannot be meant names its field, and nothing is sent.
func TestInvalidRequests(t *testing.T) {
	c := newCloud(t)
	client := c.client(&wire{})
	ctx := t.Context()
	for field, call := range map[string]func() error{
		"FleetID": func() error { _, err := client.CreateSession(ctx, CreateSessionRequest{}); return err },
		"AliasID": func() error {
			_, err := client.SearchSessions(ctx, SearchSessionsRequest{FleetID: "f", AliasID: "a"})
			return err
		},
		"MaxPlayers": func() error {
			_, err := client.CreateSession(ctx, CreateSessionRequest{FleetID: "f", MaxPlayers: -1})
			return err
		},
		"MaxResults": func() error {
			_, err := client.SearchSessions(ctx, SearchSessionsRequest{FleetID: "f", MaxResults: 21})
			return err
		},
		"Queue": func() error { _, err := client.CreateSessionOnQueue(ctx, CreateSessionOnQueueRequest{}); return err },
		"Players[1].ID": func() error {
			_, err := client.CreateSessionOnQueue(ctx, CreateSessionOnQueueRequest{Queue: "q", Players: []PlacedPlayer{{ID: "a"}, {}}})
			return err
		},
		"Latencies[0].Location": func() error {
			_, err := client.CreateSessionOnQueue(ctx, CreateSessionOnQueueRequest{Queue: "q", Latencies: []Latency{{PlayerID: "a"}}})
			return err
		},
		"SessionID":            func() error { _, err := client.JoinSession(ctx, JoinSessionRequest{PlayerID: "ann"}); return err },
		"PlayerID":             func() error { _, err := client.JoinSession(ctx, JoinSessionRequest{SessionID: testGame}); return err },
		"Seat.PlayerSessionID": func() error { return client.Connect(ctx, Seat{IPAddress: "127.0.0.1", Port: 1}) },
		"Seat.IPAddress":       func() error { return client.Connect(ctx, Seat{PlayerSessionID: testSeat, Port: 1}) },
		"Seat.Port":            func() error { return client.Connect(ctx, Seat{PlayerSessionID: testSeat, IPAddress: "127.0.0.1"}) },
		"FriendID": func() error {
			_, err := client.JoinFriend(ctx, JoinFriendRequest{FriendID: "ann", PlayerID: "ann"})
			return err
		},
		"PlayerSessionID": func() error { _, err := client.Release(ctx, ""); return err },
		"ID":              func() error { _, err := client.AwaitPlacement(ctx, ""); return err },
	} {
		invalidField(t, field, call(), field)
	}
	if asked := c.operations(); asked != "" {
		t.Errorf("sent %s, want nothing", asked)
	}
	if _, ok := client.Joined(); ok {
		t.Error("the client takes itself for joined")
	}
}

// The kinds, and the API's own error inside.
func TestErrorsOfTheService(t *testing.T) {
	c := newCloud(t)
	client := c.client(&wire{})
	for exception, want := range map[string]error{
		"GameSessionFullException":             ErrFull,
		"InvalidGameSessionStatusException":    ErrWrongStatus,
		"InvalidFleetStatusException":          ErrWrongStatus,
		"TerminalRoutingStrategyException":     ErrWrongStatus,
		"FleetCapacityExceededException":       ErrNoCapacity,
		"NotFoundException":                    ErrNotFound,
		"UnauthorizedException":                ErrUnauthorized,
		"AccessDeniedException":                ErrUnauthorized,
		"InvalidRequestException":              ErrRefused,
		"IdempotentParameterMismatchException": ErrRefused,
		"InternalServiceException":             ErrUnavailable,
		"ThrottlingException":                  ErrUnavailable,
	} {
		c.refuse("CreatePlayerSession", exception)
		_, err := client.JoinSession(t.Context(), JoinSessionRequest{SessionID: testGame, PlayerID: "ann"})
		e, ok := errors.AsType[*Error](err)
		if !ok || !errors.Is(err, want) || e.Code() != exception || !strings.Contains(err.Error(), "the cloud says no") {
			t.Errorf("%s: got %v, want %v", exception, err, want)
		}
	}
	c.refuse("CreatePlayerSession", "GameSessionFullException")
	_, err := client.JoinSession(t.Context(), JoinSessionRequest{SessionID: testGame, PlayerID: "ann"})
	if _, ok := errors.AsType[*types.GameSessionFullException](err); !ok {
		t.Errorf("%v does not hold the API's own error", err)
	}
	c.Close()
	if _, err := client.CreateSession(t.Context(), CreateSessionRequest{FleetID: "fleet-1"}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("without a server: got %v, want ErrUnavailable", err)
	}
}

func TestNewPlayerID(t *testing.T) {
	for _, x := range []struct {
		braces, dashes bool
		size           int
	}{{false, false, 32}, {false, true, 36}, {true, false, 34}, {true, true, 38}} {
		a, b := NewPlayerID(x.braces, x.dashes), NewPlayerID(x.braces, x.dashes)
		if len(a) != x.size || a == b || strings.HasPrefix(a, "{") != x.braces || strings.Contains(a, "-") != x.dashes {
			t.Errorf("%+v: got %s and %s", x, a, b)
		}
	}
}

package gameclient

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// CreateSessionRequest asks for a game session on a fleet. Empty fields are not sent.
type CreateSessionRequest struct {
	FleetID    string // this, an id or an ARN
	AliasID    string // or this
	Location   string // required by fleets of own machines
	CreatorID  string // whom the fleet's limits of new sessions count for
	Name       string // free text
	MaxPlayers int    // seats
	Properties map[string]string
	Data       string // one string for the game server

	// IdempotencyToken makes a repeat of the request get the same game session instead of a second one; the SDK repeats a
	// request by itself whose answer was lost. It becomes the last part of the session's ID.
	IdempotencyToken string
}

// CreateSession creates a game session on a fleet. It returns as soon as a game server was told to load it: the session
// is ACTIVATING, and AwaitActive tells when players can join.
func (c *Client) CreateSession(ctx context.Context, r CreateSessionRequest) (Session, error) {
	check := check{call: "CreateSession"}
	check.that(r.FleetID != "" || r.AliasID != "", "FleetID", "", "the fleet's id, or AliasID")
	check.that(r.FleetID == "" || r.AliasID == "", "AliasID", r.AliasID, "nothing beside FleetID")
	check.players(r.MaxPlayers)
	if check.err != nil {
		return Session{}, check.err
	}
	answer, err := c.api.CreateGameSession(ctx, &gamelift.CreateGameSessionInput{
		FleetId: text(r.FleetID), AliasId: text(r.AliasID), Location: text(r.Location), CreatorId: text(r.CreatorID), Name: text(r.Name),
		MaximumPlayerSessionCount: aws.Int32(int32(r.MaxPlayers)), GameProperties: propertiesOf(r.Properties), GameSessionData: text(r.Data),
		IdempotencyToken: text(r.IdempotencyToken),
	})
	if err != nil {
		return Session{}, failed("CreateSession", err)
	}
	return sessionOf(answer.GameSession), nil
}

func (c *check) players(n int) {
	c.that(n >= 0 && n <= math.MaxInt32, "MaxPlayers", fmt.Sprint(n), "a number of seats from 0")
}

// propertiesOf lists properties by their names, so that equal requests are equal on the wire.
func propertiesOf(properties map[string]string) []types.GameProperty {
	var list []types.GameProperty
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		list = append(list, types.GameProperty{Key: aws.String(key), Value: aws.String(properties[key])})
	}
	return list
}

// Session describes one game session as it is now.
func (c *Client) Session(ctx context.Context, id string) (Session, error) {
	check := check{call: "Session"}
	check.need("ID", id)
	if check.err != nil {
		return Session{}, check.err
	}
	return c.session(ctx, "Session", id)
}

func (c *Client) session(ctx context.Context, call, id string) (Session, error) {
	answer, err := c.api.DescribeGameSessions(ctx, &gamelift.DescribeGameSessionsInput{GameSessionId: &id})
	switch {
	case err != nil:
		return Session{}, failed(call, err)
	case len(answer.GameSessions) != 1:
		return Session{}, &Error{call, ErrNotFound, fmt.Errorf("the service describes %d game sessions as %s", len(answer.GameSessions), id)}
	}
	return sessionOf(&answer.GameSessions[0]), nil
}

// AwaitActive waits until players can join a game session. It fails with ErrWrongStatus when the session ends before.
// When ctx ends first, the session goes on loading.
func (c *Client) AwaitActive(ctx context.Context, id string) (Session, error) {
	check := check{call: "AwaitActive"}
	check.need("ID", id)
	if check.err != nil {
		return Session{}, check.err
	}
	looks := c.looks()
	for {
		s, err := c.session(ctx, "AwaitActive", id)
		switch {
		case err != nil:
			return Session{}, err
		case s.Status == SessionActive:
			return s, nil
		case s.Status != SessionActivating:
			return s, &Error{"AwaitActive", ErrWrongStatus, fmt.Errorf("game session %s is %s", id, s.Status)}
		}
		if err := looks.pause(ctx); err != nil {
			return s, failed("AwaitActive", err)
		}
	}
}

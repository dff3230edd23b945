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

// CreateSessionRequest describes a game session to create on a fleet. Empty fields are not sent.
type CreateSessionRequest struct {
	FleetID    string            // id or ARN; exactly one of FleetID and AliasID is required
	AliasID    string            // id or ARN of an alias for a fleet
	Location   string            // where the game server runs; required by ANYWHERE fleets
	CreatorID  string            // the player or program that the fleet's limit of new sessions counts; up to 1,024 characters
	Name       string            // free text, up to 1,024 characters
	MaxPlayers int               // number of seats, from 0
	Properties map[string]string // for the game server and for searches; up to 16, keys up to 32 and values up to 96 characters
	Data       string            // for the game server alone; up to 262,144 characters

	// IdempotencyToken has 1 to 48 letters, digits and hyphens. Repeats of a request with the same token return the same game session;
	// the SDK repeats a request by itself when it gets no answer. The token becomes the last part of the session's ID.
	IdempotencyToken string
}

// CreateSession creates a game session on a fleet. It returns as soon as the service has chosen a game server: the session
// is ACTIVATING, and AwaitActive waits until players can join. The error is an *InvalidRequestError or an *Error:
//
//   - ErrNoCapacity: the fleet has no free game server at this location;
//   - ErrNotFound: the fleet, alias or location does not exist;
//   - ErrWrongStatus: the fleet is being deleted, or the alias is terminal;
//   - ErrRefused: the creator has reached the fleet's limit, or a value is out of range;
//   - ErrUnauthorized or ErrUnavailable.
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

// propertiesOf sorts properties by name, so that equal requests are equal on the wire.
func propertiesOf(properties map[string]string) []types.GameProperty {
	var list []types.GameProperty
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		list = append(list, types.GameProperty{Key: aws.String(key), Value: aws.String(properties[key])})
	}
	return list
}

// Session describes a game session as it is now. The id is an ARN. An id without a game session fails with ErrNotFound; the service
// keeps ended game sessions for 30 days.
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

// AwaitActive polls a game session until it is ACTIVE and players can join it. It fails with ErrWrongStatus if the session ends before.
// If ctx ends first, it fails with ErrUnavailable, and the game server continues to load.
func (c *Client) AwaitActive(ctx context.Context, id string) (Session, error) {
	check := check{call: "AwaitActive"}
	check.need("ID", id)
	if check.err != nil {
		return Session{}, check.err
	}
	polls := c.polls()
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
		if err := polls.pause(ctx); err != nil {
			return s, failed("AwaitActive", err)
		}
	}
}

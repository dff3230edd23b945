package gameclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// CreateSessionOnQueueRequest describes a game session to create on a fleet that a queue chooses. Empty fields are not sent.
type CreateSessionOnQueueRequest struct {
	Queue       string            // name or ARN
	PlacementID string            // unique; 1 to 48 letters, digits and hyphens; if empty, the Client chooses one
	Name        string            // free text, up to 1,024 characters
	MaxPlayers  int               // number of seats, from 0
	Properties  map[string]string // as in CreateSessionRequest
	Data        string            // for the game server alone; up to 262,144 characters

	Players   []PlacedPlayer // the placement reserves a seat for each of them
	Latencies []Latency      // by which the queue may choose the location
}

// PlacedPlayer is a player for whom a placement reserves a seat.
type PlacedPlayer struct {
	ID   string // 1 to 1,024 characters
	Data string // free text for the game server, up to 2,048 characters
}

// Latency is a player's round-trip time to a location.
type Latency struct {
	PlayerID     string  // of Players, or another player of the game
	Location     string  // its name
	Milliseconds float32 // from 0
}

// PlacementStatus is the status of a placement.
type PlacementStatus string

// The statuses of a placement. All but the first are final.
const (
	PlacementPending   PlacementStatus = "PENDING"   // the queue looks for a game server, or the game server loads
	PlacementFulfilled PlacementStatus = "FULFILLED" // the game session is ACTIVE
	PlacementCancelled PlacementStatus = "CANCELLED" // StopPlacement
	PlacementTimedOut  PlacementStatus = "TIMED_OUT" // no game session within the queue's time
	PlacementFailed    PlacementStatus = "FAILED"    // the service could not complete it
)

// Placement is a fulfilled placement: an ACTIVE game session, and the seats of its players.
type Placement struct {
	ID        string // of the placement
	SessionID string // ARN of the game session
	Location  string // where the game server runs
	IPAddress string // of the game server
	DNSName   string // of the game server; empty if it has none
	Port      int    // of the game server, 1 to 60,000
	Seats     []Seat // one for each of Players, reserved for Connect
}

// CreateSessionOnQueue starts a placement and waits until it ends; the game session is ACTIVE then. If a placement ends in another way, the
// error is a *PlacementError with its status. If ctx ends first, or the service cannot be reached, the error is a *PlacementError
// with the placement's id and ErrUnavailable. A placement that was started continues then: AwaitPlacement waits for it again, and
// StopPlacement ends it. Other errors are an *InvalidRequestError, or an *Error such as ErrNotFound if there is no such queue.
func (c *Client) CreateSessionOnQueue(ctx context.Context, r CreateSessionOnQueueRequest) (Placement, error) {
	check := check{call: "CreateSessionOnQueue"}
	check.need("Queue", r.Queue)
	check.players(r.MaxPlayers)
	for i, p := range r.Players {
		check.need(fmt.Sprintf("Players[%d].ID", i), p.ID)
	}
	for i, l := range r.Latencies {
		check.need(fmt.Sprintf("Latencies[%d].PlayerID", i), l.PlayerID)
		check.need(fmt.Sprintf("Latencies[%d].Location", i), l.Location)
	}
	if check.err != nil {
		return Placement{}, check.err
	}
	id := cmp.Or(r.PlacementID, NewPlayerID(false, true))
	in := &gamelift.StartGameSessionPlacementInput{
		PlacementId: &id, GameSessionQueueName: &r.Queue, MaximumPlayerSessionCount: aws.Int32(int32(r.MaxPlayers)),
		GameSessionName: text(r.Name), GameProperties: propertiesOf(r.Properties), GameSessionData: text(r.Data),
	}
	for _, p := range r.Players {
		in.DesiredPlayerSessions = append(in.DesiredPlayerSessions, types.DesiredPlayerSession{PlayerId: &p.ID, PlayerData: text(p.Data)})
	}
	for _, l := range r.Latencies {
		in.PlayerLatencies = append(in.PlayerLatencies, types.PlayerLatency{
			PlayerId: &l.PlayerID, RegionIdentifier: &l.Location, LatencyInMilliseconds: aws.Float32(l.Milliseconds)})
	}
	answer, err := c.api.StartGameSessionPlacement(ctx, in)
	if err != nil {
		return Placement{}, unlessPending("CreateSessionOnQueue", id, failed("CreateSessionOnQueue", err))
	}
	return c.awaitPlacement(ctx, "CreateSessionOnQueue", id, answer.GameSessionPlacement)
}

// AwaitPlacement waits for the end of a placement that was started before. It fails as CreateSessionOnQueue does, and with ErrNotFound if
// there is no such placement.
func (c *Client) AwaitPlacement(ctx context.Context, id string) (Placement, error) {
	check := check{call: "AwaitPlacement"}
	check.need("ID", id)
	if check.err != nil {
		return Placement{}, check.err
	}
	return c.awaitPlacement(ctx, "AwaitPlacement", id, nil)
}

func (c *Client) awaitPlacement(ctx context.Context, call, id string, p *types.GameSessionPlacement) (Placement, error) {
	polls := c.polls()
	for {
		if p != nil {
			switch status := PlacementStatus(p.Status); status {
			case PlacementFulfilled:
				return placementOf(p), nil
			case PlacementPending:
			default:
				return Placement{}, &PlacementError{Call: call, PlacementID: id, Status: status}
			}
			if err := polls.pause(ctx); err != nil {
				return Placement{}, &PlacementError{call, id, PlacementPending, failed(call, err)}
			}
		}
		answer, err := c.api.DescribeGameSessionPlacement(ctx, &gamelift.DescribeGameSessionPlacementInput{PlacementId: &id})
		if err != nil {
			return Placement{}, unlessPending(call, id, failed(call, err))
		}
		if p = answer.GameSessionPlacement; p == nil {
			return Placement{}, unlessPending(call, id, failed(call, errIncomplete))
		}
	}
}

// unlessPending adds the placement's id to a failure that leaves its end open.
func unlessPending(call, id string, failure error) error {
	if errors.Is(failure, ErrUnavailable) {
		return &PlacementError{call, id, PlacementPending, failure}
	}
	return failure
}

// StopPlacement cancels a placement that is PENDING. One that has ended fails with ErrRefused, and an unknown one with ErrNotFound.
func (c *Client) StopPlacement(ctx context.Context, id string) error {
	check := check{call: "StopPlacement"}
	check.need("ID", id)
	if check.err != nil {
		return check.err
	}
	if _, err := c.api.StopGameSessionPlacement(ctx, &gamelift.StopGameSessionPlacementInput{PlacementId: &id}); err != nil {
		return failed("StopPlacement", err)
	}
	return nil
}

func placementOf(p *types.GameSessionPlacement) Placement {
	placed := Placement{
		ID:        aws.ToString(p.PlacementId),
		SessionID: aws.ToString(p.GameSessionArn),
		Location:  aws.ToString(p.GameSessionRegion),
		IPAddress: aws.ToString(p.IpAddress),
		DNSName:   aws.ToString(p.DnsName),
		Port:      int(aws.ToInt32(p.Port)),
	}
	for _, s := range p.PlacedPlayerSessions {
		placed.Seats = append(placed.Seats, Seat{
			PlayerSessionID: aws.ToString(s.PlayerSessionId), PlayerID: aws.ToString(s.PlayerId),
			SessionID: placed.SessionID, IPAddress: placed.IPAddress, DNSName: placed.DNSName, Port: placed.Port,
		})
	}
	return placed
}

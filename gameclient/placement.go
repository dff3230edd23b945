package gameclient

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// CreateSessionOnQueueRequest asks for a game session wherever a queue finds room. Empty fields are not sent.
type CreateSessionOnQueueRequest struct {
	Queue       string // name or ARN
	PlacementID string // unique; made when empty
	Name        string // free text
	MaxPlayers  int    // seats
	Properties  map[string]string
	Data        string // one string for the game server

	Players   []PlacedPlayer // who shall have a seat in it at once
	Latencies []Latency      // the queue may choose by them
}

// PlacedPlayer is somebody for whom a placement takes a seat.
type PlacedPlayer struct {
	ID   string
	Data string
}

// Latency is how far a player is from a location.
type Latency struct {
	PlayerID     string
	Location     string
	Milliseconds float32
}

// PlacementStatus is how far a placement is.
type PlacementStatus string

// The statuses of a placement.
const (
	PlacementPending   PlacementStatus = "PENDING"
	PlacementFulfilled PlacementStatus = "FULFILLED"
	PlacementCancelled PlacementStatus = "CANCELLED"
	PlacementTimedOut  PlacementStatus = "TIMED_OUT"
	PlacementFailed    PlacementStatus = "FAILED"
)

// Placement is a fulfilled placement: a game session that is ACTIVE, and the seats of those it was made for.
type Placement struct {
	ID        string
	SessionID string
	Location  string
	IPAddress string
	DNSName   string
	Port      int
	Seats     []Seat // one for each of Players, reserved: Connect takes one
}

// CreateSessionOnQueue creates a game session through a placement and waits for its end: the session is ACTIVE then. A
// placement that ends otherwise is a *PlacementError with its status. When ctx ends first, or the service is not reached, the
// *PlacementError holds the placement's id, and ErrUnavailable is in it; the placement goes on if it was started,
// AwaitPlacement waits for it again, and StopPlacement ends it.
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
	id := r.PlacementID
	if id == "" {
		id = NewPlayerID(false, true)
	}
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

// AwaitPlacement waits for the end of a placement that was started before.
func (c *Client) AwaitPlacement(ctx context.Context, id string) (Placement, error) {
	check := check{call: "AwaitPlacement"}
	check.need("ID", id)
	if check.err != nil {
		return Placement{}, check.err
	}
	return c.awaitPlacement(ctx, "AwaitPlacement", id, nil)
}

func (c *Client) awaitPlacement(ctx context.Context, call, id string, p *types.GameSessionPlacement) (Placement, error) {
	looks := c.looks()
	for {
		if p != nil {
			switch status := PlacementStatus(p.Status); status {
			case PlacementFulfilled:
				return placementOf(p), nil
			case PlacementPending:
			default:
				return Placement{}, &PlacementError{Call: call, PlacementID: id, Status: status}
			}
			if err := looks.pause(ctx); err != nil {
				return Placement{}, &PlacementError{call, id, PlacementPending, failed(call, err)}
			}
		}
		answer, err := c.api.DescribeGameSessionPlacement(ctx, &gamelift.DescribeGameSessionPlacementInput{PlacementId: &id})
		if err != nil {
			return Placement{}, unlessPending(call, id, failed(call, err))
		}
		p = answer.GameSessionPlacement
	}
}

// unlessPending adds the placement's id to a failure that says nothing about the placement: it may still come.
func unlessPending(call, id string, failure error) error {
	if errors.Is(failure, ErrUnavailable) {
		return &PlacementError{call, id, PlacementPending, failure}
	}
	return failure
}

// StopPlacement gives up a placement that is PENDING.
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

package gameclient

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// JoinSessionRequest names a player and the game session to join.
type JoinSessionRequest struct {
	SessionID  string // an ARN
	PlayerID   string // 1 to 1,024 characters
	PlayerData string // free text for the game server, up to 2,048 characters
}

// JoinSession reserves a seat and connects to the game server. The error is nil if and only if both have succeeded. Otherwise it is
//
//   - an *InvalidRequestError, ErrNoConnector or ErrAlreadyJoined: nothing was sent;
//   - a *JoinError with StageReserve: no seat was reserved. errors.Is finds the reason in it, such as ErrFull, ErrWrongStatus or
//     ErrNotFound;
//   - a *JoinError with StageConnect: its seat is still reserved. Connect may try again, and Release frees the seat.
func (c *Client) JoinSession(ctx context.Context, r JoinSessionRequest) (Seat, error) {
	check := check{call: "JoinSession"}
	check.need("SessionID", r.SessionID)
	check.need("PlayerID", r.PlayerID)
	if check.err != nil {
		return Seat{}, check.err
	}
	return c.enter(ctx, "JoinSession", func() (Seat, error) { return c.reserve(ctx, "JoinSession", r) })
}

// Reserve reserves a seat for a player of another program: a backend sends the seat to the player's client, which calls
// Connect before the reservation ends, by default after 60 s. Reserve needs no connector and does not change the state of this Client. The
// error is an *InvalidRequestError or an *Error, such as ErrFull, ErrWrongStatus or ErrNotFound.
func (c *Client) Reserve(ctx context.Context, r JoinSessionRequest) (Seat, error) {
	check := check{call: "Reserve"}
	check.need("SessionID", r.SessionID)
	check.need("PlayerID", r.PlayerID)
	if check.err != nil {
		return Seat{}, check.err
	}
	seat, err := c.reserve(ctx, "Reserve", r)
	if err != nil {
		return Seat{}, err
	}
	return seat, nil
}

func (c *Client) reserve(ctx context.Context, call string, r JoinSessionRequest) (Seat, error) {
	answer, err := c.api.CreatePlayerSession(ctx, &gamelift.CreatePlayerSessionInput{
		GameSessionId: &r.SessionID, PlayerId: &r.PlayerID, PlayerData: text(r.PlayerData),
	})
	if err == nil && answer.PlayerSession == nil {
		err = errIncomplete
	}
	if err != nil {
		return Seat{SessionID: r.SessionID, PlayerID: r.PlayerID}, failed(call, err)
	}
	return seatOf(answer.PlayerSession), nil
}

// Connect connects to the game server with a reserved seat: of a join that failed at StageConnect, of Reserve, of a placement, or of a
// match. The seat needs a PlayerSessionID, an address and a port. Connect fails as JoinSession does, except at StageReserve.
func (c *Client) Connect(ctx context.Context, seat Seat) error {
	check := check{call: "Connect"}
	check.need("Seat.PlayerSessionID", seat.PlayerSessionID)
	check.that(seat.IPAddress != "" || seat.DNSName != "", "Seat.IPAddress", "", "an address, or DNSName")
	check.that(seat.Port > 0, "Seat.Port", fmt.Sprint(seat.Port), "the game server's port")
	if check.err != nil {
		return check.err
	}
	_, err := c.enter(ctx, "Connect", func() (Seat, error) { return seat, nil })
	return err
}

// enter brings the Client from out to joined, one call at a time.
func (c *Client) enter(ctx context.Context, call string, reserve func() (Seat, error)) (seat Seat, err error) {
	if c.connector == nil {
		return Seat{}, &Error{Call: call, Kind: ErrNoConnector}
	}
	if !c.step(out, joining, Seat{}) {
		return Seat{}, &Error{Call: call, Kind: ErrAlreadyJoined}
	}
	reached := out // also when the game's connector panics
	defer func() { c.step(joining, reached, seat) }()
	if seat, err = reserve(); err != nil {
		return seat, &JoinError{call, StageReserve, seat, err}
	}
	if err := c.connector.Connect(ctx, seat); err != nil {
		return seat, &JoinError{call, StageConnect, seat, err}
	}
	reached = joined
	return seat, nil
}

// step changes the state, and reports whether it was from before.
func (c *Client) step(from, to part, seat Seat) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.part != from {
		return false
	}
	c.part, c.seat = to, seat
	return true
}

// Joined returns the seat of the game session that the Client has joined, and whether there is one. A lost connection counts as joined
// until LeaveSession.
func (c *Client) Joined() (Seat, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.part != joined {
		return Seat{}, false
	}
	return c.seat, true
}

// LeaveSession disconnects from the game server, which notices that and frees the seat; the client does not call the service. Call
// it also after the connection was lost. The Client can join again afterwards, even if the connector returned an error. Without
// a joined session it fails with ErrNotJoined.
func (c *Client) LeaveSession(ctx context.Context) error {
	if !c.step(joined, leaving, Seat{}) {
		return &Error{Call: "LeaveSession", Kind: ErrNotJoined}
	}
	defer c.step(leaving, out, Seat{})
	if err := c.connector.Disconnect(ctx); err != nil {
		return fmt.Errorf("gameclient: LeaveSession: disconnect: %w", err)
	}
	return nil
}

// Release frees a reserved seat with which no player will connect. Muster frees it at once, and givenBack is true. The cloud service has
// no such call: givenBack is false, and the seat becomes free when its reservation times out. It is not an error to release
// a seat twice, or after its reservation. A seat whose player has connected fails with ErrRefused, because only the game server may
// free it.
func (c *Client) Release(ctx context.Context, playerSessionID string) (givenBack bool, err error) {
	check := check{call: "Release"}
	check.need("PlayerSessionID", playerSessionID)
	if check.err != nil {
		return false, check.err
	}
	if c.noRelease.Load() {
		return false, nil
	}
	_, err = c.api.DescribePlayerSessions(ctx, &gamelift.DescribePlayerSessionsInput{PlayerSessionId: &playerSessionID}, asRelease)
	if codeOf(err) == "UnknownOperationException" {
		c.noRelease.Store(true)
		return false, nil
	}
	if err != nil {
		return false, failed("Release", err)
	}
	return true, nil
}

// asRelease sends a DescribePlayerSessions as Muster's own operation ReleasePlayerSession, which has the same members.
// The path is changed before the request is signed.
func asRelease(o *gamelift.Options) {
	rename := func(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
		if request, ok := in.Request.(*smithyhttp.Request); ok {
			const from, to = "DescribePlayerSessions", "ReleasePlayerSession"
			request.URL.Path = strings.Replace(request.URL.Path, "/operation/"+from, "/operation/"+to, 1)
			if target := request.Header.Get("X-Amz-Target"); target != "" { // versions of the SDK that use JSON
				request.Header.Set("X-Amz-Target", strings.Replace(target, from, to, 1))
			}
		}
		return next.HandleBuild(ctx, in)
	}
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Build.Add(middleware.BuildMiddlewareFunc("ReleasePlayerSession", rename), middleware.After)
	})
}

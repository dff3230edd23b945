package gameclient

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// JoinSessionRequest says who joins which game session.
type JoinSessionRequest struct {
	SessionID  string // an ARN
	PlayerID   string
	PlayerData string // free text for the game server
}

// JoinSession takes a seat and connects to the game server. It returns nil if and only if the seat was reserved and the
// connector has connected. Otherwise:
//
//   - an *InvalidRequestError, ErrNoConnector or ErrAlreadyJoined: nothing was sent;
//   - a *JoinError with StageReserve: there is no seat, for the reason that errors.Is finds in it;
//   - a *JoinError with StageConnect: the seat in it is reserved still. Connect may try again, Release gives it back.
func (c *Client) JoinSession(ctx context.Context, r JoinSessionRequest) (Seat, error) {
	check := check{call: "JoinSession"}
	check.need("SessionID", r.SessionID)
	check.need("PlayerID", r.PlayerID)
	if check.err != nil {
		return Seat{}, check.err
	}
	return c.enter(ctx, "JoinSession", func() (Seat, error) { return c.reserve(ctx, "JoinSession", r) })
}

// Reserve takes a seat for a player who connects elsewhere: a backend hands the seat to the player's client, which calls
// Connect. It needs no connector and leaves the Client where it is.
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
	if err != nil {
		return Seat{SessionID: r.SessionID, PlayerID: r.PlayerID}, failed(call, err)
	}
	return seatOf(answer.PlayerSession), nil
}

// Connect connects to the game server with a seat that is reserved already: by a join that failed at StageConnect, a
// placement, or a match. It fails as JoinSession does at that stage.
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

// enter goes from out to joined, one call at a time.
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

// step goes from one part to the next, and tells whether the Client was there.
func (c *Client) step(from, to part, seat Seat) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.part != from {
		return false
	}
	c.part, c.seat = to, seat
	return true
}

// Joined is the seat that the Client plays on, and whether it is in a game session. A connection that was lost counts
// until LeaveSession.
func (c *Client) Joined() (Seat, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.part != joined {
		return Seat{}, false
	}
	return c.seat, true
}

// LeaveSession disconnects from the game server. The service is not told by the client: the game server notices, and
// gives the seat back. Call it also after the connection was lost; the Client can join again afterwards, whatever the
// connector's error was.
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

// Release gives a reserved seat back that nobody will connect with. Against Muster it is free at once, and givenBack is
// true. Against the cloud, which has no such call, givenBack is false: the seat is free when its reservation times out,
// and there is nothing more to do. Releasing twice, or too late, is no error; a seat that a player has connected with
// is the game server's to give back, and ErrRefused.
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
			if target := request.Header.Get("X-Amz-Target"); target != "" { // SDKs that speak JSON
				request.Header.Set("X-Amz-Target", strings.Replace(target, from, to, 1))
			}
		}
		return next.HandleBuild(ctx, in)
	}
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Build.Add(middleware.BuildMiddlewareFunc("ReleasePlayerSession", rename), middleware.After)
	})
}

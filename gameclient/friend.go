package gameclient

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// playerSessionPage is the largest page of player sessions that the service returns.
const playerSessionPage = 50

// JoinFriendRequest names a player and the friend whose game session the player joins.
type JoinFriendRequest struct {
	FriendID   string // the friend's player id; 1 to 1,024 characters
	PlayerID   string // another one than FriendID; 1 to 1,024 characters
	PlayerData string // free text for the game server, up to 2,048 characters

	// Admits lets the game decide, for example by a property of the session. Nil admits players to every session.
	Admits func(Session) bool
}

// JoinFriend finds the game session in which the friend plays or has a reserved seat, and joins it if it has a free seat and admits
// players. Otherwise errors.Is finds
//
//   - ErrNotPlaying: the friend is in no game session;
//   - ErrFull: the friend's session has no free seat;
//   - ErrWrongStatus: it is not ACTIVE, it admits no new players, or Admits returned false.
//
// It also fails as FindPlayer and JoinSession do.
func (c *Client) JoinFriend(ctx context.Context, r JoinFriendRequest) (Seat, error) {
	check := check{call: "JoinFriend"}
	check.need("FriendID", r.FriendID)
	check.need("PlayerID", r.PlayerID)
	check.that(r.FriendID != r.PlayerID, "FriendID", r.FriendID, "another player than PlayerID")
	if check.err != nil {
		return Seat{}, check.err
	}
	switch { // before any request
	case c.connector == nil:
		return Seat{}, &Error{Call: "JoinFriend", Kind: ErrNoConnector}
	case c.busy():
		return Seat{}, &Error{Call: "JoinFriend", Kind: ErrAlreadyJoined}
	}
	seat, err := c.find(ctx, "JoinFriend", r.FriendID)
	if err != nil {
		return Seat{}, err
	}
	s, err := c.session(ctx, "JoinFriend", seat.SessionID)
	switch {
	case err != nil:
		return Seat{}, err
	case s.Status != SessionActive:
		err = fmt.Errorf("game session %s is %s", s.ID, s.Status)
	case !s.AdmitsPlayers:
		err = fmt.Errorf("game session %s admits no new players", s.ID)
	case r.Admits != nil && !r.Admits(s):
		err = fmt.Errorf("game session %s does not admit friends", s.ID)
	case !s.HasRoom():
		return Seat{}, &Error{"JoinFriend", ErrFull, fmt.Errorf("game session %s: %d of %d seats are taken", s.ID, s.Players, s.MaxPlayers)}
	}
	if err != nil {
		return Seat{}, &Error{"JoinFriend", ErrWrongStatus, err}
	}
	return c.JoinSession(ctx, JoinSessionRequest{SessionID: s.ID, PlayerID: r.PlayerID, PlayerData: r.PlayerData})
}

func (c *Client) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.part != out
}

// FindPlayer returns a player's newest seat that is reserved or connected, or fails with ErrNotPlaying. The seat's PlayerSessionID is
// empty, because it admits its player alone. With a "client" access key, it finds only seats that were taken with the same key.
func (c *Client) FindPlayer(ctx context.Context, playerID string) (Seat, error) {
	check := check{call: "FindPlayer"}
	check.need("PlayerID", playerID)
	if check.err != nil {
		return Seat{}, check.err
	}
	return c.find(ctx, "FindPlayer", playerID)
}

func (c *Client) find(ctx context.Context, call, playerID string) (Seat, error) {
	var newest *types.PlayerSession
	in := &gamelift.DescribePlayerSessionsInput{PlayerId: &playerID, Limit: aws.Int32(playerSessionPage)}
	for {
		page, err := c.api.DescribePlayerSessions(ctx, in)
		if err != nil {
			return Seat{}, failed(call, err)
		}
		for i := range page.PlayerSessions {
			p := &page.PlayerSessions[i]
			live := p.Status == types.PlayerSessionStatusReserved || p.Status == types.PlayerSessionStatusActive
			if live && (newest == nil || !aws.ToTime(p.CreationTime).Before(aws.ToTime(newest.CreationTime))) {
				newest = p
			}
		}
		if in.NextToken = page.NextToken; aws.ToString(in.NextToken) == "" {
			break
		}
	}
	if newest == nil {
		return Seat{}, &Error{call, ErrNotPlaying, fmt.Errorf("player %s", playerID)}
	}
	seat := seatOf(newest)
	seat.PlayerSessionID = ""
	return seat, nil
}

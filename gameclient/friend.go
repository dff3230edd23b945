package gameclient

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// playerSessionPage is the largest page of player sessions that the service gives.
const playerSessionPage = 50

// JoinFriendRequest says who joins whom.
type JoinFriendRequest struct {
	FriendID   string // the friend's player id
	PlayerID   string
	PlayerData string // free text for the game server

	// Admits is the game's own say, for example by a property of the session. Nil: every session that takes players.
	Admits func(Session) bool
}

// JoinFriend goes from a player's id to a joined session: it finds the game session where the friend plays, or is about
// to, and joins it, if it has room and lets the player in. Otherwise errors.Is finds
//
//   - ErrNotPlaying: the friend is in no game session;
//   - ErrFull: the friend's session has no seat left;
//   - ErrWrongStatus: it is not ACTIVE, takes no new players, or Admits said no.
//
// From there on it is JoinSession.
func (c *Client) JoinFriend(ctx context.Context, r JoinFriendRequest) (Seat, error) {
	check := check{call: "JoinFriend"}
	check.need("FriendID", r.FriendID)
	check.need("PlayerID", r.PlayerID)
	check.that(r.FriendID != r.PlayerID, "FriendID", r.FriendID, "another player than PlayerID")
	if check.err != nil {
		return Seat{}, check.err
	}
	switch { // before anything is asked
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
		err = fmt.Errorf("game session %s takes no new players", s.ID)
	case r.Admits != nil && !r.Admits(s):
		err = fmt.Errorf("game session %s does not let friends in", s.ID)
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

// FindPlayer is where a player plays, or is about to: the newest seat that is reserved or connected. ErrNotPlaying when
// there is none. The PlayerSessionID is empty: it is for its player alone.
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

package gameclient

import (
	"cmp"
	"context"
	"errors"
	"strings"
)

// JoinOrCreateRequest describes the game sessions that a player may join, and the one to create if none of them has a free seat.
type JoinOrCreateRequest struct {
	PlayerID   string // 1 to 1,024 characters
	PlayerData string // free text for the game server, up to 2,048 characters

	// Search finds game sessions; its FleetID or AliasID is required. JoinOrCreate adds "hasAvailablePlayerSessions=true" to a Filter
	// that does not mention it.
	Search SearchSessionsRequest

	// Create is the game session to create. An empty FleetID and AliasID, and an empty Location, become those of Search.
	Create CreateSessionRequest

	// OnQueue, if not nil, creates the game session through a queue instead of Create. JoinOrCreate adds the player to its Players.
	OnQueue *CreateSessionOnQueueRequest
}

// JoinOrCreate joins a game session that Search finds. If none has a free seat, it creates one and joins that. It fails as JoinSession
// does; the *JoinError after StageReserve contains the errors of SearchSessions, CreateSession, AwaitActive and
// CreateSessionOnQueue. Two clients that find no session at the same time create two.
func (c *Client) JoinOrCreate(ctx context.Context, r JoinOrCreateRequest) (Seat, error) {
	const call = "JoinOrCreate"
	if err := r.check(call); err != nil {
		return Seat{}, err
	}
	return c.enter(ctx, call, func() (Seat, error) { return c.reserveOrCreate(ctx, call, r) })
}

// ReserveOrCreate does for a player of another program what JoinOrCreate does for this one, without connecting: it reserves a seat in a
// game session that Search finds, or in one that it creates. It fails as SearchSessions, Reserve, CreateSession, AwaitActive and
// CreateSessionOnQueue do.
func (c *Client) ReserveOrCreate(ctx context.Context, r JoinOrCreateRequest) (Seat, error) {
	const call = "ReserveOrCreate"
	if err := r.check(call); err != nil {
		return Seat{}, err
	}
	return c.reserveOrCreate(ctx, call, r)
}

func (r *JoinOrCreateRequest) check(call string) error {
	check := check{call: call}
	check.need("PlayerID", r.PlayerID)
	check.that(r.Search.FleetID != "" || r.Search.AliasID != "", "Search.FleetID", "", "the fleet's id, or AliasID")
	return check.err
}

func (c *Client) reserveOrCreate(ctx context.Context, call string, r JoinOrCreateRequest) (Seat, error) {
	const room = "hasAvailablePlayerSessions"
	switch search := &r.Search; {
	case search.Filter == "":
		search.Filter = room + "=true"
	case !strings.Contains(search.Filter, room):
		search.Filter += " AND " + room + "=true"
	}
	for s, err := range c.Sessions(ctx, r.Search) {
		if err != nil {
			return Seat{}, under(call, err)
		}
		if !s.HasRoom() || !s.AdmitsPlayers {
			continue
		}
		seat, err := c.reserve(ctx, call, JoinSessionRequest{SessionID: s.ID, PlayerID: r.PlayerID, PlayerData: r.PlayerData})
		if err == nil || !taken(err) {
			return seat, err
		}
	}
	if r.OnQueue != nil {
		return c.createOnQueue(ctx, call, r)
	}
	create := r.Create
	if create.FleetID == "" && create.AliasID == "" {
		create.FleetID, create.AliasID = r.Search.FleetID, r.Search.AliasID
	}
	create.Location = cmp.Or(create.Location, r.Search.Location)
	s, err := c.CreateSession(ctx, create)
	if err == nil && s.Status != SessionActive {
		s, err = c.AwaitActive(ctx, s.ID)
	}
	if err != nil {
		return Seat{}, under(call, err)
	}
	return c.reserve(ctx, call, JoinSessionRequest{SessionID: s.ID, PlayerID: r.PlayerID, PlayerData: r.PlayerData})
}

func (c *Client) createOnQueue(ctx context.Context, call string, r JoinOrCreateRequest) (Seat, error) {
	create := *r.OnQueue
	create.Players = append(append([]PlacedPlayer{}, create.Players...), PlacedPlayer{ID: r.PlayerID, Data: r.PlayerData})
	placed, err := c.CreateSessionOnQueue(ctx, create)
	if err != nil {
		return Seat{}, under(call, err)
	}
	for _, seat := range placed.Seats {
		if seat.PlayerID == r.PlayerID {
			return seat, nil
		}
	}
	return Seat{}, &Error{call, ErrNotMatched, errors.New("placement " + placed.ID + " has no seat for player " + r.PlayerID)}
}

// taken reports whether only this game session cannot be joined, so that another one may be.
func taken(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, ErrWrongStatus) || errors.Is(err, ErrNotFound)
}

// under adds the name of the outer call to an error of an inner one.
func under(call string, err error) error {
	if e, ok := err.(*Error); ok {
		return &Error{call + ": " + e.Call, e.Kind, e.Cause}
	}
	return err // it already names its call, or the placement
}

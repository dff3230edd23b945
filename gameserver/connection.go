package gameserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model/request"
)

// ConnectionID is how the game's network layer names a connection. It is unique among those that are open.
type ConnectionID = uint64

// connection is one over which a player has joined, or is about to.
type connection struct {
	playerSession string
	accepted      bool
	closed        bool // before the service had answered
}

// ValidatePlayerJoin asks the service whether the client that shows playerSessionID over a new connection has a seat, and takes it. It
// returns the player session: who the player is, and the data of whoever reserved the seat. Close that connection, and no other, when it
// says no. It is AcceptPlayer with the book-keeping of connections: call HandlePlayerLeave when the connection has closed, at whatever
// moment that is.
func (s *Server) ValidatePlayerJoin(ctx context.Context, id ConnectionID, playerSessionID string) (PlayerSession, error) {
	const call = "ValidatePlayerJoin"
	if err := s.hosting(call); err != nil {
		return PlayerSession{}, err
	}
	if playerSessionID == "" {
		return PlayerSession{}, &Error{call, ErrRefused, errors.New("the client shows no player session id")}
	}
	c := &connection{playerSession: playerSessionID}
	s.mu.Lock()
	if s.connections[id] != nil {
		s.mu.Unlock()
		return PlayerSession{}, &Error{Call: call, Kind: ErrConnectionKnown}
	}
	s.connections[id] = c
	s.mu.Unlock()

	player, err := s.admit(ctx, call, playerSessionID)
	s.mu.Lock()
	closed := c.closed
	if err != nil || closed {
		delete(s.connections, id)
	} else {
		c.accepted, s.someCame = true, true
	}
	s.mu.Unlock()
	if err == nil && closed {
		s.giveBack(playerSessionID)
		err = &Error{call, ErrRefused, errors.New("the connection closed while the service was asked")}
	}
	if err != nil {
		s.endIfEmpty() // a player may have left while this one was still expected
		return PlayerSession{}, err
	}
	return player, nil
}

// admit takes the seat of a player session, and tells whose it is. The question comes before the seat is taken: an answer that stays
// out then leaves no seat behind.
func (s *Server) admit(ctx context.Context, call, playerSessionID string) (PlayerSession, error) {
	query := request.NewDescribePlayerSessions()
	query.PlayerSessionID = playerSessionID
	page, err := s.describe(ctx, call, query)
	if err != nil && !errors.Is(err, ErrRefused) { // a player session that is not there is refused below, in the service's words
		return PlayerSession{}, err
	}
	if err := s.accept(ctx, call, playerSessionID); err != nil {
		return PlayerSession{}, err
	}
	if len(page.PlayerSessions) != 1 {
		s.giveBack(playerSessionID)
		return PlayerSession{}, &Error{call, ErrUnavailable, fmt.Errorf("the service describes %d player sessions as %s", len(page.PlayerSessions), playerSessionID)}
	}
	player := playerSessionOf(page.PlayerSessions[0])
	player.Status = PlayerActive
	return player, nil
}

// HandlePlayerLeave says that a connection has closed. The player's seat is free then; when it was the last, the session
// ends, unless Options.KeepWhenEmpty is set. A connection that ValidatePlayerJoin does not know, or has refused, is
// nothing to worry about. When ctx is over, which it often is if it was the connection's own, the seat is given back
// all the same, and the error only says that nobody waited for it.
func (s *Server) HandlePlayerLeave(ctx context.Context, id ConnectionID) error {
	s.mu.Lock()
	c := s.connections[id]
	switch {
	case c == nil:
		s.mu.Unlock()
		return nil
	case !c.accepted:
		c.closed = true // ValidatePlayerJoin gives the seat back, should it get one
		s.mu.Unlock()
		return nil
	}
	delete(s.connections, id)
	s.someLeft = true
	s.mu.Unlock()
	defer s.endIfEmpty()
	removed := make(chan error, 1)
	go func() { removed <- s.RemovePlayer(context.WithoutCancel(ctx), c.playerSession) }()
	select {
	case err := <-removed:
		if errors.Is(err, ErrEnded) { // the end frees all seats itself
			return nil
		}
		return err
	case <-ctx.Done():
		return failed("HandlePlayerLeave", context.Cause(ctx))
	}
}

// giveBack frees a seat whose player is gone before the game has heard of it.
func (s *Server) giveBack(playerSessionID string) {
	ctx, cancel := context.WithTimeout(context.Background(), reportTimeout)
	defer cancel()
	if err := s.RemovePlayer(ctx, playerSessionID); err != nil && !errors.Is(err, ErrEnded) {
		s.log.Warn("give back the seat of a player who is gone", "player_session", playerSessionID, "err", err)
	}
}

// endIfEmpty is the passive end.
func (s *Server) endIfEmpty() {
	s.mu.Lock()
	empty := s.someLeft && len(s.connections) == 0 && !s.options.KeepWhenEmpty && !s.asked
	s.mu.Unlock()
	if empty {
		s.log.Info("the last player has left")
		s.askEnd()
	}
}

func (s *Server) endIfNobodyCame() {
	s.mu.Lock()
	nobody := !s.someCame && len(s.connections) == 0 && !s.asked
	s.mu.Unlock()
	if nobody {
		s.log.Info("nobody has joined", "for", s.options.EmptyTimeout)
		s.askEnd()
	}
}

// Connected is how many players are connected, of those that came through ValidatePlayerJoin.
func (s *Server) Connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.connections {
		if c.accepted {
			n++
		}
	}
	return n
}

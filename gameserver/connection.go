package gameserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model/request"
)

// ConnectionID is the network layer's id of a connection, unique among open connections.
type ConnectionID = uint64

// connection is the connection of a player who has joined or is joining.
type connection struct {
	playerSession string
	accepted      bool
	closed        bool // before the service has answered
}

// ValidatePlayerJoin accepts the player session of a client on a new connection, as AcceptPlayer does, and returns it: the player's id, and the
// data of the reservation. It also records the connection: call HandlePlayerLeave when the connection has closed, even during this
// call. If it fails, close this connection. It fails as AcceptPlayer does, and with ErrConnectionKnown if a player has this connection.
func (s *Server) ValidatePlayerJoin(ctx context.Context, id ConnectionID, playerSessionID string) (PlayerSession, error) {
	const call = "ValidatePlayerJoin"
	if err := s.hosting(call); err != nil {
		return PlayerSession{}, err
	}
	if playerSessionID == "" {
		return PlayerSession{}, &Error{call, ErrRefused, errors.New("the player session id is empty")}
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
		err = &Error{call, ErrRefused, errors.New("the connection closed before the service had answered")}
	}
	if err != nil {
		s.endIfEmpty() // a player may have left, or EmptyTimeout passed, while this one was still expected
		return PlayerSession{}, err
	}
	return player, nil
}

// admit accepts a player session and returns it. It describes the player session first, so that a missing answer to that leaves no seat
// taken.
func (s *Server) admit(ctx context.Context, call, playerSessionID string) (PlayerSession, error) {
	query := request.NewDescribePlayerSessions()
	query.PlayerSessionID = playerSessionID
	page, err := s.describe(ctx, call, query)
	if err != nil && !errors.Is(err, ErrRefused) { // accept refuses an unknown player session below, in the service's words
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

// HandlePlayerLeave reports that a connection has closed, which frees the player's seat. If it was the last player, the session
// ends, unless Options.KeepWhenEmpty is set. It does nothing for connections that ValidatePlayerJoin does not know or has refused.
// If ctx has ended, as the context of the connection itself often has, the seat is freed in the background, and the error is
// ErrUnavailable.
func (s *Server) HandlePlayerLeave(ctx context.Context, id ConnectionID) error {
	s.mu.Lock()
	c := s.connections[id]
	switch {
	case c == nil:
		s.mu.Unlock()
		return nil
	case !c.accepted:
		c.closed = true // ValidatePlayerJoin frees the seat if it gets one
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

// giveBack frees the seat of a player who has disconnected before the game knew of the player.
func (s *Server) giveBack(playerSessionID string) {
	ctx, cancel := context.WithTimeout(context.Background(), reportTimeout)
	defer cancel()
	if err := s.RemovePlayer(ctx, playerSessionID); err != nil && !errors.Is(err, ErrEnded) {
		s.log.Warn("the seat of a disconnected player was not freed", "player_session", playerSessionID, "error", err)
	}
}

// endIfEmpty ends the process if its last player has left, or none has joined within EmptyTimeout.
func (s *Server) endIfEmpty() {
	s.mu.Lock()
	left, unused := s.someLeft && !s.options.KeepWhenEmpty, s.overdue && !s.someCame
	empty := (left || unused) && len(s.connections) == 0 && !s.asked
	s.mu.Unlock()
	switch {
	case !empty:
		return
	case unused:
		s.log.Info("no player has joined", "for", s.options.EmptyTimeout)
	default:
		s.log.Info("the last player has left")
	}
	s.askEnd()
}

// endIfUnused ends the process if no player has joined within EmptyTimeout. If one is joining, ValidatePlayerJoin ends it should that fail.
func (s *Server) endIfUnused() {
	s.mu.Lock()
	s.overdue = true
	s.mu.Unlock()
	s.endIfEmpty()
}

// Connected returns the number of connected players that ValidatePlayerJoin has accepted.
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

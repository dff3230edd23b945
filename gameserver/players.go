package gameserver

import (
	"context"
	"iter"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model/request"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model/result"
)

// pageSize is the largest page that every SDK supports; Unreal's drops the rest of a larger one.
const pageSize = 50

// AcceptPlayer accepts the player session of a client that connects: RESERVED becomes ACTIVE. Only accepted players may play. It fails with
// ErrRefused if there is no such reservation in this session, with ErrNoSession before a session, with ErrEnded after it, or with
// ErrUnavailable.
//
// If ctx ends before the answer, AcceptPlayer fails, and frees the seat should the service accept it afterwards.
func (s *Server) AcceptPlayer(ctx context.Context, playerSessionID string) error {
	return s.accept(ctx, "AcceptPlayer", playerSessionID)
}

func (s *Server) accept(ctx context.Context, call, playerSessionID string) error {
	if err := s.hosting(call); err != nil {
		return err
	}
	if s.session.Err() != nil {
		return &Error{Call: call, Kind: ErrEnded} // other players may still be counted and removed during the end
	}
	accept := func() error { return s.sdk.AcceptPlayerSession(playerSessionID) }
	giveBack := func() {
		if err := s.sdk.RemovePlayerSession(playerSessionID); err != nil {
			s.log.Warn("the seat of a player who was accepted too late was not freed",
				"player_session", playerSessionID, "error", err)
		}
	}
	return s.callOrUndo(ctx, call, accept, giveBack)
}

// RemovePlayer reports that the client of an accepted player session has disconnected, which frees its seat. It is not an error to remove
// a player twice. It fails as AcceptPlayer does.
func (s *Server) RemovePlayer(ctx context.Context, playerSessionID string) error {
	if err := s.hosting("RemovePlayer"); err != nil {
		return err
	}
	return s.call(ctx, "RemovePlayer", func() error { return s.sdk.RemovePlayerSession(playerSessionID) })
}

// AdmitPlayers opens or closes the session for new player sessions. Existing ones keep their seats. A session
// starts open. It fails with ErrNoSession, ErrEnded or ErrUnavailable.
func (s *Server) AdmitPlayers(ctx context.Context, open bool) error {
	if err := s.hosting("AdmitPlayers"); err != nil {
		return err
	}
	policy := model.DenyAll
	if open {
		policy = model.AcceptAll
	}
	return s.call(ctx, "AdmitPlayers", func() error { return s.sdk.UpdatePlayerSessionCreationPolicy(policy) })
}

// PlayerSessions iterates over the player sessions of this game session in the order of their creation: those with the given status, or
// all if it is "". The first error, such as ErrNoSession, ends the loop.
//
//	for ps, err := range srv.PlayerSessions(ctx, gameserver.PlayerActive) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(ps.PlayerID)
//	}
func (s *Server) PlayerSessions(ctx context.Context, status PlayerStatus) iter.Seq2[PlayerSession, error] {
	return func(yield func(PlayerSession, error) bool) {
		if err := s.hosting("PlayerSessions"); err != nil {
			yield(PlayerSession{}, err)
			return
		}
		hosted, _ := s.Session()
		for next := ""; ; {
			query := request.NewDescribePlayerSessions() // each page needs its own request id
			query.GameSessionID = hosted.ID
			query.PlayerSessionStatusFilter = string(status)
			query.Limit = pageSize
			query.NextToken = next
			page, err := s.describe(ctx, "PlayerSessions", query)
			if err != nil {
				yield(PlayerSession{}, err)
				return
			}
			for _, p := range page.PlayerSessions {
				if !yield(playerSessionOf(p), nil) {
					return
				}
			}
			if next = page.NextToken; next == "" {
				return
			}
		}
	}
}

func (s *Server) describe(ctx context.Context, call string, q request.DescribePlayerSessionsRequest) (result.DescribePlayerSessionsResult, error) {
	// A channel carries the page, because the SDK may still write one after a cancelled call.
	pages := make(chan result.DescribePlayerSessionsResult, 1)
	err := s.call(ctx, call, func() error {
		page, err := s.sdk.DescribePlayerSessions(q)
		pages <- page
		return err
	})
	if err != nil {
		return result.DescribePlayerSessionsResult{}, err
	}
	return <-pages, nil
}

// hosting refuses calls without a session, with a clearer error than the SDK's. It does not wait
// for the answer to the activation, because players may connect before that answer.
func (s *Server) hosting(call string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return &Error{Call: call, Kind: ErrEnded}
	case s.hosted == nil:
		return &Error{Call: call, Kind: ErrNoSession}
	}
	return nil
}

// call runs one blocking call of the SDK and waits for it until ctx ends.
func (s *Server) call(ctx context.Context, name string, do func() error) error {
	return s.callOrUndo(ctx, name, do, nil)
}

// callOrUndo is call, and runs undo if the call succeeds after ctx has ended.
func (s *Server) callOrUndo(ctx context.Context, name string, do func() error, undo func()) error {
	if err := ctx.Err(); err != nil {
		return failed(name, err)
	}
	answer := make(chan error, 1)
	go func() { answer <- do() }()
	select {
	case err := <-answer:
		return failed(name, err)
	case <-ctx.Done():
		if undo != nil {
			go func() {
				if <-answer == nil {
					undo()
				}
			}()
		}
		return failed(name, context.Cause(ctx))
	}
}

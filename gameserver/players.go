package gameserver

import (
	"context"
	"iter"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model/request"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model/result"
)

// pageSize is what every SDK can hold at once; Unreal's drops the rest.
const pageSize = 50

// AcceptPlayer asks the service whether the client that shows playerSessionID has a seat in this session, and takes
// it: RESERVED becomes ACTIVE. Let nobody play without it.
//
// When ctx ends while the question is on its way, the seat is given back should the answer be yes after all: the
// client was turned away by then.
func (s *Server) AcceptPlayer(ctx context.Context, playerSessionID string) error {
	return s.accept(ctx, "AcceptPlayer", playerSessionID)
}

func (s *Server) accept(ctx context.Context, call, playerSessionID string) error {
	if err := s.hosting(call); err != nil {
		return err
	}
	if s.session.Err() != nil {
		return &Error{Call: call, Kind: ErrEnded} // others may still be counted and removed while we end
	}
	accept := func() error { return s.sdk.AcceptPlayerSession(playerSessionID) }
	giveBack := func() {
		if err := s.sdk.RemovePlayerSession(playerSessionID); err != nil {
			s.log.Warn("give back the seat of a player who was accepted too late",
				"player_session", playerSessionID, "err", err)
		}
	}
	return s.callOrUndo(ctx, call, accept, giveBack)
}

// RemovePlayer says that the client of an accepted player session is gone, which frees its seat. Removing a player
// again is not an error.
func (s *Server) RemovePlayer(ctx context.Context, playerSessionID string) error {
	if err := s.hosting("RemovePlayer"); err != nil {
		return err
	}
	return s.call(ctx, "RemovePlayer", func() error { return s.sdk.RemovePlayerSession(playerSessionID) })
}

// AdmitPlayers opens or closes the session for new player sessions. Those that exist keep their seats. A session
// starts open.
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

// PlayerSessions lists the player sessions of this game session, all or those with one status, in the order of
// their creation. The first error ends the list.
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
	// The page travels through a channel: after a cancelled call the SDK may still write one.
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

// hosting refuses calls about a session that is not there, before the SDK does it in other words. It does not wait
// for the answer to the activation: players may be here before that answer.
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

// call runs one blocking call of the SDK and stops waiting for it when ctx ends.
func (s *Server) call(ctx context.Context, name string, do func() error) error {
	return s.callOrUndo(ctx, name, do, nil)
}

// callOrUndo is call, with what to do if the call succeeds after ctx ended.
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

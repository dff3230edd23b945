package gameserver

import (
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model"
)

// UpdateReason is the reason of an update.
type UpdateReason string

// The reasons. All are results of match backfill.
const (
	MatchmakingDataUpdated UpdateReason = "MATCHMAKING_DATA_UPDATED" // players were added
	BackfillFailed         UpdateReason = "BACKFILL_FAILED"          // the request could not be completed
	BackfillTimedOut       UpdateReason = "BACKFILL_TIMED_OUT"       // no players were found in time
	BackfillCancelled      UpdateReason = "BACKFILL_CANCELLED"       // by StopMatchBackfill or a newer request
	UpdateUnknown          UpdateReason = "UNKNOWN"                  // the service gave no reason, or one that the SDK does not know
)

// Update is a result of match backfill.
type Update struct {
	Session          Session      // after the update
	Reason           UpdateReason // the result of the request
	BackfillTicketID string       // of the request
}

// onUpdate runs in a goroutine of the SDK, and another update may be in another.
func (s *Server) onUpdate(u model.UpdateGameSession) {
	s.updating.Lock()
	defer s.updating.Unlock()
	update := Update{Session: sessionOf(u.GameSession), Reason: UpdateUnknown, BackfillTicketID: u.BackfillTicketID}
	if u.UpdateReason != nil {
		update.Reason = UpdateReason(u.UpdateReason.String())
	}
	s.mu.Lock()
	mine := s.hosted != nil && s.hosted.ID == update.Session.ID
	s.mu.Unlock()
	if !mine {
		s.log.Warn("ignored the update of a game session of another process", "game_session", update.Session.ID, "reason", update.Reason)
		return
	}
	s.log.Info("game session updated", "game_session", update.Session.ID, "reason", update.Reason, "ticket", update.BackfillTicketID)
	for _, c := range s.callbacks {
		if c.OnUpdateSessionBegin != nil {
			c.OnUpdateSessionBegin(s.session, update)
		}
	}
	if update.Reason != MatchmakingDataUpdated {
		return
	}
	s.mu.Lock()
	s.hosted = &update.Session
	s.mu.Unlock()
	for _, c := range s.callbacks {
		if c.OnUpdateSessionEnd != nil {
			c.OnUpdateSessionEnd(s.session)
		}
	}
}

package gameserver

import (
	"context"
	"maps"
	"time"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model"
)

// Callbacks are the game's part. Every field may be nil. They are called from goroutines of this package, each at
// most once in the life of the process, save OnSessionHealthCheck and the updates. FromContext gives them their Server.
type Callbacks struct {
	// OnCreateSessionBegin is called when the service has chosen this process for a game session: load the level
	// and return nil, upon which the session becomes ACTIVE. An error ends the process, and the session with it.
	// The fleet limits how long this may take (default 300 s). The context is cancelled when the process ends.
	OnCreateSessionBegin func(context.Context, Session) error

	// OnCreateSessionEnd is called when the session is ACTIVE: the service sends players from now on.
	OnCreateSessionEnd func(context.Context)

	// OnUpdateSessionBegin is called when match backfill of the session has come to a result, one call after the other.
	// Session still gives the session as it was.
	OnUpdateSessionBegin func(context.Context, Update)

	// OnUpdateSessionEnd is called when the session's data was replaced by that of the update, which happens for
	// MatchmakingDataUpdated alone.
	OnUpdateSessionEnd func(context.Context)

	// OnSessionHealthCheck is asked about once a minute, session or not, and has 50 s to answer; later counts as
	// false. It may be called while an earlier call still runs. Default: true.
	OnSessionHealthCheck func(context.Context) bool

	// OnDestroySessionBegin is called when the process is about to end, also when it never had a session: stop the
	// game and save. When the context's deadline passes, the end is reported without waiting any longer. An error
	// is handed on by Wait, and the process ends all the same.
	OnDestroySessionBegin func(context.Context) error

	// OnDestroySessionEnd is called after the end was reported, or could not be: exit now.
	OnDestroySessionEnd func()
}

type serverKey struct{} // of a context

// FromContext is the Server that a callback belongs to, by the context that the callback got; nil for another context.
func FromContext(ctx context.Context) *Server {
	s, _ := ctx.Value(serverKey{}).(*Server)
	return s
}

// Session is the game session as the service described it last: when it asked for it, or when backfill changed it.
type Session struct {
	ID             string            // the ARN, as game clients and the API name it
	Name           string            // free text of the creator
	FleetID        string            //
	IPAddress      string            // what game clients are told
	DNSName        string            // empty when the host has none
	Port           int               // the port of this process, as it reported it
	MaxPlayers     int               // seats, reserved ones included
	Properties     map[string]string // never nil
	Data           string            // one string for the game, up to 256 KiB
	MatchmakerData string            // JSON, of a session that a match made; else empty
}

func sessionOf(s model.GameSession) Session {
	properties := maps.Clone(s.GameProperties)
	if properties == nil {
		properties = map[string]string{}
	}
	return Session{
		ID:             s.GameSessionID,
		Name:           s.Name,
		FleetID:        s.FleetID,
		IPAddress:      s.IPAddress,
		DNSName:        s.DNSName,
		Port:           s.Port,
		MaxPlayers:     s.MaximumPlayerSessionCount,
		Properties:     properties,
		Data:           s.GameSessionData,
		MatchmakerData: s.MatchmakerData,
	}
}

// PlayerStatus is where a player session is in its life.
type PlayerStatus string

// The statuses, in the order in which a player session goes through them.
const (
	PlayerReserved  PlayerStatus = "RESERVED"  // a seat is kept, by default for 60 s; the client has not come yet
	PlayerActive    PlayerStatus = "ACTIVE"    // accepted
	PlayerCompleted PlayerStatus = "COMPLETED" // removed, or the session ended
	PlayerTimedOut  PlayerStatus = "TIMEDOUT"  // never came
)

// PlayerSession is a player's seat in a game session: reserved, in use, or given back.
type PlayerSession struct {
	ID        string // what the client shows
	PlayerID  string // who the studio says it is
	SessionID string
	Status    PlayerStatus
	Data      string // free text that the caller gave when it reserved the seat
	Created   time.Time
	Ended     time.Time // zero while reserved or active
}

func playerSessionOf(p model.PlayerSession) PlayerSession {
	ps := PlayerSession{
		ID:        p.PlayerSessionID,
		PlayerID:  p.PlayerID,
		SessionID: p.GameSessionID,
		Data:      p.PlayerData,
		Created:   time.UnixMilli(p.CreationTime),
	}
	if p.Status != nil {
		ps.Status = PlayerStatus(p.Status.String())
	}
	if p.TerminationTime > 0 {
		ps.Ended = time.UnixMilli(p.TerminationTime)
	}
	return ps
}

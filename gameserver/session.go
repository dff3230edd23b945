package gameserver

import (
	"context"
	"maps"
	"time"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model"
)

// Callbacks are functions of the game. Every field may be nil. Goroutines of this package call them, each at
// most once in the life of the process, except OnSessionHealthCheck and the updates. FromContext returns their Server.
type Callbacks struct {
	// OnCreateSessionBegin is called when the service has chosen this process for a game session: load the level
	// and return nil. The session becomes ACTIVE then. An error ends the process, and the session with it.
	// The fleet limits how long this may take (default 300 s). The context is cancelled when the process ends.
	OnCreateSessionBegin func(context.Context, Session) error

	// OnCreateSessionEnd is called when the session is ACTIVE. From now on, players may connect.
	OnCreateSessionEnd func(context.Context)

	// OnUpdateSessionBegin is called when match backfill of the session has a result, one call after the other.
	// Server.Session still returns the session before the update.
	OnUpdateSessionBegin func(context.Context, Update)

	// OnUpdateSessionEnd is called when Server.Session returns the updated session. That happens only for
	// MatchmakingDataUpdated.
	OnUpdateSessionEnd func(context.Context)

	// OnSessionHealthCheck returns whether the process is healthy. It is called about once a minute, also without a session. If it takes
	// longer than 50 s, the process counts as unhealthy, and another call may begin meanwhile. Nil means healthy.
	OnSessionHealthCheck func(context.Context) bool

	// OnDestroySessionBegin is called when the process is about to end, also if it never had a session: stop the
	// game and save. The Server waits for it until the context's deadline, and then reports the end. Wait returns its error, which
	// does not stop the end.
	OnDestroySessionBegin func(context.Context) error

	// OnDestroySessionEnd is called after the Server has reported the end, or has failed to: exit now.
	OnDestroySessionEnd func()
}

type serverKey struct{} // of a context

// FromContext returns the Server that called a callback with this context; nil for other contexts.
func FromContext(ctx context.Context) *Server {
	s, _ := ctx.Value(serverKey{}).(*Server)
	return s
}

// Session is the game session as the service described it last: at its creation, or after backfill.
type Session struct {
	ID             string            // an ARN
	Name           string            // free text of the creator, up to 1,024 characters
	FleetID        string            // "fleet-…"
	IPAddress      string            // of this host, for game clients
	DNSName        string            // of this host, for game clients; empty if it has none
	Port           int               // Options.Port
	MaxPlayers     int               // number of seats, from 0
	Properties     map[string]string // of the creator, up to 16; never nil
	Data           string            // of the creator, up to 262,144 characters
	MatchmakerData string            // JSON about the match that created the session, for ParseMatchData; otherwise empty
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

// PlayerStatus is the status of a player session.
type PlayerStatus string

// The statuses, in the order in which a player session goes through them.
const (
	PlayerReserved  PlayerStatus = "RESERVED"  // a seat is reserved, by default for 60 s; the client has not connected yet
	PlayerActive    PlayerStatus = "ACTIVE"    // the game server has accepted the player
	PlayerCompleted PlayerStatus = "COMPLETED" // the game server has removed the player, or the session has ended
	PlayerTimedOut  PlayerStatus = "TIMEDOUT"  // the reservation has ended
)

// PlayerSession is the reservation of a seat in a game session for one player and one connection.
type PlayerSession struct {
	ID        string       // the client sends it to the game server
	PlayerID  string       // as the backend or client reserved the seat, 1 to 1,024 characters
	SessionID string       // ARN of the game session
	Status    PlayerStatus // a service may know more of them
	Data      string       // free text of the reservation, up to 2,048 characters
	Created   time.Time    // when the seat was reserved
	Ended     time.Time    // zero while reserved or active
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

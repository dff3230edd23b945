package gameclient

import (
	"cmp"
	"net"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// SessionStatus is the status of a game session.
type SessionStatus string

// The statuses of a game session. A service may know more.
const (
	SessionActivating  SessionStatus = "ACTIVATING"  // the game server is loading
	SessionActive      SessionStatus = "ACTIVE"      // players can join
	SessionTerminating SessionStatus = "TERMINATING" // about to end
	SessionTerminated  SessionStatus = "TERMINATED"  // it has ended
	SessionError       SessionStatus = "ERROR"       // it never became ACTIVE
)

// Session is a game session as the service describes it to clients.
type Session struct {
	ID             string            // an ARN
	Name           string            // free text of the creator
	CreatorID      string            // of the request that created the session; empty if it had none
	FleetID        string            // "fleet-…"
	Location       string            // where the game server runs
	Status         SessionStatus     // a service may know more of them
	StatusReason   string            // usually empty; "INTERRUPTED" for example
	Created        time.Time         // when the service created it
	Ended          time.Time         // zero until the session ends
	IPAddress      string            // of the game server
	DNSName        string            // of the game server; empty if it has none
	Port           int               // of the game server, 1 to 60,000
	Players        int               // number of seats that are connected or reserved
	MaxPlayers     int               // number of all seats
	AdmitsPlayers  bool              // the player session creation policy is ACCEPT_ALL
	Properties     map[string]string // never nil
	Data           string            // for the game server
	MatchmakerData string            // JSON about the match that created the session; otherwise empty
}

// HasRoom reports whether a seat was free when the service described the session.
func (s Session) HasRoom() bool { return s.Players < s.MaxPlayers }

// Seat is a player's seat in a game session, and the address of its game server.
type Seat struct {
	PlayerSessionID string // the client sends it to the game server, which lets the player in with it
	PlayerID        string // the player of this seat
	SessionID       string // ARN of the game session
	IPAddress       string // of the game server
	DNSName         string // of the game server; use it with TLS, because certificates name it
	Port            int    // of the game server, 1 to 60,000
}

// Address is "host:port" for a dialer, with the IP address, or with the DNS name if there is none.
func (s Seat) Address() string {
	host := cmp.Or(s.IPAddress, s.DNSName)
	return net.JoinHostPort(host, strconv.Itoa(s.Port))
}

func sessionOf(g *types.GameSession) Session {
	if g == nil {
		return Session{Properties: map[string]string{}}
	}
	s := Session{
		ID:             aws.ToString(g.GameSessionId),
		Name:           aws.ToString(g.Name),
		CreatorID:      aws.ToString(g.CreatorId),
		FleetID:        aws.ToString(g.FleetId),
		Location:       aws.ToString(g.Location),
		Status:         SessionStatus(g.Status),
		StatusReason:   string(g.StatusReason),
		Created:        aws.ToTime(g.CreationTime),
		Ended:          aws.ToTime(g.TerminationTime),
		IPAddress:      aws.ToString(g.IpAddress),
		DNSName:        aws.ToString(g.DnsName),
		Port:           int(aws.ToInt32(g.Port)),
		Players:        int(aws.ToInt32(g.CurrentPlayerSessionCount)),
		MaxPlayers:     int(aws.ToInt32(g.MaximumPlayerSessionCount)),
		AdmitsPlayers:  g.PlayerSessionCreationPolicy != types.PlayerSessionCreationPolicyDenyAll,
		Properties:     make(map[string]string, len(g.GameProperties)),
		Data:           aws.ToString(g.GameSessionData),
		MatchmakerData: aws.ToString(g.MatchmakerData),
	}
	for _, p := range g.GameProperties {
		s.Properties[aws.ToString(p.Key)] = aws.ToString(p.Value)
	}
	return s
}

func seatOf(p *types.PlayerSession) Seat {
	return Seat{
		PlayerSessionID: aws.ToString(p.PlayerSessionId),
		PlayerID:        aws.ToString(p.PlayerId),
		SessionID:       aws.ToString(p.GameSessionId),
		IPAddress:       aws.ToString(p.IpAddress),
		DNSName:         aws.ToString(p.DnsName),
		Port:            int(aws.ToInt32(p.Port)),
	}
}

// text is nil for an empty string, which the API expects to be absent.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

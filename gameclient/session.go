package gameclient

import (
	"net"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// SessionStatus is where a game session is in its life.
type SessionStatus string

// The statuses of a game session. A service may know more.
const (
	SessionActivating  SessionStatus = "ACTIVATING"  // the game server is loading
	SessionActive      SessionStatus = "ACTIVE"      // players can join
	SessionTerminating SessionStatus = "TERMINATING" // about to end
	SessionTerminated  SessionStatus = "TERMINATED"  // over
	SessionError       SessionStatus = "ERROR"       // it never became ACTIVE
)

// Session is a game session as the service describes it to clients.
type Session struct {
	ID             string // an ARN
	Name           string // free text of the creator
	CreatorID      string
	FleetID        string
	Location       string
	Status         SessionStatus
	StatusReason   string // "INTERRUPTED", or most often empty
	Created        time.Time
	Ended          time.Time // zero while it lives
	IPAddress      string
	DNSName        string // empty when the host has none
	Port           int
	Players        int // seats taken, reserved ones included
	MaxPlayers     int
	AdmitsPlayers  bool              // the creation policy is ACCEPT_ALL
	Properties     map[string]string // never nil
	Data           string            // one string for the game server
	MatchmakerData string            // JSON, of a session that a match made; else empty
}

// HasRoom tells whether a seat was free when the service described the session.
func (s Session) HasRoom() bool { return s.Players < s.MaxPlayers }

// Seat is what a player has taken in a game session, and the way there.
type Seat struct {
	PlayerSessionID string // what the client shows to the game server
	PlayerID        string
	SessionID       string
	IPAddress       string
	DNSName         string // prefer it with TLS: certificates are issued for names
	Port            int
}

// Address is "host:port" for a dialer, by the IP address, or by the DNS name when there is none.
func (s Seat) Address() string {
	host := s.IPAddress
	if host == "" {
		host = s.DNSName
	}
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

// text is nil for an empty string, which the API knows as an absent member.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

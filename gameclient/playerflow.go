package gameclient

import (
	"encoding/json"
	"net"
	"strconv"
	"time"
)

// Phase is where a player is, in one word.
type Phase string

// The phases. A later service may know more.
const (
	PhaseIdle        Phase = "IDLE"
	PhaseInParty     Phase = "IN_PARTY"
	PhaseMatchmaking Phase = "MATCHMAKING"
	PhaseInGame      Phase = "IN_GAME"
)

// Flow is how a player stands.
type Flow struct {
	Rev   uint64 `json:"rev"` // rises with each change of the keys
	Seq   uint64 `json:"seq"` // number of the player's last event
	Phase Phase  `json:"phase"`
	Keys  Keys   `json:"keys"`
}

// Keys say what a player belongs to; empty where to nothing.
type Keys struct {
	PartyID        string `json:"PARTY_ID"`
	MatchmakingID  string `json:"MATCHMAKING_ID"`
	GameInstanceID string `json:"GAME_INSTANCE_ID"`
}

// Snapshot is everything about a player, as of one moment. Where a player is in no party, search or game, the pointer is nil.
type Snapshot struct {
	PlayerID   string    `json:"player_id"`
	ServerTime time.Time `json:"server_time"` // deadlines are to be compared with it, not with the device's clock
	Flow
	Party          *Party    `json:"party"`
	Search         *Search   `json:"ticket"`
	Game           *Game     `json:"game_instance"`
	Invites        []Invite  `json:"invites"`
	Locks          []Lock    `json:"locks"`
	LastGame       *LastGame `json:"last_game"`
	AllowedActions []string  `json:"allowed_actions"` // what the buttons of a game are bound to: "EnterMatchmaking", "DeclineReconnect"
}

// Joinability is who may come to a party.
type Joinability string

// The joinabilities.
const (
	JoinabilityOpen       Joinability = "OPEN"        // everybody who knows its id
	JoinabilityInviteOnly Joinability = "INVITE_ONLY" // who is invited or knows the code
	JoinabilityClosed     Joinability = "CLOSED"
)

// Party is players who want to play together.
type Party struct {
	ID          string          `json:"party_id"`
	Rev         uint64          `json:"rev"`
	LeaderIDs   []string        `json:"leader_ids"`
	MembersMax  int             `json:"max_members"`
	Joinability Joinability     `json:"joinability"`
	InviteCode  string          `json:"invite_code"` // to tell a friend
	Queue       string          `json:"queue"`
	Regions     []string        `json:"regions"`
	Attributes  json.RawMessage `json:"attributes"` // a JSON object of the game's own
	Members     []Member        `json:"members"`
}

// Member is a player of a party, as the others see this one.
type Member struct {
	PlayerID            string          `json:"player_id"`
	DisplayName         string          `json:"display_name"`
	JoinedAt            time.Time       `json:"joined_at"`
	Online              bool            `json:"online"`
	Ready               bool            `json:"ready"`
	Leader              bool            `json:"leader"`
	ClientVersion       string          `json:"client_version"`
	Phase               Phase           `json:"phase"`
	Attributes          json.RawMessage `json:"attributes"`
	LatencyMilliseconds map[string]int  `json:"latency_ms"`
}

// Search is the wish of a party for a match, while it lives.
type Search struct {
	ID        string    `json:"matchmaking_id"`
	Queue     string    `json:"queue"`
	Status    string    `json:"status"` // QUEUED, SEARCHING, HELD, REQUIRES_ACCEPTANCE, PLACING, ENDED
	EnteredAt time.Time `json:"entered_at"`
	ExpiresAt time.Time `json:"expires_at"`
	HeldBy    []string  `json:"held_by"` // members whose absence holds it back
	// EstimatedWaitMilliseconds is how long searches of this queue take at present; 0: unknown.
	EstimatedWaitMilliseconds int64       `json:"estimated_wait_ms"`
	Acceptance                *Acceptance `json:"acceptance"`
}

// Acceptance is a match that waits for the answers of its players: see Player.AnswerMatch.
type Acceptance struct {
	MatchID  string    `json:"match_id"`
	Deadline time.Time `json:"deadline"`
	Accepted []string  `json:"accepted"`
	Pending  []string  `json:"pending"`
}

// Game is the game that a player is in.
type Game struct {
	ID           string          `json:"game_instance_id"`
	Status       string          `json:"status"`    // PENDING, ACTIVE, ENDING
	Reconnect    string          `json:"reconnect"` // OFF, OPTIONAL, REQUIRED
	CreatedAt    time.Time       `json:"created_at"`
	Queue        string          `json:"queue"`
	MatchID      string          `json:"match_id"`
	Team         string          `json:"team"`
	MembersCount int             `json:"members_count"`
	Membership   Membership      `json:"membership"`
	Host         *HostDetails    `json:"host"`
	Attributes   json.RawMessage `json:"attributes"`
}

// Membership is the player's seat in a game.
type Membership struct {
	Status            MembershipStatus `json:"status"`
	Attempt           int              `json:"attempt"`
	ReservedUntil     time.Time        `json:"reservation_expires_at"` // zero: nothing is reserved
	ReconnectDeadline time.Time        `json:"reconnect_deadline"`     // zero: none
	Disconnects       int              `json:"disconnects"`
	CanDecline        bool             `json:"can_decline"` // DeclineReconnect is allowed
	CanLeave          bool             `json:"can_leave"`   // LeaveGame is allowed
}

// MembershipStatus is how far the player is with the game.
type MembershipStatus string

// The statuses.
const (
	MembershipPending      MembershipStatus = "PENDING"      // the game server is being sought
	MembershipReserved     MembershipStatus = "RESERVED"     // connect now
	MembershipNoShow       MembershipStatus = "NO_SHOW"      // did not connect in time; may still
	MembershipActive       MembershipStatus = "ACTIVE"       // plays
	MembershipDisconnected MembershipStatus = "DISCONNECTED" // the seat is kept: Reconnect or DeclineReconnect
)

// HostDetails is how to reach the game server. They are good for one connection, until ReservedUntil.
type HostDetails struct {
	GameInstanceID  string    `json:"game_instance_id"`
	GameSessionID   string    `json:"game_session_id"`
	Host            Host      `json:"host"`
	PlayerSessionID string    `json:"player_session_id"` // to show to the game server, which accepts it
	ConnectionToken string    `json:"connection_token"`  // to show to a game server that verifies players
	ReservedUntil   time.Time `json:"reservation_expires_at"`
	Attempt         int       `json:"attempt"`      // 1, and one more with each return
	HostSuspect     bool      `json:"host_suspect"` // the game server has not been heard of for a while
}

// Host is an address.
type Host struct {
	IPAddress string `json:"ip_address"`
	DNSName   string `json:"dns_name"`
	Port      int    `json:"port"`
	TLS       bool   `json:"tls"`
}

// Address is host:port, with the name where there is one: a certificate is for that.
func (d HostDetails) Address() string {
	name := d.Host.DNSName
	if name == "" {
		name = d.Host.IPAddress
	}
	return net.JoinHostPort(name, strconv.Itoa(d.Host.Port))
}

// Invite lets one player into one party.
type Invite struct {
	ID           string    `json:"invite_id"`
	PartyID      string    `json:"party_id"`
	FromPlayerID string    `json:"from_player_id"`
	ToPlayerID   string    `json:"to_player_id"`
	CreatedAt    time.Time `json:"created_at"`
	ExpiresAt    time.Time `json:"expires_at"`
}

// Lock keeps a player from searching.
type Lock struct {
	Kind   string    `json:"kind"` // DODGE, LEAVE, AFK, REQUEUE, OPERATOR
	Until  time.Time `json:"until"`
	Level  int       `json:"level"`
	Reason string    `json:"reason"`
}

// LastGame is how the last game ended, for a player who was away. It is kept for a day.
type LastGame struct {
	GameInstanceID      string          `json:"game_instance_id"`
	EndReason           string          `json:"end_reason"` // empty: the game went on without the player
	MembershipEndReason string          `json:"membership_end_reason"`
	EndedAt             time.Time       `json:"ended_at"`
	Result              json.RawMessage `json:"result"`
}

// QueueInfo is a queue that players may search in.
type QueueInfo struct {
	Name               string `json:"name"`
	Open               bool   `json:"open"`
	PartyMax           int    `json:"max_party"`
	AcceptanceRequired bool   `json:"acceptance_required"`
	Reconnect          string `json:"reconnect"`
	// EstimatedWaitMilliseconds is how long a search takes at present; 0: unknown.
	EstimatedWaitMilliseconds int64 `json:"estimated_wait_ms"`
}

package gameclient

import (
	"cmp"
	"encoding/json"
	"net"
	"strconv"
	"time"
)

// Phase summarizes what a player does.
type Phase string

// The phases. A later service may have more.
const (
	PhaseIdle        Phase = "IDLE"        // in no party, search or game
	PhaseInParty     Phase = "IN_PARTY"    // in a party that does not search
	PhaseMatchmaking Phase = "MATCHMAKING" // the party, or the player alone, searches for a match
	PhaseInGame      Phase = "IN_GAME"     // in a game, or on the way into one
)

// Flow is the short form of a player's state. Every answer contains it.
type Flow struct {
	Rev   uint64 `json:"rev"`   // revision; rises with each change of the keys
	Seq   uint64 `json:"seq"`   // number of the player's last event; 0: there was none
	Phase Phase  `json:"phase"` // follows from the keys
	Keys  Keys   `json:"keys"`  // the player's party, search and game
}

// Keys are the ids of the player's party, search and game. A key is empty if there is none.
type Keys struct {
	PartyID        string `json:"PARTY_ID"`         // "pty-…"
	MatchmakingID  string `json:"MATCHMAKING_ID"`   // of the search
	GameInstanceID string `json:"GAME_INSTANCE_ID"` // "gi-…"
}

// Snapshot is the whole state of a player at one moment. The pointers are nil if there is no such party, search or game.
type Snapshot struct {
	PlayerID   string    `json:"player_id"`   // 1 to 128 characters
	ServerTime time.Time `json:"server_time"` // compare deadlines with this clock, not with the device's
	Flow
	Party          *Party    `json:"party"`           // the player's party
	Search         *Search   `json:"ticket"`          // the search of the party, or of the player alone
	Game           *Game     `json:"game_instance"`   // the player's game
	Invites        []Invite  `json:"invites"`         // invites that the player can answer
	Locks          []Lock    `json:"locks"`           // what keeps the player from searching
	LastGame       *LastGame `json:"last_game"`       // the game that ended last, for a day
	AllowedActions []string  `json:"allowed_actions"` // calls that are possible now, such as "EnterMatchmaking"; bind buttons to them
}

// Joinability determines which players may join a party.
type Joinability string

// The values of Joinability.
const (
	JoinabilityOpen       Joinability = "OPEN"        // every player who knows the party's id
	JoinabilityInviteOnly Joinability = "INVITE_ONLY" // players who were invited or know the code
	JoinabilityClosed     Joinability = "CLOSED"      // no player
)

// Party is a group of players who play together and search as one.
type Party struct {
	ID          string          `json:"party_id"`    // "pty-…"
	Rev         uint64          `json:"rev"`         // revision; rises with each change of the party
	LeaderIDs   []string        `json:"leader_ids"`  // player ids
	MembersMax  int             `json:"max_members"` // from 1
	Joinability Joinability     `json:"joinability"` // a service may know more values
	InviteCode  string          `json:"invite_code"` // for JoinPartyByCode
	Queue       string          `json:"queue"`       // the queue of a search that names none; may be empty
	Regions     []string        `json:"regions"`     // the preferred regions, up to 32
	Attributes  json.RawMessage `json:"attributes"`  // a JSON object of the game's, up to 16 KiB
	Members     []Member        `json:"members"`     // in the order of their joining
}

// Member is a member of a party, as the other members see it.
type Member struct {
	PlayerID            string          `json:"player_id"`      // 1 to 128 characters
	DisplayName         string          `json:"display_name"`   // from the identity provider; may be empty
	JoinedAt            time.Time       `json:"joined_at"`      // when the player joined the party
	Online              bool            `json:"online"`         // has an event stream or polls
	Ready               bool            `json:"ready"`          // see Player.SetReady
	Leader              bool            `json:"leader"`         // may start searches and change the party
	ClientVersion       string          `json:"client_version"` // of the game
	Phase               Phase           `json:"phase"`          // of this player
	Attributes          json.RawMessage `json:"attributes"`     // a JSON object of the player's, up to 4 KiB
	LatencyMilliseconds map[string]int  `json:"latency_ms"`     // by region
}

// Search is a search for a match, of a party or of a player alone.
type Search struct {
	ID                        string      `json:"matchmaking_id"`    // for AnswerMatch
	Queue                     string      `json:"queue"`             // name of the matchmaking configuration
	Status                    string      `json:"status"`            // QUEUED, SEARCHING, HELD, REQUIRES_ACCEPTANCE, PLACING, ENDED
	EnteredAt                 time.Time   `json:"entered_at"`        // when the search began
	ExpiresAt                 time.Time   `json:"expires_at"`        // when it ends without a match
	HeldBy                    []string    `json:"held_by"`           // ids of offline members that hold the search
	EstimatedWaitMilliseconds int64       `json:"estimated_wait_ms"` // the present wait in this queue; 0: unknown
	Acceptance                *Acceptance `json:"acceptance"`        // the match that waits for answers; nil if none does
}

// Acceptance is a match that waits for the answers of its players: see Player.AnswerMatch.
type Acceptance struct {
	MatchID  string    `json:"match_id"` // of the match that was found
	Deadline time.Time `json:"deadline"` // a missing answer declines the match then
	Accepted []string  `json:"accepted"` // ids of players that have accepted
	Pending  []string  `json:"pending"`  // ids of players that have not answered
}

// Game is the game that a player is in.
type Game struct {
	ID           string          `json:"game_instance_id"` // "gi-…"
	Status       string          `json:"status"`           // PENDING, ACTIVE, ENDING
	Reconnect    string          `json:"reconnect"`        // OFF, OPTIONAL, REQUIRED: whether a player may or must return
	CreatedAt    time.Time       `json:"created_at"`       // when the match was made or the game was created
	Queue        string          `json:"queue"`            // of the match; empty if no match created the game
	MatchID      string          `json:"match_id"`         // empty if no match created the game
	Team         string          `json:"team"`             // the player's team; may be empty
	MembersCount int             `json:"members_count"`    // number of players, from 1
	Membership   Membership      `json:"membership"`       // this player's part
	Host         *HostDetails    `json:"host"`             // how to connect; nil while the player cannot
	Attributes   json.RawMessage `json:"attributes"`       // the game's JSON object
}

// Membership is a player's part in a game.
type Membership struct {
	Status            MembershipStatus `json:"status"`                 // a service may know more of them
	Attempt           int              `json:"attempt"`                // 1, and one more with each return; 0 before the first
	ReservedUntil     time.Time        `json:"reservation_expires_at"` // end of the reservation; zero: nothing is reserved
	ReconnectDeadline time.Time        `json:"reconnect_deadline"`     // end of the kept seat; zero: none
	Disconnects       int              `json:"disconnects"`            // lost connections so far
	CanDecline        bool             `json:"can_decline"`            // DeclineReconnect is allowed
	CanLeave          bool             `json:"can_leave"`              // LeaveGame is allowed
}

// MembershipStatus is the status of a player in a game.
type MembershipStatus string

// The statuses of a membership.
const (
	MembershipPending      MembershipStatus = "PENDING"      // the service looks for a game server
	MembershipReserved     MembershipStatus = "RESERVED"     // the player can connect now
	MembershipNoShow       MembershipStatus = "NO_SHOW"      // the player has not connected in time, but still may
	MembershipActive       MembershipStatus = "ACTIVE"       // the player plays
	MembershipDisconnected MembershipStatus = "DISCONNECTED" // the seat is kept: Reconnect or DeclineReconnect
)

// HostDetails describe how to connect to the game server. They are valid for one connection, until ReservedUntil.
type HostDetails struct {
	GameInstanceID  string    `json:"game_instance_id"`       // "gi-…"
	GameSessionID   string    `json:"game_session_id"`        // an ARN
	Host            Host      `json:"host"`                   // the game server's address
	PlayerSessionID string    `json:"player_session_id"`      // the game server admits the player with it
	ConnectionToken string    `json:"connection_token"`       // for game servers that verify players
	ReservedUntil   time.Time `json:"reservation_expires_at"` // the player must have connected by then
	Attempt         int       `json:"attempt"`                // 1, and one more with each return
	HostSuspect     bool      `json:"host_suspect"`           // the service has lost contact with the game server
}

// Host is the address of a game server. IPAddress or DNSName may be empty, but not both.
type Host struct {
	IPAddress string `json:"ip_address"` // IPv4 or IPv6
	DNSName   string `json:"dns_name"`   // the name in the server's certificate
	Port      int    `json:"port"`       // 1 to 60,000
	TLS       bool   `json:"tls"`        // the game server has a TLS certificate
}

// Address is "host:port" for a dialer, with the DNS name if there is one, because certificates name it.
func (d HostDetails) Address() string {
	name := cmp.Or(d.Host.DNSName, d.Host.IPAddress)
	return net.JoinHostPort(name, strconv.Itoa(d.Host.Port))
}

// Invite is an invitation of a player into a party.
type Invite struct {
	ID           string    `json:"invite_id"`      // for Respond and CancelInvite
	PartyID      string    `json:"party_id"`       // "pty-…"
	FromPlayerID string    `json:"from_player_id"` // the member who invites
	ToPlayerID   string    `json:"to_player_id"`   // the player who is invited
	CreatedAt    time.Time `json:"created_at"`     // when it was sent
	ExpiresAt    time.Time `json:"expires_at"`     // by default two minutes later
}

// Lock keeps a player from searching.
type Lock struct {
	Kind   string    `json:"kind"`   // DODGE, LEAVE, AFK, REQUEUE, OPERATOR
	Until  time.Time `json:"until"`  // when it ends
	Level  int       `json:"level"`  // step of the scale of penalties, from 0
	Reason string    `json:"reason"` // for people; may be empty
}

// LastGame is the end of the player's last game, for a player who was offline then. The service keeps it for a day.
type LastGame struct {
	GameInstanceID      string          `json:"game_instance_id"`      // "gi-…"
	EndReason           string          `json:"end_reason"`            // why the game ended; empty: it continued without the player
	MembershipEndReason string          `json:"membership_end_reason"` // why the player's part in it ended
	EndedAt             time.Time       `json:"ended_at"`              // the end of the player's part
	Result              json.RawMessage `json:"result"`                // the game server's JSON object; nil if it sent none
}

// QueueInfo describes a queue in which players may search.
type QueueInfo struct {
	Name                      string `json:"name"`                // for EnterMatchmaking
	Open                      bool   `json:"open"`                // whether searches may begin now
	PartyMax                  int    `json:"max_party"`           // members of the largest party that may search
	AcceptanceRequired        bool   `json:"acceptance_required"` // players have to accept a match
	Reconnect                 string `json:"reconnect"`           // of its games: OFF, OPTIONAL, REQUIRED
	EstimatedWaitMilliseconds int64  `json:"estimated_wait_ms"`   // the present wait; 0: unknown
}

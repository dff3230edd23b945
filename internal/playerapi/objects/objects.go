package objects

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// Stand is part of every answer to a player, so that a client that reads only answers is correct.
type Stand struct {
	Rev   uint64 `json:"rev" doc:"Rises by one with each commit that changes the keys."`
	Seq   uint64 `json:"seq" doc:"Number of the player's last event."`
	Phase string `json:"phase" enum:"IDLE,IN_PARTY,MATCHMAKING,IN_GAME"`
	Keys  Keys   `json:"keys"`
}

// Keys has the party, search and game of a player. An absent key has no value.
type Keys struct {
	PartyID        string `json:"PARTY_ID,omitempty"`
	MatchmakingID  string `json:"MATCHMAKING_ID,omitempty"`
	GameInstanceID string `json:"GAME_INSTANCE_ID,omitempty"`
}

// FlowSnapshot is the complete state for a player's client at one moment.
type FlowSnapshot struct {
	PlayerID        string           `json:"player_id"`
	Rev             uint64           `json:"rev"`
	Seq             uint64           `json:"seq"`
	ServerTime      string           `json:"server_time" format:"date-time"`
	Phase           string           `json:"phase" enum:"IDLE,IN_PARTY,MATCHMAKING,IN_GAME"`
	Keys            Keys             `json:"keys"`
	Session         *Session         `json:"session,omitempty" doc:"The login session that controls the player; absent while the player is not logged in."`
	Party           *Party           `json:"party,omitempty"`
	Ticket          *Ticket          `json:"ticket,omitempty"`
	GameInstance    *GameInstance    `json:"game_instance,omitempty"`
	Invites         []Invite         `json:"invites"`
	Locks           []Lock           `json:"locks"`
	LastGame        *LastGame        `json:"last_game,omitempty"`
	AllowedActions  []string         `json:"allowed_actions" doc:"The calls that the player may make now, for user interfaces."`
	ForeignSessions []ForeignSession `json:"foreign_sessions,omitempty" doc:"Live player sessions that a backend made outside player flow."`
}

// Session is one authenticated client of a player.
type Session struct {
	SessionID   string `json:"session_id"`
	Epoch       uint32 `json:"epoch" doc:"Rises by one with each login of the player."`
	DeviceLabel string `json:"device_label"`
	ExpiresAt   string `json:"expires_at" format:"date-time"`
	Insecure    bool   `json:"insecure,omitempty" doc:"Logged in by the provider for development."`
}

// Party is 1 to N players who play together.
type Party struct {
	PartyID     string   `json:"party_id"`
	Rev         uint64   `json:"rev"`
	LeaderIDs   []string `json:"leader_ids"`
	MaxMembers  int32    `json:"max_members"`
	Joinability string   `json:"joinability" enum:"OPEN,INVITE_ONLY,CLOSED"`
	InviteCode  string   `json:"invite_code,omitempty"`
	Queue       string   `json:"queue,omitempty"`
	Regions     []string `json:"regions"`
	Attributes  Object   `json:"attributes"`
	Members     []Member `json:"members"`
}

// Member is a member of a party as others see it.
type Member struct {
	PlayerID      string           `json:"player_id"`
	DisplayName   string           `json:"display_name"`
	JoinedAt      string           `json:"joined_at" format:"date-time"`
	Online        bool             `json:"online"`
	OfflineSince  string           `json:"offline_since,omitempty" format:"date-time"`
	Ready         bool             `json:"ready"`
	Leader        bool             `json:"leader"`
	ClientVersion string           `json:"client_version"`
	Phase         string           `json:"phase" enum:"IDLE,IN_PARTY,MATCHMAKING,IN_GAME"`
	Attributes    Object           `json:"attributes"`
	LatencyMS     map[string]int32 `json:"latency_ms"`
}

// Ticket is the live search of a party.
type Ticket struct {
	MatchmakingID   string      `json:"matchmaking_id"`
	Queue           string      `json:"queue"`
	Status          string      `json:"status" enum:"QUEUED,SEARCHING,HELD,REQUIRES_ACCEPTANCE,PLACING,ENDED"`
	EnteredAt       string      `json:"entered_at" format:"date-time"`
	ExpiresAt       string      `json:"expires_at" format:"date-time"`
	EstimatedWaitMS int64       `json:"estimated_wait_ms,omitempty"`
	HeldBy          []string    `json:"held_by" doc:"Members whose absence holds the search back."`
	Acceptance      *Acceptance `json:"acceptance,omitempty"`
}

// Acceptance is a match that awaits acceptance.
type Acceptance struct {
	MatchID  string   `json:"match_id"`
	Deadline string   `json:"deadline" format:"date-time"`
	Accepted []string `json:"accepted"`
	Pending  []string `json:"pending"`
}

// GameInstance is a game as one of its players sees it.
type GameInstance struct {
	GameInstanceID string                 `json:"game_instance_id"`
	Status         string                 `json:"status" enum:"PENDING,ACTIVE,ENDING,ENDED"`
	Reconnect      string                 `json:"reconnect" enum:"OFF,OPTIONAL,REQUIRED"`
	CreatedAt      string                 `json:"created_at" format:"date-time"`
	Queue          string                 `json:"queue,omitempty"`
	MatchID        string                 `json:"match_id,omitempty"`
	Team           string                 `json:"team,omitempty"`
	MembersCount   int                    `json:"members_count"`
	HeldSeats      int32                  `json:"held_seats,omitempty" doc:"Seats that are held for absent players; the counts of the hosting API leave them out."`
	Membership     Membership             `json:"membership"`
	HostSuspect    bool                   `json:"host_suspect,omitempty" doc:"The game server has not sent a sign of life for a while."`
	Host           *HostConnectionDetails `json:"host,omitempty" doc:"Only while a player session is reserved that was not used yet."`
	Attributes     Object                 `json:"attributes"`
}

// Membership is a player's seat.
type Membership struct {
	Status               string `json:"status" enum:"PENDING,RESERVED,NO_SHOW,ACTIVE,DISCONNECTED"`
	Attempt              int32  `json:"attempt"`
	ReservationExpiresAt string `json:"reservation_expires_at,omitempty" format:"date-time"`
	ReconnectDeadline    string `json:"reconnect_deadline,omitempty" format:"date-time"`
	Disconnects          int32  `json:"disconnects"`
	CanDecline           bool   `json:"can_decline"`
	CanLeave             bool   `json:"can_leave"`
}

// HostConnectionDetails has the address of the game server and the player's credentials.
type HostConnectionDetails struct {
	GameInstanceID       string `json:"game_instance_id"`
	GameSessionID        string `json:"game_session_id"`
	Host                 Host   `json:"host"`
	PlayerSessionID      string `json:"player_session_id" doc:"The game server accepts it, once."`
	ConnectionToken      string `json:"connection_token" doc:"For a game server that verifies players: a JWT; the keys are at /playerflow/v1/keys."`
	ReservationExpiresAt string `json:"reservation_expires_at,omitempty" format:"date-time"`
	Attempt              int32  `json:"attempt"`
	HostSuspect          bool   `json:"host_suspect"`
}

// Host is an address.
type Host struct {
	IPAddress string `json:"ip_address,omitempty"`
	DNSName   string `json:"dns_name,omitempty"`
	Port      uint16 `json:"port"`
	TLS       bool   `json:"tls"`
}

// Invite is permission for one player to join one party.
type Invite struct {
	InviteID     string `json:"invite_id"`
	PartyID      string `json:"party_id"`
	FromPlayerID string `json:"from_player_id"`
	ToPlayerID   string `json:"to_player_id"`
	CreatedAt    string `json:"created_at" format:"date-time"`
	ExpiresAt    string `json:"expires_at" format:"date-time"`
}

// Lock prevents a player from searching.
type Lock struct {
	Kind           string `json:"kind" enum:"DODGE,LEAVE,AFK,REQUEUE,OPERATOR"`
	Until          string `json:"until,omitempty" format:"date-time"`
	Level          int32  `json:"level" doc:"Step of the scale of its kind, from 0, which is that of the first offence."`
	Reason         string `json:"reason"`
	GameInstanceID string `json:"game_instance_id,omitempty"`
}

// LastGame says how the last game ended, for a player who was away. It is kept for a day.
type LastGame struct {
	GameInstanceID      string `json:"game_instance_id"`
	EndReason           string `json:"end_reason,omitempty" doc:"Absent when the game went on."`
	MembershipEndReason string `json:"membership_end_reason"`
	EndedAt             string `json:"ended_at" format:"date-time"`
	Result              Object `json:"result"`
}

// ForeignSession is a player session outside player flow.
type ForeignSession struct {
	PlayerSessionID string `json:"player_session_id"`
	GameSessionID   string `json:"game_session_id"`
	Status          string `json:"status"`
}

// Object is a JSON object whose content is the studio's. It is stored as text; empty means {}.
type Object string

// MarshalJSON writes the object.
func (o Object) MarshalJSON() ([]byte, error) {
	if o == "" {
		return []byte("{}"), nil
	}
	return []byte(o), nil
}

// UnmarshalJSON reads an object and removes white space. The object goes to other clients unchanged, also in text frames, which
// require more than encoding/json checks.
func (o *Object) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '{' {
		return errors.New("want a JSON object")
	}
	if !utf8.Valid(b) {
		return errors.New("want valid UTF-8")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, b); err != nil {
		return err
	}
	if *o = Object(compact.String()); *o == "{}" {
		*o = ""
	}
	return nil
}

// Schema returns the schema of an object with any content.
func (Object) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// The maximum sizes of attributes, in bytes.
const (
	PartyAttributesMax  = 16 << 10
	PlayerAttributesMax = 4 << 10
)

// Text returns the object as text; nil if it was not given.
func (o *Object) Text() *string {
	if o == nil {
		return nil
	}
	return (*string)(o)
}

// OrNothing returns the object as text; empty if it was not given.
func (o *Object) OrNothing() string {
	if o == nil {
		return ""
	}
	return string(*o)
}

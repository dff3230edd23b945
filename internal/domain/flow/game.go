package flow

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
)

// Reconnect determines what happens to a player's seat when the game connection is lost.
type Reconnect uint8

// The modes.
const (
	ReconnectOff Reconnect = iota + 1
	ReconnectOptional
	ReconnectRequired
)

var reconnects = [...]string{"", "OFF", "OPTIONAL", "REQUIRED"}

func (r Reconnect) String() string { return reconnects[r] }

// CompletedMeans is how to interpret a player session that a server ended without a reason.
type CompletedMeans uint8

// The meanings.
const (
	CompletedAuto CompletedMeans = iota + 1
	CompletedDisconnected
	CompletedLeft
)

// InstanceStatus of a game instance.
type InstanceStatus uint8

// The statuses.
const (
	InstancePending InstanceStatus = iota + 1
	InstanceActive
	InstanceEnding
	InstanceEnded
)

func (s InstanceStatus) String() string {
	return [...]string{"", "PENDING", "ACTIVE", "ENDING", "ENDED"}[s]
}

// Rules are the settings of one game instance. They stay in force for its whole life.
type Rules struct {
	Reconnect         Reconnect
	ReconnectWindow   time.Duration
	NoShowHold        time.Duration
	Reservation       time.Duration
	NoHold            bool // seats of players who lost their connection are not kept
	DisconnectsMax    int32
	AllocationTimeout time.Duration
	ManualReady       bool
	Completed         CompletedMeans
	KeepAlive         time.Duration // expected interval between keep-alives; 0: none are expected
	KeepAliveMisses   int32
	AbsoluteTimeout   time.Duration // 0: none
	EndingGrace       time.Duration
	EmptyTimeout      time.Duration
	DenyTakeover      bool
	Requeue           bool // parties search again after a failed allocation
	WrapData          bool // playerDataMode WRAP: PlayerData contains the hash of the player's connection token
}

// Instance is one game that is being set up, is in progress or has ended.
type Instance struct {
	ID         InstanceID
	Status     InstanceStatus
	EndReason  Reason
	Created    domain.Time
	Ended      domain.Time
	Rules      Rules
	Queue      string // matchmaking configuration; empty if the studio made the match
	Match      string
	Placement  string // id of the placement that looks for a host
	Game       string // session.ID of the host; empty until it is reachable
	Attributes string // a JSON object; empty for none
	Ready      bool   // the server accepts players
	Unranked   bool   // leaving it is not an offence

	AllocateBy  domain.ContactTime
	AbsoluteBy  domain.ContactTime
	EndBy       domain.ContactTime
	EmptyBy     domain.ContactTime
	KeepAliveBy domain.ContactTime
	Suspect     domain.ContactTime // since when the host is suspected to be lost; 0: it is not
	MissedOne   bool               // a keep-alive is overdue
	Result      string             // of an ended instance; a JSON object, empty for none
	ForgetAt    domain.Time        // when an ended instance is removed
	Gone        []Leaver           // of an instance without a host: players who left although its placement reserves seats for them
	Lost        []Loss             // players who recently left the game by losing their connection
	Changed     uint64

	members []MembershipRef // live memberships, oldest first
	box     noticeBox
}

// Members returns the live memberships, oldest first.
func (x *Instance) Members() []MembershipRef { return x.members }

// Live reports whether the game instance has not ended.
func (x *Instance) Live() bool { return x.Status != InstanceEnded }

// Leaver is a player who has left a game instance.
type Leaver struct {
	Player string
	Reason Reason
}

// Loss is a player who lost the game connection and thereby the seat.
type Loss struct {
	Player string
	At     domain.Time
}

// MembershipStatus of a player's seat.
type MembershipStatus uint8

// The statuses.
const (
	MemberPending MembershipStatus = iota + 1
	MemberReserved
	MemberNoShow
	MemberActive
	MemberDisconnected
	MemberEnded // only in messages: an ended membership has no record
)

func (s MembershipStatus) String() string {
	return [...]string{"", "PENDING", "RESERVED", "NO_SHOW", "ACTIVE", "DISCONNECTED", "ENDED"}[s]
}

// Membership is a player's seat in a game instance. It may span several player sessions.
type Membership struct {
	Instance    InstanceID
	Player      string
	Status      MembershipStatus
	Team        string
	Party       PartyID // when the membership began
	Joined      domain.Time
	Ticket      domain.TicketID // the ticket that was matched; zero: none
	Entered     domain.Time     // when that ticket began to wait
	Attempt     int32
	Disconnects int32
	WasActive   bool
	LostAt      domain.Time            // when the game connection was last lost
	Excused     bool                   // so many players lost their connections together that the loss is not an offence
	Unasked     bool                   // the game server seated the player again on its own initiative: nothing that follows is an offence
	Session     domain.PlayerSessionID // current player session; zero while there is none
	Next        domain.PlayerSessionID // the player session that takes over when it is accepted
	TokenUntil  domain.Time            // end of the latest connection token, if PlayerData contains its hash
	Epoch       uint32                 // of the login that last asked for the connection details
	HoldBy      domain.ContactTime     // the hold ends then unless the player is back
	HoldLeft    int64                  // milliseconds that were left of the hold when the host became suspect
	Overdue     bool                   // HoldBy has passed; the hold ends with the reservation that was open then
	Keep        bool                   // the seat is held while no player session is on it
	Data        string
	Attributes  string // set by the game server; a JSON object
	Changed     uint64

	Seat     chunk.AnyRef // in the session package's table; 0 while the seat is not held
	instance InstanceRef
	player   PlayerRef
}

// InstanceRef returns the membership's game instance.
func (m *Membership) InstanceRef() InstanceRef { return m.instance }

// PlayerRef returns the membership's player.
func (m *Membership) PlayerRef() PlayerRef { return m.player }

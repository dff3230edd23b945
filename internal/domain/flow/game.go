package flow

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
)

// Reconnect is what becomes of a player's seat when the game connection is lost.
type Reconnect uint8

// The modes.
const (
	ReconnectOff Reconnect = iota + 1
	ReconnectOptional
	ReconnectRequired
)

var reconnects = [...]string{"", "OFF", "OPTIONAL", "REQUIRED"}

func (r Reconnect) String() string { return reconnects[r] }

// CompletedMeans is what a player session that a server ended without a reason stands for.
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

// Rules are the settings that are in force for one game instance for its whole life.
type Rules struct {
	Reconnect         Reconnect
	ReconnectWindow   time.Duration
	NoShowHold        time.Duration
	Reservation       time.Duration
	NoHold            bool // seats of those who lost their connection are not kept
	DisconnectsMax    int32
	AllocationTimeout time.Duration
	ManualReady       bool
	Completed         CompletedMeans
	KeepAlive         time.Duration // between two of them; 0: none is expected
	KeepAliveMisses   int32
	AbsoluteTimeout   time.Duration // 0: none
	EndingGrace       time.Duration
	EmptyTimeout      time.Duration
	DenyTakeover      bool
	Requeue           bool // after an allocation that failed
	WrapData          bool // playerDataMode WRAP: PlayerData says which connection token its player has
}

// Instance is one game being set up, played or finished.
type Instance struct {
	ID         InstanceID
	Status     InstanceStatus
	EndReason  Reason
	Created    domain.Time
	Ended      domain.Time
	Rules      Rules
	Queue      string // matchmaking configuration; empty when the studio made the match
	Match      string
	Placement  string // id of the placement that finds a host
	Game       string // session.ID of the host; empty until it is reachable
	Attributes string // a JSON object; empty for none
	Ready      bool   // the server takes players
	Unranked   bool   // leaving it is no offence

	AllocateBy  domain.ContactTime
	AbsoluteBy  domain.ContactTime
	EndBy       domain.ContactTime
	EmptyBy     domain.ContactTime
	KeepAliveBy domain.ContactTime
	Suspect     domain.ContactTime // since when the host is suspected to be gone; 0: it is not
	MissedOne   bool               // a keep-alive did not come
	Result      string             // of one that has ended; a JSON object, empty for none
	ForgetAt    domain.Time        // an ended one
	Gone        []Leaver           // of one without a host: for whom its placement reserves a seat nevertheless
	Lost        []Loss             // who was in it until the connection was lost, a moment ago
	Changed     uint64

	members []MembershipRef // live memberships, who came first is first
	box     noticeBox
}

// Members are the live memberships.
func (x *Instance) Members() []MembershipRef { return x.members }

// Live reports whether the game instance has not ended.
func (x *Instance) Live() bool { return x.Status != InstanceEnded }

// Leaver is a player who has left a game instance.
type Leaver struct {
	Player string
	Reason Reason
}

// Loss is a player who has lost the connection, and the seat with it.
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
	MemberEnded // only in what is told: one that has ended is no record any more
)

func (s MembershipStatus) String() string {
	return [...]string{"", "PENDING", "RESERVED", "NO_SHOW", "ACTIVE", "DISCONNECTED", "ENDED"}[s]
}

// Membership is a player's seat in a game instance. It outlives single player sessions.
type Membership struct {
	Instance    InstanceID
	Player      string
	Status      MembershipStatus
	Team        string
	Party       PartyID // when the membership began
	Joined      domain.Time
	Ticket      domain.TicketID // that the match was made of; zero: of none
	Entered     domain.Time     // when that began to wait
	Attempt     int32
	Disconnects int32
	WasActive   bool
	LostAt      domain.Time            // when the game connection was lost last
	Excused     bool                   // so many lost theirs with it that it is no offence
	Unasked     bool                   // the game server seated the player again on its own word: nothing that follows is an offence
	Session     domain.PlayerSessionID // current player session; zero while there is none
	Next        domain.PlayerSessionID // the one that takes over when it is accepted
	TokenUntil  domain.Time            // end of the latest connection token, if PlayerData tells its hash
	Epoch       uint32                 // of the login that asked for the details last
	HoldBy      domain.ContactTime     // the player is not back: it ends then
	HoldLeft    int64                  // milliseconds that were left of it when the host became suspect
	Overdue     bool                   // the deadline has passed, and the hold ends with the reservation that was open then
	Keep        bool                   // the seat is kept while no player session is on it
	Data        string
	Attributes  string // that the game server set; a JSON object
	Changed     uint64

	Seat     chunk.AnyRef // in the session package's table; 0 while it is not kept
	instance InstanceRef
	player   PlayerRef
}

// InstanceRef is its game instance.
func (m *Membership) InstanceRef() InstanceRef { return m.instance }

// PlayerRef is its player.
func (m *Membership) PlayerRef() PlayerRef { return m.player }

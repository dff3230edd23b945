// Package session has the records of game sessions, their seats and their player sessions, with the indexes and the rules that need no
// other records.
package session

import (
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/exit"
	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/domain/quota"
)

// References to records in the tables of this package; see chunk.Ref.
type (
	GameRef   = chunk.Ref[GameSession]
	PlayerRef = chunk.Ref[PlayerSession]
	SeatRef   = chunk.Ref[Seat]
)

// ID names a game session: the part of its ARN after "gamesession/", that is "<fleet id>/<location>/<id string>".
type ID string

// gamePart stands before the ID in an ARN.
const gamePart = ":gamesession/"

// ARN is the name of a game session outside of the service. Unlike all other ARNs, it has no account.
func (id ID) ARN(region string) string {
	return "arn:aws:gamelift:" + region + ":" + gamePart + string(id)
}

// CutARN returns the ID in the ARN of a game session, of any partition, region and account. ok is false for any other text.
func CutARN(text string) (id ID, ok bool) {
	_, tail, ok := strings.Cut(text, gamePart)
	return ID(tail), ok
}

// IDOf returns the ID that a text names: the one in an ARN, or else the text itself.
func IDOf(text string) ID {
	if id, ok := CutARN(text); ok {
		return id
	}
	return ID(text)
}

// MakeID joins the parts of an ID.
func MakeID(fleet, location, name string) ID { return ID(fleet + "/" + location + "/" + name) }

// NameID is the last part of an ID whose creator has not chosen one.
type NameID = domain.ID[nameKind]

type nameKind struct{}

func (nameKind) Prefix() string { return "gsess-" }

// Fleet returns the fleet's id.
func (id ID) Fleet() string {
	fleet, _, _ := strings.Cut(string(id), "/")
	return fleet
}

// Status of a game session.
type Status uint8

// The statuses, in the order of a game session's life.
const (
	Activating Status = iota + 1
	Active
	Terminating
	Terminated
)

func (s Status) String() string {
	return [...]string{"", "ACTIVATING", "ACTIVE", "TERMINATING", "TERMINATED"}[s]
}

// StatusReason is the StatusReason of some ended game sessions.
type StatusReason uint8

// The API omits NoReason.
const (
	NoReason StatusReason = iota
	TriggeredOnProcessTerminate
	ForceTerminated
	Interrupted
)

// EndCause is why a game session ended. The API does not show it.
type EndCause uint8

// The causes.
const (
	EndedByServer      EndCause = iota + 1 // its server process ended in good order
	EndedByCrash                           // the process lost its connection and the grace is over
	EndedByReplacement                     // another process took the process's id
	EndedUnhealthy                         // the process was unhealthy or silent for too long
	EndedByForce                           // the process was asked to end and did not
	EndedWithCompute                       // its compute, location or fleet was removed
	EndedNotActivated                      // the process did not activate it in time
	EndedWithPlacement                     // its placement ended before it was active
)

func (c EndCause) String() string {
	return [...]string{
		"", "SERVER_ENDED", "SERVER_CRASHED", "SERVER_REPLACED", "SERVER_UNHEALTHY", "SERVER_FORCED", "COMPUTE_REMOVED",
		"NOT_ACTIVATED", "PLACEMENT_ENDED",
	}[c]
}

// Property is a game property, for which clients can search.
type Property = keyvalue.Pair

// GameSession is one game with its seats on a server process.
//
// Slices of a record are never changed in place: a frozen copy of the record may share them.
type GameSession struct {
	ID              ID
	FleetID         string
	Location        string
	Region, Account string // of its ARN and of its fleet's
	Name            string
	Data            string
	MatchmakerData  string
	Properties      []Property
	Creator         string
	Holder          quota.Holder // counts the game session while it has not ended
	ComputeName     string
	ProcessID       string // of the server process that hosts or hosted it
	IPAddress       string
	DNSName         string
	Port            uint16

	PlayersMax     int32
	SeatsHeld      int32 // seats with a live player session, or held for a return; never grows at or above PlayersMax
	SeatsEmpty     int32 // of SeatsHeld: held for a return, without a player session
	Status         Status
	StatusReason   StatusReason
	DenyPlayers    bool // PlayerSessionCreationPolicy is DENY_ALL
	FullProtection bool
	Prompted       bool // CreateGameSession was sent to the server process, or is about to be, and must not be sent again
	Created, Ended domain.Time

	ActivateBy domain.ContactTime // the server must have activated it
	Process    chunk.AnyRef       // of the server process, in the fleet package's table; 0 once ended

	// These fields are for diagnosis; no decision depends on them.
	PromptedAt    domain.Time
	ActivatedAt   domain.Time
	TerminatingAt domain.Time
	Cause         EndCause
	Exit          *exit.Report // how its server process ended while it hosted the game session, if an agent saw that

	Placement string // id of the placement it was made for
	Replaced  bool   // another attempt of its placement has taken its id; it never had players

	Parameters uint64 // hash of what it was created with, when its creator chose the id
	Policy     uint64 // hash of the RequestId that last changed DenyPlayers

	first, last PlayerRef // its player sessions in creation order
	Players     int32
	EndedNo     uint64
	Changed     uint64 // journal number of the last change, 0 when older than this run
}

// FirstPlayer returns the first of its player sessions, to iterate over a frozen table.
func (g *GameSession) FirstPlayer() PlayerRef { return g.first }

// NextInGame returns the next player session of the same game session, to iterate over a frozen table.
func (p *PlayerSession) NextInGame() PlayerRef { return p.next }

// Live reports whether the game session has not ended.
func (g *GameSession) Live() bool { return g.Status < Terminated }

// Seated returns the number of live player sessions: held seats without one do not count.
func (g *GameSession) Seated() int32 { return g.SeatsHeld - g.SeatsEmpty }

// Seat is a seat of a game session. It is taken while it has a live player session, or while it is held.
type Seat struct {
	Game    GameRef
	Holders uint16 // live player sessions on it
	Kept    bool
}

// PlayerStatus of a player session.
type PlayerStatus uint8

// The statuses.
const (
	Reserved PlayerStatus = iota + 1
	PlayerActive
	Completed
	TimedOut
)

func (s PlayerStatus) String() string {
	return [...]string{"", "RESERVED", "ACTIVE", "COMPLETED", "TIMEDOUT"}[s]
}

// Live reports whether the player session holds its seat.
func (s PlayerStatus) Live() bool { return s == Reserved || s == PlayerActive }

// Bytes estimates the memory that the player session takes, with its index entries.
func (p *PlayerSession) Bytes() int {
	const record = 384
	return record + len(p.Player) + len(p.Data)
}

// PlayerSession is one player's claim to a seat.
type PlayerSession struct {
	ID        domain.PlayerSessionID
	Player    string
	Data      string
	Game      GameRef
	Seat      SeatRef
	Created   domain.Time
	Ended     domain.Time
	ReserveBy domain.ContactTime // the player must have connected
	Accepted  domain.Time        // when the player did; for diagnosis
	Status    PlayerStatus
	Maker     domain.Maker
	Holder    quota.Holder // 0: none, or the maker
	Accept    uint64       // hash of the RequestId that accepted it: a repeat gets the same answer

	next, prev           PlayerRef // in its game session
	nextOfOne, prevOfOne PlayerRef // of the same player
	EndedNo              uint64
	Changed              uint64
}

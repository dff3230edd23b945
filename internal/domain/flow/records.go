// Package flow has the records of player flow with their indexes: flow records with their keys, login sessions, parties and invites, game
// instances and memberships, and the outboxes of players. It contains the rules that need nothing but these records; package playerflow
// decides who may do what, and what follows from it.
package flow

import (
	"strconv"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
)

// References to records in the tables of this package; see chunk.Ref.
type (
	PlayerRef      = chunk.Ref[Player]
	LoginRef       = chunk.Ref[Login]
	PartyRef       = chunk.Ref[Party]
	InviteRef      = chunk.Ref[Invite]
	InstanceRef    = chunk.Ref[Instance]
	MembershipRef  = chunk.Ref[Membership]
	LoginTicketRef = chunk.Ref[LoginTicket]
	RequestRef     = chunk.Ref[Request]
	QueueRef       = chunk.Ref[Queue]
	AdviceRef      = chunk.Ref[Advice]
	ChangeRef      = chunk.Ref[Change]
)

// The ids of player flow, beside domain.TicketID.
type (
	LoginSessionID = domain.ID[loginSessionKind]
	PartyID        = domain.ID[partyKind]
	InviteID       = domain.ID[inviteKind]
	InstanceID     = domain.ID[instanceKind]
	SubscriptionID = domain.ID[subscriptionKind] // it also names the signing key of the subscription's webhook
)

type (
	loginSessionKind struct{}
	partyKind        struct{}
	inviteKind       struct{}
	instanceKind     struct{}
	subscriptionKind struct{}
)

func (loginSessionKind) Prefix() string { return "fs-" }
func (partyKind) Prefix() string        { return "pty-" }
func (inviteKind) Prefix() string       { return "inv-" }
func (instanceKind) Prefix() string     { return "gi-" }
func (subscriptionKind) Prefix() string { return "evs-" }

// Told is one event in a player's outbox.
type Told struct {
	At     domain.Time
	Commit uint64 // number of the journal entry
	Part   uint32 // number of the transaction in it; 0: written by a release that did not record it
	Type   MessageType
	Body   string // a Message, encoded once for all its recipients
}

// CommitName identifies a transaction by its journal entry and its number in that entry. All events of the transaction carry the name, whenever they
// are sent.
func CommitName(entry uint64, part uint32) string {
	b := strconv.AppendUint(make([]byte, 0, 24), entry, 10)
	if part > 0 {
		b = strconv.AppendUint(append(b, '.'), uint64(part), 10)
	}
	return string(b)
}

// Login is one authenticated client of a player.
type Login struct {
	ID            LoginSessionID
	Player        string
	Epoch         uint32
	Token         domain.UUID // first half of the SHA-256 of the access token
	Previous      domain.UUID // of the previous token, valid until PreviousBy
	State         LoginState
	AutoReconnect bool
	Insecure      bool // authenticated by a development provider
	Warned        bool // the player was told that the session is about to end
	PreviousBy    domain.Time
	Device        string
	ClientVersion string
	Created       domain.Time
	ExpireBy      domain.ContactTime // ends without a sign of life until then; if replaced: removed then
	Changed       uint64
}

// LoginState distinguishes live login sessions from replaced ones, which are kept so that their clients can learn why they ended.
type LoginState uint8

// The states.
const (
	LoginLive LoginState = iota + 1
	LoginReplaced
)

// LoginTicket lets a player log in who was authenticated by a trusted backend. A used ticket also records the use of a backend's signed token, so
// that the token is not accepted twice while it is valid.
type LoginTicket struct {
	Hash        domain.UUID // first half of the SHA-256
	Player      string
	DisplayName string
	Once        bool
	Used        bool
	Until       domain.Time
	Changed     uint64
}

// Request is an answered call, kept so that a repeat gets the same answer.
type Request struct {
	Key    uint64 // hash of the player and the request id
	At     domain.Time
	Player string
	Flow   Record
	Made   domain.UUID // id of what the call created
	Proof  domain.UUID // of a login: the credential that it used up
}

// Record is a player's flow record as every answer contains it: the revision, the number of the latest event, and the keys.
type Record struct {
	Rev, Seq uint64
	Keys     Keys
}

// Queue is the state of a queue that operators control.
type Queue struct {
	Name    string
	Closed  bool
	Drained bool // no party searches in it any more since it was closed

	EstimateMS int64           // expected wait that searching players were told in the latest round, in milliseconds
	ToldAt     domain.Time     // when that round began
	TellAt     domain.Time     // when a round begins or continues; 0: none is scheduled
	TellAfter  domain.TicketID // the round has reached this ticket; zero: it has not begun
	Changed    uint64
}

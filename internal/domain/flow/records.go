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

// Keys say which part of the platform a player belongs to. Zero means absent.
type Keys struct {
	Party  PartyID
	Ticket domain.TicketID
	Game   InstanceID
}

// Phase is derived from the keys and never stored.
type Phase uint8

// The phases S0 to S4.
const (
	Idle Phase = iota
	InParty
	Matchmaking
	InGameWithParty
	InGame
)

func (p Phase) String() string {
	return [...]string{"IDLE", "IN_PARTY", "MATCHMAKING", "IN_GAME", "IN_GAME"}[p]
}

// Phase derives the phase of a player with these keys.
func (k Keys) Phase() Phase {
	switch {
	case !k.Game.IsZero() && !k.Party.IsZero():
		return InGameWithParty
	case !k.Game.IsZero():
		return InGame
	case !k.Ticket.IsZero():
		return Matchmaking
	case !k.Party.IsZero():
		return InParty
	}
	return Idle
}

// Presence is derived from the event stream of a player; the game connection does not affect it.
type Presence uint8

// The presences. Unknown counts as online: the service was down, and the player has not yet had time to come back.
const (
	Offline Presence = iota
	Online
	Unknown
)

func (p Presence) String() string { return [...]string{"OFFLINE", "ONLINE", "UNKNOWN"}[p] }

// Player is the flow record: one for each player, however many devices log in.
//
// Nothing that its pointers and slices refer to is changed in place, because a frozen copy of the record may share it. The outbox
// only grows at its end and is cut at its front. Small fields stand together: a million records have no room for gaps.
type Player struct {
	ID    string
	Keys  Keys
	Rev   uint64      // commits that changed a key
	Since domain.Time // of the latest of them; 0: before that was noted, or none
	Seq   uint64      // number of the latest event sent to the player

	Presence     Presence
	Banned       bool
	Epoch        uint32             // logins
	Node         uint32             // number of the node that has the stream, or that was polled last; 0: a single node, or OFFLINE
	Stream       uint64             // number of the attached stream; 0 while none is
	PresenceBy   domain.ContactTime // OFFLINE then, unless the client comes back or polls again
	PolledBy     domain.ContactTime // until then the latest poll keeps the player ONLINE, even without a stream; 0: no poll does
	OfflineSince domain.Time        // 0 while not OFFLINE, and before the first login
	RemoveBy     domain.ContactTime // OFFLINE for too long: out of the party
	LeaveQueueBy domain.ContactTime // OFFLINE for too long: out of the queue

	FlapUntil domain.Time // no new login until then
	replaces  *Replaces   // nil: none that count
	requeues  *Requeues   // nil: none that count
	UnlockAt  domain.Time // end of the next lock that ends, whether it is enforced or not; 0: there is none

	Profile   *Profile  // nil: nothing is known
	LastGame  *LastGame // nil: none, or too long ago
	Penalties []Penalty // those that are not forgotten yet
	Blocked   []string  // players who may not invite this one or share a party with it

	outbox  []Told
	Changed uint64

	bytes      int32         // of the outbox
	login      LoginRef      // the live one
	membership MembershipRef // the live one
}

// Replaces says how often a login of a player has replaced one with a client that was here. Most players have none, so it is not in the record of each.
type Replaces struct {
	At     []domain.Time // oldest first: as many as lock, in the latest window
	Logins int32         // in records of release 0.1 alone: their number, and
	Since  domain.Time   // the first of them
}

// ReplacesKept bounds how many replacing logins of a player are remembered. More than that never lock.
const ReplacesKept = 1000

func (x *Replaces) none() bool { return len(x.At) == 0 && x.Logins == 0 && x.Since == 0 }

// Replaces returns how often a login has replaced another one of late.
func (p *Player) Replaces() Replaces {
	if p.replaces == nil {
		return Replaces{}
	}
	return *p.replaces
}

// SetReplaces replaces what Replaces returns.
func (p *Player) SetReplaces(x Replaces) {
	p.replaces = nil
	if !x.none() {
		p.replaces = &x
	}
}

// Requeues says how often a player has entered and left matchmaking of late. Most players have none, so it is not in the record of each.
type Requeues struct {
	Left   []domain.Time // own LeaveMatchmaking, oldest first: as many as lock, in the latest window
	Leaves int32         // their number; in records of release 0.1 alone, with the first of them
	Level  int32
	Since  domain.Time // the first of them, or when an operator set Level
	Until  domain.Time // no search until then
}

// LeavesKept bounds how many leaves of a player are remembered. More than that never lock.
const LeavesKept = 1000

func (x *Requeues) none() bool {
	return len(x.Left) == 0 && x.Leaves == 0 && x.Level == 0 && x.Since == 0 && x.Until == 0
}

// Requeues returns how often the player has entered and left matchmaking of late.
func (p *Player) Requeues() Requeues {
	if p.requeues == nil {
		return Requeues{}
	}
	return *p.requeues
}

// SetRequeues replaces what Requeues returns.
func (p *Player) SetRequeues(x Requeues) {
	p.requeues = nil
	if !x.none() {
		p.requeues = &x
	}
}

// Outbox returns the latest events of the player, oldest first. The number of the last one is Seq.
func (p *Player) Outbox() []Told { return p.outbox }

// FirstKept returns the number of the oldest event in the outbox; Seq+1 when it is empty.
func (p *Player) FirstKept() uint64 { return p.Seq - uint64(len(p.outbox)) + 1 }

// OutboxBytes estimates the memory that the outbox takes.
func (p *Player) OutboxBytes() int { return int(p.bytes) }

// Login returns the live login session; 0 when there is none.
func (p *Player) Login() LoginRef { return p.login }

// Membership returns the live membership; 0 when there is none.
func (p *Player) Membership() MembershipRef { return p.membership }

// Here reports whether the player counts as online.
func (p *Player) Here() bool { return p.Presence != Offline }

// Told is one event of the outbox.
type Told struct {
	At     domain.Time
	Commit uint64 // number of the journal entry
	Part   uint32 // number of the transaction in it; 0: written by a release that did not note it
	Type   MessageType
	Body   string // a Message, encoded once for all its recipients
}

// CommitName identifies a transaction: by the journal entry, and the number of the transaction in it. All events of the transaction have
// it, whenever they are sent.
func CommitName(entry uint64, part uint32) string {
	b := strconv.AppendUint(make([]byte, 0, 24), entry, 10)
	if part > 0 {
		b = strconv.AppendUint(append(b, '.'), uint64(part), 10)
	}
	return string(b)
}

// Profile is what clients and the studio's backend say about a player.
type Profile struct {
	DisplayName   string
	ClientVersion string
	Latencies     []Latency // to regions, as the client measured them
	Attributes    string    // of the client: a JSON object; empty for none
	Trusted       string    // of the studio's backend: a JSON object; overrides the client's
}

// Latency is the latency to a region, as the client measured it.
type Latency struct {
	Region       string
	Milliseconds int32
}

// LastGame says how the last game of a player ended, for players who were away. It is kept for a day.
type LastGame struct {
	Instance   InstanceID
	EndReason  Reason // of the game instance; 0 when that went on
	Membership Reason // of the player's membership
	Ended      domain.Time
	Result     string // a JSON object of the game server; empty for none
}

// PenaltyKind is the offence that a penalty is for.
type PenaltyKind uint8

// The kinds.
const (
	Dodge PenaltyKind = iota + 1
	Leave
	AFK
	Requeue // for entering and leaving matchmaking again and again; on a scale of its own
	ByOperator
)

func (k PenaltyKind) String() string {
	return [...]string{"", "DODGE", "LEAVE", "AFK", "REQUEUE", "OPERATOR"}[k]
}

// Penalty is the position of a player on one of the scales.
type Penalty struct {
	Kind     PenaltyKind
	Level    int32       // offences that are not forgotten; see Step
	Since    domain.Time // of the latest one
	Until    domain.Time // no search until then, if penalties are enforced
	Instance InstanceID  // that the latest one is for
	Reason   Reason
}

// Step returns the position on the scale as clients and backends see it: the first offence has 0 (docs/spec/fair-play.md#penalties). A lock
// that an operator sets is on no scale; its level is what the operator said.
func (p *Penalty) Step() int32 {
	if p.Kind == ByOperator {
		return p.Level
	}
	return max(0, p.Level-1)
}

// LevelAt returns the level of a penalty at a step.
func LevelAt(kind PenaltyKind, step int32) int32 {
	if kind == ByOperator {
		return step
	}
	return step + 1
}

// Login is one authenticated client of a player.
type Login struct {
	ID            LoginSessionID
	Player        string
	Epoch         uint32
	Token         domain.UUID // first half of the SHA-256 of the access token
	Previous      domain.UUID // of the token before, until PreviousBy
	State         LoginState
	AutoReconnect bool
	Insecure      bool // by a provider for development
	Warned        bool // the player was told that it is about to end
	PreviousBy    domain.Time
	Device        string
	ClientVersion string
	Created       domain.Time
	ExpireBy      domain.ContactTime // without a sign of life; of one that was replaced: forgotten
	Changed       uint64
}

// LoginState distinguishes live login sessions from replaced ones, which are kept to tell their clients why they ended.
type LoginState uint8

// The states.
const (
	LoginLive LoginState = iota + 1
	LoginReplaced
)

// Joinability says which players may join a party.
type Joinability uint8

// The joinabilities. Code and invite both work with InviteOnly.
const (
	Open Joinability = iota + 1
	InviteOnly
	Closed
)

var joinabilities = [...]string{"", "OPEN", "INVITE_ONLY", "CLOSED"}

func (j Joinability) String() string { return joinabilities[j] }

// Party is 1 to N players who want to play together.
type Party struct {
	ID          PartyID
	Rev         uint64
	Created     domain.Time
	MembersMax  int32
	Joinability Joinability
	Code        string // for JoinPartyByInviteCode
	Queue       string
	Regions     []string
	Attributes  string   // a JSON object; empty for none
	Members     []Member // in the order in which they joined
	Kicked      []Kicked
	Search      *Search // nil while no ticket is live

	LeaderBy domain.ContactTime // the leader is OFFLINE, and another member leads then
	StaleBy  domain.ContactTime // all members are OFFLINE, and the party is shut down then
	Changed  uint64
}

// Member is a member of a party.
type Member struct {
	Player  string
	Joined  domain.Time
	Ready   bool
	Leader  bool
	ReadyBy domain.ContactTime // not ready any more then; 0 while no clock runs
}

// Kicked is a player who was kicked, and needs a newer invite to join again.
type Kicked struct {
	Player string
	At     domain.Time
}

// Search is the live ticket of a party.
type Search struct {
	Ticket  domain.TicketID
	Queue   string
	Entered domain.Time
	Expires domain.Time
	Status  SearchStatus
	HeldBy  []string // members whose absence holds the ticket back

	Match      domain.UUID // that waits to be accepted
	AcceptBy   domain.Time
	Accepted   []string // of all players of the match
	Pending    []string
	EstimateMS int64
}

// SearchStatus is the status of a ticket as players see it.
type SearchStatus uint8

// The statuses.
const (
	Queued SearchStatus = iota + 1
	Searching
	Held
	RequiresAcceptance
	Placing
	SearchEnded
)

func (s SearchStatus) String() string {
	return [...]string{"", "QUEUED", "SEARCHING", "HELD", "REQUIRES_ACCEPTANCE", "PLACING", "ENDED"}[s]
}

// Member finds a member.
func (p *Party) Member(player string) (int, bool) {
	for i := range p.Members {
		if p.Members[i].Player == player {
			return i, true
		}
	}
	return -1, false
}

// Players returns the ids of the members, in the order in which they joined.
func (p *Party) Players() []string {
	all := make([]string, len(p.Members))
	for i, m := range p.Members {
		all[i] = m.Player
	}
	return all
}

// Leads reports whether a player leads the party.
func (p *Party) Leads(player string) bool {
	i, ok := p.Member(player)
	return ok && p.Members[i].Leader
}

// ReadyBy returns the earliest deadline after which a member is no longer ready; 0: there is none.
func (p *Party) ReadyBy() (first domain.ContactTime) {
	for _, m := range p.Members {
		if m.ReadyBy != 0 && (first == 0 || m.ReadyBy < first) {
			first = m.ReadyBy
		}
	}
	return first
}

// Invite is permission for one player to join one party.
type Invite struct {
	ID       InviteID
	Party    PartyID
	From, To string
	Created  domain.Time
	ExpireBy domain.ContactTime // of one that has expired: forgotten
	Expired  bool
	Unseen   bool // only its sender knows of it: To blocks the sender, or is not a known player
	Changed  uint64
}

// LoginTicket lets a player log in whom a trusted backend has authenticated. A used one also records the use of a signed token of the
// backend, so that the token is not accepted twice while it is valid.
type LoginTicket struct {
	Hash        domain.UUID // first half of the SHA-256
	Player      string
	DisplayName string
	Once        bool
	Used        bool
	Until       domain.Time
	Changed     uint64
}

// Request is a call that was answered, kept so that a repeat gets the same answer.
type Request struct {
	Key    uint64 // hash of the player and the request id
	At     domain.Time
	Player string
	Flow   Record
	Made   domain.UUID // what the call made
	Proof  domain.UUID // of a login: what it used up
}

// Record is the flow record of a player as every answer carries it: its revision, the number of the latest event, and the keys.
type Record struct {
	Rev, Seq uint64
	Keys     Keys
}

// Queue is what operators have decided about a queue.
type Queue struct {
	Name    string
	Closed  bool
	Drained bool // no party searches in it since it was closed

	EstimateMS int64           // expected wait that those who search were told in the latest round
	ToldAt     domain.Time     // when that began
	TellAt     domain.Time     // when a round begins, or goes on; 0: none is wanted
	TellAfter  domain.TicketID // the round has come to this ticket; zero: it has not begun
	Changed    uint64
}

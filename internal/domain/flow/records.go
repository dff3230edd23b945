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

// Keys identify the party, search and game that a player is in. Zero means none.
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

// The presences. Unknown counts as online: the service was down, and the player has not yet had time to return.
const (
	Offline Presence = iota
	Online
	Unknown
)

func (p Presence) String() string { return [...]string{"OFFLINE", "ONLINE", "UNKNOWN"}[p] }

// Player is the flow record: there is one for each player, however many devices log in.
//
// The data behind its pointers and slices is never changed in place, because a frozen copy of the record may share it. The outbox only grows at its
// end and is trimmed at its front. Small fields are grouped, because padding would add up over a million records.
type Player struct {
	ID    string
	Keys  Keys
	Rev   uint64      // number of commits that changed a key
	Since domain.Time // time of the latest such commit; 0: none, or before this was recorded
	Seq   uint64      // number of the latest event sent to the player

	Presence     Presence
	Banned       bool
	Epoch        uint32             // number of logins
	Node         uint32             // number of the node that has the stream or was polled last; 0: a single node, or OFFLINE
	Stream       uint64             // number of the attached stream; 0 while none is
	PresenceBy   domain.ContactTime // the player becomes OFFLINE then, unless the client returns or polls again
	PolledBy     domain.ContactTime // until then the latest poll keeps the player ONLINE, even without a stream; 0: not polled
	OfflineSince domain.Time        // 0 while not OFFLINE, and before the first login
	RemoveBy     domain.ContactTime // OFFLINE until then: removed from the party
	LeaveQueueBy domain.ContactTime // OFFLINE until then: removed from the queue

	FlapUntil domain.Time // no new login until then
	replaces  *Replaces   // nil: none recently
	requeues  *Requeues   // nil: none recently
	UnlockAt  domain.Time // when the next lock ends, whether or not it is enforced; 0: no lock

	Profile   *Profile  // nil: nothing is known
	LastGame  *LastGame // nil: none, or too long ago
	Penalties []Penalty // penalties that have not decayed yet
	Blocked   []string  // players who may not invite this one or share a party with it

	outbox  []Told
	Changed uint64

	bytes      int32         // of the outbox
	login      LoginRef      // the live login session
	membership MembershipRef // the live membership
}

// Replaces counts the logins of a player that replaced a connected client. It is separate from Player because most players have none.
type Replaces struct {
	At     []domain.Time // oldest first; as many as suffice for a lock, in the latest window
	Logins int32         // only in records of release 0.1: their number
	Since  domain.Time   // likewise: the time of the first
}

// ReplacesKept bounds how many replacing logins of a player are remembered. A limit above it never locks.
const ReplacesKept = 1000

func (x *Replaces) none() bool { return len(x.At) == 0 && x.Logins == 0 && x.Since == 0 }

// Replaces returns the player's recent replacing logins.
func (p *Player) Replaces() Replaces {
	if p.replaces == nil {
		return Replaces{}
	}
	return *p.replaces
}

// SetReplaces stores the player's recent replacing logins.
func (p *Player) SetReplaces(x Replaces) {
	p.replaces = nil
	if !x.none() {
		p.replaces = &x
	}
}

// Requeues counts how often a player recently entered and left matchmaking. It is separate from Player because most players have none.
type Requeues struct {
	Left   []domain.Time // times of LeaveMatchmaking calls, oldest first; as many as suffice for a lock, in the latest window
	Leaves int32         // their number; in records of release 0.1 alone, with the first of them
	Level  int32
	Since  domain.Time // time of the first leave, or when an operator set Level
	Until  domain.Time // no search until then
}

// LeavesKept bounds how many leaves of a player are remembered. A limit above it never locks.
const LeavesKept = 1000

func (x *Requeues) none() bool {
	return len(x.Left) == 0 && x.Leaves == 0 && x.Level == 0 && x.Since == 0 && x.Until == 0
}

// Requeues returns the player's recent leaves of matchmaking.
func (p *Player) Requeues() Requeues {
	if p.requeues == nil {
		return Requeues{}
	}
	return *p.requeues
}

// SetRequeues stores the player's recent leaves of matchmaking.
func (p *Player) SetRequeues(x Requeues) {
	p.requeues = nil
	if !x.none() {
		p.requeues = &x
	}
}

// Outbox returns the latest events of the player, oldest first. The number of the last one is Seq.
func (p *Player) Outbox() []Told { return p.outbox }

// FirstKept returns the number of the oldest event in the outbox; Seq+1 if the outbox is empty.
func (p *Player) FirstKept() uint64 { return p.Seq - uint64(len(p.outbox)) + 1 }

// OutboxBytes estimates the memory used by the outbox.
func (p *Player) OutboxBytes() int { return int(p.bytes) }

// Login returns the live login session; 0 if there is none.
func (p *Player) Login() LoginRef { return p.login }

// Membership returns the live membership; 0 if there is none.
func (p *Player) Membership() MembershipRef { return p.membership }

// Here reports whether the player counts as online.
func (p *Player) Here() bool { return p.Presence != Offline }

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

// Profile is what clients and the studio's backend report about a player.
type Profile struct {
	DisplayName   string
	ClientVersion string
	Latencies     []Latency // to regions, as the client measured them
	Attributes    string    // from the client: a JSON object; empty for none
	Trusted       string    // from the studio's backend: a JSON object; overrides the client's
}

// Latency is the latency to a region, as the client measured it.
type Latency struct {
	Region       string
	Milliseconds int32
}

// LastGame records how a player's last game ended, for players who were away. It is kept for a day.
type LastGame struct {
	Instance   InstanceID
	EndReason  Reason // of the game instance; 0 if the game continued
	Membership Reason // of the player's membership
	Ended      domain.Time
	Result     string // a JSON object from the game server; empty for none
}

// PenaltyKind is the offence that a penalty is for.
type PenaltyKind uint8

// The kinds.
const (
	Dodge PenaltyKind = iota + 1
	Leave
	AFK
	Requeue // entering and leaving matchmaking repeatedly; it has a scale of its own
	ByOperator
)

func (k PenaltyKind) String() string {
	return [...]string{"", "DODGE", "LEAVE", "AFK", "REQUEUE", "OPERATOR"}[k]
}

// Penalty is the position of a player on one of the scales.
type Penalty struct {
	Kind     PenaltyKind
	Level    int32       // offences that have not decayed; see Step
	Since    domain.Time // of the latest one
	Until    domain.Time // no search until then, if penalties are enforced
	Instance InstanceID  // game of the latest offence
	Reason   Reason
}

// Step returns the position on the scale in the form that clients and backends see: 0 for the first offence (docs/spec/fair-play.md#penalties). A
// lock set by an operator is on no scale; its step is the level that the operator chose.
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

// Joinability says which players may join a party.
type Joinability uint8

// The joinabilities. With InviteOnly, players can join by code or by invite.
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

	LeaderBy domain.ContactTime // when another member becomes leader, because the leader is OFFLINE
	StaleBy  domain.ContactTime // when the party is shut down, because all members are OFFLINE
	Changed  uint64
}

// Member is a member of a party.
type Member struct {
	Player  string
	Joined  domain.Time
	Ready   bool
	Leader  bool
	ReadyBy domain.ContactTime // when the member stops being ready; 0: no deadline
}

// Kicked is a player who was kicked and can only rejoin by an invite sent afterwards.
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
	HeldBy  []string // members whose absence keeps the ticket from being matched

	Match      domain.UUID // the match that waits for acceptance
	AcceptBy   domain.Time
	Accepted   []string // the players of the match who have accepted
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
	ExpireBy domain.ContactTime // when the invite expires; if expired: when it is removed
	Expired  bool
	Unseen   bool // only its sender sees it: To blocks the sender or is not a known player
	Changed  uint64
}

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

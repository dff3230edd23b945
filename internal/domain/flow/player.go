package flow

import (
	"github.com/musterhq/muster/internal/domain"
)

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

package flow

import (
	"github.com/musterhq/muster/internal/domain"
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

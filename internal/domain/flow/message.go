package flow

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/wire"
)

// MessageType is the type of a message to a player. The numbers are in the journal and never change.
type MessageType uint8

// The types.
const (
	OnSync MessageType = iota + 1 // never journaled: made from the state
	OnGameSessionChanged
	OnSessionReplaced
	OnSessionExpiring
	OnPartyChanged
	OnAddedToParty
	OnRemovedFromParty
	OnPartyMemberPresence
	OnPartyInviteReceived
	OnPartyInviteCancelled
	OnPartyInviteResponse
	OnEnteredMatchmaking
	OnMatchmakingStatus
	OnMatchFound
	OnMatchAcceptanceChanged
	OnMatchmakingResumed
	OnLeftMatchmaking
	OnMatchmakingFailed
	OnAddedToGame
	OnHostConnectionDetailsReceived
	OnFailedToAllocateGameInstance
	OnGameMembershipChanged
	OnReconnectAvailable
	OnGameInstanceUpdated
	OnGameEnded
	OnRemovedFromGame
	OnPenaltyApplied
	OnPenaltyLifted
	OnMaintenance
	OnAllowedActionsChanged
)

var messageTypes = [...]string{
	"", "OnSync", "OnGameSessionChanged", "OnSessionReplaced", "OnSessionExpiring", "OnPartyChanged", "OnAddedToParty",
	"OnRemovedFromParty", "OnPartyMemberPresence", "OnPartyInviteReceived", "OnPartyInviteCancelled", "OnPartyInviteResponse",
	"OnEnteredMatchmaking", "OnMatchmakingStatus", "OnMatchFound", "OnMatchAcceptanceChanged", "OnMatchmakingResumed",
	"OnLeftMatchmaking", "OnMatchmakingFailed", "OnAddedToGame", "OnHostConnectionDetailsReceived",
	"OnFailedToAllocateGameInstance", "OnGameMembershipChanged", "OnReconnectAvailable", "OnGameInstanceUpdated", "OnGameEnded",
	"OnRemovedFromGame", "OnPenaltyApplied", "OnPenaltyLifted", "OnMaintenance", "OnAllowedActionsChanged",
}

func (t MessageType) String() string { return messageTypes[t] }

// PartyChange is what happened to a party.
type PartyChange uint8

// The changes.
const (
	PartyCreated PartyChange = iota + 1
	MemberJoined
	MemberHasLeft
	MemberWasKicked
	LeaderChanged
	ReadyChanged
	PreferencesChanged
	AttributesChanged
	CodeChanged
)

func (c PartyChange) String() string {
	return [...]string{"", "CREATED", "JOINED", "LEFT", "KICKED", "LEADER", "READY", "PREFERENCES", "ATTRIBUTES", "CODE"}[c]
}

// Message is one event for players. Its type determines which fields are set; the names are those of the API.
type Message struct {
	Cause   string // what caused it
	Record  Record // OnGameSessionChanged: after the commit
	Old     Keys   // before the commit
	Allowed Actions

	Player   string // the player that the message is about; "by"
	Party    *PartyView
	Change   PartyChange
	PartyID  PartyID
	Reason   Reason
	Online   bool
	Accepted bool // the answer to an invite
	Invite   *InviteView

	Ticket        domain.TicketID
	Search        *Search
	Match         string
	Deadline      domain.Time
	Players       int32
	AcceptedCount int32
	PendingCount  int32

	Instance   InstanceID
	Team       string
	Reconnect  Reconnect
	Attributes string
	Host       *Host
	Requeued   bool
	OldStatus  MembershipStatus
	Status     MembershipStatus
	CanDecline bool
	Suspect    bool
	Result     string

	Device  string
	Penalty *Penalty
	Text    string
}

// Host tells a player how to reach the game server.
type Host struct {
	Instance    InstanceID
	GameSession string // session.ID
	Region      string // of its ARN
	IPAddress   string
	DNSName     string
	Port        uint16
	TLS         bool
	Session     domain.PlayerSessionID // player session
	Attempt     int32
	Epoch       uint32 // of the login for which it was made; part of the connection token
	ReserveBy   domain.Time
	TokenUntil  domain.Time // end of the connection token; 0: ReserveBy
	Suspect     bool
}

// PartyView is a party as its members see it.
type PartyView struct {
	Party
	People []MemberView // one for each of Members
}

// MemberView is a member as the other members see it.
type MemberView struct {
	DisplayName   string
	Online        bool
	OfflineSince  domain.Time
	ClientVersion string
	Phase         Phase
	Attributes    string
	Latencies     []Latency
}

// InviteView is an invite with its expiry on the wall clock.
type InviteView struct {
	Invite
	Expires domain.Time
}

// Encode encodes the message once for all recipients.
func (m *Message) Encode() string { return string(wire.Append(nil, m)) }

// DecodeMessage decodes the result of Encode.
func DecodeMessage(body string) (*Message, error) {
	var m Message
	err := wire.Unmarshal([]byte(body), &m)
	return &m, err
}

func (m *Message) Fields(c *wire.Codec) {
	c.String(1, &m.Cause)
	wire.Sub(c, 2, &m.Record, m.Record != Record{}, (*Record).Fields)
	wire.Sub(c, 3, &m.Old, m.Old != Keys{}, (*Keys).Fields)
	wire.Int(c, 4, &m.Allowed)
	c.String(5, &m.Player)
	wire.Optional(c, 6, &m.Party, (*PartyView).Fields)
	wire.Int(c, 7, &m.Change)
	wire.ID(c, 8, &m.PartyID)
	wire.Int(c, 9, &m.Reason)
	c.Bool(10, &m.Online)
	c.Bool(11, &m.Accepted)
	wire.Optional(c, 12, &m.Invite, (*InviteView).Fields)
	wire.ID(c, 13, &m.Ticket)
	wire.Optional(c, 14, &m.Search, (*Search).Fields)
	c.String(15, &m.Match)
	wire.Int(c, 16, &m.Deadline)
	wire.Int(c, 17, &m.Players)
	wire.Int(c, 18, &m.AcceptedCount)
	wire.Int(c, 19, &m.PendingCount)
	wire.ID(c, 20, &m.Instance)
	c.String(21, &m.Team)
	wire.Int(c, 22, &m.Reconnect)
	c.String(23, &m.Attributes)
	wire.Optional(c, 24, &m.Host, (*Host).Fields)
	c.Bool(25, &m.Requeued)
	wire.Int(c, 26, &m.OldStatus)
	wire.Int(c, 27, &m.Status)
	c.Bool(28, &m.CanDecline)
	c.Bool(29, &m.Suspect)
	c.String(30, &m.Result)
	c.String(31, &m.Device)
	wire.Optional(c, 32, &m.Penalty, (*Penalty).Fields)
	c.String(33, &m.Text)
}

func (h *Host) Fields(c *wire.Codec) {
	wire.ID(c, 1, &h.Instance)
	c.String(2, &h.GameSession)
	c.String(3, &h.Region)
	c.String(4, &h.IPAddress)
	c.String(5, &h.DNSName)
	wire.Int(c, 6, &h.Port)
	c.Bool(7, &h.TLS)
	wire.ID(c, 8, &h.Session)
	wire.Int(c, 9, &h.Attempt)
	wire.Int(c, 10, &h.Epoch)
	wire.Int(c, 11, &h.ReserveBy)
	c.Bool(12, &h.Suspect)
	wire.Int(c, 13, &h.TokenUntil)
}

func (p *PartyView) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &p.Party, true, (*Party).Fields)
	wire.Many(c, 2, &p.People, (*MemberView).Fields)
}

func (m *MemberView) Fields(c *wire.Codec) {
	c.String(1, &m.DisplayName)
	c.Bool(2, &m.Online)
	wire.Int(c, 3, &m.OfflineSince)
	c.String(4, &m.ClientVersion)
	wire.Int(c, 5, &m.Phase)
	c.String(6, &m.Attributes)
	wire.Many(c, 7, &m.Latencies, (*Latency).Fields)
}

func (x *InviteView) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &x.Invite, true, (*Invite).Fields)
	wire.Int(c, 2, &x.Expires)
}

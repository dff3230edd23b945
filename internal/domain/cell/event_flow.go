package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/wire"
)

// PlayerKeysChanged is a player's keys as they are now. Rev rises by one with each transaction that changes them.
type PlayerKeysChanged struct {
	Player string
	Rev    uint64
	Keys   flow.Keys
}

// PlayerLoggedIn is a new login session, which now controls the player; and what else the login changed of the player.
type PlayerLoggedIn struct {
	Login         flow.Login
	Replaced      int32
	ReplacedSince domain.Time
	FlapUntil     domain.Time
	Profile       *flow.Profile
	PresenceBy    domain.ContactTime
}

// LoginChanged is a login session as it is now.
type LoginChanged struct{ Login flow.Login }

// LoginRemoved is the end of a login session, or of the memory of it.
type LoginRemoved struct{ ID domain.UUID }

// PresenceChanged is where a player's client is now, and what waits for it.
type PresenceChanged struct {
	Player       string
	Presence     flow.Presence
	Stream       uint64
	PresenceBy   domain.ContactTime
	OfflineSince domain.Time
	RemoveBy     domain.ContactTime
	LeaveQueueBy domain.ContactTime
	PolledBy     domain.ContactTime
}

// FlowResumed says that the service was down: whoever was online has until PresenceBy to come back, and every host is suspected
// to be lost until its server is back. Now is on the contact clock. Down is how much longer than the calendar says players may
// search, answer a match and wait for a host, because they could not be told of one.
type FlowResumed struct {
	PresenceBy, Now domain.ContactTime
	Down            int64 // milliseconds
}

// PlayersTold is one event for players: their outboxes take it. If the studio wants it, too, No is its number there, and Kept
// the number of the oldest event that is kept for the studio.
type PlayersTold struct {
	Type flow.MessageType
	Body string // a flow.Message; see flow.DecodeMessage
	To   []Addressee
	No   uint64
	Kept uint64

	// TakeBy is until when those on the studio's side for whom nothing else waits have time to take it; 0: there is nobody such.
	TakeBy domain.ContactTime
}

// Addressee is a player who is told, the number of the event for this player, and the oldest one that is kept. Without a number
// the event is about the player, and the studio alone is told.
type Addressee struct {
	Player     string
	Seq, First uint64
}

// EventsTrimmed says that nobody will ask for the events of a player before number First.
type EventsTrimmed struct {
	Player string
	First  uint64
}

// RequestAnswered is a call that was carried out: a repeat gets the same answer. Since is how far the memory goes back.
type RequestAnswered struct {
	Request flow.Request
	Since   domain.Time
}

// PlayerChanged is what is known about a player beside keys and presence, as it is now.
type PlayerChanged struct {
	Player       string
	Banned       bool
	Leaves       int32
	LeavesSince  domain.Time
	RequeueLevel int32
	RequeueUntil domain.Time
	Profile      *flow.Profile
	LastGame     *flow.LastGame
	Penalties    []flow.Penalty
	Blocked      []string
	UnlockAt     domain.Time
}

// PlayerForgotten says that nothing more is to be known about a player who was away for long.
type PlayerForgotten struct{ Player string }

// PartyChanged is a party as it is now.
type PartyChanged struct{ Party flow.Party }

// PartyRemoved is the end of a party. Its members left before, in the same transaction.
type PartyRemoved struct{ ID domain.UUID }

// InviteChanged is an invite as it is now.
type InviteChanged struct{ Invite flow.Invite }

// InviteRemoved is the end of an invite.
type InviteRemoved struct{ ID domain.UUID }

// GameInstanceChanged is a game instance as it is now.
type GameInstanceChanged struct{ Instance flow.Instance }

// GameInstanceForgotten says that an ended game instance leaves memory.
type GameInstanceForgotten struct{ ID domain.UUID }

// MembershipChanged is a player's membership as it is now.
type MembershipChanged struct{ Membership flow.Membership }

// MembershipEnded is the end of a player's membership, and of the hold on its seat.
type MembershipEnded struct {
	Player   string
	LastGame *flow.LastGame
}

// LoginTicketChanged is a login ticket that a backend has issued.
type LoginTicketChanged struct{ Ticket flow.LoginTicket }

// LoginTicketRemoved is the end of a login ticket: it was used, or is too old.
type LoginTicketRemoved struct{ Hash domain.UUID }

// FlowQueueChanged is what operators have decided about a matchmaking queue.
type FlowQueueChanged struct{ Queue flow.Queue }

func (*PlayerKeysChanged) kind() Kind     { return KindPlayerKeysChanged }
func (*PlayerLoggedIn) kind() Kind        { return KindPlayerLoggedIn }
func (*LoginChanged) kind() Kind          { return KindLoginChanged }
func (*LoginRemoved) kind() Kind          { return KindLoginRemoved }
func (*PresenceChanged) kind() Kind       { return KindPresenceChanged }
func (*FlowResumed) kind() Kind           { return kindFlowResumed }
func (*PlayersTold) kind() Kind           { return KindPlayersTold }
func (*EventsTrimmed) kind() Kind         { return kindEventsTrimmed }
func (*RequestAnswered) kind() Kind       { return kindRequestAnswered }
func (*PlayerChanged) kind() Kind         { return KindPlayerChanged }
func (*PlayerForgotten) kind() Kind       { return kindPlayerForgotten }
func (*PartyChanged) kind() Kind          { return KindPartyChanged }
func (*PartyRemoved) kind() Kind          { return KindPartyRemoved }
func (*InviteChanged) kind() Kind         { return KindInviteChanged }
func (*InviteRemoved) kind() Kind         { return KindInviteRemoved }
func (*GameInstanceChanged) kind() Kind   { return KindGameInstanceChanged }
func (*GameInstanceForgotten) kind() Kind { return kindGameInstanceForgotten }
func (*MembershipChanged) kind() Kind     { return KindMembershipChanged }
func (*MembershipEnded) kind() Kind       { return KindMembershipEnded }
func (*LoginTicketChanged) kind() Kind    { return kindLoginTicketChanged }
func (*LoginTicketRemoved) kind() Kind    { return kindLoginTicketRemoved }
func (*FlowQueueChanged) kind() Kind      { return KindFlowQueueChanged }

// Fields of the event.
func (e *PlayerKeysChanged) Fields(c *wire.Codec) {
	c.String(1, &e.Player)
	wire.Int(c, 2, &e.Rev)
	wire.Sub(c, 3, &e.Keys, e.Keys != flow.Keys{}, (*flow.Keys).Fields)
}

// Fields of the event.
func (e *PlayerLoggedIn) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Login, true, (*flow.Login).Fields)
	wire.Int(c, 2, &e.Replaced)
	wire.Int(c, 3, &e.ReplacedSince)
	wire.Int(c, 4, &e.FlapUntil)
	wire.Optional(c, 5, &e.Profile, (*flow.Profile).Fields)
	wire.Int(c, 6, &e.PresenceBy)
}

// Fields of the event.
func (e *LoginChanged) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Login, true, (*flow.Login).Fields)
}

// Fields of the event.
func (e *LoginRemoved) Fields(c *wire.Codec) { c.UUID(1, &e.ID) }

// Fields of the event.
func (e *PresenceChanged) Fields(c *wire.Codec) {
	c.String(1, &e.Player)
	wire.Int(c, 2, &e.Presence)
	c.Fixed64(3, &e.Stream)
	wire.Int(c, 4, &e.PresenceBy)
	wire.Int(c, 5, &e.OfflineSince)
	wire.Int(c, 6, &e.RemoveBy)
	wire.Int(c, 7, &e.LeaveQueueBy)
	wire.Int(c, 8, &e.PolledBy)
}

// Fields of the event.
func (e *FlowResumed) Fields(c *wire.Codec) {
	wire.Int(c, 1, &e.PresenceBy)
	wire.Int(c, 2, &e.Now)
	wire.Int(c, 3, &e.Down)
}

// Fields of the event.
func (e *PlayersTold) Fields(c *wire.Codec) {
	wire.Int(c, 1, &e.Type)
	c.String(2, &e.Body)
	wire.Many(c, 3, &e.To, (*Addressee).fields)
	wire.Int(c, 4, &e.No)
	wire.Int(c, 5, &e.Kept)
	wire.Int(c, 6, &e.TakeBy)
}

func (a *Addressee) fields(c *wire.Codec) {
	c.String(1, &a.Player)
	wire.Int(c, 2, &a.Seq)
	wire.Int(c, 3, &a.First)
}

// Fields of the event.
func (e *EventsTrimmed) Fields(c *wire.Codec) {
	c.String(1, &e.Player)
	wire.Int(c, 2, &e.First)
}

// Fields of the event.
func (e *RequestAnswered) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Request, true, (*flow.Request).Fields)
	wire.Int(c, 2, &e.Since)
}

// Fields of the event.
func (e *PlayerChanged) Fields(c *wire.Codec) {
	c.String(1, &e.Player)
	c.Bool(2, &e.Banned)
	wire.Int(c, 3, &e.Leaves)
	wire.Int(c, 4, &e.LeavesSince)
	wire.Int(c, 5, &e.RequeueLevel)
	wire.Int(c, 6, &e.RequeueUntil)
	wire.Optional(c, 7, &e.Profile, (*flow.Profile).Fields)
	wire.Optional(c, 8, &e.LastGame, (*flow.LastGame).Fields)
	wire.Many(c, 9, &e.Penalties, (*flow.Penalty).Fields)
	c.Strings(10, &e.Blocked)
	wire.Int(c, 11, &e.UnlockAt)
}

// Fields of the event.
func (e *PlayerForgotten) Fields(c *wire.Codec) { c.String(1, &e.Player) }

// Fields of the event.
func (e *PartyChanged) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Party, true, (*flow.Party).Fields)
}

// Fields of the event.
func (e *PartyRemoved) Fields(c *wire.Codec) { c.UUID(1, &e.ID) }

// Fields of the event.
func (e *InviteChanged) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Invite, true, (*flow.Invite).Fields)
}

// Fields of the event.
func (e *InviteRemoved) Fields(c *wire.Codec) { c.UUID(1, &e.ID) }

// Fields of the event.
func (e *GameInstanceChanged) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Instance, true, (*flow.Instance).Fields)
}

// Fields of the event.
func (e *GameInstanceForgotten) Fields(c *wire.Codec) { c.UUID(1, &e.ID) }

// Fields of the event.
func (e *MembershipChanged) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Membership, true, (*flow.Membership).Fields)
}

// Fields of the event.
func (e *MembershipEnded) Fields(c *wire.Codec) {
	c.String(1, &e.Player)
	wire.Optional(c, 2, &e.LastGame, (*flow.LastGame).Fields)
}

// Fields of the event.
func (e *LoginTicketChanged) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Ticket, true, (*flow.LoginTicket).Fields)
}

// Fields of the event.
func (e *LoginTicketRemoved) Fields(c *wire.Codec) { c.UUID(1, &e.Hash) }

// Fields of the event.
func (e *FlowQueueChanged) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Queue, true, (*flow.Queue).Fields)
}

// FlowCommitted says why the keys of players are other ones than before the transaction, and who wished it. It comes behind
// the last change of them.
type FlowCommitted struct {
	Cause   string
	By      flow.Actor
	Players []string
}

func (*FlowCommitted) kind() Kind { return KindFlowCommitted }

// Fields of the event.
func (e *FlowCommitted) Fields(c *wire.Codec) {
	c.Shared(1, &e.Cause)
	wire.Sub(c, 2, &e.By, e.By != flow.Actor{}, (*flow.Actor).Fields)
	c.Strings(3, &e.Players)
}

// newFlowEvent returns an empty event of player flow, or nil when the kind is none of its.
func newFlowEvent(k Kind) Event {
	switch k {
	case KindPlayerKeysChanged:
		return &PlayerKeysChanged{}
	case KindPlayerLoggedIn:
		return &PlayerLoggedIn{}
	case KindLoginChanged:
		return &LoginChanged{}
	case KindLoginRemoved:
		return &LoginRemoved{}
	case KindPresenceChanged:
		return &PresenceChanged{}
	case kindFlowResumed:
		return &FlowResumed{}
	case KindPlayersTold:
		return &PlayersTold{}
	case kindEventsTrimmed:
		return &EventsTrimmed{}
	case kindRequestAnswered:
		return &RequestAnswered{}
	case KindPlayerChanged:
		return &PlayerChanged{}
	case kindPlayerForgotten:
		return &PlayerForgotten{}
	case KindPartyChanged:
		return &PartyChanged{}
	case KindPartyRemoved:
		return &PartyRemoved{}
	case KindInviteChanged:
		return &InviteChanged{}
	case KindInviteRemoved:
		return &InviteRemoved{}
	case KindGameInstanceChanged:
		return &GameInstanceChanged{}
	case kindGameInstanceForgotten:
		return &GameInstanceForgotten{}
	case KindMembershipChanged:
		return &MembershipChanged{}
	case KindMembershipEnded:
		return &MembershipEnded{}
	case kindLoginTicketChanged:
		return &LoginTicketChanged{}
	case kindLoginTicketRemoved:
		return &LoginTicketRemoved{}
	case KindFlowQueueChanged:
		return &FlowQueueChanged{}
	case KindFlowConfigChanged:
		return &FlowConfigChanged{}
	case kindPlayersAwaited:
		return &PlayersAwaited{}
	case KindFlowCommitted:
		return &FlowCommitted{}
	}
	return nil
}

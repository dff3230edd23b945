package flow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/wire"
)

// NoticeType is what a game server is told of. The numbers are in the journal and never change.
type NoticeType uint8

// The types.
const (
	OnPlayersAdded NoticeType = iota + 1
	OnPlayerLeft
	OnPlayerDeclinedReconnect
	OnPlayerReconnecting
	OnPlayerSessionSuperseded
	OnGameInstanceEnteredMatchmaking
	OnGameInstanceLeftMatchmaking
	OnReconnectExpired
)

var noticeTypes = [...]string{
	"", "OnPlayersAdded", "OnPlayerLeft", "OnPlayerDeclinedReconnect", "OnPlayerReconnecting", "OnPlayerSessionSuperseded",
	"OnGameInstanceEnteredMatchmaking", "OnGameInstanceLeftMatchmaking", "OnReconnectExpired",
}

func (t NoticeType) String() string { return noticeTypes[t] }

// NoticeTypes is how many types there are; the first one is 1.
const NoticeTypes = len(noticeTypes) - 1

// Notice is one thing that a game server is told. Which members are set follows from its type.
type Notice struct {
	Added   []AddedMember
	Player  string
	Session domain.PlayerSessionID // player session: the new one
	Old     domain.PlayerSessionID // the one that it takes the place of
	Attempt int32
	Ticket  string // of the backfill
	Queue   string
	Slots   int32  // how many players are wanted; 0: as many as there are free
	Reason  string // as the interface names it
}

// AddedMember is a player who belongs to the game from now on.
type AddedMember struct {
	Player, Team string
	Party        PartyID
}

func (n *Notice) Fields(c *wire.Codec) {
	wire.Many(c, 1, &n.Added, (*AddedMember).fields)
	c.String(2, &n.Player)
	wire.ID(c, 3, &n.Session)
	wire.ID(c, 4, &n.Old)
	wire.Int(c, 5, &n.Attempt)
	c.String(6, &n.Ticket)
	c.String(7, &n.Queue)
	wire.Int(c, 8, &n.Slots)
	c.String(9, &n.Reason)
}

func (m *AddedMember) fields(c *wire.Codec) {
	c.String(1, &m.Player)
	c.Shared(2, &m.Team)
	wire.ID(c, 3, &m.Party)
}

// Encode writes the notice.
func (n *Notice) Encode() string { return string(wire.Append(nil, n)) }

// DecodeNotice reads what Encode wrote.
func DecodeNotice(body string) (*Notice, error) {
	var n Notice
	err := wire.Unmarshal([]byte(body), &n)
	return &n, err
}

// Noticed is one notice of the outbox of a game instance.
type Noticed struct {
	At     domain.Time
	Commit uint64 // number of the journal entry
	Part   uint32 // number of the transaction in it; 0: written by a release that did not note it
	Type   NoticeType
	Body   string // a Notice
}

func (x *Noticed) Fields(c *wire.Codec) {
	wire.Int(c, 1, &x.At)
	wire.Int(c, 2, &x.Commit)
	wire.Int(c, 3, &x.Type)
	c.String(4, &x.Body)
	wire.Int(c, 5, &x.Part)
}

// noticeBox is what the server of a game instance was told. Like an outbox of a player it only grows at its end and is cut
// at its front, so that frozen copies may share it.
type noticeBox struct {
	seq     uint64 // notices that the server was ever told
	notices []Noticed
}

// Notices is what the game server was told last, oldest first.
func (x *Instance) Notices() []Noticed { return x.box.notices }

// NoticeSeq is the number of the latest notice.
func (x *Instance) NoticeSeq() uint64 { return x.box.seq }

// FirstNotice is the number of the oldest notice that is kept; NoticeSeq+1 when none is.
func (x *Instance) FirstNotice() uint64 { return x.box.seq - uint64(len(x.box.notices)) + 1 }

// NoticesMax is how many notices are kept for a game server that does not listen just now.
const NoticesMax = 256

// TellServer appends a notice to the outbox of a game instance, whose oldest kept one becomes number first.
func (s *State) TellServer(r InstanceRef, n Noticed, first uint64) *Instance {
	x := s.Instances.Mut(r)
	x.box.seq++
	x.box.notices = append(x.box.notices, n)
	if from := x.FirstNotice(); first > from {
		cut := int(min(first-from, uint64(len(x.box.notices))))
		x.box.notices = x.box.notices[cut:]
		if len(x.box.notices) < cap(x.box.notices)/2 { // what lies before them is not kept for few
			x.box.notices = slices.Clone(x.box.notices)
		}
	}
	return x
}

// ServerOutbox is the outbox of a game instance as a snapshot holds it.
type ServerOutbox struct {
	Instance InstanceID
	Seq      uint64
	Notices  []Noticed
}

func (b *ServerOutbox) Fields(c *wire.Codec) {
	wire.ID(c, 1, &b.Instance)
	wire.Int(c, 2, &b.Seq)
	wire.Many(c, 3, &b.Notices, (*Noticed).Fields)
}

// ServerOutbox is what a snapshot holds beside the record; nil when the server was told nothing.
func (x *Instance) ServerOutbox() *ServerOutbox {
	if x.box.seq == 0 {
		return nil
	}
	return &ServerOutbox{x.ID, x.box.seq, x.box.notices}
}

// RestoreServerOutbox puts an outbox back. It reports false when there is no such game instance.
func (s *State) RestoreServerOutbox(b ServerOutbox) bool {
	r, ok := s.Instance(b.Instance)
	if ok {
		s.Instances.Mut(r).box = noticeBox{b.Seq, b.Notices}
	}
	return ok
}

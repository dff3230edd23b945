package flow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/wire"
)

// NoticeType is the type of a notice to a game server. The numbers are in the journal and never change.
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

// NoticeTypes is the number of types; the first one is 1.
const NoticeTypes = len(noticeTypes) - 1

// Notice is one notice to a game server. Its type determines which fields are set.
type Notice struct {
	Added   []AddedMember
	Player  string
	Session domain.PlayerSessionID // player session: the new one
	Old     domain.PlayerSessionID // the one that it replaces
	Attempt int32
	Ticket  string // of the backfill
	Queue   string
	Slots   int32  // number of players wanted; 0: as many as there are free seats
	Reason  string // in the API's spelling
}

// AddedMember is a player who has joined the game.
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

// DecodeNotice decodes the result of Encode.
func DecodeNotice(body string) (*Notice, error) {
	var n Notice
	err := wire.Unmarshal([]byte(body), &n)
	return &n, err
}

// Noticed is one notice in the outbox of a game instance.
type Noticed struct {
	At     domain.Time
	Commit uint64 // number of the journal entry
	Part   uint32 // number of the transaction in it; 0: written by a release that did not record it
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

// noticeBox is the outbox for the server of a game instance. Like a player's outbox, it only grows at its end and is
// trimmed at its front, so that frozen copies can share it.
type noticeBox struct {
	seq     uint64 // number of notices ever written
	notices []Noticed
}

// Notices returns the notices that are kept for the game server, oldest first.
func (x *Instance) Notices() []Noticed { return x.box.notices }

// NoticeSeq returns the number of the latest notice.
func (x *Instance) NoticeSeq() uint64 { return x.box.seq }

// FirstNotice returns the number of the oldest notice that is kept; NoticeSeq+1 if there is none.
func (x *Instance) FirstNotice() uint64 { return x.box.seq - uint64(len(x.box.notices)) + 1 }

// NoticesMax is the most notices kept for a game server that is not reading them.
const NoticesMax = 256

// TellServer appends a notice to the outbox of a game instance and drops the notices before number first.
func (s *State) TellServer(r InstanceRef, n Noticed, first uint64) *Instance {
	x := s.Instances.Mut(r)
	x.box.seq++
	x.box.notices = append(x.box.notices, n)
	if from := x.FirstNotice(); first > from {
		cut := int(min(first-from, uint64(len(x.box.notices))))
		x.box.notices = x.box.notices[cut:]
		if len(x.box.notices) < cap(x.box.notices)/2 { // do not keep a large array for few notices
			x.box.notices = slices.Clone(x.box.notices)
		}
	}
	return x
}

// ServerOutbox is the outbox of a game instance in a snapshot.
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

// ServerOutbox returns the outbox for a snapshot; nil if no notice was ever written.
func (x *Instance) ServerOutbox() *ServerOutbox {
	if x.box.seq == 0 {
		return nil
	}
	return &ServerOutbox{x.ID, x.box.seq, x.box.notices}
}

// RestoreServerOutbox restores an outbox. It reports false if the game instance does not exist.
func (s *State) RestoreServerOutbox(b ServerOutbox) bool {
	r, ok := s.Instance(b.Instance)
	if ok {
		s.Instances.Mut(r).box = noticeBox{b.Seq, b.Notices}
	}
	return ok
}

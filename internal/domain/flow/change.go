package flow

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Change is one commit that changed a player's keys. It stays here until it is in the archive, where operators find it for
// as long as game sessions.
type Change struct {
	EndedNo uint64 // its position among all records that wait for the archive
	Player  string
	At      domain.Time
	Commit  uint64 // number of the journal entry
	Rev     uint64 // revision of the flow record after the commit
	Keys    Keys   // after the commit
	Cause   string // the call or the deadline that caused the change
	By      Actor
	Part    uint32 // number of the transaction in the journal entry; 0: written by a release that did not record it

	next ChangeRef // of the same player; the latest one points to the oldest
}

func (x *Change) Fields(c *wire.Codec) {
	wire.Int(c, 1, &x.EndedNo)
	c.String(2, &x.Player)
	wire.Int(c, 3, &x.At)
	wire.Int(c, 4, &x.Commit)
	wire.Int(c, 5, &x.Rev)
	wire.Sub(c, 6, &x.Keys, x.Keys != Keys{}, (*Keys).Fields)
	c.Shared(7, &x.Cause)
	wire.Sub(c, 8, &x.By, x.By != Actor{}, (*Actor).Fields)
	wire.Int(c, 9, &x.Part)
}

// ActorKind is the kind of actor that caused a change.
type ActorKind uint8

// The kinds. Unknown means that the command does not identify its actor, such as an AWS client.
const (
	UnknownActor ActorKind = iota
	ByPlayer
	ByPartner
	ByOperatorCall
	ByGameServer
	ByDeadline
	ByMatchmaker
	ByAWSClient
)

func (k ActorKind) String() string {
	return [...]string{"UNKNOWN", "PLAYER", "PARTNER", "OPERATOR", "GAME_SERVER", "DEADLINE", "MATCHMAKER", "AWS_CLIENT"}[k]
}

// Actor identifies what caused a change.
type Actor struct {
	Kind ActorKind
	ID   string // a login session, an access key, a game instance or a server process; empty if the kind is sufficient
}

func (a *Actor) Fields(c *wire.Codec) {
	wire.Int(c, 1, &a.Kind)
	c.String(2, &a.ID)
}

func (a Actor) String() string {
	if a.ID == "" {
		return a.Kind.String()
	}
	return a.Kind.String() + " " + a.ID
}

// AddChange appends a change to its player's history.
func (s *State) AddChange(x Change) ChangeRef {
	r, _ := s.Changes.Add()
	s.linkChange(r, &x)
	*s.Changes.Mut(r) = x
	return r
}

// linkChange makes a change the latest one of its player.
func (s *State) linkChange(r ChangeRef, x *Change) {
	x.next = r
	if last := s.changes.Put(x.Player, r); last != 0 {
		before := s.Changes.Mut(last)
		x.next, before.next = before.next, r
	}
}

// RemoveChange drops a player's oldest change.
func (s *State) RemoveChange(r ChangeRef) {
	x := *s.Changes.Get(r)
	if last, _ := s.changes.Find(x.Player); last == r {
		s.changes.Remove(x.Player)
	} else {
		s.Changes.Mut(last).next = x.next
	}
	s.Changes.Remove(r)
}

// ChangesOf calls f for the changes of a player, oldest first, until it returns false.
func (s *State) ChangesOf(player string, f func(*Change) bool) {
	last, ok := s.changes.Find(player)
	for r := last; ok; ok = r != last {
		r = s.Changes.Get(r).next
		if !f(s.Changes.Get(r)) {
			return
		}
	}
}

// LastChange returns a player's latest change, if it is not in the archive yet.
func (s *State) LastChange(player string) (*Change, bool) {
	r, ok := s.changes.Find(player)
	if !ok {
		return nil, false
	}
	return s.Changes.Get(r), true
}

package flow

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Change is one commit that changed a player's keys. It waits here until it is in the archive, where operators find it for
// as long as game sessions.
type Change struct {
	EndedNo uint64 // its place among all that waits for the archive
	Player  string
	At      domain.Time
	Commit  uint64 // number of the journal entry
	Part    uint32 // number of the transaction in it; 0: written by a release that did not note it
	Rev     uint64 // of the flow record after it
	Keys    Keys   // after it
	Cause   string // the call or the deadline
	By      Actor
	Changed uint64

	next ChangeRef // of the same player; 0: none waits behind it
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

// ActorKind is what brought a change about.
type ActorKind uint8

// The kinds. Unknown is an actor of whom the command says nothing, such as an AWS client.
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

// Actor is who brought a change about.
type Actor struct {
	Kind ActorKind
	ID   string // a login session, an access key, a game instance or a server process; empty where the kind says it all
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

// waitingChanges are the changes of one player that are not in the archive yet, linked from the oldest to the latest.
type waitingChanges struct{ first, last ChangeRef }

// AddChange stores a change behind the earlier ones of its player.
func (s *State) AddChange(x Change) ChangeRef {
	r, rec := s.Changes.Add()
	x.next = 0
	*rec = x
	of, ok := s.changes[x.Player]
	if ok {
		s.Changes.Mut(of.last).next = r
		of.last = r
	} else {
		of = waitingChanges{r, r}
	}
	s.changes[x.Player] = of
	return r
}

// RemoveChange drops a player's oldest change.
func (s *State) RemoveChange(r ChangeRef) {
	x := *s.Changes.Get(r)
	if of := s.changes[x.Player]; x.next == 0 {
		delete(s.changes, x.Player)
	} else {
		of.first = x.next
		s.changes[x.Player] = of
	}
	s.Changes.Remove(r)
}

// ChangesOf calls f for the changes of a player, oldest first, until it returns false.
func (s *State) ChangesOf(player string, f func(*Change) bool) {
	for r := s.changes[player].first; r != 0; {
		x := s.Changes.Get(r)
		if !f(x) {
			return
		}
		r = x.next
	}
}

// LastChange is the latest change of a player, if it is not in the archive yet.
func (s *State) LastChange(player string) (*Change, bool) {
	of, ok := s.changes[player]
	if !ok {
		return nil, false
	}
	return s.Changes.Get(of.last), true
}

package flow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/sorted"
)

// State has all records of player flow with their indexes. Snapshots do not contain the indexes: they are rebuilt from the records.
type State struct {
	Players     chunk.Table[Player]
	Logins      chunk.Table[Login]
	Parties     chunk.Table[Party]
	Invites     chunk.Table[Invite]
	Instances   chunk.Table[Instance]
	Memberships chunk.Table[Membership]
	Tickets     chunk.Table[LoginTicket]
	Requests    chunk.Table[Request]
	Queues      chunk.Table[Queue]
	Overrides   Overrides
	Advices     chunk.Table[Advice]
	Changes     chunk.Table[Change]
	Studio      Studio

	players     *chunk.Keyed[string, Player]
	logins      *chunk.Keyed[LoginSessionID, Login]
	tokens      *chunk.Keyed[domain.UUID, Login] // by Token and Previous
	loggedIn    int                              // players with a live login session
	parties     *chunk.Keyed[PartyID, Party]
	codes       *chunk.Keyed[string, Party]
	searches    map[domain.TicketID]PartyRef // parties by ticket
	invites     map[InviteID]InviteRef
	invitesTo   map[string][]InviteRef
	invitesOf   map[PartyID][]InviteRef
	instances   map[InstanceID]InstanceRef
	placements  map[string]InstanceRef
	games       map[string]InstanceRef
	tickets     map[domain.UUID]LoginTicketRef
	requests    map[uint64]RequestRef
	requestTime []RequestRef // oldest first, from requestHead on
	requestHead int
	queues      map[string]QueueRef
	searching   map[string]sorted.Set[domain.TicketID] // tickets of parties by queue
	advised     map[domain.TicketID]AdviceRef          // by ticket
	changes     *chunk.Keyed[string, Change]           // latest unarchived change of each player
}

// New returns an empty State.
func New() *State {
	s := &State{
		Players: chunk.New[Player](), Logins: chunk.New[Login](), Parties: chunk.New[Party](), Invites: chunk.New[Invite](), Instances: chunk.New[Instance](), Memberships: chunk.New[Membership](),
		Tickets: chunk.New[LoginTicket](), Requests: chunk.New[Request](), Queues: chunk.New[Queue](), Advices: chunk.New[Advice](), Changes: chunk.New[Change](),
		searches: map[domain.TicketID]PartyRef{}, invites: map[InviteID]InviteRef{}, invitesTo: map[string][]InviteRef{},
		invitesOf: map[PartyID][]InviteRef{}, instances: map[InstanceID]InstanceRef{}, placements: map[string]InstanceRef{}, games: map[string]InstanceRef{},
		tickets: map[domain.UUID]LoginTicketRef{}, requests: map[uint64]RequestRef{}, queues: map[string]QueueRef{}, searching: map[string]sorted.Set[domain.TicketID]{}, advised: map[domain.TicketID]AdviceRef{},
	}
	s.players = chunk.NewKeyed(s.Players, func(p *Player, id string) bool { return p.ID == id })
	s.logins = chunk.NewKeyed(s.Logins, func(l *Login, id LoginSessionID) bool { return l.ID == id })
	s.tokens = chunk.NewKeyed(s.Logins, func(l *Login, token domain.UUID) bool { return l.Token == token || l.Previous == token })
	s.parties = chunk.NewKeyed(s.Parties, func(p *Party, id PartyID) bool { return p.ID == id })
	s.codes = chunk.NewKeyed(s.Parties, func(p *Party, code string) bool { return p.Code == code })
	s.changes = chunk.NewKeyed(s.Changes, func(x *Change, player string) bool { return x.Player == player })
	return s
}

// Instance finds a game instance, including one that recently ended.
func (s *State) Instance(id InstanceID) (InstanceRef, bool) {
	r, ok := s.instances[id]
	return r, ok
}

// InstanceOfPlacement finds the game instance that waits for a placement.
func (s *State) InstanceOfPlacement(id string) (InstanceRef, bool) {
	r, ok := s.placements[id]
	return r, ok
}

// InstanceOfGame finds the game instance that a game session hosts.
func (s *State) InstanceOfGame(id string) (InstanceRef, bool) {
	r, ok := s.games[id]
	return r, ok
}

// PutInstance stores a game instance or replaces it.
func (s *State) PutInstance(x Instance) InstanceRef {
	r, ok := s.instances[x.ID]
	if !ok {
		r, _ = s.Instances.Add()
		s.instances[x.ID] = r
		x.members, x.box = nil, noticeBox{}
	} else {
		old := s.Instances.Get(r)
		x.members, x.box = old.members, old.box
		s.unindexInstance(old)
	}
	*s.Instances.Mut(r) = x
	if !x.Live() {
		return r
	}
	if x.Placement != "" {
		s.placements[x.Placement] = r
	}
	if x.Game != "" {
		s.games[x.Game] = r
	}
	return r
}

func (s *State) unindexInstance(x *Instance) {
	if x.Live() {
		delete(s.placements, x.Placement)
		delete(s.games, x.Game)
	}
}

// RemoveInstance forgets a game instance that has ended.
func (s *State) RemoveInstance(r InstanceRef) {
	x := s.Instances.Get(r)
	s.unindexInstance(x)
	delete(s.instances, x.ID)
	s.Instances.Remove(r)
}

// PutMembership stores a membership or replaces it.
func (s *State) PutMembership(m Membership) MembershipRef {
	player, _ := s.Player(m.Player)
	r := s.Players.Get(player).membership
	if r == 0 {
		instance, _ := s.Instance(m.Instance)
		r, _ = s.Memberships.Add()
		m.instance, m.player, m.Seat = instance, player, 0
		s.Players.Mut(player).membership = r
		x := s.Instances.Mut(instance)
		x.members = append(slices.Clip(x.members), r)
	} else {
		old := s.Memberships.Get(r)
		m.instance, m.player, m.Seat = old.instance, old.player, old.Seat
	}
	*s.Memberships.Mut(r) = m
	return r
}

// RemoveMembership drops an ended membership. Its seat must have been released.
func (s *State) RemoveMembership(r MembershipRef) {
	m := *s.Memberships.Get(r)
	s.Players.Mut(m.player).membership = 0
	x := s.Instances.Mut(m.instance)
	x.members = slices.DeleteFunc(slices.Clone(x.members), func(y MembershipRef) bool { return y == r })
	s.Memberships.Remove(r)
}

// Request finds an answered call.
func (s *State) Request(key uint64) (*Request, bool) {
	r, ok := s.requests[key]
	if !ok {
		return nil, false
	}
	return s.Requests.Get(r), true
}

// OldestRequest returns the answered call that will be removed next.
func (s *State) OldestRequest() (*Request, bool) {
	if s.requestHead == len(s.requestTime) {
		return nil, false
	}
	return s.Requests.Get(s.requestTime[s.requestHead]), true
}

// AddRequest stores an answered call and removes those made before `since`. The key must not be known yet.
func (s *State) AddRequest(x Request, since domain.Time) {
	for s.requestHead < len(s.requestTime) {
		old := s.requestTime[s.requestHead]
		rec := s.Requests.Get(old)
		if rec.At >= since && rec.Key != x.Key {
			break
		}
		s.dropRequest(old)
		s.requestHead++
	}
	if s.requestHead > 1024 && s.requestHead > len(s.requestTime)/2 {
		s.requestTime = slices.Clone(s.requestTime[s.requestHead:])
		s.requestHead = 0
	}
	s.RestoreRequest(x)
}

func (s *State) dropRequest(r RequestRef) {
	delete(s.requests, s.Requests.Get(r).Key)
	s.Requests.Remove(r)
}

// RestoreRequest restores an answered call. A snapshot contains them in any order.
func (s *State) RestoreRequest(x Request) {
	r, rec := s.Requests.Add()
	*rec = x
	s.requests[x.Key] = r
	s.requestTime = append(s.requestTime, r)
}

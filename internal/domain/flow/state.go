package flow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain/sorted"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
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

// Player finds a player.
func (s *State) Player(id string) (PlayerRef, bool) {
	return s.players.Find(id)
}

// AddPlayer stores a new player.
func (s *State) AddPlayer(p Player) PlayerRef {
	r, rec := s.Players.Add()
	*rec = p
	rec.login, rec.membership = 0, 0
	rec.Loaded()
	s.players.Put(p.ID, r)
	return r
}

// Loaded computes the size of the outbox of a loaded player.
func (p *Player) Loaded() {
	p.bytes = 0
	for _, x := range p.outbox {
		p.bytes += toldSize(x)
	}
}

// RemovePlayer removes a player.
func (s *State) RemovePlayer(r PlayerRef) {
	s.players.Remove(s.Players.Get(r).ID)
	s.Players.Remove(r)
}

// toldSize estimates the memory of one event in an outbox, without its body, which outboxes share.
func toldSize(x Told) int32 { return 40 + int32(len(x.Body)) }

// Tell appends an event to a player's outbox and drops those before number first.
func (s *State) Tell(r PlayerRef, x Told, first uint64) *Player {
	p := s.Players.Mut(r)
	p.Seq++
	p.outbox = append(p.outbox, x)
	p.bytes += toldSize(x)
	p.trim(first)
	return p
}

// trim drops the events before number first.
func (p *Player) trim(first uint64) {
	from := p.FirstKept()
	if first <= from {
		return
	}
	n := int(min(first-from, uint64(len(p.outbox))))
	for _, x := range p.outbox[:n] {
		p.bytes -= toldSize(x)
	}
	if p.outbox = p.outbox[n:]; len(p.outbox) == 0 {
		p.outbox = nil
	} else if n > len(p.outbox) { // do not keep a large array for few events
		p.outbox = slices.Clone(p.outbox)
	}
}

// Trim drops the events of a player before number first.
func (s *State) Trim(r PlayerRef, first uint64) *Player {
	p := s.Players.Mut(r)
	p.trim(first)
	return p
}

// EventsLimit is the most events that are kept for a player, whatever the options say.
const EventsLimit = eventsLimit

// Login finds a login session, including one that was recently replaced.
func (s *State) Login(id LoginSessionID) (LoginRef, bool) {
	return s.logins.Find(id)
}

// LoginByToken finds the login session of an access token.
func (s *State) LoginByToken(token domain.UUID) (LoginRef, bool) {
	return s.tokens.Find(token)
}

// PutLogin stores a login session or replaces it.
func (s *State) PutLogin(l Login) LoginRef {
	r, ok := s.logins.Find(l.ID)
	if ok {
		s.unindexTokens(s.Logins.Get(r))
	} else {
		r, _ = s.Logins.Add()
		s.logins.Put(l.ID, r)
	}
	player, known := s.Player(l.Player)
	if known {
		l.Player = s.Players.Get(player).ID // share the string: a decoded one has memory of its own
	}
	*s.Logins.Mut(r) = l
	s.indexTokens(r, &l)
	if !known { // the player was removed; the record only tells that the login session was replaced
		return r
	}
	switch p := s.Players.Mut(player); {
	case l.State == LoginLive:
		p.login = r
	case p.login == r:
		p.login = 0
	}
	return r
}

func (s *State) indexTokens(r LoginRef, l *Login) {
	s.tokens.Put(l.Token, r)
	if !l.Previous.IsZero() {
		s.tokens.Put(l.Previous, r)
	}
}

func (s *State) unindexTokens(l *Login) {
	s.tokens.Remove(l.Token)
	if !l.Previous.IsZero() {
		s.tokens.Remove(l.Previous)
	}
}

// RemoveLogin forgets a login session.
func (s *State) RemoveLogin(r LoginRef) {
	l := *s.Logins.Get(r)
	s.unindexTokens(&l)
	s.logins.Remove(l.ID)
	if player, ok := s.Player(l.Player); ok && s.Players.Get(player).login == r {
		s.Players.Mut(player).login = 0
	}
	s.Logins.Remove(r)
}

// Party finds a party.
func (s *State) Party(id PartyID) (PartyRef, bool) {
	return s.parties.Find(id)
}

// PartyByCode finds a party by its invite code.
func (s *State) PartyByCode(code string) (PartyRef, bool) {
	return s.codes.Find(code)
}

// PartyByTicket finds the party of a ticket.
func (s *State) PartyByTicket(ticket domain.TicketID) (PartyRef, bool) {
	r, ok := s.searches[ticket]
	return r, ok
}

// PutParty stores a party or replaces it.
func (s *State) PutParty(p Party) PartyRef {
	r, ok := s.parties.Find(p.ID)
	if ok {
		s.unindexParty(s.Parties.Get(r))
	} else {
		r, _ = s.Parties.Add()
		s.parties.Put(p.ID, r)
	}
	*s.Parties.Mut(r) = p
	s.indexParty(r, &p)
	return r
}

func (s *State) indexParty(r PartyRef, p *Party) {
	if p.Code != "" {
		s.codes.Put(p.Code, r)
	}
	if p.Search != nil {
		s.searches[p.Search.Ticket] = r
		s.search(p.Search)
	}
}

func (s *State) unindexParty(p *Party) {
	if p.Code != "" {
		s.codes.Remove(p.Code)
	}
	if p.Search != nil {
		delete(s.searches, p.Search.Ticket)
		s.searching[p.Search.Queue].Delete(p.Search.Ticket)
	}
}

// RemoveParty drops a party. Its members must have left, and its invites must have gone before.
func (s *State) RemoveParty(r PartyRef) {
	p := s.Parties.Get(r)
	s.unindexParty(p)
	s.parties.Remove(p.ID)
	s.Parties.Remove(r)
}

// Invite finds an invite, including one that recently expired.
func (s *State) Invite(id InviteID) (InviteRef, bool) {
	r, ok := s.invites[id]
	return r, ok
}

// InvitesTo returns the invites that a player sees, oldest first.
func (s *State) InvitesTo(player string) []InviteRef { return s.invitesTo[player] }

// InvitesOf returns the invites to a party, oldest first.
func (s *State) InvitesOf(party PartyID) []InviteRef { return s.invitesOf[party] }

// PutInvite stores an invite or replaces it.
func (s *State) PutInvite(x Invite) InviteRef {
	r, ok := s.invites[x.ID]
	if !ok {
		r, _ = s.Invites.Add()
		s.invites[x.ID] = r
		if !x.Unseen {
			s.invitesTo[x.To] = append(s.invitesTo[x.To], r)
		}
		s.invitesOf[x.Party] = append(s.invitesOf[x.Party], r)
	}
	*s.Invites.Mut(r) = x
	return r
}

// RemoveInvite drops an invite.
func (s *State) RemoveInvite(r InviteRef) {
	x := s.Invites.Get(r)
	without(s.invitesTo, x.To, r)
	without(s.invitesOf, x.Party, r)
	delete(s.invites, x.ID)
	s.Invites.Remove(r)
}

func without[K comparable, T any](m map[K][]chunk.Ref[T], key K, r chunk.Ref[T]) {
	left := slices.DeleteFunc(slices.Clone(m[key]), func(x chunk.Ref[T]) bool { return x == r })
	if len(left) == 0 {
		delete(m, key)
	} else {
		m[key] = left
	}
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

// LoginTicket finds a login ticket by its hash.
func (s *State) LoginTicket(hash domain.UUID) (LoginTicketRef, bool) {
	r, ok := s.tickets[hash]
	return r, ok
}

// AddLoginTicket stores a login ticket.
func (s *State) AddLoginTicket(x LoginTicket) LoginTicketRef {
	if r, ok := s.tickets[x.Hash]; ok {
		*s.Tickets.Mut(r) = x
		return r
	}
	r, rec := s.Tickets.Add()
	*rec = x
	s.tickets[x.Hash] = r
	return r
}

// RemoveLoginTicket drops a login ticket.
func (s *State) RemoveLoginTicket(r LoginTicketRef) {
	delete(s.tickets, s.Tickets.Get(r).Hash)
	s.Tickets.Remove(r)
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

// QueueNamed finds the record of a queue.
func (s *State) QueueNamed(name string) (QueueRef, bool) {
	r, ok := s.queues[name]
	return r, ok
}

// search adds a search to the index of its queue.
func (s *State) search(x *Search) {
	all := s.searching[x.Queue]
	if all == nil {
		all = sorted.NewSet(domain.TicketID.Less)
		s.searching[x.Queue] = all
	}
	all.Set(x.Ticket)
}

// SearchingIn yields the parties that search in a queue, in the order of their tickets, beginning after a ticket.
func (s *State) SearchingIn(queue string, after domain.TicketID, yield func(PartyRef) bool) {
	if all := s.searching[queue]; all != nil {
		all.Ascend(after, func(ticket domain.TicketID) bool { return ticket == after || yield(s.searches[ticket]) })
	}
}

// SetQueue stores or replaces the record of a queue.
func (s *State) SetQueue(q Queue) QueueRef {
	r, ok := s.queues[q.Name]
	if !ok {
		r, _ = s.Queues.Add()
		s.queues[q.Name] = r
	}
	*s.Queues.Mut(r) = q
	return r
}

// Closed reports whether a queue is closed.
func (s *State) Closed(queue string) bool {
	r, ok := s.queues[queue]
	return ok && s.Queues.Get(r).Closed
}

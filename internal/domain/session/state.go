package session

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/searchindex"
	"github.com/musterhq/muster/internal/domain/sorted"
)

// State has all game sessions and player sessions, with their indexes. Snapshots contain no indexes; they are rebuilt from the records.
type State struct {
	Games   chunk.Table[GameSession]
	Players chunk.Table[PlayerSession]
	Seats   chunk.Table[Seat]

	byID     *chunk.Keyed[ID, GameSession]
	byFleet  map[string]sorted.Set[entry]
	byPlayer *chunk.Keyed[string, PlayerSession] // head of each player's chain of player sessions
	players  *chunk.Keyed[domain.PlayerSessionID, PlayerSession]
	counts   map[place]*Counts
	all      Counts           // of all locations of all fleets
	search   *searchindex.Set // the ACTIVE ones
	held     quota.Held       // player sessions
	games    quota.Held       // that have not ended
}

type place struct{ fleet, location string }

type entry struct {
	created domain.Time
	ref     GameRef
	id      ID
}

func (a entry) before(b entry) bool {
	if a.created != b.created {
		return a.created < b.created
	}
	return a.id < b.id
}

// New returns an empty State.
func New() *State {
	s := &State{
		Games: chunk.New[GameSession](), Players: chunk.New[PlayerSession](), Seats: chunk.New[Seat](),
		byFleet: map[string]sorted.Set[entry]{},
		counts:  map[place]*Counts{},
		search:  searchindex.New(),
	}
	s.byID = chunk.NewKeyed(s.Games, func(g *GameSession, id ID) bool { return g.ID == id })
	s.byPlayer = chunk.NewKeyed(s.Players, func(p *PlayerSession, player string) bool { return p.Player == player })
	s.players = chunk.NewKeyed(s.Players, func(p *PlayerSession, id domain.PlayerSessionID) bool { return p.ID == id })
	return s
}

// Game finds a game session in memory.
func (s *State) Game(id ID) (GameRef, bool) { return s.byID.Find(id) }

// AddGame stores a new game session. An older one with the same id, from a failed attempt of a placement, loses the id. In a snapshot
// such an attempt may follow the one that has its id now.
func (s *State) AddGame(g GameSession) GameRef {
	if old, ok := s.byID.Find(g.ID); ok && !g.Replaced {
		x := s.Games.Mut(old)
		x.Replaced = true
		s.byFleet[x.FleetID].Delete(entry{x.Created, old, x.ID})
	}
	r, rec := s.Games.Add()
	*rec = g
	rec.first, rec.last, rec.Players, rec.SeatsHeld, rec.SeatsEmpty = 0, 0, 0, 0, 0
	s.index(r, rec)
	s.count(rec, 1)
	if rec.Live() {
		s.games.Add(rec.Holder, 0)
	}
	return r
}

func (s *State) index(r GameRef, g *GameSession) {
	if g.Replaced {
		return
	}
	s.byID.Put(g.ID, r)
	t := s.byFleet[g.FleetID]
	if t == nil {
		t = sorted.NewSet(entry.before)
		s.byFleet[g.FleetID] = t
	}
	t.Set(entry{g.Created, r, g.ID})
	s.indexForSearch(r, &GameSession{}, g)
}

// ChangeGame calls f to change a game session and updates the counts. f must not call this package.
func (s *State) ChangeGame(r GameRef, f func(*GameSession)) {
	g := s.Games.Mut(r)
	s.count(g, -1)
	was := *g
	f(g)
	s.count(g, 1)
	s.indexForSearch(r, &was, g)
}

// GamesFrom yields the game sessions of a fleet in creation order, beginning after (created, id).
func (s *State) GamesFrom(fleet string, created domain.Time, id ID, yield func(GameRef, *GameSession) bool) {
	t := s.byFleet[fleet]
	if t == nil {
		return
	}
	from := entry{created: created, id: id}
	t.Ascend(from, func(e entry) bool {
		return !from.before(e) || yield(e.ref, s.Games.Get(e.ref))
	})
}

// EndGame marks a game session as ended; no is its number among ended records. Its player sessions must have ended before.
func (s *State) EndGame(r GameRef, at domain.Time, reason StatusReason, no uint64) {
	s.ChangeGame(r, func(g *GameSession) {
		if g.Live() {
			s.games.Remove(g.Holder, 0)
			g.Holder = 0
		}
		g.Status, g.StatusReason, g.Ended = Terminated, reason, at
		g.ActivateBy, g.Process, g.EndedNo = 0, 0, no
	})
}

// Held counts the player sessions in memory, including those that have ended.
func (s *State) Held() *quota.Held { return &s.held }

// GamesHeld counts the game sessions that have not ended.
func (s *State) GamesHeld() *quota.Held { return &s.games }

// SetPlayerData changes the data of a player session.
func (s *State) SetPlayerData(r PlayerRef, data string) *PlayerSession {
	p := s.Players.Mut(r)
	s.held.Grow(quota.HolderOf(p.Holder, p.Maker), len(data)-len(p.Data))
	p.Data = data
	return p
}

// PlayerByID finds a player session in memory.
func (s *State) PlayerByID(id domain.PlayerSessionID) (PlayerRef, bool) { return s.players.Find(id) }

// Reserve stores a new player session on a new seat.
func (s *State) Reserve(p PlayerSession) PlayerRef {
	seat, rec := s.Seats.Add()
	*rec = Seat{Game: p.Game, Holders: 1}
	p.Seat = seat
	r := s.addPlayer(p)
	s.hold(p.Game, 1, 0)
	return r
}

func (s *State) addPlayer(p PlayerSession) PlayerRef {
	r, rec := s.Players.Add()
	*rec = p
	s.held.Add(quota.HolderOf(p.Holder, p.Maker), p.Bytes())
	s.countPlayer(p.Game, p.Status, 1)
	rec.next, rec.prev, rec.nextOfOne, rec.prevOfOne = 0, 0, 0, 0
	s.chain(r)
	return r
}

// chain links a player session into its game session's chain, its player's chain and the index.
func (s *State) chain(r PlayerRef) {
	p := s.Players.Mut(r)
	g := s.Games.Mut(p.Game)
	last := g.last
	g.last = r
	g.Players++
	if last == 0 {
		g.first = r
	}
	s.players.Put(p.ID, r)
	head := s.byPlayer.Put(p.Player, r)
	p.prev, p.nextOfOne = last, head
	if head != 0 {
		// Records share the string of the first one, so that a player's id is in memory once.
		p.Player = s.Players.Get(head).Player
		s.Players.Mut(head).prevOfOne = r
	}
	if last != 0 {
		s.Players.Mut(last).next = r
	}
}

// AcceptPlayer marks a player session as connected.
func (s *State) AcceptPlayer(r PlayerRef, request uint64) {
	p := s.Players.Mut(r)
	s.countPlayer(p.Game, p.Status, -1)
	p.Status, p.ReserveBy, p.Accept = PlayerActive, 0, request
	s.countPlayer(p.Game, p.Status, 1)
}

// EndPlayer marks a player session as ended; no is its number among ended records. It frees the seat unless another player session takes
// it or it is held.
func (s *State) EndPlayer(r PlayerRef, at domain.Time, status PlayerStatus, no uint64) {
	p := s.Players.Mut(r)
	s.countPlayer(p.Game, p.Status, -1)
	p.Status, p.Ended, p.ReserveBy, p.EndedNo = status, at, 0, no
	seatRef, game := p.Seat, p.Game
	p.Seat = 0
	seat := s.Seats.Mut(seatRef)
	switch seat.Holders--; {
	case seat.Holders > 0:
	case seat.Kept:
		s.hold(game, 0, 1)
	default:
		s.Seats.Remove(seatRef)
		s.hold(game, -1, 0)
	}
}

// PlayersIn yields the player sessions of a game session in creation order.
func (s *State) PlayersIn(game GameRef, yield func(PlayerRef, *PlayerSession) bool) {
	for r := s.Games.Get(game).first; r != 0; {
		p := s.Players.Get(r)
		next := p.next
		if !yield(r, p) {
			return
		}
		r = next
	}
}

// PlayersNamed yields the player sessions of a player, in no particular order.
func (s *State) PlayersNamed(player string, yield func(PlayerRef, *PlayerSession) bool) {
	for r, _ := s.byPlayer.Find(player); r != 0; {
		p := s.Players.Get(r)
		next := p.nextOfOne
		if !yield(r, p) {
			return
		}
		r = next
	}
}

// DropGame removes an ended game session from memory. Its player sessions must have been removed before.
func (s *State) DropGame(r GameRef) {
	g := s.Games.Get(r)
	if !g.Replaced {
		s.byID.Remove(g.ID)
		t := s.byFleet[g.FleetID]
		t.Delete(entry{g.Created, r, g.ID})
		if t.Len() == 0 {
			delete(s.byFleet, g.FleetID)
		}
	}
	s.dropCounts(g)
	s.Games.Remove(r)
}

// DropPlayer removes an ended player session from memory.
func (s *State) DropPlayer(r PlayerRef) {
	p := *s.Players.Get(r)
	s.held.Remove(quota.HolderOf(p.Holder, p.Maker), p.Bytes())
	g := s.Games.Mut(p.Game)
	g.Players--
	if p.prev == 0 {
		g.first = p.next
	}
	if p.next == 0 {
		g.last = p.prev
	}
	if p.prev != 0 {
		s.Players.Mut(p.prev).next = p.next
	}
	if p.next != 0 {
		s.Players.Mut(p.next).prev = p.prev
	}
	switch {
	case p.prevOfOne != 0:
		s.Players.Mut(p.prevOfOne).nextOfOne = p.nextOfOne
	case p.nextOfOne != 0:
		s.byPlayer.Put(p.Player, p.nextOfOne)
	default:
		s.byPlayer.Remove(p.Player)
	}
	if p.nextOfOne != 0 {
		s.Players.Mut(p.nextOfOne).prevOfOne = p.prevOfOne
	}
	s.players.Remove(p.ID)
	s.Players.Remove(r)
}

// RestorePlayers prepares the indexes for n player sessions.
func (s *State) RestorePlayers(n int) {
	s.players.Expect(n)
	s.byPlayer.Expect(n)
}

// RestorePlayer stores a player session of a snapshot. Those of one game session must come in creation order.
func (s *State) RestorePlayer(p PlayerSession) PlayerRef {
	if p.Status.Live() {
		return s.Reserve(p)
	}
	p.Seat = 0
	return s.addPlayer(p)
}

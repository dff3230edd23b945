package cell

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// flowModel is a second implementation of tables T1, T2 and T4 in the simplest form: no events, no indexes, no
// incremental deadlines. TestFlowModel compares the cell with it. Times are in milliseconds.
type flowModel struct {
	now     int64
	players map[string]*modelPlayer
	names   []string
	parties []*modelParty
	games   []*modelGame
	byTime  []string // what clocks have ended
}

type modelPlayer struct {
	name         string
	loggedIn     bool
	online       bool
	offlineSince int64
	party        *modelParty
	seat         *modelSeat
	removeBy     int64 // out of the party; 0: no clock runs
	leaveQueueBy int64 // out of the queue
	readyBy      int64 // not ready any more
	last         *modelGame
	lastEnded    bool // the last game ended, not only the seat in it
}

type modelParty struct {
	id       flow.PartyID
	members  []*modelPlayer // in the order of joining
	leader   *modelPlayer
	ready    map[*modelPlayer]bool
	search   *modelSearch
	leaderBy int64
}

type modelSearch struct {
	ticket    domain.TicketID
	queue     string
	timeoutAt int64
	match     *modelMatch // waits to be accepted
}

type modelMatch struct {
	parties  [2]*modelParty
	accepted map[*modelPlayer]bool
	acceptBy int64
}

type modelGame struct {
	id         flow.InstanceID
	mode       flow.Reconnect
	status     flow.InstanceStatus
	seats      []*modelSeat
	most       int                   // seats in all
	strangers  int                   // who have taken seats over the plain API
	ready      bool                  // the server takes players
	ghosts     map[*modelPlayer]bool // who has left, and is connected yet: the server says when that ends
	allocateBy int64
	matched    bool // it came of a match
	ticketOf   map[*modelPlayer]domain.TicketID
}

type modelSeat struct {
	game      *modelGame
	player    *modelPlayer
	status    flow.MembershipStatus
	placed    int64 // what the matchmaker has reserved is good until then, for when the server is ready
	wasActive bool
	lost      int
	reserveBy int64 // of the open reservation
	takeover  int64 // the same, of the one that takes over
	holdBy    int64
}

const (
	modelSecond      = 1000
	modelMembersMax  = 3
	modelReservation = 60 * modelSecond
	modelMinLeft     = 10 * modelSecond
	modelReady       = 240 * modelSecond
)

func (p *modelPlayer) phase() flow.Phase {
	switch {
	case p.seat != nil && p.party != nil:
		return flow.InGameWithParty
	case p.seat != nil:
		return flow.InGame
	case p.party != nil && p.party.search != nil:
		return flow.Matchmaking
	case p.party != nil:
		return flow.InParty
	}
	return flow.Idle
}

// --- parties

func (m *flowModel) createParty(p *modelPlayer, id flow.PartyID) *modelParty {
	party := &modelParty{id: id, leader: p, members: []*modelPlayer{p}, ready: map[*modelPlayer]bool{}}
	m.parties = append(m.parties, party)
	p.party = party
	return party
}

func (m *flowModel) join(p *modelPlayer, party *modelParty) {
	party.members = append(party.members, p)
	p.party = party
}

// leaveParty implements docs/spec/player-flow.md#t1-note-4 and #t1-note-5.
func (m *flowModel) leaveParty(p *modelPlayer) {
	party := p.party
	if party == nil {
		return
	}
	if party.search != nil {
		m.endSearch(party)
	}
	party.members = slices.DeleteFunc(party.members, func(x *modelPlayer) bool { return x == p })
	delete(party.ready, p)
	p.party, p.removeBy = nil, 0
	if len(party.members) == 0 {
		m.parties = slices.DeleteFunc(m.parties, func(x *modelParty) bool { return x == party })
		return
	}
	if party.leader == p {
		m.succeed(party, nil)
	}
}

// succeed makes the longest-standing online member the leader, or if none is online the longest-standing one.
func (m *flowModel) succeed(party *modelParty, not *modelPlayer) {
	party.leader = party.members[0]
	for _, x := range party.members {
		if x.online && x != not {
			party.leader = x
			break
		}
	}
	party.leaderBy = 0
}

func (m *flowModel) disband(party *modelParty) {
	if party.search != nil {
		m.endSearch(party)
	}
	for _, x := range party.members {
		x.party, x.removeBy = nil, 0
	}
	m.parties = slices.DeleteFunc(m.parties, func(x *modelParty) bool { return x == party })
}

// --- searches

// endSearch removes a party from matchmaking. The other parties of a match that waited to be accepted keep searching.
func (m *flowModel) endSearch(party *modelParty) {
	match := party.search.match
	party.search = nil
	if match == nil {
		return
	}
	for _, x := range match.parties {
		if x.search != nil && x.search.match == match {
			x.search.match = nil
		}
	}
}

// wish ends the search at a member's own request. That member is no longer ready.
func (m *flowModel) wish(p *modelPlayer) {
	party := p.party
	m.endSearch(party)
	party.ready[p] = false
}

func (m *flowModel) held(party *modelParty) bool {
	return slices.ContainsFunc(party.members, func(x *modelPlayer) bool { return !x.online })
}

// commit moves all players of two parties into a game, whose id is known afterwards.
func (m *flowModel) commit(a, b *modelParty) *modelGame {
	g := m.begin(flow.InstanceID{}, flow.ReconnectOptional, 6)
	g.matched = true
	for _, party := range []*modelParty{a, b} {
		for _, x := range party.members {
			g.ticketOf[x] = party.search.ticket
			m.sit(g, x)
		}
		party.search = nil
	}
	return g
}

// --- games

func (m *flowModel) begin(id flow.InstanceID, mode flow.Reconnect, most int) *modelGame {
	g := &modelGame{
		id: id, mode: mode, status: flow.InstancePending, most: most, ghosts: map[*modelPlayer]bool{}, allocateBy: m.now + 120*modelSecond,
		ticketOf: map[*modelPlayer]domain.TicketID{},
	}
	m.games = append(m.games, g)
	return g
}

func (m *flowModel) sit(g *modelGame, p *modelPlayer) {
	p.seat = &modelSeat{game: g, player: p, status: flow.MemberPending}
	g.seats = append(g.seats, p.seat)
}

// free returns how many newcomers a game accepts. Every seat is kept while its player is away.
func (g *modelGame) free() int { return g.most - len(g.seats) - len(g.ghosts) - g.strangers }

// kept returns how many seats belong to absent players, who may never come.
func (g *modelGame) kept() (n int) {
	for _, s := range g.seats {
		if s.status != flow.MemberActive {
			n++
		}
	}
	return n
}

// newcomer gives a player a seat in a running game.
func (m *flowModel) newcomer(g *modelGame, p *modelPlayer) {
	delete(g.ticketOf, p) // of an earlier seat
	m.sit(g, p)
	if g.ready {
		p.seat.status, p.seat.reserveBy = flow.MemberReserved, m.now+modelReservation
	}
}

// goesAway ends a membership while the game connection continues: the seat is occupied until the server ends the connection.
func (m *flowModel) goesAway(s *modelSeat) {
	if s.status == flow.MemberActive {
		s.game.ghosts[s.player] = true
	}
	m.endSeat(s)
}

// allocated implements docs/spec/player-flow.md#t3-allocation. With manualReady no player may connect before Game.Ready, and the timer for a
// host keeps running.
func (m *flowModel) allocated(g *modelGame, manualReady bool) {
	g.status = flow.InstanceActive
	if !manualReady {
		m.getsReady(g)
		return
	}
	for _, s := range g.seats {
		if g.matched {
			s.placed = m.now + modelReservation
		}
	}
}

func (m *flowModel) getsReady(g *modelGame) {
	g.ready, g.allocateBy = true, 0
	for _, s := range g.seats {
		s.status, s.reserveBy = flow.MemberReserved, m.now+modelReservation
		if s.placed > m.now {
			s.reserveBy = s.placed
		}
	}
}

// endSeat ends a membership of a game that continues.
func (m *flowModel) endSeat(s *modelSeat) {
	s.game.seats = slices.DeleteFunc(s.game.seats, func(x *modelSeat) bool { return x == s })
	m.standUp(s, false, s.game.status != flow.InstancePending)
}

func (m *flowModel) endGame(g *modelGame) { m.closeGame(g, g.status != flow.InstancePending) }

// neverReady ends a game that got no host, or whose server did not become ready, before any player played.
func (m *flowModel) neverReady(g *modelGame) { m.closeGame(g, false) }

func (m *flowModel) closeGame(g *modelGame, played bool) {
	seats := g.seats
	g.seats = nil
	for _, s := range seats {
		m.standUp(s, true, played)
	}
	g.status, g.allocateBy = flow.InstanceEnded, 0
}

func (m *flowModel) standUp(s *modelSeat, ended, played bool) {
	p := s.player
	p.seat, p.last, p.lastEnded = nil, s.game, ended
	if p.party != nil && played {
		p.party.ready[p] = false
	}
}

// connectionLost implements docs/spec/player-flow.md#t4-connection-lost.
func (m *flowModel) connectionLost(s *modelSeat) {
	s.lost++
	switch {
	case s.game.mode == flow.ReconnectOff, s.game.mode == flow.ReconnectOptional && s.lost > 5:
		m.endSeat(s)
		return
	case s.game.mode == flow.ReconnectOptional:
		s.holdBy = m.now + 180*modelSecond
	}
	s.status = flow.MemberDisconnected
	if s.takeover != 0 {
		s.status, s.reserveBy, s.takeover = flow.MemberReserved, s.takeover, 0
	}
}

// reservationOver implements docs/spec/player-flow.md#t4-reservation.
func (m *flowModel) reservationOver(s *modelSeat) {
	s.reserveBy = 0
	switch {
	case s.wasActive:
		s.status = flow.MemberDisconnected
	case s.game.mode == flow.ReconnectOff:
		m.endSeat(s)
	default:
		s.status = flow.MemberNoShow
		if s.game.mode == flow.ReconnectOptional && s.holdBy == 0 {
			s.holdBy = m.now + 120*modelSecond
		}
	}
}

// details implements GetHostConnectionDetails for a seat that is not PENDING. After the deadline of the hold it keeps the
// reservation that was open then, and makes no new one.
func (m *flowModel) details(s *modelSeat) {
	overdue := s.holdBy != 0 && s.holdBy <= m.now
	switch s.status {
	case flow.MemberActive:
		if s.takeover < m.now+modelMinLeft {
			s.takeover = m.now + modelReservation
		}
	case flow.MemberReserved:
		if s.reserveBy < m.now+modelMinLeft && !overdue {
			s.reserveBy = m.now + modelReservation
		}
	default:
		s.status, s.reserveBy = flow.MemberReserved, m.now+modelReservation
	}
}

// --- clocks

// plan starts and stops the clocks that wait for clients, from the present state alone.
func (m *flowModel) plan() {
	clock := func(at *int64, runs bool, by int64) {
		switch {
		case !runs:
			*at = 0
		case *at == 0:
			*at = by
		}
	}
	for _, name := range m.names {
		p := m.players[name]
		clock(&p.removeBy, !p.online && p.party != nil && p.seat == nil, m.now+120*modelSecond)
		clock(&p.readyBy, p.phase() == flow.InParty && p.party.ready[p], m.now+modelReady)
		clock(&p.leaveQueueBy, !p.online && p.phase() == flow.Matchmaking && p.party.search.match == nil, m.now+15*modelSecond)
	}
	for _, party := range m.parties {
		others := slices.ContainsFunc(party.members, func(x *modelPlayer) bool { return x.online && x != party.leader })
		clock(&party.leaderBy, !party.leader.online && others, max(party.leader.offlineSince+30*modelSecond, m.now))
	}
}

// due returns the next deadline and its action.
func (m *flowModel) due() (at int64, act func()) {
	consider := func(by int64, what string, f func()) {
		if by != 0 && (at == 0 || by < at) {
			at, act = by, func() { m.byTime = append(m.byTime, what); f() }
		}
	}
	for _, name := range m.names {
		p := m.players[name]
		consider(p.removeBy, "removed by time", func() { m.leaveParty(p) })
		consider(p.readyBy, "not ready by time", func() { p.party.ready[p] = false })
		consider(p.leaveQueueBy, "search ended by time", func() { m.endSearch(p.party) })
	}
	for _, party := range m.parties {
		consider(party.leaderBy, "leader changed by time", func() { m.succeed(party, party.leader) })
		if s := party.search; s != nil && s.match != nil {
			consider(s.match.acceptBy, "acceptance over", func() { m.acceptanceOver(s.match) })
		} else if s != nil {
			consider(s.timeoutAt, "search timed out", func() { m.endSearch(party) })
		}
	}
	for _, g := range m.games {
		if g.status == flow.InstanceActive {
			consider(g.allocateBy, "never ready", func() { m.neverReady(g) })
		} else {
			consider(g.allocateBy, "allocation failed", func() { m.neverReady(g) })
		}
		for _, s := range g.seats {
			if s.status == flow.MemberReserved {
				consider(s.reserveBy, "reservation over", func() { m.reservationOver(s) })
			} else if s.holdBy != 0 && s.status != flow.MemberActive {
				consider(s.holdBy, "seat ended by time", func() { m.endSeat(s) })
			}
			if s.status == flow.MemberActive {
				consider(s.takeover, "takeover over", func() { s.takeover = 0 })
			}
		}
	}
	return at, act
}

// acceptanceOver ends the searches of the parties with a member who has not answered.
func (m *flowModel) acceptanceOver(match *modelMatch) {
	for _, party := range match.parties {
		if slices.ContainsFunc(party.members, func(x *modelPlayer) bool { return !match.accepted[x] }) {
			m.endSearch(party)
		}
	}
}

// advance lets time pass.
func (m *flowModel) advance(to int64) {
	for {
		m.plan()
		at, act := m.due()
		if at == 0 || at > to {
			break
		}
		m.now = max(m.now, at)
		act()
	}
	m.now = to
	m.plan()
}

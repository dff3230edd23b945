package cell

import (
	"errors"
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
)

func (p *flowPlay) asksDetails(x *modelPlayer) {
	x = p.player4(x)
	id, refusal := p.gameFor(x)
	if refusal == "" && x.seat.status == flow.MemberPending {
		refusal = flow.HostNotReady
	}
	p.try(x, &playerflow.GetHostConnectionDetails{Caller: p.as(x.name), Instance: id}, refusal, func() { p.m.details(x.seat) })
}

// player4 returns a player, most of the time one in a game.
func (p *flowPlay) player4(x *modelPlayer) *modelPlayer {
	if s, ok := one(p, p.seats(func(*modelSeat) bool { return true })); ok && p.rand.IntN(6) > 0 {
		return s.player
	}
	return x
}

// gameFor returns the game that a player means, and the refusal for a player who is not in it.
func (p *flowPlay) gameFor(x *modelPlayer) (flow.InstanceID, flow.Code) {
	switch {
	case x.seat != nil:
		return flow.InstanceID(x.seat.game.id), ""
	case x.last != nil && x.lastEnded:
		return flow.InstanceID(x.last.id), flow.GameHasEnded
	case x.last != nil:
		return flow.InstanceID(x.last.id), flow.NotInGame
	}
	return flow.InstanceID(p.id()), flow.NotInGame
}

func (p *flowPlay) declines(x *modelPlayer) {
	x = p.player4(x)
	id, refusal := p.gameFor(x)
	switch s := x.seat; {
	case refusal != "":
	case s.game.mode != flow.ReconnectOptional:
		refusal = flow.CannotDeclineReconnect
	case s.status == flow.MemberActive || s.status == flow.MemberPending:
		refusal = flow.NotDisconnected
	}
	p.try(x, &playerflow.DeclineReconnect{Caller: p.as(x.name), Instance: id}, refusal, func() { p.m.endSeat(x.seat) })
}

func (p *flowPlay) leavesGame(x *modelPlayer) {
	x = p.player4(x)
	id, refusal := p.gameFor(x)
	if refusal == "" && x.seat.game.mode == flow.ReconnectRequired {
		refusal = flow.LeaveNotAllowed
	}
	p.try(x, &playerflow.LeaveGame{Caller: p.as(x.name), Instance: id}, refusal, func() { p.m.goesAway(x.seat) })
}

// joinsGame makes a player join a running game without matchmaking.
func (p *flowPlay) joinsGame(x *modelPlayer) {
	g, ok := one(p, p.live(func(*modelGame) bool { return true }))
	cmd := &playerflow.JoinGameInstance{Caller: p.as(x.name), Instance: flow.InstanceID(p.id()), Team: "red"}
	if ok && p.rand.IntN(8) > 0 {
		cmd.Instance = flow.InstanceID(g.id)
	}
	refusal := flow.Code("")
	switch {
	case x.phase() == flow.Matchmaking:
		refusal = flow.InMatchmaking
	case x.seat != nil:
		refusal = flow.PlayerInGame
	case !ok || cmd.Instance != g.id:
		refusal = flow.GameInstanceNotFound
	case g.status == flow.InstancePending:
		refusal = flow.HostNotReady
	case g.free() < 1:
		refusal = flow.GameFull
	}
	p.try(x, cmd, refusal, func() { p.happened["joined directly"]++; p.m.newcomer(g, x) })
}

// live returns games that have not ended.
func (p *flowPlay) live(which func(*modelGame) bool) []*modelGame {
	return slices.DeleteFunc(slices.Clone(p.m.games), func(g *modelGame) bool { return g.status == flow.InstanceEnded || !which(g) })
}

// backfilled makes a game search for more players, and the matchmaker propose a party to it. For a game that the studio has made it
// names the players' teams.
func (p *flowPlay) backfilled(*modelPlayer) {
	g, ok := one(p, p.live(func(g *modelGame) bool { return g.status == flow.InstanceActive && len(g.seats) > 0 }))
	searching := slices.DeleteFunc(slices.Clone(p.m.parties), func(x *modelParty) bool { return x.search == nil || x.search.queue != testQueue })
	party, searches := one(p, searching)
	if !ok || !searches {
		return
	}
	seldom := p.m.held
	if p.rand.IntN(2) == 0 {
		seldom = func(x *modelParty) bool { return len(x.members) > 1 }
	}
	if i := slices.IndexFunc(searching, seldom); i >= 0 && p.rand.IntN(2) == 0 {
		party = searching[i]
	}
	p.doing = fmt.Sprintf("backfill of %s", g.id)
	more := &playerflow.EnterBackfill{Instance: flow.InstanceID(g.id), Ticket: domain.BackfillID(p.id()), Queue: testQueue, Slots: int32(p.rand.IntN(3)), Teams: map[string]string{}}
	for _, s := range g.seats {
		if !g.matched {
			more.Teams[s.player.name] = "blue"
		}
	}
	room := g.free()
	if room+g.kept() < max(int(more.Slots), 1) {
		p.refused(more, flow.GameFull)
		return
	}
	p.must(more)
	if more.Slots > 0 {
		room = min(room, int(more.Slots))
	}
	refused := p.proposeBackfill(more.Made.ID, party.search.ticket, "red")
	held, large := p.m.held(party), room < len(party.members)
	switch {
	case (held || large) != (refused != nil):
		p.t.Errorf("backfill: %v; in the model it is held back: %t, too large: %t", refused, held, large)
	case held:
		p.happened["backfill held back"]++
	case large:
		p.happened["backfill too large"]++
	default:
		p.happened["backfilled"]++
		if !g.matched {
			p.happened["studio's game backfilled"]++
		}
		for _, x := range party.members {
			p.m.newcomer(g, x)
			x.seat.placed = int64(p.now) + modelReservation
			g.ticketOf[x] = party.search.ticket
		}
		party.search = nil
	}
	p.must(&playerflow.LeaveBackfill{Instance: flow.InstanceID(g.id)})
}

// disconnectsGhost makes a game server end the connection of a player who has left.
func (p *flowPlay) disconnectsGhost(*modelPlayer) {
	g, ok := one(p, p.live(func(g *modelGame) bool { return len(g.ghosts) > 0 }))
	if !ok {
		return
	}
	p.doing = "connections of those who left end"
	for _, name := range p.m.names {
		x := p.m.players[name]
		if !g.ghosts[x] {
			continue
		}
		delete(g.ghosts, x)
		v := p.cell.View()
		s, _ := v.FlowOf(name, p.now)
		for _, foreign := range s.Foreign {
			if foreign.GameID == p.gameOf(flow.InstanceID(g.id)).ID {
				p.lose(flow.InstanceID(g.id), foreign.ID)
			}
		}
	}
}

// made makes a game on behalf of the studio's backend.
func (p *flowPlay) made(*modelPlayer) {
	plan := playerflow.GamePlan{ID: flow.InstanceID(p.id()), Queue: "q", PlayersMax: 4, Reconnect: flow.ReconnectOff + flow.Reconnect(p.rand.IntN(3))}
	var players []*modelPlayer
	free := true
	for range 1 + p.rand.IntN(4) {
		x := p.anybody()
		if slices.Contains(players, x) {
			continue
		}
		players = append(players, x)
		plan.Players = append(plan.Players, playerflow.PlannedPlayer{Player: x.name})
		free = free && x.seat == nil && x.phase() != flow.Matchmaking
	}
	cmd := &playerflow.MakeGame{Plan: plan}
	p.doing = fmt.Sprintf("a game of %d is made, all are free: %t", len(players), free)
	if !free {
		before := len(p.journal)
		if err := p.do(cmd); err == nil || len(p.journal) != before {
			p.t.Errorf("a game was made of players of whom one is not free: %v", err)
		}
		return
	}
	p.must(cmd)
	g := p.m.begin(plan.ID, plan.Reconnect, int(plan.PlayersMax))
	for _, x := range players {
		p.m.sit(g, x)
	}
}

// allocation adds a game server: it gets the game instance that has waited the longest.
func (p *flowPlay) allocation(*modelPlayer) {
	waiting := slices.DeleteFunc(slices.Clone(p.m.games), func(g *modelGame) bool { return g.status != flow.InstancePending })
	if len(waiting) == 0 {
		return
	}
	p.doing = "allocation"
	p.made1()
	for _, g := range waiting {
		r, _ := p.cell.playerflow.Flow.Instance(flow.InstanceID(g.id))
		id := session.MakeID(testFleet, testLocation, p.cell.playerflow.Flow.Instances.Get(r).Placement)
		game, ok := p.cell.hosting.Sessions.Game(id)
		if !ok {
			continue
		}
		key := processKey(p.cell.hosting.Sessions.Games.Get(game).ProcessID)
		p.must(&hosting.PromptGameSession{Process: key, Game: id})
		p.must(&hosting.ActivateGameSession{Process: key, Game: id})
		p.hosts[g] = key
		p.m.allocated(g, p.config.Games.ManualReady)
		return
	}
	p.t.Error("a game server came, and no game instance that waits has got it")
}

// getsReady makes a game server accept players, with manualReady.
func (p *flowPlay) getsReady(*modelPlayer) {
	g, ok := one(p, p.live(func(g *modelGame) bool { return g.status == flow.InstanceActive && !g.ready }))
	if ok {
		p.doing = fmt.Sprintf("%s is ready", g.id)
		p.happened["READY"]++
		p.must(&playerflow.ReadyGame{Instance: flow.InstanceID(g.id)})
		p.m.getsReady(g)
	}
}

// stranger requests a seat over the plain API, and never leaves.
func (p *flowPlay) stranger(*modelPlayer) {
	g, ok := one(p, p.live(func(g *modelGame) bool { return g.status == flow.InstanceActive }))
	if !ok {
		return
	}
	p.doing = fmt.Sprintf("a stranger wants to join %s, %d of %d seats are free", g.id, g.free(), g.most)
	id := p.id()
	err := p.do(&hosting.ReservePlayers{Game: p.gameOf(flow.InstanceID(g.id)).ID, Players: []hosting.NewPlayer{{ID: domain.PlayerSessionID(id), Player: "stranger-" + id.String()}}})
	switch refused, _ := errors.AsType[*domain.Refusal](err); {
	case (err == nil) != (g.free() > 0):
		p.t.Errorf("the stranger: %v, in the model %d seats are free", err, g.free())
	case err == nil:
		if err := p.accept(flow.InstanceID(g.id), domain.PlayerSessionID(id)); err != nil {
			p.t.Error(err)
		}
		g.strangers++
	case refused == nil || refused.Reason != domain.Full:
		p.t.Errorf("the stranger: %v", err)
	case !g.ready:
		p.happened["stranger refused before READY"]++
	}
}

func (p *flowPlay) made1() { p.server(fmt.Sprint("model-", p.id())) }

func (p *flowPlay) seats(which func(*modelSeat) bool) (all []*modelSeat) {
	for _, g := range p.m.games {
		for _, s := range g.seats {
			if which(s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// accepts makes a game server accept an open reservation: the first one, or the one that takes over.
func (p *flowPlay) accepts(*modelPlayer) {
	s, ok := one(p, p.seats(func(s *modelSeat) bool { return s.status == flow.MemberReserved || s.takeover != 0 }))
	if !ok {
		return
	}
	p.doing = s.player.name + " is accepted"
	m := p.member(s.player.name)
	id, what := m.Session, "RESERVED accepted"
	if s.status == flow.MemberActive {
		id, what = m.Next, "TAKEOVER accepted"
	}
	p.happened[what]++
	if err := p.accept(flow.InstanceID(s.game.id), id); err != nil {
		p.t.Error(err)
		return
	}
	s.status, s.wasActive, s.reserveBy, s.takeover, s.holdBy = flow.MemberActive, true, 0, 0, 0
}

func (p *flowPlay) loses(*modelPlayer) {
	s, ok := one(p, p.seats(func(s *modelSeat) bool { return s.status == flow.MemberActive }))
	if ok {
		p.doing = s.player.name + " loses the game connection"
		p.lose(flow.InstanceID(s.game.id), p.member(s.player.name).Session)
		p.m.connectionLost(s)
	}
}

// hosted returns a seat in a game that has a host.
func (p *flowPlay) hosted() (*modelSeat, bool) {
	return one(p, p.seats(func(s *modelSeat) bool { return s.game.status == flow.InstanceActive }))
}

func (p *flowPlay) released(*modelPlayer) {
	if s, ok := p.hosted(); ok {
		p.doing = s.player.name + " is released"
		p.must(&playerflow.ReleaseMembers{Instance: flow.InstanceID(s.game.id), Players: []string{s.player.name}})
		p.m.goesAway(s)
	}
}

func (p *flowPlay) removed(*modelPlayer) {
	if s, ok := p.hosted(); ok {
		p.doing = s.player.name + " is removed"
		p.must(&playerflow.RemoveMembers{Instance: flow.InstanceID(s.game.id), Players: []playerflow.RemovedMember{{Player: s.player.name, Reason: flow.RemovedAFK}}})
		p.m.endSeat(s)
	}
}

func (p *flowPlay) gameEnds(*modelPlayer) {
	if s, ok := p.hosted(); ok {
		p.doing = "a game ends"
		p.must(&playerflow.EndGame{Instance: flow.InstanceID(s.game.id)})
		p.m.endGame(s.game)
	}
}

func (p *flowPlay) hostDies(*modelPlayer) {
	if s, ok := p.hosted(); ok {
		p.doing = "a game server's process ends"
		p.must(&hosting.EndProcess{Process: p.hosts[s.game], Request: kernel.RequestHash(p.id().String())})
		delete(p.hosts, s.game)
		p.m.endGame(s.game)
	}
}

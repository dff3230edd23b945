package cell

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/session"
)

// TestFlowModel lets random players do random things while random things happen to them, and holds the cell against the
// model after each step: every answer, every key, every membership, leaders and ready flags, and the invariants. SIM_SEEDS
// says how many seeds, SIM_SEED which one.
func TestFlowModel(t *testing.T) {
	seeds := []uint64{}
	n, err := strconv.Atoi(os.Getenv("SIM_SEEDS"))
	if err != nil {
		n = 12
	}
	for seed := range uint64(n) {
		seeds = append(seeds, seed)
	}
	if one, err := strconv.ParseUint(os.Getenv("SIM_SEED"), 10, 64); err == nil {
		seeds = []uint64{one}
	}
	happened := map[string]int{}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p := newFlowPlay(t, seed, 24)
			p.happened = happened
			for i := range 700 {
				p.step()
				if t.Failed() {
					t.Fatalf("at step %d of seed %d: %s", i, seed, p.doing)
				}
			}
		})
	}
	mustSee := modelMustSee
	if len(seeds) >= 50 {
		mustSee = append(slices.Clone(mustSee), modelSeldom...)
	}
	for _, what := range mustSee {
		if happened[what] == 0 && len(seeds) >= 12 {
			t.Errorf("%s has never happened; these did: %v", what, happened)
		}
	}
}

// modelMustSee are what random steps must have come to, or they show nothing.
var modelMustSee = []string{
	"match committed", "match accepted", "proposal held back", "TAKEOVER accepted", "RESERVED accepted", "NO_SHOW", "DISCONNECTED", "allocation failed",
	"joined directly", "backfilled", "not ready by time",
	"GAME_INSTANCE_NOT_FOUND",
	"seat ended by time", "search ended by time", "leader changed by time", "removed by time",
	"IN_MATCHMAKING", "ALREADY_IN_PARTY", "PARTY_IN_MATCHMAKING", "PARTY_FULL", "NOT_IN_PARTY", "NOT_LEADER",
	"TARGET_NOT_IN_PARTY", "CANNOT_TARGET_SELF", "PLAYER_IN_GAME", "MEMBER_OFFLINE", "PLAYERS_NOT_READY", "QUEUE_NOT_FOUND", "ALREADY_MATCHED",
	"NOT_IN_MATCHMAKING", "ACCEPTANCE_NOT_OPEN", "NOT_IN_GAME", "GAME_ENDED", "HOST_NOT_READY", "CANNOT_DECLINE_RECONNECT", "NOT_DISCONNECTED",
	"LEAVE_NOT_ALLOWED",
}

// modelSeldom is what more steps must have come to.
var modelSeldom = []string{"backfill held back", "backfill too large", "GAME_FULL", "KICKED_NEEDS_INVITE"}

// flowPlay is a cell and its model, side by side.
type flowPlay struct {
	*flowWorld
	t     *testing.T
	m     *flowModel
	rand  *rand.Rand
	hosts map[*modelGame]fleet.Key
	doing string

	happened map[string]int // by code, and by what the model notes
}

func newFlowPlay(t *testing.T, seed uint64, players int) *flowPlay {
	w := newFlowWorld(t, func(c *flow.Config) {
		c.Parties.MembersMax, c.Parties.Joinability = modelMembersMax, flow.Open
		c.Parties.ReadyTimeout = modelReady * time.Millisecond
		c.Games.DirectJoin = true
		c.Search.RequeueCount = 1 << 20 // TestT1 and others have the locks
	})
	w.queues()
	p := &flowPlay{
		flowWorld: w, t: t, rand: rand.New(rand.NewPCG(seed, 6)), hosts: map[*modelGame]fleet.Key{},
		m: &flowModel{now: int64(w.now), players: map[string]*modelPlayer{}},
	}
	for i := range players {
		name := fmt.Sprintf("p%02d", i)
		w.online(name)
		p.m.names = append(p.m.names, name)
		p.m.players[name] = &modelPlayer{name: name, loggedIn: true, online: true}
	}
	return p
}

// flowSteps are what can happen, each with its weight. A step that has nothing to work on does nothing.
var flowSteps = []struct {
	weight int
	do     func(p *flowPlay, x *modelPlayer)
}{
	{4, (*flowPlay).createParty}, {14, (*flowPlay).joinParty}, {4, (*flowPlay).leavesParty}, {3, (*flowPlay).kick},
	{2, (*flowPlay).promote}, {16, (*flowPlay).setReady}, {1, (*flowPlay).setPreferences}, {1, (*flowPlay).disbands},
	{14, (*flowPlay).enter}, {4, (*flowPlay).leavesMatchmaking}, {10, (*flowPlay).answers}, {8, (*flowPlay).proposed},
	{4, (*flowPlay).made}, {6, (*flowPlay).allocation}, {10, (*flowPlay).accepts}, {7, (*flowPlay).loses},
	{6, (*flowPlay).joinsGame}, {8, (*flowPlay).backfilled}, {3, (*flowPlay).disconnectsGhost},
	{10, (*flowPlay).asksDetails}, {2, (*flowPlay).declines}, {3, (*flowPlay).leavesGame}, {1, (*flowPlay).released},
	{1, (*flowPlay).removed}, {2, (*flowPlay).gameEnds}, {1, (*flowPlay).hostDies}, {6, (*flowPlay).goes}, {12, (*flowPlay).comes},
	{1, (*flowPlay).logsOut}, {1, (*flowPlay).forced}, {8, (*flowPlay).timePasses},
}

func (p *flowPlay) step() {
	p.pass(time.Duration(1+p.rand.IntN(97)) * time.Millisecond) // so that no two clocks end together
	total := 0
	for _, s := range flowSteps {
		total += s.weight
	}
	n := p.rand.IntN(total)
	for _, s := range flowSteps {
		if n -= s.weight; n < 0 {
			p.doing = ""
			s.do(p, p.anybody())
			break
		}
	}
	p.m.plan()
	p.compare()
}

func (p *flowPlay) anybody() *modelPlayer { return p.m.players[p.m.names[p.rand.IntN(len(p.m.names))]] }

func one[T any](p *flowPlay, of []T) (x T, ok bool) {
	if len(of) == 0 {
		return x, false
	}
	return of[p.rand.IntN(len(of))], true
}

// try executes a player's command. The model says with which code it is refused, or what it changes.
func (p *flowPlay) try(x *modelPlayer, cmd Command, refusal flow.Code, change func()) {
	p.t.Helper()
	if !x.loggedIn {
		return
	}
	p.doing = fmt.Sprintf("%s: %T, model: %s", x.name, cmd, refusal)
	if refusal != "" {
		p.happened[string(refusal)]++
		p.refused(cmd, refusal)
		return
	}
	if err := p.do(cmd); err != nil {
		p.t.Errorf("%s: %T: %v, the model allows it", x.name, cmd, err)
		return
	}
	if change != nil {
		change()
	}
}

// pass lets time go by for both. Game servers go on saying that they are well.
func (p *flowPlay) pass(d time.Duration) {
	for d > 0 {
		step := min(d, 20*time.Second)
		d -= step
		p.flowWorld.pass(step)
		for _, g := range p.m.games {
			if key, ok := p.hosts[g]; ok {
				p.must(&ReportHealth{Process: key, Healthy: true})
			}
		}
	}
	p.m.advance(int64(p.now))
	for _, what := range p.m.byTime {
		p.happened[what]++
	}
	p.m.byTime = nil
}

// --- what players do

func (p *flowPlay) createParty(x *modelPlayer) {
	cmd := &CreateParty{Caller: p.as(x.name), ID: p.id(), FailOnExisting: p.rand.IntN(3) == 0}
	refusal := flow.Code("")
	switch {
	case x.phase() == flow.Matchmaking:
		refusal = flow.InMatchmaking
	case cmd.FailOnExisting && x.party != nil:
		refusal = flow.AlreadyInParty
	}
	p.try(x, cmd, refusal, func() { p.m.leaveParty(x); p.m.createParty(x, cmd.ID) })
}

func (p *flowPlay) joinParty(x *modelPlayer) {
	target, ok := one(p, p.m.parties)
	if !ok {
		return
	}
	refusal := flow.Code("")
	switch {
	case x.phase() == flow.Matchmaking:
		refusal = flow.InMatchmaking
	case x.party == target:
		refusal = flow.AlreadyInParty
	case p.kicked(target, x):
		refusal = flow.KickedNeedsInvite
	case target.search != nil:
		refusal = flow.PartyInMatchmaking
	case len(target.members) == modelMembersMax:
		refusal = flow.PartyFull
	}
	p.try(x, &JoinParty{Caller: p.as(x.name), Party: target.id}, refusal, func() { p.m.leaveParty(x); p.m.join(x, target) })
}

// kicked is asked of the party's record: the model has no invites that would undo it.
func (p *flowPlay) kicked(party *modelParty, x *modelPlayer) bool {
	r, _ := p.cell.flow.Party(party.id)
	return slices.ContainsFunc(p.cell.flow.Parties.Get(r).Kicked, func(k flow.Kicked) bool { return k.Player == x.name })
}

func notIn(x *modelPlayer) flow.Code {
	if x.party == nil {
		return flow.NotInParty
	}
	return ""
}

func notLeading(x *modelPlayer) flow.Code {
	if x.party != nil && x.party.leader != x {
		return flow.NotLeader
	}
	return notIn(x)
}

func (p *flowPlay) leavesParty(x *modelPlayer) {
	p.try(x, &LeaveParty{p.as(x.name)}, notIn(x), func() { p.m.leaveParty(x) })
}

func (p *flowPlay) companion(x *modelPlayer) (target *modelPlayer, refusal flow.Code) {
	target = p.anybody()
	if x.party != nil && p.rand.IntN(4) > 0 {
		target, _ = one(p, x.party.members)
	}
	switch refusal = notLeading(x); {
	case refusal != "":
	case target.party != x.party:
		refusal = flow.TargetNotInParty
	case target == x:
		refusal = flow.CannotTargetSelf
	}
	return target, refusal
}

func (p *flowPlay) kick(x *modelPlayer) {
	target, refusal := p.companion(x)
	p.try(x, &KickPlayer{p.as(x.name), target.name}, refusal, func() { p.m.leaveParty(target) })
}

func (p *flowPlay) promote(x *modelPlayer) {
	target, refusal := p.companion(x)
	p.try(x, &PromoteLeader{p.as(x.name), target.name}, refusal, func() { x.party.leader, x.party.leaderBy = target, 0 })
}

func (p *flowPlay) setReady(x *modelPlayer) {
	ready, refusal := p.rand.IntN(5) > 0, notIn(x)
	if refusal == "" && x.seat != nil {
		refusal = flow.PlayerInGame
	}
	p.try(x, &SetReady{p.as(x.name), ready}, refusal, func() {
		switch {
		case x.party.search == nil:
			x.party.ready[x] = ready
		case !ready:
			p.m.wish(x)
		}
	})
}

func (p *flowPlay) setPreferences(x *modelPlayer) {
	refusal := notLeading(x)
	if refusal == "" && x.party.search != nil {
		refusal = flow.InMatchmaking
	}
	p.try(x, &SetPartyPreferences{Caller: p.as(x.name), Regions: &[]string{"us-east-1"}}, refusal, func() { clear(x.party.ready) })
}

func (p *flowPlay) disbands(x *modelPlayer) {
	p.try(x, &DisbandParty{p.as(x.name)}, notLeading(x), func() { p.m.disband(x.party) })
}

func (p *flowPlay) enter(x *modelPlayer) {
	queue, _ := one(p, []string{testQueue, testQueue, acceptQueue, "nosuch"})
	cmd := &EnterMatchmaking{Caller: p.as(x.name), Ticket: p.id(), Party: p.id(), Queue: queue}
	members := []*modelPlayer{x}
	if x.party != nil {
		members = x.party.members
	}
	some := func(f func(*modelPlayer) bool) bool { return slices.ContainsFunc(members, f) }
	if p.rand.IntN(2) == 0 { // or parties of several would seldom search
		p.allReady(members)
	}
	refusal := flow.Code("")
	switch {
	case x.party != nil && x.party.leader != x:
		refusal = flow.NotLeader
	case some(func(m *modelPlayer) bool { return m.seat != nil }):
		refusal = flow.PlayerInGame
	case x.party != nil && x.party.search != nil && x.party.search.queue == queue:
		p.try(x, cmd, "", func() {
			if cmd.Made != x.party.search.ticket {
				p.t.Errorf("entering the same queue again gave mm-%s, not the ticket that there is", cmd.Made)
			}
		})
		return
	case x.party != nil && x.party.search != nil:
		refusal = flow.InMatchmaking
	case some(func(m *modelPlayer) bool { return !m.online }):
		refusal = flow.MembersOffline
	case len(members) > 1 && some(func(m *modelPlayer) bool { return !x.party.ready[m] }):
		refusal = flow.PlayersNotReady
	case queue == "nosuch":
		refusal = flow.QueueNotFound
	}
	p.try(x, cmd, refusal, func() {
		if x.party == nil {
			p.m.createParty(x, cmd.Party)
		}
		x.party.search = &modelSearch{ticket: cmd.Ticket, queue: queue, timeoutAt: int64(p.now) + 300*modelSecond}
	})
}

// allReady makes members of a party ready who can be.
func (p *flowPlay) allReady(members []*modelPlayer) {
	for _, m := range members {
		if m.phase() == flow.InParty && m.loggedIn {
			p.must(&SetReady{p.as(m.name), true})
			m.party.ready[m] = true
		}
	}
}

func (p *flowPlay) leavesMatchmaking(x *modelPlayer) {
	refusal := flow.Code("")
	switch {
	case x.seat != nil && !x.seat.wasActive:
		refusal = flow.AlreadyMatched
	case x.phase() != flow.Matchmaking:
		refusal = flow.NotInMatchmaking
	}
	p.try(x, &LeaveMatchmaking{p.as(x.name)}, refusal, func() { p.m.wish(x) })
}

func (p *flowPlay) answers(x *modelPlayer) {
	if asked := p.asked(); len(asked) > 0 && p.rand.IntN(10) > 0 {
		x, _ = one(p, asked)
	}
	cmd := &AnswerMatch{Caller: p.as(x.name), Accept: p.rand.IntN(8) > 0}
	refusal := flow.AcceptanceNotOpen
	switch {
	case x.seat != nil:
		cmd.Ticket = x.seat.game.ticketOf[x]
		if cmd.Accept && !cmd.Ticket.IsZero() {
			refusal = ""
		}
		p.try(x, cmd, refusal, nil)
		return
	case x.party != nil && x.party.search != nil:
		cmd.Ticket = x.party.search.ticket
		if x.party.search.match != nil {
			refusal = ""
		}
	}
	p.try(x, cmd, refusal, func() {
		match := x.party.search.match
		if !cmd.Accept {
			p.m.endSearch(x.party)
			return
		}
		match.accepted[x] = true
		all := 0
		for _, party := range match.parties {
			all += len(party.members)
		}
		if len(match.accepted) == all {
			p.happened["match accepted"]++
			p.committed(match.parties)
		}
	})
}

func (p *flowPlay) asked() (all []*modelPlayer) {
	for _, party := range p.m.parties {
		if party.search != nil && party.search.match != nil {
			all = append(all, party.members...)
		}
	}
	return all
}

func (p *flowPlay) asksDetails(x *modelPlayer) {
	x = p.player4(x)
	id, refusal := p.gameFor(x)
	if refusal == "" && x.seat.status == flow.MemberPending {
		refusal = flow.HostNotReady
	}
	p.try(x, &GetHostConnectionDetails{Caller: p.as(x.name), Instance: id}, refusal, func() { p.m.details(x.seat) })
}

// player4 is most times somebody in a game.
func (p *flowPlay) player4(x *modelPlayer) *modelPlayer {
	if s, ok := one(p, p.seats(func(*modelSeat) bool { return true })); ok && p.rand.IntN(6) > 0 {
		return s.player
	}
	return x
}

// gameFor is the game that a player means, and what a player is refused with who is not in it.
func (p *flowPlay) gameFor(x *modelPlayer) (domain.UUID, flow.Code) {
	switch {
	case x.seat != nil:
		return x.seat.game.id, ""
	case x.last != nil && x.lastEnded:
		return x.last.id, flow.GameHasEnded
	case x.last != nil:
		return x.last.id, flow.NotInGame
	}
	return p.id(), flow.NotInGame
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
	p.try(x, &DeclineReconnect{Caller: p.as(x.name), Instance: id}, refusal, func() { p.m.endSeat(x.seat) })
}

func (p *flowPlay) leavesGame(x *modelPlayer) {
	x = p.player4(x)
	id, refusal := p.gameFor(x)
	if refusal == "" && x.seat.game.mode == flow.ReconnectRequired {
		refusal = flow.LeaveNotAllowed
	}
	p.try(x, &LeaveGame{Caller: p.as(x.name), Instance: id}, refusal, func() { p.m.goesAway(x.seat) })
}

// joinsGame is the way into a game that runs without matchmaking.
func (p *flowPlay) joinsGame(x *modelPlayer) {
	g, ok := one(p, p.live(func(*modelGame) bool { return true }))
	cmd := &JoinGameInstance{Caller: p.as(x.name), Instance: p.id(), Team: "red"}
	if ok && p.rand.IntN(8) > 0 {
		cmd.Instance = g.id
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

// live are games that have not ended.
func (p *flowPlay) live(which func(*modelGame) bool) []*modelGame {
	return slices.DeleteFunc(slices.Clone(p.m.games), func(g *modelGame) bool { return g.status == flow.InstanceEnded || !which(g) })
}

// backfilled lets a game that came of a match search for more players, and the matchmaker propose a party to it.
func (p *flowPlay) backfilled(*modelPlayer) {
	g, ok := one(p, p.live(func(g *modelGame) bool {
		return g.ticketOf != nil && g.status == flow.InstanceActive && len(g.seats) > 0
	}))
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
	p.doing = fmt.Sprintf("backfill of gi-%s", g.id)
	more := &EnterBackfill{Instance: g.id, Ticket: p.id(), Queue: testQueue, Slots: int32(p.rand.IntN(3))}
	room := g.free()
	if room < max(int(more.Slots), 1) {
		p.refused(more, flow.GameFull)
		return
	}
	p.must(more)
	if more.Slots > 0 {
		room = int(more.Slots)
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
		for _, x := range party.members {
			p.m.newcomer(g, x)
			g.ticketOf[x] = party.search.ticket
		}
		party.search = nil
	}
	p.must(&LeaveBackfill{Instance: g.id})
}

// disconnectsGhost lets a game server end the connection of somebody who has left.
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
			if foreign.GameID == p.gameOf(g.id).ID {
				p.lose(g.id, foreign.ID)
			}
		}
	}
}

// logsOut ends the login session; whoever has none logs in again.
func (p *flowPlay) logsOut(x *modelPlayer) {
	p.try(x, &Logout{p.as(x.name)}, "", func() {
		if x.seat == nil {
			p.m.leaveParty(x)
		}
		p.wentOffline(x)
		x.loggedIn = false
	})
}

// --- what happens

func (p *flowPlay) goes(x *modelPlayer) {
	if x.online {
		p.doing = x.name + " goes offline"
		p.offline(x.name)
		p.wentOffline(x)
	}
}

func (p *flowPlay) wentOffline(x *modelPlayer) {
	if x.online {
		x.online, x.offlineSince = false, int64(p.now)
	}
}

func (p *flowPlay) comes(*modelPlayer) {
	away := slices.DeleteFunc(slices.Clone(p.m.names), func(name string) bool { return p.m.players[name].online })
	name, ok := one(p, away)
	if !ok {
		return
	}
	p.doing = name + " comes back"
	x := p.m.players[name]
	if !x.loggedIn {
		p.login(name)
	}
	p.attach(name)
	x.loggedIn, x.online = true, true
}

func (p *flowPlay) timePasses(*modelPlayer) {
	d, _ := one(p, []time.Duration{3, 11, 23, 47, 71, 130, 190})
	p.doing = "time passes"
	p.pass(d * time.Second)
}

// proposed is the matchmaker's proposal of two parties of a queue.
func (p *flowPlay) proposed(*modelPlayer) {
	queue, _ := one(p, []string{testQueue, acceptQueue})
	searching := slices.DeleteFunc(slices.Clone(p.m.parties), func(x *modelParty) bool {
		return x.search == nil || x.search.queue != queue || x.search.match != nil
	})
	a, ok := one(p, searching)
	if !ok || len(searching) < 2 {
		return
	}
	b, _ := one(p, slices.DeleteFunc(searching, func(x *modelParty) bool { return x == a }))
	refused := p.propose(queue, a.search.ticket, b.search.ticket)
	held := p.m.held(a) || p.m.held(b)
	p.doing = fmt.Sprintf("proposal in %s, held back: %t", queue, held)
	switch {
	case held != (refused != nil):
		p.t.Errorf("proposal: %v, held back in the model: %t", refused, held)
	case held:
		p.happened["proposal held back"]++
	case queue == acceptQueue:
		match := &modelMatch{parties: [2]*modelParty{a, b}, accepted: map[*modelPlayer]bool{}, acceptBy: int64(p.now) + 20*modelSecond}
		a.search.match, b.search.match = match, match
	default:
		p.committed([2]*modelParty{a, b})
	}
}

// committed moves the players of a match; the id of the game is what the first of them has got.
func (p *flowPlay) committed(parties [2]*modelParty) {
	p.happened["match committed"]++
	g := p.m.commit(parties[0], parties[1])
	g.id = p.keys(g.seats[0].player.name).Game
}

// made is a game that the studio's backend makes.
func (p *flowPlay) made(*modelPlayer) {
	plan := GamePlan{ID: p.id(), Queue: "q", PlayersMax: 4, Reconnect: flow.ReconnectOff + flow.Reconnect(p.rand.IntN(3))}
	var players []*modelPlayer
	free := true
	for range 1 + p.rand.IntN(4) {
		x := p.anybody()
		if slices.Contains(players, x) {
			continue
		}
		players = append(players, x)
		plan.Players = append(plan.Players, PlannedPlayer{Player: x.name})
		free = free && x.seat == nil && x.phase() != flow.Matchmaking
	}
	cmd := &MakeGame{Plan: plan}
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

// allocation lets a game server come: it gets the game instance that has waited for longest.
func (p *flowPlay) allocation(*modelPlayer) {
	waiting := slices.DeleteFunc(slices.Clone(p.m.games), func(g *modelGame) bool { return g.status != flow.InstancePending })
	if len(waiting) == 0 {
		return
	}
	p.doing = "allocation"
	p.made1()
	for _, g := range waiting {
		r, _ := p.cell.flow.Instance(g.id)
		id := session.MakeID(testFleet, testLocation, p.cell.flow.Instances.Get(r).Placement)
		game, ok := p.cell.sessions.Game(id)
		if !ok {
			continue
		}
		key := processKey(p.cell.sessions.Games.Get(game).ProcessID)
		p.must(&PromptGameSession{Process: key, Game: id})
		p.must(&ActivateGameSession{Process: key, Game: id})
		p.hosts[g] = key
		p.m.allocated(g)
		return
	}
	p.t.Error("a game server came, and no game instance that waits has got it")
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

// accepts lets a game server accept an open reservation: the first one, or the one that takes over.
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
	if err := p.accept(s.game.id, id); err != nil {
		p.t.Error(err)
		return
	}
	s.status, s.wasActive, s.reserveBy, s.takeover, s.holdBy = flow.MemberActive, true, 0, 0, 0
}

func (p *flowPlay) loses(*modelPlayer) {
	s, ok := one(p, p.seats(func(s *modelSeat) bool { return s.status == flow.MemberActive }))
	if ok {
		p.doing = s.player.name + " loses the game connection"
		p.lose(s.game.id, p.member(s.player.name).Session)
		p.m.connectionLost(s)
	}
}

// hosted is a seat in a game that has a host.
func (p *flowPlay) hosted() (*modelSeat, bool) {
	return one(p, p.seats(func(s *modelSeat) bool { return s.game.status == flow.InstanceActive }))
}

func (p *flowPlay) released(*modelPlayer) {
	if s, ok := p.hosted(); ok {
		p.doing = s.player.name + " is released"
		p.must(&ReleaseMembers{Instance: s.game.id, Players: []string{s.player.name}})
		p.m.goesAway(s)
	}
}

func (p *flowPlay) removed(*modelPlayer) {
	if s, ok := p.hosted(); ok {
		p.doing = s.player.name + " is removed"
		p.must(&RemoveMembers{Instance: s.game.id, Players: []RemovedMember{{Player: s.player.name, Reason: flow.RemovedAFK}}})
		p.m.endSeat(s)
	}
}

func (p *flowPlay) gameEnds(*modelPlayer) {
	if s, ok := p.hosted(); ok {
		p.doing = "a game ends"
		p.must(&EndGame{Instance: s.game.id})
		p.m.endGame(s.game)
	}
}

func (p *flowPlay) hostDies(*modelPlayer) {
	if s, ok := p.hosted(); ok {
		p.doing = "a game server's process ends"
		p.must(&EndProcess{Process: p.hosts[s.game], Request: RequestHash(p.id().String())})
		delete(p.hosts, s.game)
		p.m.endGame(s.game)
	}
}

// forced is the operator's way out, from any phase.
func (p *flowPlay) forced(x *modelPlayer) {
	cmd := &ForceRelease{Player: x.name, Party: p.rand.IntN(2) == 0, Ticket: p.rand.IntN(2) == 0, Game: p.rand.IntN(2) == 0}
	p.doing = fmt.Sprintf("%+v", cmd)
	p.must(cmd)
	if cmd.Game && x.seat != nil {
		p.m.goesAway(x.seat)
	}
	if cmd.Ticket && x.phase() == flow.Matchmaking {
		p.m.endSearch(x.party)
	}
	if cmd.Party {
		p.m.leaveParty(x)
	}
}

// --- both side by side

func (p *flowPlay) compare() {
	p.t.Helper()
	for _, name := range p.m.names {
		x := p.m.players[name]
		want := flow.Keys{}
		if x.party != nil {
			want.Party = x.party.id
			if x.party.search != nil {
				want.Ticket = x.party.search.ticket
			}
		}
		if x.seat != nil {
			want.Game = x.seat.game.id
		}
		if got := p.keys(name); got != want {
			p.t.Errorf("%s has keys %+v, in the model %+v", name, got, want)
			continue
		}
		if x.seat != nil {
			p.happened[x.seat.status.String()]++
			if got := p.member(name); got.Status != x.seat.status || got.Disconnects != int32(x.seat.lost) {
				p.t.Errorf("%s is %s with %d losses, in the model %s with %d", name, got.Status, got.Disconnects, x.seat.status, x.seat.lost)
			}
		}
	}
	for _, party := range p.m.parties {
		p.compareParty(party)
	}
	if n := p.cell.flow.Parties.Len(); n != len(p.m.parties) {
		p.t.Errorf("%d parties, in the model %d", n, len(p.m.parties))
	}
	v := p.cell.View()
	if broken := v.Audit(); len(broken) > 0 {
		p.t.Errorf("invariants: %v", broken)
	}
}

func (p *flowPlay) compareParty(party *modelParty) {
	p.t.Helper()
	r, ok := p.cell.flow.Party(party.id)
	if !ok {
		p.t.Errorf("party pty-%s is gone", party.id)
		return
	}
	x := p.cell.flow.Parties.Get(r)
	if len(x.Members) != len(party.members) {
		p.t.Errorf("party pty-%s has %d members, in the model %d", party.id, len(x.Members), len(party.members))
		return
	}
	for i, m := range party.members {
		got := x.Members[i]
		if got.Player != m.name || got.Leader != (party.leader == m) || got.Ready != party.ready[m] {
			p.t.Errorf("member %d of pty-%s: %+v, in the model %s, leads %t, ready %t", i, party.id, got, m.name, party.leader == m, party.ready[m])
		}
	}
	if s := party.search; s != nil {
		asked := x.Search.Status == flow.RequiresAcceptance
		if held := x.Search.Status == flow.Held; asked != (s.match != nil) || held != (s.match == nil && p.m.held(party)) {
			p.t.Errorf("the search of pty-%s is %s; in the model it waits for answers: %t, is held back: %t", party.id, x.Search.Status, s.match != nil, p.m.held(party))
		}
	}
}

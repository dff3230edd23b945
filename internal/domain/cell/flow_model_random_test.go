package cell

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// TestFlowModel plays random actions of random players while random events affect them. After each step it compares the cell with the
// model: every answer, every key, every membership, leaders and ready flags, and the invariants. SIM_SEEDS sets the number of seeds,
// SIM_SEED selects one.
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

// modelMustSee lists the situations that random steps must reach, or the test shows nothing.
var modelMustSee = []string{
	"match committed", "match accepted", "proposal held back", "TAKEOVER accepted", "RESERVED accepted", "NO_SHOW", "DISCONNECTED", "allocation failed",
	"joined directly", "backfilled", "not ready by time", "READY", "never ready",
	"GAME_INSTANCE_NOT_FOUND",
	"seat ended by time", "search ended by time", "leader changed by time", "removed by time",
	"IN_MATCHMAKING", "ALREADY_IN_PARTY", "PARTY_IN_MATCHMAKING", "PARTY_FULL", "NOT_IN_PARTY", "NOT_LEADER",
	"TARGET_NOT_IN_PARTY", "CANNOT_TARGET_SELF", "PLAYER_IN_GAME", "MEMBER_OFFLINE", "PLAYERS_NOT_READY", "QUEUE_NOT_FOUND", "ALREADY_MATCHED",
	"NOT_IN_MATCHMAKING", "ACCEPTANCE_NOT_OPEN", "NOT_IN_GAME", "GAME_ENDED", "HOST_NOT_READY", "CANNOT_DECLINE_RECONNECT", "NOT_DISCONNECTED",
	"LEAVE_NOT_ALLOWED",
}

// modelSeldom lists the situations that only a longer run must reach.
var modelSeldom = []string{"backfill held back", "backfill too large", "GAME_FULL", "KICKED_NEEDS_INVITE", "stranger refused before READY", "studio's game backfilled"}

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
		c.Games.DirectJoin, c.Games.ManualReady = true, seed%3 == 1
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

// flowSteps lists the possible steps with their weights. A step that does not apply to the present state does nothing.
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
	{1, (*flowPlay).removed}, {2, (*flowPlay).gameEnds}, {8, (*flowPlay).getsReady}, {2, (*flowPlay).stranger}, {1, (*flowPlay).hostDies}, {6, (*flowPlay).goes}, {12, (*flowPlay).comes},
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

// try executes a player's command. The model predicts the code of its refusal or the change that it makes.
func (p *flowPlay) try(x *modelPlayer, cmd kernel.Command, refusal flow.Code, change func()) {
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

// pass lets time pass for both. Game servers keep reporting that they are healthy.
func (p *flowPlay) pass(d time.Duration) {
	for d > 0 {
		step := min(d, 20*time.Second)
		d -= step
		p.flowWorld.pass(step)
		for _, g := range p.m.games {
			if key, ok := p.hosts[g]; ok {
				p.must(&hosting.ReportHealth{Process: key, Healthy: true})
			}
		}
	}
	p.m.advance(int64(p.now))
	for _, what := range p.m.byTime {
		p.happened[what]++
	}
	p.m.byTime = nil
}

// logsOut ends the login session; a player without one logs in again.
func (p *flowPlay) logsOut(x *modelPlayer) {
	p.try(x, &playerflow.Logout{Caller: p.as(x.name)}, "", func() {
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

// forced makes the operator release the player, from any phase.
func (p *flowPlay) forced(x *modelPlayer) {
	cmd := &playerflow.ForceRelease{Player: x.name, Party: p.rand.IntN(2) == 0, Ticket: p.rand.IntN(2) == 0, Game: p.rand.IntN(2) == 0}
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

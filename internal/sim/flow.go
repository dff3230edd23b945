package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// Players with a flow record log in, lose their streams, form parties, search, play, crash and come back. Backends without player flow
// seat some of them, too, because the names are those of other players in the simulator.

// drawFlow enables player flow for some seeds. It draws from the seed itself, so that the runs of other seeds stay the same.
func (w *World) drawFlow() {
	if w.seed%3 != 1 {
		return
	}
	bit := func(n int) bool { return w.seed>>(8+n)&1 == 1 }
	config := flow.DefaultConfig()
	config.Games.LaxPlayers, config.Games.Requeue, config.Games.NoHold = bit(0), bit(1), bit(2)
	config.Games.DirectCreate, config.Games.DirectJoin, config.Games.ManualReady = true, true, bit(3)
	config.Parties.MultipleLeaders, config.Parties.NoReadyRequired = bit(4), bit(5)
	config.Parties.JoinCancelsMatchmaking = bit(6)
	config.Games.AllocationTimeout = 20 * time.Second
	config.Games.EmptyTimeout, config.Games.Reservation = time.Minute, 15*time.Second
	config.Games.ReconnectWindow, config.Games.NoShowHold = 20*time.Second, 10*time.Second
	config.Parties.OfflineRemoval, config.Parties.LeaderGrace = 10*time.Second, 3*time.Second
	config.Search.OfflineGrace, config.Parties.ReadyTimeout = 4*time.Second, 20*time.Second
	config.Sessions.EventsKept, config.Sessions.EventsKeptFor = 30, time.Minute
	config.Sessions.ReplacesMax = 1000
	config.Penalties.Mode = flow.PenaltiesEnforced
	if bit(7) {
		config.Games.KeepAlive = 15 * time.Second
	}
	config.Games.WrapData = bit(8)
	w.drawWide(&config)
	w.cell.PlayerFlow.Tokens = hashes{}
	w.cell.PlayerFlow.Flow = &config
	w.wishes.AddFlow()
	w.told = told{rev: map[string]uint64{}, seq: map[string]uint64{}, announced: map[string]uint64{}}
}

// drawWide gives half of the seeds above 1023 options that the others leave as they are, and commands that change them.
func (w *World) drawWide(c *flow.Config) {
	if w.seed>>10&1 == 0 {
		return
	}
	chance := rand.New(rand.NewPCG(w.seed, 10))
	oneIn := func(n int) bool { return chance.IntN(n) == 0 }
	w.wishes.AddWide()
	if !oneIn(3) {
		c.Search.PlacementQueue = "queue-0"
	}
	if oneIn(3) {
		c.Search.TicketTimeout = time.Duration(1+chance.IntN(90)) * time.Second
	}
	if oneIn(3) {
		c.Search.AcceptanceTimeout = time.Duration(1+chance.IntN(20)) * time.Second
	}
	c.Search.LeaderCancels, c.Search.NoSoloParty = oneIn(3), oneIn(4)
	c.Parties.LogoutKeepsParty, c.Parties.NoChangeInGame = oneIn(3), oneIn(3)
	c.Penalties.Mode = flow.PenaltyMode(chance.IntN(3))
	if oneIn(3) {
		c.Games.AbsoluteTimeout = time.Duration(30+chance.IntN(300)) * time.Second
	}
	if oneIn(3) {
		c.Games.EndingGrace = 3 * time.Second
	}
	if oneIn(2) {
		c.Games.DirectQueue, c.Games.DirectPlayersMax = "queue-1", int32(1+chance.IntN(4))
	}
}

// hashes replaces the hashes of connection tokens.
type hashes struct{}

// TokenHash depends on all claims of a token.
func (hashes) TokenHash(player string, h *flow.Host) string {
	return fmt.Sprint(player, h.Session, h.Attempt, h.Epoch, h.TokenUntil)
}

// told has what the journal says that players received.
type told struct {
	rev, seq, announced map[string]uint64
}

// flowDurable reads a durable entry like a follower: the numbers of each player's events have no gaps, and each revision is sent exactly
// once.
func (w *World) flowDurable(batch []byte) {
	if w.cell.PlayerFlow.Flow == nil {
		return
	}
	err := w.history.cell.EachEvent(batch, func(_ domain.Time, e kernel.Event) {
		w.feedDurable(e)
		w.games.event(w, e)
		switch e := e.(type) {
		case *playerflow.PlayerKeysChanged:
			if old := w.told.rev[e.Player]; e.Rev != old && e.Rev != old+1 {
				w.violated("I9 %s: revision %d follows %d", e.Player, e.Rev, old)
			}
			w.told.rev[e.Player] = e.Rev
		case *playerflow.PlayersTold:
			w.playersTold(e)
		case *playerflow.PlayerForgotten:
			delete(w.told.rev, e.Player)
			delete(w.told.seq, e.Player)
			delete(w.told.announced, e.Player)
		}
	})
	if err != nil {
		w.violated("%v", err)
	}
	v := w.history.cell.View()
	w.games.reservations(w, &v)
}

func (w *World) playersTold(e *playerflow.PlayersTold) {
	m, err := flow.DecodeMessage(e.Body)
	if err != nil {
		w.violated("%s: %v", e.Type, err)
	}
	for _, to := range e.To {
		if to.Seq == 0 { // for the studio only
			continue
		}
		if to.Seq != w.told.seq[to.Player]+1 {
			w.violated("%s: event %d follows %d", to.Player, to.Seq, w.told.seq[to.Player])
		}
		w.told.seq[to.Player] = to.Seq
		if e.Type != flow.OnGameSessionChanged {
			continue
		}
		if w.told.announced[to.Player]++; m.Record.Rev != w.told.rev[to.Player] || m.Record.Rev != w.told.announced[to.Player] {
			w.violated("I9 %s: revision %d is announced as the %d. one, as %d", to.Player, w.told.rev[to.Player], w.told.announced[to.Player], m.Record.Rev)
		}
	}
}

// checkFlow checks the invariants of player flow after every step.
func (w *World) checkFlow(v *cell.View) {
	if w.cell.PlayerFlow.Flow == nil {
		return
	}
	for _, broken := range v.Audit() {
		w.violated("%s", broken)
	}
	w.checkFeeds(v)
}

// settleFlow logs all players out and lets time pass until all records are gone.
func (w *World) settleFlow() {
	if w.cell.PlayerFlow.Flow == nil {
		return
	}
	n := w.node
	for i := range 12 {
		n.submit(&playerflow.BanPlayer{Player: fmt.Sprint("player-", i)}, func(error) {})
		n.submit(&playerflow.ForceLogout{Player: fmt.Sprint("player-", i)}, func(error) {})
	}
	n.drain()
}

// forgetFlow lets days pass until the records of absent players are gone. The service ticks late: while a contact deadline is set it would
// tick every second of these days.
func (w *World) forgetFlow() {
	if w.cell.PlayerFlow.Flow == nil {
		return
	}
	n := w.node
	w.habits.lazyTicks = time.Minute
	for range 80 {
		w.pass(12 * time.Hour)
		n.drain()
		n.move()
		n.drain()
		w.invariants()
	}
	v := n.seq.Cell().View()
	if t := v.FlowTotals(); t.Logins+t.Parties+t.Invites+t.Instances+t.Memberships != 0 {
		w.violated("after everything has settled there are %+v", t)
	}
}

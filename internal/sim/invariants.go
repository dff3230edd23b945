package sim

import (
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/sim/canon"
)

func contains(list, word string) bool { return strings.Contains(" "+list+" ", " "+word+" ") }

// decided checks the effect of a command directly after its decision, whether or not it becomes durable.
func (w *World) decided(together []*request, call *engine.Call) {
	w.sawCommand(call.Cmd, call.Err)
	w.sawNodes(call.Cmd, call.Err)
	if call.Err != nil {
		refusal, ok := call.Err.(*domain.Refusal)
		if !ok {
			w.violated("%T: %v is no refusal", call.Cmd, call.Err)
		}
		if cmd, ok := call.Cmd.(*gameservers.ClaimGameServer); ok && len(together) == 1 {
			w.refusedClaim(cmd, refusal.Reason)
		}
		return
	}
	switch cmd := call.Cmd.(type) {
	case *hosting.CreateFleet:
		w.known.fleetsEver = append(w.known.fleetsEver, cmd.Fleet.ID)
	case *hosting.ReservePlayers:
		for _, r := range together {
			if _, ok := r.call.Cmd.(*hosting.UpdateGameSession); ok {
				return // the maximum may have been lowered since
			}
		}
		v := w.node.seq.Cell().View()
		g, _ := v.GameSession(cmd.Game)
		if held := seated(&v, cmd.Game); held > g.PlayersMax {
			w.violated("%s has %d seats, and %d of them were sold", cmd.Game, g.PlayersMax, held)
		}
	}
}

// seated counts the taken seats of a game session one by one: those with a live player session, and those that are held for a return.
func seated(v *cell.View, id session.ID) (held int32) {
	g, _ := v.GameSession(id)
	seats := map[uint32]bool{} // a player who takes over from another device shares a seat
	for _, p := range v.PlayersIn(id, 0, 0, domain.PlayerSessionID{}, 1<<20) {
		if p.Status.Live() {
			seats[uint32(p.Seat)] = true
		}
	}
	return int32(len(seats)) + g.SeatsEmpty
}

func everyProcess(v *cell.View) (all []fleet.Process) {
	for _, f := range v.Fleets(0, "", 1000) {
		for _, x := range v.Computes(f.ID, "", 0, "", 1000) {
			for i := range processesOnHost {
				key := fleet.Key{Fleet: f.ID, Compute: x.Name, Process: "p" + string(rune('0'+i))}
				if p, ok := v.Process(key); ok {
					all = append(all, p)
				}
			}
		}
	}
	return all
}

type place struct{ fleet, location string }

// tally has the counts of a fleet's location, counted one by one.
type tally struct {
	games, activating, held, most, free, idle int32
}

// invariants checks the invariants after every step.
func (w *World) invariants() {
	if w.node == nil {
		return
	}
	v := w.node.seq.Cell().View()
	tallies := map[place]*tally{}
	at := func(fleet, location string) *tally {
		t := tallies[place{fleet, location}]
		if t == nil {
			t = &tally{}
			tallies[place{fleet, location}] = t
		}
		return t
	}
	w.watchSearches(&v)
	w.held(&v)
	hosted := w.checkGames(&v, at)
	type onCompute struct{ processes, ready, hosting int32 }
	computes := map[[2]string]onCompute{}
	for _, p := range everyProcess(&v) {
		n := computes[[2]string{p.Key.Fleet, p.Key.Compute}]
		if p.State != fleet.Ended {
			n.processes++
		}
		if p.State == fleet.ProcessReady {
			n.ready++
		}
		if p.Session != 0 {
			n.hosting++
		}
		computes[[2]string{p.Key.Fleet, p.Key.Compute}] = n
		if x, _ := v.Compute(p.Key.Fleet, p.Key.Compute); p.Eligible() && !x.Draining() && w.mayActivate(&v, &x) {
			at(p.Key.Fleet, p.Location).idle++
		}
		if (p.Session != 0) != (hosted[p.Key] == 1) || hosted[p.Key] > 1 {
			w.violated("process %s hosts %d live game sessions, its record says %t", p.Key, hosted[p.Key], p.Session != 0)
		}
		delete(hosted, p.Key)
		w.checkProcess(&p)
	}
	if len(hosted) > 0 {
		w.violated("live game sessions on processes that there are not: %v", hosted)
	}
	for _, f := range v.Fleets(0, "", 1000) {
		for _, x := range v.Computes(f.ID, "", 0, "", 1000) {
			if got, want := (onCompute{x.Processes, x.Ready, x.Hosting}), computes[[2]string{f.ID, x.Name}]; got != want {
				w.violated("compute %s/%s says %+v, counted %+v", f.ID, x.Name, got, want)
			}
		}
		for _, l := range f.Locations {
			u, t := v.Utilization(f.ID, l.Name), at(f.ID, l.Name)
			if got := (tally{u.GameSessions, u.Activating, u.SeatsHeld, u.SeatsMax, u.SeatsFree, u.IdleProcesses}); got != *t {
				w.violated("%s in %s says %+v, counted %+v", f.ID, l.Name, got, *t)
			}
		}
	}
	w.checkGameServers(&v)
	for _, wrong := range w.node.seq.Cell().Recount() {
		w.violated("quotas: %s", wrong)
	}
	w.checkFlow(&v)
	if w.steps%20 == 0 {
		w.checkPlacements()
		w.checkTickets()
	}
	if w.steps%500 == 0 {
		w.checkKnown()
	}
}

// mayActivate compares the number of ACTIVATING game sessions on a compute with its fleet's limit.
func (w *World) mayActivate(v *cell.View, x *fleet.Compute) bool {
	f, _ := v.Fleet(x.FleetID)
	if f.Runtime == nil || f.Runtime.ActivationsMax == 0 {
		return true
	}
	activating := int32(0)
	for _, p := range v.ProcessesOn(x.FleetID, x.Name) {
		if g, ok := v.Hosting(p.Key); ok && g.Status == session.Activating {
			activating++
		}
	}
	return activating < f.Runtime.ActivationsMax
}

// checkGames checks every game session in memory and returns how many live ones each process hosts.
func (w *World) checkGames(v *cell.View, at func(fleet, location string) *tally) map[fleet.Key]int {
	hosted := map[fleet.Key]int{}
	for _, id := range w.known.fleetsEver {
		games, _, _ := v.GameSessions(id, hosting.GameFilter{}, 0, "", 1<<20)
		for i := range games {
			g := &games[i]
			held := seated(v, g.ID)
			if held != g.SeatsHeld {
				w.violated("%s: %d seats held, counted %d", g.ID, g.SeatsHeld, held)
			}
			if !g.Live() {
				if held != 0 || g.Ended == 0 || g.ActivateBy != 0 {
					w.violated("%s has ended, with %d seats held, ended at %v, to activate by %v", g.ID, held, g.Ended, g.ActivateBy)
				}
				continue
			}
			hosted[fleet.Key{Fleet: g.FleetID, Compute: g.ComputeName, Process: g.ProcessID}]++
			t := at(g.FleetID, g.Location)
			t.games++
			t.held += held
			t.most += g.PlayersMax
			switch g.Status {
			case session.Activating:
				t.activating++
			case session.Active:
				t.free += max(0, g.PlayersMax-held)
			}
			w.waits(string(g.ID)+" to be activated", g.Status == session.Activating, g.ActivateBy, w.cell.Hosting.Activation)
			for _, p := range v.PlayersIn(g.ID, session.Reserved, 0, domain.PlayerSessionID{}, 1<<20) {
				w.waits("a seat for "+p.ID.String(), true, p.ReserveBy, w.cell.Hosting.Reservation)
			}
		}
	}
	return hosted
}

// checkProcess: a process has each deadline exactly when it must, and within its period.
func (w *World) checkProcess(p *fleet.Process) {
	who := p.Key.String()
	told := p.TerminateBy != 0
	w.waits(who+" to be ready", p.State == fleet.Initialized && !told, p.ReadyBy, w.cell.Hosting.ReadyTimeout)
	w.waits(who+" to be back", p.State != fleet.Ended && !p.Linked, p.LostBy, w.cell.Hosting.LinkGrace)
	w.waits(who+" to be healthy", p.State == fleet.ProcessReady && p.Health != fleet.Healthy && !told, p.UnhealthyBy, w.cell.Hosting.UnhealthyAfter)
	w.waits(who+" to end", told, p.TerminateBy, w.cell.Hosting.TerminateGrace)
	if (p.State == fleet.Ended) != (p.ForgetAt != 0) {
		w.violated("%s is %s, to be forgotten at %v", who, p.State, p.ForgetAt)
	}
}

// waits checks that a record has a deadline if and only if it waits, and none further away than its period.
func (w *World) waits(what string, waiting bool, by domain.ContactTime, period time.Duration) {
	switch contact := domain.ContactTime(w.time() - w.node.down); {
	case waiting != (by != 0):
		w.violated("waiting for %s is %t, its deadline %v", what, waiting, by)
	case by > contact.Add(period):
		w.violated("waiting for %s until %v, now it is %v and the period %v", what, by, contact, period)
	}
}

// nothingIsLate is checked directly after a tick had nothing left to do.
func (w *World) nothingIsLate() {
	contact := domain.ContactTime(w.time() - w.node.down)
	v := w.node.seq.Cell().View()
	late := func(what string, by domain.ContactTime) {
		if by != 0 && by <= contact {
			w.violated("%s waits until %v, and it is %v", what, by, contact)
		}
	}
	for _, id := range w.known.fleetsEver {
		games, _, _ := v.GameSessions(id, hosting.GameFilter{}, 0, "", 1<<20)
		for _, g := range games {
			late(string(g.ID), g.ActivateBy)
			for _, p := range v.PlayersIn(g.ID, session.Reserved, 0, domain.PlayerSessionID{}, 1<<20) {
				late(p.ID.String(), p.ReserveBy)
			}
		}
	}
	for _, p := range everyProcess(&v) {
		for _, by := range []domain.ContactTime{p.ReadyBy, p.LostBy, p.UnhealthyBy, p.TerminateBy} {
			late(p.Key.String(), by)
		}
		if p.ForgetAt != 0 && p.ForgetAt <= w.time() {
			w.violated("%s is still remembered, until %v", p.Key, p.ForgetAt)
		}
	}
	eachGameServer(&v, func(_ *gameservers.Group, x *gameservers.Server) {
		late("game server "+x.ID, x.ClaimBy)
		late("game server "+x.ID, x.HealthBy)
	})
	w.noPlacementIsLate()
	w.noTicketIsLate()
	for _, f := range v.Fleets(0, "", 1000) {
		if f.Status == fleet.Deleting {
			w.violated("%s is still being deleted", f.ID)
		}
	}
	if due := w.node.seq.Due(); !due.IsZero() && !due.After(w.now) {
		w.violated("after a tick another one is due since %v", due)
	}
}

// Check is for the end of a run: nothing is live, everything acknowledged exists, and a replay of the whole history gives this state.
func (w *World) Check() {
	n := w.node
	v := n.seq.Cell().View()
	if t := v.Totals(); t.GameSessions+t.PlayerSessions+t.Processes+t.Ended != 0 {
		w.violated("after everything has settled there are %+v", t)
	}
	w.checkKnown()
	w.checkPlacements()
	w.checkNotices()
	for _, topic := range w.receivers() {
		if n := len(w.chronicle.waiting[topic]); n > 0 {
			w.violated("after everything has settled %d notices wait for topic %q", n, topic)
		}
	}
	w.history.replayAll(w)
	if err := canon.Differ("the cell that is up", n.seq.Cell().Freeze(), w.history.cell.Freeze()); err != nil {
		w.violated("%v", err)
	}
}

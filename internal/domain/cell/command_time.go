package cell

import (
	"math"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

const (
	// tickStep bounds the deadlines that one Tick ends, so that a crowd of them stops nobody else.
	tickStep = 128
	// tickEvery is how far the last durable sign of life may lie back while somebody waits: the error of the downtime.
	tickEvery = time.Second
	// sweepAt is when a sweep is due: at once, before every other wall deadline. It is the same after a snapshot was loaded,
	// which does not know when the deletion began.
	sweepAt = domain.Time(1)
)

// Tick ends what is due. More says that something is still due.
type Tick struct {
	// Result
	More bool
}

func (cmd *Tick) decide(t *tx) error {
	for range tickStep {
		if d, ok := t.c.waiting.contact.next(); ok && d.at <= int64(t.contact) {
			t.contactDue(d)
			continue
		}
		if d, ok := t.c.waiting.wall.next(); ok && d.at <= int64(t.now) {
			t.wallDue(d)
			if d.kind == sweep || d.kind == queueDrain || d.kind == queueEstimate { // as much as a host with all its processes and players
				cmd.More = true
				return nil
			}
			continue
		}
		if _, waits := t.c.waiting.contact.next(); waits && !t.open && t.now.Sub(t.c.last) >= tickEvery {
			t.emit(&Ticked{})
		}
		return nil
	}
	cmd.More = true
	return nil
}

// NextDeadline is when the next Tick has something to do; zero when nothing waits.
func (c *Cell) NextDeadline() domain.Time {
	next := c.NextDue()
	if _, ok := c.waiting.contact.next(); ok {
		// While anybody waits who could not reach a service that is down, a sign of life is due, too.
		next = min(next, c.last.Add(tickEvery))
	}
	return next
}

// NextDue is when the first of all deadlines ends; zero when there is none.
func (c *Cell) NextDue() domain.Time {
	next := domain.Time(math.MaxInt64)
	if d, ok := c.waiting.contact.next(); ok {
		next = c.wall(domain.ContactTime(d.at))
	}
	if d, ok := c.waiting.wall.next(); ok {
		next = min(next, domain.Time(d.at))
	}
	if next == math.MaxInt64 {
		return 0
	}
	return next
}

// Last is when the last transaction happened; zero when none ever did.
func (c *Cell) Last() domain.Time { return c.last }

// contactDue ends what d waits for. It always clears the deadline.
func (t *tx) contactDue(d deadline) {
	c := t.c
	t.flow.cause = "" // of the deadline before
	switch d.kind {
	case reservation:
		p := c.sessions.Players.Get(d.ref)
		player, id, game := p.Player, p.ID, p.Game
		t.emit(&PlayerEnded{id, session.TimedOut})
		t.playerTimedOut(player, id)
		t.playerLeft(game)
	case activation:
		g := c.sessions.Games.Get(d.ref)
		p, id := g.Process, g.ID
		who := describeProcess(c.fleets.Processes.Get(p))
		t.endGame(d.ref, session.NoReason, session.EndedNotActivated)
		t.fleetEvent(id.Fleet(), "GAME_SESSION_ACTIVATION_TIMEOUT", "Game session "+string(id)+" was not activated in time by "+who)
		t.askTermination(p, fleet.EndedActivationLate)
	case ready:
		t.endProcess(d.ref, fleet.EndedNeverReady, 0)
	case lost:
		t.endProcess(d.ref, fleet.EndedCrashed, 0)
	case unhealthy:
		p := c.fleets.Processes.Get(d.ref)
		fleetID, who := p.Key.Fleet, describeProcess(p)
		t.askTermination(d.ref, fleet.EndedUnhealthy)
		t.fleetEvent(fleetID, "SERVER_PROCESS_TERMINATED_UNHEALTHY", "Server "+who+" sent no good health report for "+c.config.UnhealthyAfter.String()+"; it was told to end")
	case gameServerClaim:
		t.claimOver(d.ref)
	case gameServerHealth:
		t.removeGameServer(c.gameServers.Servers.Get(d.ref))
	case playerPresence, partyRemoval, queueRemoval, partyLeader, partyStale, partyReady, inviteExpiry, loginExpiry, instanceAllocation,
		instanceAbsolute, instanceEnding, instanceEmpty, instanceKeepAlive, seatHold, studioReceivers:
		t.flowDue(d)
	case termination:
		p := c.fleets.Processes.Get(d.ref)
		fleetID, who := p.Key.Fleet, describeProcess(p)
		t.endProcess(d.ref, p.TerminateWhy, 0)
		t.fleetEvent(fleetID, "SERVER_PROCESS_FORCE_TERMINATED", "Server "+who+" did not end in time after it was told to; it was given up")
	}
}

func (t *tx) wallDue(d deadline) {
	t.flow.cause = ""
	switch d.kind {
	case forgetProcess:
		t.emit(&ProcessForgotten{t.c.fleets.Processes.Get(d.ref).Key})
	case creation:
		t.emit(&CreationsForgotten{})
	case sweep:
		t.sweepFleet(d.ref)
	case placementTimeout:
		t.endPlacement(d.ref, placement.TimedOut)
	case noticeAge:
		t.noticeDue(d.ref)
	case acceptanceTimeout:
		t.flow.cause = "AcceptanceTimeout"
		t.acceptanceDue(d.ref)
	case ticketTimeout:
		t.flow.cause = "TicketTimeout"
		t.endTicket(d.ref, matchmaking.TimedOut, matchmaking.RequestTimedOut)
	case playerAge, instanceForget, loginTicketAge, queueDrain, queueEstimate, playerUnlock:
		t.flowWallDue(d)
	case placementRound:
		t.c.waiting.clear(placementRound, d.ref)
		t.round(d.ref)
	}
}

// sweepFleet removes one compute of what is being deleted in a fleet, or, when none is left, the locations or the fleet.
func (t *tx) sweepFleet(r fleet.Ref) {
	c := t.c
	f := *c.fleets.Fleets.Get(r)
	left := fleet.Ref(0)
	for _, l := range f.Locations {
		if left == 0 && (f.Status == fleet.Deleting || l.Status == fleet.Deleting) {
			c.fleets.ComputesIn(f.ID, l.Name, 0, "", func(x fleet.Ref, _ *fleet.Compute) bool {
				left = x
				return false
			})
		}
	}
	switch {
	case left != 0:
		t.removeCompute(left)
	case f.Status == fleet.Deleting:
		t.emit(&FleetRemoved{f.ID})
	default:
		var kept []fleet.FleetLocation
		var gone []string
		for _, l := range f.Locations {
			if l.Status == fleet.Deleting {
				gone = append(gone, l.Name)
			} else {
				kept = append(kept, l)
			}
		}
		f.Locations = kept
		t.emit(&FleetChanged{f})
		for _, name := range gone {
			t.fleetEvent(f.ID, "LOCATION_STATE_DELETED", "Location "+name+" of fleet "+f.ID+" changed state to DELETED")
		}
	}
}

// seatsWait is how long every reservation waits after a restart, if reservations wait that long: the game server that has to tell
// of the player comes back with its SDK's next attempt, up to 32 s later. See B012.
const seatsWait = 35 * time.Second

// Resume is the first command of a run: it moves what waited for somebody by the time the service was down, takes
// every link as lost from now on, and gives game servers the time to come back and tell who has connected.
type Resume struct{}

func (cmd *Resume) decide(t *tx) error {
	if t.c.last == 0 {
		return nil // nothing has ever happened
	}
	t.c.replanAll(t.now)
	down := t.now - t.c.last
	// The contact clock stands where it stood when the service died; the grace of the links runs from there.
	was := t.contact - domain.ContactTime(down)
	t.emit(&Resumed{
		Downtime: int64(down), LostBy: was.Add(t.c.config.LinkGrace), SeatsBy: was.Add(min(seatsWait, t.c.config.Reservation)),
	})
	t.contact = was
	t.flowResumed(int64(down))
	return nil
}

// Forget says that the Count records that ended first are durable in the archive. Only the engine issues it.
type Forget struct{ Count int }

func (cmd *Forget) decide(t *tx) error {
	if cmd.Count > 0 {
		t.emit(&Forgotten{int64(min(cmd.Count, t.c.ended.used))})
	}
	return nil
}

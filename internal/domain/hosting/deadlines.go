package hosting

import (
	"time"

	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// Room is the room's number.
const Room kernel.RoomNo = 0

const (
	contact = kernel.Wait(Room) * kernel.WaitsOfRoom
	wall    = kernel.FirstWall + contact
)

// Contact deadlines, named by what they end or wait for.
const (
	Reservation = contact + iota // the reservation of a player session
	Activation                   // a game session's time in ACTIVATING
	Ready                        // a process's call of ProcessReady
	Lost                         // a process's reconnection
	Unhealthy                    // a process's next good heartbeat
	Termination                  // a process's end after it was asked to
	RolloutStep                  // the end of a rollout's step
)

// Wall deadlines.
const (
	ForgetProcess    = wall + iota // the removal of an ended process
	Creation                       // a creation's time of counting towards the creation policy
	Sweep                          // the next step of the deletion of a fleet
	PlacementTimeout               // a pending placement
	PlacementRound                 // a pending placement whose candidates have changed
	RolloutEnd                     // a rollout that must end at once
)

// Due handles deadline d, which has passed.
func (t *Tx) Due(d kernel.Deadline) (heavy bool) {
	c := t.State
	switch d.Kind {
	case Reservation:
		t.endSeat(c.PlayerSession(session.PlayerRef(d.Ref)), session.TimedOut)
	case Activation:
		r := session.GameRef(d.Ref)
		g := c.Game(r)
		p, id := fleet.ProcessRef(g.Process), g.ID
		who := describeProcess(c.Process(p))
		t.endGame(r, session.NoReason, session.EndedNotActivated)
		t.fleetEvent(id.Fleet(), "GAME_SESSION_ACTIVATION_TIMEOUT", "Game session "+string(id)+" was not activated in time by "+who)
		t.askTermination(p, fleet.EndedActivationLate)
	case Ready:
		t.endProcess(fleet.ProcessRef(d.Ref), fleet.EndedNeverReady, 0)
	case Lost:
		t.endProcess(fleet.ProcessRef(d.Ref), fleet.EndedCrashed, 0)
	case Unhealthy:
		r := fleet.ProcessRef(d.Ref)
		p := c.Process(r)
		fleetID, who := p.Key.Fleet, describeProcess(p)
		t.askTermination(r, fleet.EndedUnhealthy)
		t.fleetEvent(fleetID, "SERVER_PROCESS_TERMINATED_UNHEALTHY", "Server "+who+" sent no good health report for "+c.Config.UnhealthyAfter.String()+"; it was told to end")
	case Termination:
		r := fleet.ProcessRef(d.Ref)
		p := c.Process(r)
		fleetID, who := p.Key.Fleet, describeProcess(p)
		lost := t.closeProcess(r, p.TerminateWhy, 0)
		t.lossEvent(fleetID, "SERVER_PROCESS_FORCE_TERMINATED", "Server "+who+" did not end in time after it was told to; it was given up", lost)
	case RolloutStep:
		t.stepOver(*c.Fleets.Rollouts.Get(chunk.Ref[fleet.Rollout](d.Ref)))
	case RolloutEnd:
		t.endRollout(*c.Fleets.Rollouts.Get(chunk.Ref[fleet.Rollout](d.Ref)))
	case ForgetProcess:
		t.Emit(&ProcessForgotten{c.Process(fleet.ProcessRef(d.Ref)).Key})
	case Creation:
		t.Emit(&CreationsForgotten{})
	case Sweep:
		t.sweepFleet(fleet.Ref(d.Ref))
		return true
	case PlacementTimeout:
		t.endPlacement(placement.Ref(d.Ref), placement.TimedOut)
	case PlacementRound:
		c.Waiting.Clear(PlacementRound, d.Ref)
		t.round(placement.Ref(d.Ref))
	}
	return false
}

// sweepFleet removes one compute of a fleet that is being deleted, or of its locations that are. After the last compute, it removes the locations or
// the fleet.
func (t *Tx) sweepFleet(r fleet.Ref) {
	c := t.State
	f := *c.fleet(r)
	left := fleet.ComputeRef(0)
	for _, l := range f.Locations {
		if left == 0 && (f.Status == fleet.Deleting || l.Status == fleet.Deleting) {
			c.Fleets.ComputesIn(f.ID, l.Name, 0, "", func(x fleet.ComputeRef, _ *fleet.Compute) bool {
				left = x
				return false
			})
		}
	}
	switch {
	case left != 0:
		t.removeCompute(left)
	case f.Status == fleet.Deleting:
		t.Emit(&FleetRemoved{f.ID})
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
		t.Emit(&FleetChanged{f})
		for _, name := range gone {
			t.fleetEvent(f.ID, "LOCATION_STATE_DELETED", "Location "+name+" of fleet "+f.ID+" changed state to DELETED")
		}
	}
}

// seatsWait is the least time that every reservation has left after a restart, but never more than Config.Reservation. The game server that reports
// the player reconnects at its SDK's next attempt, up to 32 s later. See B012.
const seatsWait = 35 * time.Second

// Resume counts every connection that neither a node nor the process still has as lost since the service went down. It gives game servers time to
// reconnect and to report which players have connected.
func (t *Tx) Resume(r kernel.Resumption) {
	t.replanAll(t.Now)
	// The contact clock resumes where it stopped, and the connections' grace period starts there.
	t.Emit(&Resumed{
		Downtime: int64(r.Down), LostBy: r.Then.Add(t.Config.LinkGrace), SeatsBy: r.Then.Add(min(seatsWait, t.Config.Reservation)), Held: r.Cluster, Paused: r.Paused,
	})
}

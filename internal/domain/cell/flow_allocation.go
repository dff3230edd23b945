package cell

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// instancePlaced gives a game instance the host that its placement found. Seats of players who have left meanwhile are
// free at once.
func (t *tx) instancePlaced(id string, game session.ID) {
	r, ok := t.c.flow.InstanceOfPlacement(id)
	if !ok {
		return
	}
	t.hostInstance(r, game)
}

// reservationFor is how long a seat waits for its player in the game session of a placement.
func (t *tx) reservationFor(id string) time.Duration {
	if r, ok := t.c.flow.InstanceOfPlacement(id); ok {
		return t.c.flow.Instances.Get(r).Rules.Reservation
	}
	return t.c.config.Reservation
}

// hostInstance lets a game instance be active in a game session. With manualReady the time for that runs until Game.Ready: before
// nobody can play.
func (t *tx) hostInstance(r flow.Ref, game session.ID) {
	t.flow.cause = "Allocated"
	t.changeInstance(r, func(x *flow.Instance) {
		x.Status, x.Game, x.Ready = flow.InstanceActive, string(game), x.Ready || !x.Rules.ManualReady
		if x.Ready {
			x.AllocateBy = 0
		}
		if x.Rules.KeepAlive > 0 {
			x.KeepAliveBy = t.contact.Add(x.Rules.KeepAlive)
		}
	})
	x := t.c.flow.Instances.Get(r)
	t.tellHosted(r)
	t.freeSeatsOfLeavers(r, game)
	if x.Ready {
		t.admitMembers(r)
	}
	t.planEmpty(r)
}

// freeSeatsOfLeavers closes the reservations that a placement made for players who had left the game before. Others without a
// membership were matched over the plain API.
func (t *tx) freeSeatsOfLeavers(r flow.Ref, game session.ID) {
	gone := t.c.flow.Instances.Get(r).Gone
	if len(gone) == 0 {
		return
	}
	t.changeInstance(r, func(x *flow.Instance) { x.Gone = nil })
	g, _ := t.c.sessions.Game(game)
	for _, l := range gone {
		if id, ok := t.c.reservationIn(g, l.Player); ok {
			t.tellServer(r, flow.OnPlayerLeft, flow.Notice{Player: l.Player, Reason: l.Reason.String()})
			t.emit(&PlayerEnded{id, session.TimedOut})
		}
	}
}

// instanceNotPlaced ends a game instance that gets no host.
func (t *tx) instanceNotPlaced(id string, status placement.Status) {
	r, ok := t.c.flow.InstanceOfPlacement(id)
	if !ok {
		return
	}
	why := flow.HostError
	switch status {
	case placement.TimedOut:
		why = flow.NoCapacity
	case placement.Cancelled:
		why = flow.AllocationCancelled
	}
	t.failAllocation(r, why)
}

// failAllocation ends a game instance that nobody can play in.
func (t *tx) failAllocation(r flow.Ref, why flow.Reason) {
	t.flow.cause = "AllocationFailed"
	x := t.c.flow.Instances.Get(r)
	id, pending, game := x.ID, x.Placement, x.Game
	var out []flow.Membership
	for _, ref := range x.Members() {
		out = append(out, *t.c.flow.Memberships.Get(ref))
	}
	advices := t.advicesOf(out)
	t.closeInstance(r, flow.AllocationFailed, flow.AllocationFailed, "")
	t.stopPlacing(pending)
	requeued := t.requeue(t.c.flow.Instances.Get(r), out, advices)
	for _, m := range out {
		_, again := slices.BinarySearch(requeued, m.Player)
		t.tellPlayers(flow.OnFailedToAllocateGameInstance, flow.Message{Instance: id, Reason: why, Requeued: again}, m.Player)
	}
	t.stopHost(game) // one that was found and did not get ready
}

// stopPlacing ends the placement of a game instance that has ended, and with it the tickets that it came of.
func (t *tx) stopPlacing(id string) {
	if p, ok := t.c.placements.Placement(id); ok && t.c.placements.Placements.Get(p).Status == placement.Pending {
		t.endPlacement(p, placement.Cancelled)
	}
}

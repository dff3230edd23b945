package playerflow

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// Placed sets the host that a game instance's placement found. Seats of players who have left meanwhile become free at once.
func (t *Games) Placed(id string, game session.ID) {
	r, ok := t.Flow.InstanceOfPlacement(id)
	if !ok {
		return
	}
	t.host(r, game)
}

// ReservationFor returns how long a seat in the game session of a placement waits for its player; 0: player flow has no value.
func (t *Games) ReservationFor(id string) time.Duration {
	if r, ok := t.Flow.InstanceOfPlacement(id); ok {
		return t.Flow.Instances.Get(r).Rules.Reservation
	}
	return 0
}

// host makes a game instance active in a game session. With manualReady its allocation deadline runs until Game.Ready, because no player
// can play before.
func (t *Games) host(r flow.InstanceRef, game session.ID) {
	t.Cause = "Allocated"
	t.changeInstance(r, func(x *flow.Instance) {
		x.Status, x.Game, x.Ready = flow.InstanceActive, string(game), x.Ready || !x.Rules.ManualReady
		if x.Ready {
			x.AllocateBy = 0
		}
		if x.Rules.KeepAlive > 0 {
			x.KeepAliveBy = t.Contact.Add(x.Rules.KeepAlive)
		}
	})
	x := t.Flow.Instances.Get(r)
	t.tellHosted(r)
	t.freeSeatsOfLeavers(r, game)
	if x.Ready {
		t.Memberships.admitAll(r)
	}
	t.Memberships.planEmpty(r)
}

// freeSeatsOfLeavers ends the reservations that a placement made for players who had already left the game. Other players without a
// membership were matched over the plain API and keep theirs.
func (t *Games) freeSeatsOfLeavers(r flow.InstanceRef, game session.ID) {
	gone := t.Flow.Instances.Get(r).Gone
	if len(gone) == 0 {
		return
	}
	t.changeInstance(r, func(x *flow.Instance) { x.Gone = nil })
	g, _ := t.hosting.FindGame(game)
	for _, l := range gone {
		if id, ok := t.reservationIn(g, l.Player); ok {
			t.tellServer(r, flow.OnPlayerLeft, flow.Notice{Player: l.Player, Reason: l.Reason.String()})
			t.hosting.EndSeat(id, session.TimedOut)
		}
	}
}

// NotPlaced ends a game instance whose placement ended without a host.
func (t *Games) NotPlaced(id string, status placement.Status) {
	r, ok := t.Flow.InstanceOfPlacement(id)
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
	t.fail(r, why, true)
}

// failToPlace ends a game instance whose placement cannot even begin. Its parties do not search again, because their next match would fail
// as fast, in an endless loop.
func (t *Games) failToPlace(r flow.InstanceRef) {
	t.fail(r, flow.HostError, false)
}

// fail ends a game instance that cannot be played. Its parties search again if mayRequeue is set and the rules allow it.
func (t *Games) fail(r flow.InstanceRef, why flow.Reason, mayRequeue bool) {
	t.Cause = "AllocationFailed"
	x := t.Flow.Instances.Get(r)
	id, pending, game := x.ID, x.Placement, x.Game
	waited := x.Rules.AllocationTimeout - time.Duration(x.AllocateBy-t.Contact)*time.Millisecond
	down := t.Now.Sub(x.Created) - waited // how long the service was down meanwhile
	var out []flow.Membership
	for _, ref := range x.Members() {
		out = append(out, *t.Flow.Memberships.Get(ref))
	}
	advices := t.advices.ofMembers(out)
	t.close(r, flow.AllocationFailed, flow.AllocationFailed, "")
	t.hosting.StopPlacement(pending)
	var requeued []string
	if mayRequeue {
		requeued = t.searches.requeue(t.Flow.Instances.Get(r), out, advices, down)
	}
	for _, m := range out {
		_, again := slices.BinarySearch(requeued, m.Player)
		t.tellPlayers(flow.OnFailedToAllocateGameInstance, flow.Message{Instance: id, Reason: why, Requeued: again}, m.Player)
	}
	t.stopHost(game) // a host that was found but did not become ready
}

package playerflow

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// Placed gives a game instance the host that its placement found. Seats of players who have left meanwhile are
// free at once.
func (t *Games) Placed(id string, game session.ID) {
	r, ok := t.Flow.InstanceOfPlacement(id)
	if !ok {
		return
	}
	t.host(r, game)
}

// ReservationFor is how long a seat waits for its player in the game session of a placement; 0: player flow does not say.
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

// freeSeatsOfLeavers closes the reservations that a placement made for players who had left the game before. Others without a
// membership were matched over the plain API.
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

// NotPlaced ends a game instance that gets no host.
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

// failToPlace ends a game instance whose placement cannot even begin. Its parties do not search again: their next match would fail as fast,
// and so on without end.
func (t *Games) failToPlace(r flow.InstanceRef) {
	t.fail(r, flow.HostError, false)
}

// fail ends a game instance that no player can play in. Its parties search again if mayRequeue and its rules say so.
func (t *Games) fail(r flow.InstanceRef, why flow.Reason, mayRequeue bool) {
	t.Cause = "AllocationFailed"
	x := t.Flow.Instances.Get(r)
	id, pending, game := x.ID, x.Placement, x.Game
	waited := x.Rules.AllocationTimeout - time.Duration(x.AllocateBy-t.Contact)*time.Millisecond
	down := t.Now.Sub(x.Created) - waited // so long the service was down meanwhile
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
	t.stopHost(game) // one that was found and did not get ready
}

package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/session"
)

// Operations on game instances and memberships that the commands in command_game.go and command_server.go share, and reactions to
// hosting.

// begin creates a game instance with pending memberships. The players must be free of tickets and games, or leave their tickets in the
// same transaction.
func (t *Games) begin(x flow.Instance, members []newMember) flow.InstanceRef {
	x.Status, x.Created = flow.InstancePending, t.Now
	x.AllocateBy = t.Contact.Add(x.Rules.AllocationTimeout)
	if x.Rules.AbsoluteTimeout > 0 {
		x.AbsoluteBy = t.Contact.Add(x.Rules.AbsoluteTimeout)
	}
	t.Emit(&GameInstanceChanged{Instance: x})
	r, _ := t.Flow.Instance(x.ID)
	for _, m := range members {
		t.Memberships.add(r, m)
	}
	return r
}

// close ends a game instance and all its memberships in one transaction. The caller sends messages other than those about the players'
// keys.
func (t *Games) close(r flow.InstanceRef, end, member flow.Reason, result string) {
	x := *t.Flow.Instances.Get(r)
	members := slices.Clone(x.Members())
	t.changeInstance(r, func(x *flow.Instance) {
		x.Status, x.EndReason, x.Ended, x.Result = flow.InstanceEnded, end, t.Now, result
		x.AllocateBy, x.AbsoluteBy, x.EndBy, x.EmptyBy, x.KeepAliveBy, x.Suspect, x.Gone, x.Lost = 0, 0, 0, 0, 0, 0, nil, nil
		x.ForgetAt = t.Now.Add(t.Config.Games.EndedKept)
	})
	for _, m := range members {
		t.Memberships.drop(m, end, member, result, x.Status != flow.InstancePending && end != flow.AllocationFailed)
	}
}

// end ends a game instance and tells its players. If it has no host yet, end cancels its placement.
func (t *Games) end(r flow.InstanceRef, end, member flow.Reason, result string, results map[string]string) {
	x := t.Flow.Instances.Get(r)
	if !x.Live() {
		return
	}
	id, placement := x.ID, x.Placement
	var players []string
	for _, ref := range x.Members() {
		players = append(players, t.Flow.Memberships.Get(ref).Player)
	}
	t.close(r, end, member, result)
	t.hosting.StopPlacement(placement)
	t.tellPlayers(flow.OnGameEnded, flow.Message{Instance: id, Reason: end, Result: result}, players...)
	for _, player := range players {
		t.tellPlayers(flow.OnRemovedFromGame, flow.Message{Instance: id, Reason: member, Result: results[player]}, player)
		if own, ok := results[player]; ok {
			p, _ := t.Flow.Player(player)
			last := *t.Flow.Players.Get(p).LastGame
			last.Result = own
			t.changePlayer(p, func(e *PlayerChanged) { e.LastGame = &last })
		}
	}
}

// stopHost requests the end of the game session that hosts a game instance.
func (t *Games) stopHost(game string) {
	if game != "" {
		t.hosting.TerminateGame(session.ID(game))
	}
}

// hostEndReasons maps the end of a game session to the end of the game instance that it hosted. If a server process ends in good order
// without being asked, its game has finished: a server that uses only the server SDK has no other way to report that.
var hostEndReasons = map[session.EndCause][2]flow.Reason{
	session.EndedByServer: {flow.Finished, flow.GameEnded}, session.EndedByForce: {flow.Terminated, flow.GameTerminated},
	session.EndedByCrash: {flow.HostLost, flow.HostLost}, session.EndedByReplacement: {flow.HostLost, flow.HostLost},
	session.EndedUnhealthy: {flow.HostLost, flow.HostLost}, session.EndedWithCompute: {flow.HostLost, flow.HostLost},
}

// HostEnding ends the game instance that a game session hosts. It runs before the player sessions end.
func (t *Games) HostEnding(g session.GameRef, cause session.EndCause) {
	r, ok := t.Flow.InstanceOfGame(string(t.hosting.Game(g).ID))
	if !ok {
		return
	}
	t.Cause = "HostEnded"
	why, ok := hostEndReasons[cause]
	if !ok || cause == session.EndedByServer && t.Flow.Instances.Get(r).Status == flow.InstanceEnding { // its end was requested
		why = [2]flow.Reason{flow.Terminated, flow.GameTerminated}
	}
	t.end(r, why[0], why[1], "", nil)
}

// HostTerminating closes a game instance to new players, because its game session is about to end.
func (t *Games) HostTerminating(game session.ID) {
	r, ok := t.Flow.InstanceOfGame(string(game))
	if !ok || t.Flow.Instances.Get(r).Status != flow.InstanceActive {
		return
	}
	t.changeInstance(r, func(x *flow.Instance) {
		x.Status, x.EndBy, x.EmptyBy, x.AllocateBy = flow.InstanceEnding, t.Contact.Add(x.Rules.EndingGrace), 0, 0
	})
	for _, m := range t.Flow.Instances.Get(r).Members() {
		t.touch(t.Flow.Memberships.Get(m).PlayerRef())
	}
}

// live finds a game instance that has not ended.
func (t *Games) live(id flow.InstanceID) (flow.InstanceRef, error) {
	r, ok := t.Flow.Instance(id)
	switch {
	case !ok:
		return 0, flow.Refuse(flow.Refusal{Code: flow.GameInstanceNotFound}, "game instance %s not found", id)
	case !t.Flow.Instances.Get(r).Live():
		return 0, flow.Refuse(flow.Refusal{Code: flow.GameHasEnded, Instance: id}, "game instance %s has ended", id)
	}
	return r, nil
}

// served finds a game instance with a host.
func (t *Games) served(id flow.InstanceID, cause string) (flow.InstanceRef, error) {
	if err := t.flowOn(); err != nil {
		return 0, err
	}
	t.Cause = cause
	r, err := t.live(id)
	if err == nil && t.Flow.Instances.Get(r).Status == flow.InstancePending {
		err = flow.Refuse(flow.Refusal{Code: flow.HostNotReady}, "game instance %s has no host yet", id)
	}
	return r, err
}

// hasRoom checks that new members can be seated in a game instance now.
func (t *Games) hasRoom(r flow.InstanceRef, newcomers int32) error {
	x := t.Flow.Instances.Get(r)
	switch x.Status {
	case flow.InstancePending:
		return flow.Refuse(flow.Refusal{Code: flow.HostNotReady}, "game instance %s has no host yet", x.ID)
	case flow.InstanceEnding:
		return flow.Refuse(flow.Refusal{Code: flow.GameIsEnding}, "game instance %s is about to end", x.ID)
	}
	g, _ := t.hosting.FindGame(session.ID(x.Game))
	waiting := t.unseated(r, g)
	if game := t.hosting.Game(g); game.SeatsHeld+waiting+newcomers > game.PlayersMax {
		return flow.Refuse(flow.Refusal{Code: flow.GameFull}, "game instance %s: %d of %d seats are taken", x.ID, game.SeatsHeld+waiting, game.PlayersMax)
	}
	return nil
}

// letsIn reports whether the game session of a game instance accepts players who join on their own. The policy applies neither to its
// server, which may add players, nor to returning members.
func (t *Games) letsIn(r flow.InstanceRef) bool {
	g, ok := t.hosting.FindGame(session.ID(t.Flow.Instances.Get(r).Game))
	return ok && matchmaking.TakesPlayers(t.hosting.Game(g))
}

// unseated returns how many members of a game instance wait for Game.Ready without a seat in its game session, because the placement
// reserved none or the reservation has expired. Their seats are still promised to them.
func (c *State) unseated(r flow.InstanceRef, game session.GameRef) (n int32) {
	x := c.Flow.Instances.Get(r)
	if x.Ready {
		return 0
	}
	for _, ref := range x.Members() {
		if c.waitsForSeat(c.Flow.Memberships.Get(ref), game) {
			n++
		}
	}
	return n
}

func (c *State) waitsForSeat(m *flow.Membership, game session.GameRef) bool {
	if m.Status != flow.MemberPending {
		return false
	}
	_, reserved := c.reservationIn(game, m.Player)
	return !reserved
}

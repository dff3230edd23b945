package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/session"
)

// closeInstance ends a game instance and all its memberships, in one transaction for all players. What they are told
// beside the change of their keys is the caller's matter.
func (t *Tx) closeInstance(r flow.InstanceRef, end, member flow.Reason, result string) {
	x := *t.Flow.Instances.Get(r)
	members := slices.Clone(x.Members())
	t.changeInstance(r, func(x *flow.Instance) {
		x.Status, x.EndReason, x.Ended, x.Result = flow.InstanceEnded, end, t.Now, result
		x.AllocateBy, x.AbsoluteBy, x.EndBy, x.EmptyBy, x.KeepAliveBy, x.Suspect, x.Gone, x.Lost = 0, 0, 0, 0, 0, 0, nil, nil
		x.ForgetAt = t.Now.Add(t.Config.Games.EndedKept)
	})
	for _, m := range members {
		t.dropMembership(m, end, member, result, x.Status != flow.InstancePending && end != flow.AllocationFailed)
	}
}

// dropMembership ends a membership: the keys, the hold, and a reservation that is still open.
func (t *Tx) dropMembership(r flow.MembershipRef, end, reason flow.Reason, result string, wasActive bool) {
	m := *t.Flow.Memberships.Get(r)
	t.tellMemberEnd(&m, reason)
	t.Emit(&MembershipEnded{m.Player, &flow.LastGame{Instance: m.Instance, EndReason: end, Membership: reason, Ended: t.Now, Result: result}})
	t.adviceOfLeaver(&m)
	t.setKeys(m.PlayerRef(), func(k *flow.Keys) { k.Game = domain.UUID{} })
	open := []domain.PlayerSessionID{m.Session, m.Next}
	if g, ok := t.hosting.FindGame(session.ID(t.Flow.Instances.Get(m.InstanceRef()).Game)); ok && m.Status == flow.MemberPending {
		open[0], _ = t.reservationIn(g, m.Player) // what the placement made, for when the server is ready
	}
	for _, id := range open {
		if p, ok := t.hosting.FindPlayer(id); ok && t.hosting.PlayerSession(p).Status == session.Reserved {
			t.hosting.EndSeat(id, session.TimedOut)
		}
	}
	if wasActive {
		t.clearReady(m.PlayerRef())
	}
}

// clearReady makes a player not ready who has come out of a game.
func (t *Tx) clearReady(r flow.PlayerRef) {
	p := t.Flow.Players.Get(r)
	party, ok := t.Flow.Party(p.Keys.Party)
	if !ok {
		return
	}
	x := t.Flow.Parties.Get(party)
	if i, ok := x.Member(p.ID); ok && x.Members[i].Ready {
		t.changeParty(party, flow.ReadyChanged, p.ID, func(x *flow.Party) { x.Members[i].Ready = false })
	}
}

// endInstance ends a game instance and tells its players. For one without a host none is looked for any more.
func (t *Tx) endInstance(r flow.InstanceRef, end, member flow.Reason, result string, results map[string]string) {
	x := t.Flow.Instances.Get(r)
	if !x.Live() {
		return
	}
	id, placement := x.ID, x.Placement
	var players []string
	for _, ref := range x.Members() {
		players = append(players, t.Flow.Memberships.Get(ref).Player)
	}
	t.closeInstance(r, end, member, result)
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

// endMembership ends the membership of one player, whose game goes on.
func (t *Tx) endMembership(r flow.MembershipRef, reason flow.Reason) {
	t.endMembershipWith(r, reason, "")
}

func (t *Tx) endMembershipWith(r flow.MembershipRef, reason flow.Reason, result string) {
	m := *t.Flow.Memberships.Get(r)
	x := t.Flow.Instances.Get(m.InstanceRef())
	pending := x.Status == flow.InstancePending
	t.dropMembership(r, flow.NoReason, reason, result, !pending)
	if pending {
		t.changeInstance(m.InstanceRef(), func(x *flow.Instance) {
			x.Gone = append(slices.Clip(x.Gone), flow.Leaver{Player: m.Player, Reason: reason})
		})
	}
	t.tellPlayers(flow.OnRemovedFromGame, flow.Message{Instance: m.Instance, Reason: reason, Result: result}, m.Player)
	t.planEmpty(m.InstanceRef())
	t.penaliseEnd(&m, reason)
	if g, ok := t.hosting.FindGame(session.ID(x.Game)); ok {
		t.matchmaking.PlayerLeft(g)
	}
}

// stopHost asks for the end of the game session of a game instance.
func (t *Tx) stopHost(game string) {
	if game != "" {
		t.hosting.TerminateGame(session.ID(game))
	}
}

// hostEndReasons is what the end of a game session means for the game instance that it hosted. A server process that ends in
// good order, unasked, has finished its game: a server that has only the server SDK cannot say it otherwise.
var hostEndReasons = map[session.EndCause][2]flow.Reason{
	session.EndedByServer: {flow.Finished, flow.GameEnded}, session.EndedByForce: {flow.Terminated, flow.GameTerminated},
	session.EndedByCrash: {flow.HostLost, flow.HostLost}, session.EndedByReplacement: {flow.HostLost, flow.HostLost},
	session.EndedUnhealthy: {flow.HostLost, flow.HostLost}, session.EndedWithCompute: {flow.HostLost, flow.HostLost},
}

// GameEnding ends the game instance that a game session hosts. It runs before the player sessions end.
func (t *Tx) GameEnding(g session.GameRef, cause session.EndCause) {
	r, ok := t.Flow.InstanceOfGame(string(t.hosting.Game(g).ID))
	if !ok {
		return
	}
	t.Cause = "HostEnded"
	why, ok := hostEndReasons[cause]
	if !ok || cause == session.EndedByServer && t.Flow.Instances.Get(r).Status == flow.InstanceEnding { // it was told to end
		why = [2]flow.Reason{flow.Terminated, flow.GameTerminated}
	}
	t.endInstance(r, why[0], why[1], "", nil)
}

// GameTerminating lets nobody new into a game instance whose game session is to end.
func (t *Tx) GameTerminating(game session.ID) {
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

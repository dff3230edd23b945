package playerflow

import (
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/session"
)

// newMember is a player who gets a membership.
type newMember struct {
	player  flow.PlayerRef
	team    string
	data    string
	ticket  domain.TicketID // the ticket that was matched
	entered domain.Time     // when that ticket began to wait
	unasked bool            // only the game server asked for the seat, neither the player nor the studio
}

// add creates a pending membership.
func (t *Memberships) add(r flow.InstanceRef, m newMember) {
	x := t.Flow.Instances.Get(r)
	p := t.Flow.Players.Get(m.player)
	id, told := p.ID, flow.Message{Instance: x.ID, Match: x.Match, Team: m.team, Reconnect: x.Rules.Reconnect, Attributes: x.Attributes}
	t.Emit(&MembershipChanged{Membership: flow.Membership{
		Instance: x.ID, Player: id, Status: flow.MemberPending, Team: m.team, Party: p.Keys.Party, Joined: t.Now, Data: m.data,
		Ticket: m.ticket, Entered: m.entered, Unasked: m.unasked,
	}})
	game := told.Instance
	t.tellAdded(r, t.Flow.Memberships.Get(t.Flow.Players.Get(m.player).Membership()))
	t.setKeys(m.player, func(k *flow.Keys) { k.Ticket, k.Game = domain.TicketID{}, game })
	t.tellPlayers(flow.OnAddedToGame, told, id)
	t.planEmpty(r)
}

// planEmpty sets the deadline of an active game instance without members, and clears it when a player joins.
func (t *Memberships) planEmpty(r flow.InstanceRef) {
	x := t.Flow.Instances.Get(r)
	empty := x.Status == flow.InstanceActive && len(x.Members()) == 0 && x.Rules.EmptyTimeout > 0
	switch {
	case empty && x.EmptyBy == 0:
		t.changeInstance(r, func(x *flow.Instance) { x.EmptyBy = t.Contact.Add(x.Rules.EmptyTimeout) })
	case !empty && x.EmptyBy != 0:
		t.changeInstance(r, func(x *flow.Instance) { x.EmptyBy = 0 })
	}
}

// drop ends a membership with its keys, its hold and any open reservation.
func (t *Memberships) drop(r flow.MembershipRef, end, reason flow.Reason, result string, wasActive bool) {
	m := *t.Flow.Memberships.Get(r)
	t.tellMemberEnd(&m, reason)
	t.Emit(&MembershipEnded{m.Player, &flow.LastGame{Instance: m.Instance, EndReason: end, Membership: reason, Ended: t.Now, Result: result}})
	t.advices.memberLeft(&m)
	t.setKeys(m.PlayerRef(), func(k *flow.Keys) { k.Game = flow.InstanceID{} })
	open := []domain.PlayerSessionID{m.Session, m.Next}
	if g, ok := t.hosting.FindGame(session.ID(t.Flow.Instances.Get(m.InstanceRef()).Game)); ok && m.Status == flow.MemberPending {
		open[0], _ = t.reservationIn(g, m.Player) // the placement's reservation, made before the server was ready
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

// clearReady marks a player who has left a game as not ready.
func (t *Memberships) clearReady(r flow.PlayerRef) {
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

// end ends the membership of one player, while the game continues.
func (t *Memberships) end(r flow.MembershipRef, reason flow.Reason) {
	t.endWith(r, reason, "")
}

func (t *Memberships) endWith(r flow.MembershipRef, reason flow.Reason, result string) {
	m := *t.Flow.Memberships.Get(r)
	x := t.Flow.Instances.Get(m.InstanceRef())
	pending := x.Status == flow.InstancePending
	t.drop(r, flow.NoReason, reason, result, !pending)
	if pending {
		t.changeInstance(m.InstanceRef(), func(x *flow.Instance) {
			x.Gone = append(slices.Clip(x.Gone), flow.Leaver{Player: m.Player, Reason: reason})
		})
	}
	t.tellPlayers(flow.OnRemovedFromGame, flow.Message{Instance: m.Instance, Reason: reason, Result: result}, m.Player)
	t.planEmpty(m.InstanceRef())
	t.penalties.ofEnd(&m, reason)
	if g, ok := t.hosting.FindGame(session.ID(x.Game)); ok {
		t.matchmaking.PlayerLeft(g)
	}
}

// addSeated adds a player to an active game instance.
func (t *Memberships) addSeated(r flow.InstanceRef, m newMember) {
	t.add(r, m)
	if t.Flow.Instances.Get(r).Ready {
		t.admit(t.Flow.Players.Get(m.player).Membership())
	}
}

// holdUntil returns the end of a hold on the wall clock; 0 if there is no hold or its clock stands still.
func (c *State) holdUntil(m *flow.Membership) domain.Time {
	if m.HoldBy == 0 {
		return 0
	}
	return c.WallTime(m.HoldBy)
}

func (c *State) memberIn(r flow.InstanceRef, player string) (flow.MembershipRef, bool) {
	p, ok := c.Flow.Player(player)
	if !ok || c.Flow.Players.Get(p).Membership() == 0 {
		return 0, false
	}
	m := c.Flow.Players.Get(p).Membership()
	return m, c.Flow.Memberships.Get(m).InstanceRef() == r
}

// leftBy reports whether the player's last game was this one and ended for the same reason, so that the call is a
// repeat.
func (t *Memberships) leftBy(instance flow.InstanceID, player string, why flow.Reason) bool {
	p, ok := t.Flow.Player(player)
	if !ok {
		return false
	}
	last := t.Flow.Players.Get(p).LastGame
	return last != nil && last.Instance == instance && last.Membership == why
}

// wasIn reports whether the last game of a player was this one.
func (t *Memberships) wasIn(instance flow.InstanceID, r flow.PlayerRef) bool {
	last := t.Flow.Players.Get(r).LastGame
	return last != nil && last.Instance == instance
}

// completeSession ends a live player session.
func (t *Memberships) completeSession(id domain.PlayerSessionID) {
	if p, ok := t.hosting.FindPlayer(id); ok && t.hosting.PlayerSession(p).Status.Live() {
		t.hosting.EndSeat(id, session.Completed)
	}
}

// sessionOf finds a player session in the game session of a game instance.
func (t *Memberships) sessionOf(r flow.InstanceRef, id domain.PlayerSessionID) (*session.PlayerSession, error) {
	p, ok := t.hosting.FindPlayer(id)
	if !ok || string(t.hosting.Game(t.hosting.PlayerSession(p).Game).ID) != t.Flow.Instances.Get(r).Game {
		return nil, flow.Refuse(flow.Refusal{Code: flow.InvalidToken}, "player session %s is not one of this game", id)
	}
	return t.hosting.PlayerSession(p), nil
}

// of finds a player's membership in the game instance that the player names.
func (t *Memberships) of(r flow.PlayerRef, instance flow.InstanceID) (flow.MembershipRef, error) {
	p := t.Flow.Players.Get(r)
	if p.Keys.Game == instance && !instance.IsZero() {
		return p.Membership(), nil
	}
	if l := p.LastGame; l != nil && l.Instance == instance && l.EndReason != flow.NoReason && l.Ended.Add(t.Config.Games.LastGameKept) > t.Now {
		return 0, flow.Refuse(flow.Refusal{Code: flow.GameHasEnded, Instance: instance}, "game instance %s has ended: %s", instance, l.EndReason)
	}
	return 0, flow.Refuse(flow.Refusal{Code: flow.NotInGame}, "player %s is not in game instance %s", p.ID, instance)
}

// gameCaller finds the membership of a player who makes a call about a game; see caller.
func (t *Memberships) gameCaller(by *Caller, cause string, instance flow.InstanceID) (member flow.MembershipRef, done bool, err error) {
	r, done, err := t.caller(by, cause)
	if err == nil && !done {
		member, err = t.of(r, instance)
	}
	return member, done, err
}

// mayDecline reports whether DeclineReconnect is allowed: reconnect is OPTIONAL, and the player is not connected.
func (c *State) mayDecline(m *flow.Membership) bool {
	return c.Flow.Instances.Get(m.InstanceRef()).Rules.Reconnect == flow.ReconnectOptional && m.Status != flow.MemberActive && m.Status != flow.MemberPending
}

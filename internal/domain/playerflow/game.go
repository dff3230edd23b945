package playerflow

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// What happens to game instances and memberships: the other half of the commands in command_game.go and
// command_server.go, and what follows when hosting does something.

// newMember is a player who gets a membership.
type newMember struct {
	player  flow.PlayerRef
	team    string
	data    string
	ticket  domain.UUID // that the match was made of
	entered domain.Time // when that began to wait
	unasked bool        // neither the player nor the studio asked for it, but the game server
}

// beginInstance makes a game instance with its memberships, pending. The players must be free of tickets and games, or
// come out of their tickets by it.
func (t *Tx) beginInstance(x flow.Instance, members []newMember) flow.InstanceRef {
	x.Status, x.Created = flow.InstancePending, t.Now
	x.AllocateBy = t.Contact.Add(x.Rules.AllocationTimeout)
	if x.Rules.AbsoluteTimeout > 0 {
		x.AbsoluteBy = t.Contact.Add(x.Rules.AbsoluteTimeout)
	}
	t.Emit(&GameInstanceChanged{Instance: x})
	r, _ := t.Flow.Instance(x.ID)
	for _, m := range members {
		t.addMember(r, m)
	}
	return r
}

// addMember makes a membership, pending.
func (t *Tx) addMember(r flow.InstanceRef, m newMember) {
	x := t.Flow.Instances.Get(r)
	p := t.Flow.Players.Get(m.player)
	id, told := p.ID, flow.Message{Instance: x.ID, Match: x.Match, Team: m.team, Reconnect: x.Rules.Reconnect, Attributes: x.Attributes}
	t.Emit(&MembershipChanged{Membership: flow.Membership{
		Instance: x.ID, Player: id, Status: flow.MemberPending, Team: m.team, Party: p.Keys.Party, Joined: t.Now, Data: m.data,
		Ticket: m.ticket, Entered: m.entered, Unasked: m.unasked,
	}})
	game := told.Instance
	t.tellAdded(r, t.Flow.Memberships.Get(t.Flow.Players.Get(m.player).Membership()))
	t.setKeys(m.player, func(k *flow.Keys) { k.Ticket, k.Game = domain.UUID{}, game })
	t.tellPlayers(flow.OnAddedToGame, told, id)
	t.planEmpty(r)
}

// changeInstance lets f change a copy of a game instance.
func (t *Tx) changeInstance(r flow.InstanceRef, f func(*flow.Instance)) {
	x := *t.Flow.Instances.Get(r)
	f(&x)
	t.Emit(&GameInstanceChanged{Instance: x})
}

// changeMembership lets f change a copy of a membership, and tells the player when the status is another one.
func (t *Tx) changeMembership(r flow.MembershipRef, f func(*flow.Membership)) {
	m := *t.Flow.Memberships.Get(r)
	was := m.Status
	f(&m)
	if suspect := t.Flow.Instances.Get(m.InstanceRef()).Suspect; suspect != 0 && m.HoldBy != 0 {
		m.HoldLeft, m.HoldBy = max(int64(m.HoldBy-t.Contact), 1), 0
	}
	t.Emit(&MembershipChanged{Membership: m})
	if m.Status != was {
		t.touch(m.PlayerRef())
		t.tellPlayers(flow.OnGameMembershipChanged, flow.Message{
			Instance: m.Instance, OldStatus: was, Status: m.Status, Deadline: t.holdUntil(&m),
		}, m.Player)
	}
}

// holdUntil is the end of a hold on the wall clock; 0 when there is none, or the host is suspect.
func (c *State) holdUntil(m *flow.Membership) domain.Time {
	if m.HoldBy == 0 {
		return 0
	}
	return c.WallTime(m.HoldBy)
}

// planEmpty waits for somebody to play in a game instance that nobody is in.
func (t *Tx) planEmpty(r flow.InstanceRef) {
	x := t.Flow.Instances.Get(r)
	empty := x.Status == flow.InstanceActive && len(x.Members()) == 0 && x.Rules.EmptyTimeout > 0
	switch {
	case empty && x.EmptyBy == 0:
		t.changeInstance(r, func(x *flow.Instance) { x.EmptyBy = t.Contact.Add(x.Rules.EmptyTimeout) })
	case !empty && x.EmptyBy != 0:
		t.changeInstance(r, func(x *flow.Instance) { x.EmptyBy = 0 })
	}
}

// MayBeForeign refuses what is done with a player whom player flow knows to be somewhere, unless that is allowed: anybody
// who can call it could end a stranger's search, or seat one player in two games.
func (t *Tx) MayBeForeign(field string, i int, player string) error {
	return t.mayBeIn(field, i, player, func(phase flow.Phase) bool { return phase == flow.Idle })
}

// MayBeBackfilled refuses a backfill with a player who searches: it would end that search.
func (t *Tx) MayBeBackfilled(field string, i int, player string) error {
	return t.mayBeIn(field, i, player, func(phase flow.Phase) bool { return phase != flow.Matchmaking })
}

func (t *Tx) mayBeIn(field string, i int, player string, fits func(flow.Phase) bool) error {
	if t.Limits.Flow == nil || t.Config.Games.LaxPlayers {
		return nil
	}
	r, ok := t.Flow.Player(player)
	if !ok {
		return nil
	}
	if phase := t.Flow.Players.Get(r).Keys.Phase(); !fits(phase) {
		return domain.Refuse(domain.Invalid, "%s[%d]: player %s is %s in player flow, and strictPlayers is on", field, i, player, phase)
	}
	return nil
}

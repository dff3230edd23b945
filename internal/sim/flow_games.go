package sim

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/membership"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
)

// gameBook follows the seats of games in durable entries, also across restarts: each membership makes only permitted transitions, and
// each reservation belongs to a membership.
type gameBook struct {
	rules   map[flow.InstanceID]flow.Rules
	status  map[flow.InstanceID]flow.InstanceStatus
	members map[string]flow.Membership
	open    []domain.PlayerSessionID          // player sessions of memberships that may be live
	owner   map[domain.PlayerSessionID]string // of those that ever were
	late    map[string]bool                   // whose hold was extended for a reservation that was open at its end
}

// seatWays has the statuses that may follow each status of a membership, besides its end.
var seatWays = map[flow.MembershipStatus]string{
	0:                       "PENDING",
	flow.MemberPending:      "PENDING RESERVED",
	flow.MemberReserved:     "RESERVED ACTIVE NO_SHOW DISCONNECTED",
	flow.MemberNoShow:       "NO_SHOW RESERVED",
	flow.MemberActive:       "ACTIVE DISCONNECTED RESERVED", // RESERVED: the connection was lost while another device was about to take over
	flow.MemberDisconnected: "DISCONNECTED RESERVED",
}

// neverUnder has the ends that a mode does not have.
var neverUnder = map[flow.Reconnect]string{
	flow.ReconnectOff:      "RECONNECT_EXPIRED DECLINED TOO_MANY_DISCONNECTS",
	flow.ReconnectOptional: "DISCONNECTED",
	flow.ReconnectRequired: "RECONNECT_EXPIRED DECLINED TOO_MANY_DISCONNECTS DISCONNECTED NO_SHOW",
}

func (b *gameBook) event(w *World, e kernel.Event) {
	if b.members == nil {
		b.rules, b.status = map[flow.InstanceID]flow.Rules{}, map[flow.InstanceID]flow.InstanceStatus{}
		b.members, b.owner, b.late = map[string]flow.Membership{}, map[domain.PlayerSessionID]string{}, map[string]bool{}
	}
	switch e := e.(type) {
	case *playerflow.FlowResumed: // all hosts are unknown, and no hold has a deadline; in a cluster that is so of some
		b.stopHolds(w, !e.Held)
	case *membership.NodeLost:
		b.stopHolds(w, false)
	case *playerflow.GameInstanceChanged:
		b.instance(w, &e.Instance)
	case *playerflow.GameInstanceForgotten:
		delete(b.rules, e.ID)
		delete(b.status, e.ID)
	case *playerflow.MembershipChanged:
		b.membership(w, &e.Membership)
	case *playerflow.MembershipEnded:
		m, ok := b.members[e.Player]
		if !ok || e.LastGame.Instance != m.Instance {
			w.violated("%s comes out of %s, and was in %s", e.Player, e.LastGame.Instance, m.Instance)
		}
		mode := b.rules[m.Instance].Reconnect
		if why := e.LastGame.Membership.String(); contains(neverUnder[mode], why) {
			w.violated("%s comes out of a game by %s under %s", e.Player, why, mode)
		}
		w.saw("%s ended by %s under %s", m.Status, e.LastGame.Membership, mode)
		delete(b.members, e.Player)
		delete(b.late, e.Player)
	}
}

// stopHolds takes the holds for stopped. Without all of them it does not know which are, and forgets their deadlines.
func (b *gameBook) stopHolds(w *World, all bool) {
	for player, m := range b.members {
		if m.HoldBy == 0 {
			continue
		}
		m.HoldBy = 0
		if all {
			m.HoldLeft = 1
			w.saw("hold stopped by a restart")
		}
		b.members[player] = m
	}
}

func (b *gameBook) instance(w *World, x *flow.Instance) {
	old := b.status[x.ID]
	if x.Status < old || old == flow.InstanceEnded {
		w.violated("%s was %s, is %s", x.ID, old, x.Status)
	}
	if rules, ok := b.rules[x.ID]; ok && rules != x.Rules {
		w.violated("%s has other rules than it began with: %+v, %+v", x.ID, x.Rules, rules)
	}
	b.rules[x.ID], b.status[x.ID] = x.Rules, x.Status
	switch {
	case x.Status == old:
	case x.Status == flow.InstanceEnded && x.Result != "":
		w.saw("game ended by %s with a result", x.EndReason)
	case x.Status == flow.InstanceEnded:
		w.saw("game ended by %s", x.EndReason)
	case x.Match != "":
		w.saw("match %s", x.Status)
	default:
		w.saw("game %s", x.Status)
	}
}

func (b *gameBook) membership(w *World, m *flow.Membership) {
	old, was := b.members[m.Player]
	switch {
	case !contains(seatWays[old.Status], m.Status.String()):
		w.violated("%s was %s in %s, is %s in %s", m.Player, old.Status, old.Instance, m.Status, m.Instance)
	case was && (m.Instance != old.Instance || m.Attempt < old.Attempt || m.Attempt > old.Attempt+1 || m.Epoch < old.Epoch || old.WasActive && !m.WasActive):
		w.violated("%s was %+v, is %+v", m.Player, old, m)
	case was && m.Disconnects != old.Disconnects && (old.Status != flow.MemberActive || m.Disconnects != old.Disconnects+1 || m.LostAt < old.LostAt):
		w.violated("%s has lost its connection %d times, and before that %d: %+v, %+v", m.Player, m.Disconnects, old.Disconnects, m, old)
	case m.Status == flow.MemberDisconnected && b.rules[m.Instance].Reconnect == flow.ReconnectOff && !old.WasActive:
		w.violated("%s is DISCONNECTED under OFF", m.Player)
	}
	b.hold(w, &old, m)
	b.members[m.Player] = *m
	for _, id := range []domain.PlayerSessionID{m.Session, m.Next} {
		if _, known := b.owner[id]; !known && !id.IsZero() {
			b.owner[id] = m.Player
			b.open = append(b.open, id)
		}
	}
	switch mode := b.rules[m.Instance].Reconnect; {
	case !was && b.status[m.Instance] == flow.InstancePending:
		w.saw("to PENDING under %s", mode)
	case !was && !m.Ticket.IsZero():
		w.saw("backfilled")
	case !was:
		w.saw("joined a game that goes on under %s", mode)
	case m.Status != old.Status:
		w.saw("%s to %s under %s", old.Status, m.Status, mode)
	case m.Next != old.Next && m.Session != old.Session:
		w.saw("takeover accepted under %s", mode)
	case m.Next != old.Next && m.Next.IsZero():
		w.saw("takeover expired or lost")
	case m.Next != old.Next:
		w.saw("takeover begun")
	case m.Session != old.Session:
		w.saw("%s anew", m.Status)
	}
}

// hold compares the deadline of a disconnected player with the previous one: it is set once for each loss, and neither logins nor
// reservations move it. A reservation that is open at the deadline extends it once. One that was made after the deadline, before the
// service ticked, ends at once, and keeps the seat until the tick.
func (b *gameBook) hold(w *World, old, m *flow.Membership) {
	open := m.HoldBy > domain.ContactTime(w.time()-w.node.down).Add(time.Millisecond)
	switch {
	case old.HoldBy == 0 || m.HoldBy == 0:
		b.late[m.Player] = false
	case m.HoldBy < old.HoldBy, m.HoldBy > old.HoldBy && (m.Status != flow.MemberReserved || b.late[m.Player] && open):
		w.violated("%s was to come back until %v, and is now until %v: %+v", m.Player, old.HoldBy, m.HoldBy, m)
	case m.HoldBy > old.HoldBy:
		b.late[m.Player] = true
		w.saw("hold over while RESERVED")
	}
	if m.HoldLeft != 0 && old.HoldLeft == 0 {
		w.saw("hold stopped while the host is suspect")
	}
}

// reservations checks the members' reservations after each durable entry: each is the current one of its membership, or the one that
// takes over, so that none outlives the membership or the game, and no two are open at once.
func (b *gameBook) reservations(w *World, v *cell.View) {
	reserved := map[string]domain.PlayerSessionID{}
	open := b.open[:0]
	for _, id := range b.open {
		p, ok := v.PlayerSession(id)
		switch {
		case !ok || !p.Status.Live():
			continue
		case p.Status != session.Reserved:
			open = append(open, id)
			continue
		}
		open = append(open, id)
		player := b.owner[id]
		m, ok := b.members[player]
		switch {
		case !ok || m.Session != id && m.Next != id:
			w.violated("%s is reserved for %s, who has %s in %s, %s", id, player, m.Status, m.Instance, m.Session)
		case b.status[m.Instance] == flow.InstanceEnded:
			w.violated("%s is reserved in %s, which has ended", id, m.Instance)
		case !reserved[player].IsZero():
			w.violated("%s and %s are both reserved for %s", id, reserved[player], player)
		}
		reserved[player] = id
	}
	b.open = open
}

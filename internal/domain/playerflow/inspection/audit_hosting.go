package inspection

import (
	"slices"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// Players, hosting and matchmaking share one state, so the records that docs/spec/player-hosting.md#reconciliation compares
// cannot drift apart by lost messages: each change of one is a change of the others in the same transaction. The auditor
// compares them nevertheless, to find defects that make them differ.

// placing compares a game instance without a host with the placement that looks for one.
func (a *auditor) placing(who string, x *flow.Instance) {
	if r, ok := a.c.hosting.FindPlacement(x.Placement); !ok || a.c.hosting.Placement(r).Status != placement.Pending {
		a.fail("I12", who, "it is PENDING, and its placement %s looks for no host", x.Placement)
	}
}

// hosted compares a game instance that has a host with its game session.
func (a *auditor) hosted(who string, x *flow.Instance, g *session.GameSession) {
	if ending := g.Status == session.Terminating; ending != (x.Status == flow.InstanceEnding) || g.Status == session.Activating {
		a.fail("I6", who, "it is %s, its game session %s", x.Status, g.Status)
	}
}

// ticketOf compares a party's search with its ticket: the same players, in the same queue, for the same time.
func (a *auditor) ticketOf(who string, p *flow.Party, x *matchmaking.Ticket) {
	var players []string
	for id := range x.EachPlayer {
		players = append(players, id)
	}
	members := p.Players()
	slices.Sort(players)
	slices.Sort(members)
	if !slices.Equal(players, members) {
		a.fail("I4", who, "its members are %q, those of its ticket %q", members, players)
	}
	if x.Configuration != p.Search.Queue || p.Search.Expires != 0 && x.TimeoutAt != p.Search.Expires {
		a.fail("I12", who, "it searches in %s until %d, its ticket in %s until %d", p.Search.Queue, p.Search.Expires, x.Configuration, x.TimeoutAt)
	}
}

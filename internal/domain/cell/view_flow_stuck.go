package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// Holding is something that keeps a player where they are, and what will free them from it.
type Holding struct {
	Key    string      // PARTY_ID, MATCHMAKING_ID, GAME_INSTANCE_ID; or LOCK, BANNED
	By     string      // the party, ticket or game instance
	Status string      // of it, or of the player in it
	Ends   string      // what will end it; empty: only somebody's wish
	Until  domain.Time // when that is; 0: not known, because it depends on somebody else
}

// ExplainStuck says what holds a player, and the deadline that will free them.
func (v *View) ExplainStuck(player string, now domain.Time) (all []Holding, known bool) {
	v.sawAll()
	r, ok := v.c.flow.Player(player)
	if !ok {
		return nil, false
	}
	c, p := v.c, v.c.flow.Players.Get(r)
	if p.Membership() != 0 {
		all = append(all, c.gameHolds(c.flow.Memberships.Get(p.Membership())))
	}
	if party, ok := c.flow.Party(p.Keys.Party); ok {
		x := c.flow.Parties.Get(party)
		if view := c.partyView(party); view.Search != nil {
			all = append(all, c.searchHolds(view.Search, p))
		}
		h := Holding{Key: "PARTY_ID", By: "pty-" + x.ID.String(), Status: p.Presence.String()}
		switch {
		case p.RemoveBy != 0:
			h.Ends, h.Until = "offlineRemoval", c.wall(p.RemoveBy)
		case x.StaleBy != 0:
			h.Ends, h.Until = "staleExpiration", c.wall(x.StaleBy)
		case !p.Keys.Game.IsZero():
			h.Ends = "the end of the game, and then offlineRemoval or staleExpiration"
		}
		all = append(all, h)
	}
	if lock := c.lockOf(p, now); lock != nil {
		all = append(all, Holding{Key: "LOCK", By: lock.Kind.String(), Ends: "its time", Until: lock.Until})
	}
	if p.Banned {
		all = append(all, Holding{Key: "BANNED"})
	}
	return all, true
}

func (c *Cell) searchHolds(s *flow.Search, p *flow.Player) Holding {
	h := Holding{Key: "MATCHMAKING_ID", By: "mm-" + s.Ticket.String(), Status: s.Status.String(), Ends: "the ticket's timeout", Until: s.Expires}
	switch {
	case s.Status == flow.RequiresAcceptance:
		h.Ends, h.Until = "acceptanceTimeout", s.AcceptBy
	case p.LeaveQueueBy != 0:
		h.Ends, h.Until = "offlineGrace", c.wall(p.LeaveQueueBy)
	}
	return h
}

func (c *Cell) gameHolds(m *flow.Membership) Holding {
	x := c.flow.Instances.Get(m.InstanceRef())
	h := Holding{Key: "GAME_INSTANCE_ID", By: "gi-" + x.ID.String(), Status: x.Status.String() + ", " + m.Status.String()}
	for _, end := range []struct {
		why string
		at  domain.ContactTime
	}{
		{"allocationTimeout", x.AllocateBy}, {"endingGrace", x.EndBy}, {"the end of the hold on the seat", m.HoldBy}, {"absoluteTimeout", x.AbsoluteBy},
	} {
		if end.at != 0 {
			h.Ends, h.Until = end.why, c.wall(end.at)
			break
		}
	}
	if x.Suspect != 0 {
		h.Status += ", the host is suspected to be lost"
		h.Ends, h.Until = "the host's return or its end", 0
	}
	return h
}

// QueueView is a queue that players may enter.
type QueueView struct {
	Name               string
	Open               bool
	PartyMax           int
	AcceptanceRequired bool
	Reconnect          flow.Reconnect
	EstimatedSeconds   int32 // 0: not known
}

// FlowQueues lists the queues that players may enter, in the order of their names.
func (v *View) FlowQueues(now domain.Time) (all []QueueView) {
	v.sawAll()
	c := v.c
	for _, x := range v.Configurations("", "", 1<<20) {
		settings, ok := c.flowConfig.Queue(x.Name)
		if !ok || x.Standalone {
			continue
		}
		q := QueueView{
			Name: x.Name, Open: !c.flow.Closed(x.Name), PartyMax: c.partyMax(&x, &settings), AcceptanceRequired: x.AcceptanceRequired,
			Reconnect: c.flowConfig.RulesOf(x.Name).Reconnect,
		}
		q.EstimatedSeconds, _ = c.matchmaking.EstimatedWait(x.Name, now)
		all = append(all, q)
	}
	return all
}

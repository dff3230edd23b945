package inspection

import (
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
)

// Holding is a record that keeps a player in a party, search or game, or from logging in or searching, and what will end that.
type Holding struct {
	Key    string      // PARTY_ID, MATCHMAKING_ID, GAME_INSTANCE_ID; or LOGIN, LOCK, BANNED
	By     string      // the party, ticket or game instance
	Status string      // of the record, or of the player in it
	Ends   string      // what will end it first; empty: only a call can
	Until  domain.Time // when that happens; 0: unknown, because it depends on a call
}

// first sets a deadline as the end, if it is the earliest so far.
func (h *Holding) first(why string, at domain.Time) {
	if at != 0 && (h.Until == 0 || at < h.Until) {
		h.Ends, h.Until = why, at
	}
}

// ExplainStuck explains what holds a player, and which deadline will release the player.
func (v *View) ExplainStuck(player string, now domain.Time) (all []Holding, known bool) {
	v.SawAll()
	r, ok := v.c.Flow.Player(player)
	if !ok {
		return nil, false
	}
	c, p := v.c, v.c.Flow.Players.Get(r)
	if p.Membership() != 0 {
		all = append(all, c.gameHolds(c.Flow.Memberships.Get(p.Membership())))
	}
	if party, ok := c.Flow.Party(p.Keys.Party); ok {
		if view := c.PartyView(party); view.Search != nil {
			all = append(all, c.searchHolds(view.Search, &view.Party))
		}
		all = append(all, c.partyHolds(c.Flow.Parties.Get(party), p))
	}
	if p.FlapUntil > now {
		all = append(all, Holding{Key: "LOGIN", By: "LOGIN_FLAPPING", Ends: "its time", Until: p.FlapUntil})
	}
	for _, lock := range c.Locks(p, now) {
		all = append(all, Holding{Key: "LOCK", By: lock.Kind.String(), Ends: "its time", Until: lock.Until})
	}
	if p.Banned {
		all = append(all, Holding{Key: "BANNED"})
	}
	return all, true
}

// partyHolds explains why a player is in a party: no deadline ends that while a member is online.
func (c *Inspection) partyHolds(x *flow.Party, p *flow.Player) Holding {
	h := Holding{Key: "PARTY_ID", By: x.ID.String(), Status: p.Presence.String()}
	if p.RemoveBy != 0 {
		h.first("offlineRemoval", c.WallTime(p.RemoveBy))
	}
	if x.StaleBy != 0 {
		h.first("staleExpiration", c.WallTime(x.StaleBy))
	}
	if h.Ends == "" && !p.Keys.Game.IsZero() {
		h.Ends = "the end of the game, and then offlineRemoval or staleExpiration"
	}
	return h
}

// searchHolds explains why a party is in matchmaking. Any member who stays away ends its search.
func (c *Inspection) searchHolds(s *flow.Search, x *flow.Party) Holding {
	h := Holding{Key: "MATCHMAKING_ID", By: s.Ticket.String(), Status: s.Status.String()}
	if len(s.HeldBy) > 0 {
		h.Status += " by " + strings.Join(s.HeldBy, ", ")
	}
	h.first("the ticket's timeout", s.Expires)
	if s.Status == flow.RequiresAcceptance {
		h.first("acceptanceTimeout", s.AcceptBy)
		return h
	}
	for _, m := range x.Members {
		r, ok := c.Flow.Player(m.Player)
		if !ok {
			continue
		}
		switch member := c.Flow.Players.Get(r); {
		case member.LeaveQueueBy != 0:
			h.first("offlineGrace", c.WallTime(member.LeaveQueueBy))
		case member.Presence == flow.Unknown:
			h.first("restartGrace, and then offlineGrace", c.WallTime(member.PresenceBy))
		}
	}
	return h
}

// gameHolds explains why a player is in a game.
func (c *Inspection) gameHolds(m *flow.Membership) Holding {
	x := c.Flow.Instances.Get(m.InstanceRef())
	h := Holding{Key: "GAME_INSTANCE_ID", By: x.ID.String(), Status: x.Status.String() + ", " + m.Status.String()}
	if x.Suspect != 0 {
		h.Status += ", the host is suspected to be lost"
		h.Ends = "the host's return or its end"
		if at := c.hostLostBy(x); at != 0 {
			h.first("linkGrace (the host is given up)", c.WallTime(at))
		}
		return h
	}
	for _, end := range []struct {
		why string
		at  domain.ContactTime
	}{
		{"allocationTimeout", x.AllocateBy}, {"endingGrace", x.EndBy}, {"the end of the hold on the seat", m.HoldBy}, {"absoluteTimeout", x.AbsoluteBy},
		{"reservationTimeout", c.reservedUntil(m)},
	} {
		if end.at != 0 {
			h.first(end.why, c.WallTime(end.at))
		}
	}
	if h.Ends == "reservationTimeout" && x.Rules.Reconnect != flow.ReconnectOff {
		h.Ends = "reservationTimeout, and then the hold on the seat"
	}
	if h.Ends == "" {
		h.Ends = "the end of the game"
	}
	return h
}

// reservedUntil returns when an open reservation of a membership ends; 0 if there is none.
func (c *Inspection) reservedUntil(m *flow.Membership) domain.ContactTime {
	if m.Status != flow.MemberReserved {
		return 0
	}
	r, ok := c.hosting.FindPlayer(m.Session)
	if !ok {
		return 0
	}
	return c.hosting.PlayerSession(r).ReserveBy
}

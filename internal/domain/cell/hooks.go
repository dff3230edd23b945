package cell

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/membership"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/session"
)

// hooks connects hosting's hooks with matchmaking and player flow. If both take part, the order of the calls matters.
type hooks struct {
	matchmaking *matchmaking.Tx
	playerflow  *playerflow.Tx
}

var _ hosting.Hooks = (*hooks)(nil)

func (h *hooks) MayBeForeign(field string, i int, player string) error {
	return h.playerflow.Matches.MayBeForeign(field, i, player)
}

func (h *hooks) Awaited(game session.GameRef, but []string) int32 {
	return h.playerflow.Awaited(game, but)
}

func (h *hooks) ReservationFor(placement string) time.Duration {
	return h.playerflow.Games.ReservationFor(placement)
}

func (h *hooks) SeatTaken(player string, id domain.PlayerSessionID) {
	h.playerflow.Memberships.SeatTaken(player, id)
}

func (h *hooks) SeatEnding(player string, id domain.PlayerSessionID) (last bool) {
	return h.playerflow.Memberships.SeatEnding(player, id)
}

func (h *hooks) SeatEnded(e hosting.SeatEnd) {
	if e.Status == session.TimedOut {
		h.playerflow.Memberships.SeatTimedOut(e.Player, e.Session)
	} else {
		h.playerflow.Memberships.SeatCompleted(e.Player, e.Session, e.Last)
	}
	h.matchmaking.PlayerLeft(e.Game)
}

func (h *hooks) HostChanged(process fleet.Key) { h.playerflow.Games.HostChanged(process) }

func (h *hooks) GameTerminating(id session.ID) { h.playerflow.Games.HostTerminating(id) }

func (h *hooks) GameEnding(r session.GameRef, cause session.EndCause) {
	h.playerflow.Games.HostEnding(r, cause)
}

func (h *hooks) GameEmptied(id session.ID) { h.matchmaking.BackfillLost(id) }

func (h *hooks) PlacementEnded(id string, status placement.Status) {
	h.matchmaking.MatchPlaced(id, status)
	if status != placement.Fulfilled {
		h.playerflow.Games.NotPlaced(id, status)
	}
}

func (h *hooks) Placed(id string, game session.ID) { h.playerflow.Games.Placed(id, game) }

func (h *hooks) KeptSeat(player string) session.SeatRef { return h.playerflow.KeptSeat(player) }

func (h *hooks) GameGone(id session.ID) { h.matchmaking.GameGone(id) }

// holders are the rooms whose records name the node that holds a connection.
type holders struct{ c *Cell }

var _ membership.Hooks = (*holders)(nil)

func (h *holders) Graces(now domain.ContactTime) (links, players domain.ContactTime) {
	return now.Add(h.c.config.Hosting.LinkGrace), now.Add(h.c.playerflow.Config.Sessions.RestartGrace)
}

func (h *holders) Links(node uint32) uint32 { return h.c.hosting.Links(node) }

// NodeLost changes hosting first, because player flow checks which hosts are still connected.
func (h *holders) NodeLost(e *membership.NodeLost) {
	h.c.hosting.NodeLost(e.Node, e.LostBy)
	h.c.playerflow.NodeLost(e.Node, e.PresenceBy, e.Now)
}

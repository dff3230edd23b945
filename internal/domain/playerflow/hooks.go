package playerflow

import (
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/session"
)

// The part of matchmaking.Hooks that only renames operations of the room. Package cell does the same for hosting's hooks.

// Awaited returns how many seats of a game session are promised to members of its game instance who wait for Game.Ready, apart
// from the players in `but`, who get theirs now.
func (c *State) Awaited(game session.GameRef, but []string) int32 {
	r, ok := c.Flow.InstanceOfGame(string(c.hosting.Game(game).ID))
	if !ok {
		return 0
	}
	n := c.unseated(r, game)
	for _, player := range but {
		if m, ok := c.memberIn(r, player); ok && c.waitsForSeat(c.Flow.Memberships.Get(m), game) {
			n--
		}
	}
	return n
}

// PromisedSeats returns how many seats of a game session are promised to members of its game instance who hold none yet.
func (c *State) PromisedSeats(game session.GameRef) (n int32, known bool) {
	r, ok := c.Flow.InstanceOfGame(string(c.hosting.Game(game).ID))
	if !ok {
		return 0, false
	}
	return c.unseated(r, game), true
}

// KeptSeats returns how many seats of a game session belong to absent members of its game instance who may never come.
func (c *State) KeptSeats(game session.GameRef) int32 {
	r, ok := c.Flow.InstanceOfGame(string(c.hosting.Game(game).ID))
	if !ok {
		return 0
	}
	return c.keptSeats(r, game)
}

// PlaysIn reports whether a player is in the game instance of a game session.
func (t *Matches) PlaysIn(game, player string) (yes, known bool) {
	r, ok := t.Flow.InstanceOfGame(game)
	return ok && t.backfills.playsIn(r, player), ok
}

// Regions returns the wanted order of locations for the game session of a match.
func (t *Matches) Regions(match string) []string {
	r, ok := t.Flow.InstanceOfPlacement(match)
	if !ok {
		return nil
	}
	return t.advices.regions(r)
}

// BackfillBegun tells the server that a backfill of its game instance has begun.
func (t *Matches) BackfillBegun(x *matchmaking.Ticket) {
	t.tellBackfill(x, flow.OnGameInstanceEnteredMatchmaking, "")
}

// BackfillEnded tells the server that a backfill of its game instance has ended.
func (t *Matches) BackfillEnded(x *matchmaking.Ticket, matched bool, why matchmaking.Reason) {
	reason := backfillMatched
	if !matched {
		reason = backfillReason(why)
	}
	t.tellBackfill(x, flow.OnGameInstanceLeftMatchmaking, reason)
}

// RenewBackfill removes players who have left from an open backfill made by Game.EnterMatchmaking.
func (t *Matches) RenewBackfill(open matchmaking.TicketRef) (done bool) {
	if t.matchmaking.Ticket(open).Owner != matchmaking.InstanceOwned {
		return false
	}
	t.backfills.renew(open)
	return true
}

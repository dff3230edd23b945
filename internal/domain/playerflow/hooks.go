package playerflow

import (
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/session"
)

// What matchmaking asks and tells player flow (matchmaking.Hooks), as far as it is no more than another name for what the room
// does anyway. What hosting asks and tells has no other place than package cell.

// Awaited is how many seats of a game session are promised to members of its game instance who wait for Game.Ready, beside
// those who are to get one now.
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

// PromisedSeats is how many seats of a game session belong to members of its game instance who hold none yet.
func (c *State) PromisedSeats(game session.GameRef) (n int32, known bool) {
	r, ok := c.Flow.InstanceOfGame(string(c.hosting.Game(game).ID))
	if !ok {
		return 0, false
	}
	return c.unseated(r, game), true
}

// KeptSeats is how many seats of a game session belong to members of its game instance who are not there and may never come.
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

// Regions is the order of locations that is wanted for the game session of a match.
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

// RenewBackfill takes players who have left out of an open backfill that Game.EnterMatchmaking has made.
func (t *Matches) RenewBackfill(open matchmaking.TicketRef) (done bool) {
	if t.matchmaking.Ticket(open).Owner != matchmaking.InstanceOwned {
		return false
	}
	t.backfills.renew(open)
	return true
}

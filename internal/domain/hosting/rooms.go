package hosting

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// This file has hosting's operations for other rooms. Each of them declares the part that it needs as an interface. Records are
// read-only, and a pointer is valid until the next event.

// FindGame finds a game session in memory.
func (c *State) FindGame(id session.ID) (session.GameRef, bool) { return c.Sessions.Game(id) }

// Game returns a game session.
func (c *State) Game(r session.GameRef) *session.GameSession { return c.Sessions.Games.Get(r) }

// FindPlayer finds a player session in memory.
func (c *State) FindPlayer(id domain.PlayerSessionID) (session.PlayerRef, bool) {
	return c.Sessions.PlayerByID(id)
}

// PlayerSession returns a player session.
func (c *State) PlayerSession(r session.PlayerRef) *session.PlayerSession {
	return c.Sessions.Players.Get(r)
}

// PlayersNamed yields the player sessions of a player in memory.
func (c *State) PlayersNamed(player string, yield func(session.PlayerRef, *session.PlayerSession) bool) {
	c.Sessions.PlayersNamed(player, yield)
}

// FindProcess finds a server process.
func (c *State) FindProcess(key fleet.Key) (fleet.ProcessRef, bool) { return c.Fleets.Process(key) }

// Process returns a server process.
func (c *State) Process(r fleet.ProcessRef) *fleet.Process { return c.Fleets.Processes.Get(r) }

// HasCertificate reports whether a compute was registered with a certificate, so that its game servers use TLS.
func (c *State) HasCertificate(fleetID, compute string) bool {
	r, ok := c.Fleets.Compute(fleetID, compute)
	return ok && c.compute(r).CertificatePath != ""
}

// FindPlacement finds a placement in memory.
func (c *State) FindPlacement(id string) (placement.Ref, bool) { return c.Placements.Placement(id) }

// Placement returns a placement.
func (c *State) Placement(r placement.Ref) *placement.Placement {
	return c.Placements.Placements.Get(r)
}

// FindQueue finds a queue.
func (c *State) FindQueue(name string) (placement.QueueRef, bool) { return c.Placements.Queue(name) }

// Queue returns a queue.
func (c *State) Queue(r placement.QueueRef) *placement.Queue { return c.Placements.Queues.Get(r) }

// ReservationTime returns how long a seat waits for its player.
func (c *State) ReservationTime() time.Duration { return c.Config.Reservation }

// PlayersMax returns the greatest MaximumPlayerSessionCount.
func (c *State) PlayersMax() int32 { return c.Config.PlayersInGameMax }

// CheckPlacement completes a placement and refuses one that must not begin. The calling room has generated its id, which is new.
func (t *Tx) CheckPlacement(p *placement.Placement) error {
	cmd := StartPlacement{Placement: *p}
	cmd.ArchivedAt = t.Forgotten()
	err := cmd.check(t)
	*p = cmd.Placement
	return err
}

// BeginPlacement starts a placement that was checked in the same transaction.
func (t *Tx) BeginPlacement(p *placement.Placement) {
	p.No = t.placementNo + 1
	t.Emit(&PlacementStarted{*p})
	made, _ := t.Placements.Placement(p.ID)
	t.dirty = append(t.dirty, made)
}

// StopPlacement cancels a pending placement.
func (t *Tx) StopPlacement(id string) {
	if r, ok := t.Placements.Placement(id); ok && t.Placement(r).Status == placement.Pending {
		t.endPlacement(r, placement.Cancelled)
	}
}

// TerminateGame asks the server process of a game session to end, unless it was asked before.
func (t *Tx) TerminateGame(id session.ID) {
	r, ok := t.Sessions.Game(id)
	if !ok {
		return
	}
	if g := t.Game(r); g.Live() && g.Status != session.Terminating {
		p := fleet.ProcessRef(g.Process)
		t.Emit(&GameSessionTerminating{id})
		t.askTermination(p, fleet.EndedForced)
	}
}

// Reserve reserves a seat for a player.
func (t *Tx) Reserve(r session.Reservation) {
	t.Emit(&PlayerReserved{
		PlayerSession: r.PlayerSession, GameSession: r.Game, Player: r.Player, Data: r.Data, ReserveBy: r.By, Maker: r.Maker, Kept: r.Kept,
	})
}

// EndSeat ends a player session without calling SeatEnded.
func (t *Tx) EndSeat(id domain.PlayerSessionID, status session.PlayerStatus) {
	t.Emit(&PlayerEnded{id, status})
}

// WrapData replaces the PlayerData of a player session.
func (t *Tx) WrapData(id domain.PlayerSessionID, data string) { t.Emit(&PlayerDataWrapped{id, data}) }

// SetMatchmakerData replaces the matchmaker data of a game session.
func (t *Tx) SetMatchmakerData(id session.ID, data string) { t.Emit(&GameSessionMatched{id, data}) }

// Other rooms call these while they apply events of their own.

// KeepSeat holds the seat of a player session after the session ends.
func (c *State) KeepSeat(player session.PlayerRef) (seat session.SeatRef) {
	return c.Sessions.Keep(player)
}

// KeepEmptySeat holds a seat without a player session.
func (c *State) KeepEmptySeat(game session.GameRef) (seat session.SeatRef) {
	return c.Sessions.KeepEmpty(game)
}

// ReleaseSeat stops holding a seat.
func (c *State) ReleaseSeat(seat session.SeatRef) {
	game := c.Sessions.Seats.Get(seat).Game
	c.Sessions.Release(seat)
	c.Sessions.Games.Mut(game).Changed = c.Touch()
}

// ShareSeat puts a player session on the seat of another one.
func (c *State) ShareSeat(player, with session.PlayerRef) { c.Sessions.Share(player, with) }

// DelayPlacement moves the timeout of a pending placement.
func (c *State) DelayPlacement(id string, by domain.Time) {
	r, ok := c.Placements.Placement(id)
	if !ok || c.Placements.Placements.Get(r).Status != placement.Pending {
		return
	}
	c.changePlacement(id, func(p *placement.Placement) { p.TimeoutAt += by })
	c.Waiting.SetWall(PlacementTimeout, r.Any(), c.Placement(r).TimeoutAt)
}

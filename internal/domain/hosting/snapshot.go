package hosting

import (
	"fmt"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/domain/wire"
)

// Freeze returns the room's part of a snapshot.
func (c *State) Freeze(h *kernel.Head) []kernel.Frozen {
	games, players := c.Sessions.Games.Freeze(), c.Sessions.Players.Freeze()
	h.EventNo, h.PlacementNo = c.eventNo, c.placementNo
	h.Games, h.Players = int64(games.Len()), int64(players.Len())
	return []kernel.Frozen{
		kernel.Freeze(partLocation, c.Fleets.Locations),
		kernel.Freeze(partFleet, c.Fleets.Fleets),
		kernel.Freeze(partCompute, c.Fleets.Computes),
		kernel.Freeze(partProcess, c.Fleets.Processes),
		kernel.Freeze(partEvent, c.Fleets.Events),
		kernel.Freeze(partCreation, c.Fleets.Creations),
		kernel.Freeze(partAlias, c.Fleets.Aliases),
		kernel.Freeze(partBuild, c.Fleets.Builds),
		kernel.Freeze(partRollout, c.Fleets.Rollouts),
		func(w *kernel.PartWriter) {
			var game session.GameSession // copies that serve all records, as in kernel.Freeze
			var player session.PlayerSession
			for _, g := range games.All() {
				game = *g
				w.Part(partGame, &game)
				for r := g.FirstPlayer(); r != 0; r = player.NextInGame() {
					player = *players.Get(r)
					w.Part(partPlayer, &player)
				}
			}
		},
		kernel.Freeze(partQueue, c.Placements.Queues),
		kernel.Freeze(partPlacement, c.Placements.Placements),
	}
}

// Field numbers of message SnapshotPart in proto/journal.proto.
const (
	partLocation  = 2
	partFleet     = 3
	partCompute   = 4
	partProcess   = 5
	partEvent     = 6
	partCreation  = 7
	partGame      = 8 // followed by its player sessions
	partPlayer    = 9 // of the game session before it
	partAlias     = 11
	partBuild     = 12
	partQueue     = 16
	partPlacement = 17
	partRollout   = 95
)

// roomMax bounds the player sessions for which memory is allocated in advance, because the count comes from the file.
const roomMax = 1 << 21

func (c *State) Load(l *kernel.Loader, kind uint64, body []byte) (known bool, err error) {
	f := c.Fleets
	switch kind {
	case partLocation:
		err = kernel.LoadInto(l, body, f.Locations)
	case partFleet:
		err = kernel.LoadInto(l, body, f.Fleets)
	case partCompute:
		err = kernel.LoadInto(l, body, f.Computes)
	case partProcess:
		err = kernel.LoadInto(l, body, f.Processes)
	case partEvent:
		err = kernel.LoadInto(l, body, f.Events)
	case partCreation:
		err = kernel.LoadInto(l, body, f.Creations)
	case partAlias:
		err = kernel.LoadInto(l, body, f.Aliases)
	case partBuild:
		err = kernel.LoadInto(l, body, f.Builds)
	case partRollout:
		err = kernel.LoadInto(l, body, f.Rollouts)
	case partGame:
		if c.Sessions.Games.Len() == 0 {
			c.Sessions.RestorePlayers(int(min(max(l.Head.Players, 0), roomMax)))
		}
		err = kernel.LoadWith(l, body, func(g session.GameSession) { c.restoring = c.Sessions.AddGame(g) })
	case partPlayer:
		if c.restoring == 0 {
			return true, fmt.Errorf("snapshot has a player session before any game session: %w", wire.ErrMalformed)
		}
		p := session.PlayerSession{Game: c.restoring}
		err = l.Reader.Read(body, &p)
		c.Sessions.RestorePlayer(p)
	case partQueue:
		err = kernel.LoadWith(l, body, c.Placements.PutQueue)
	case partPlacement:
		err = kernel.LoadWith(l, body, func(p placement.Placement) { c.Placements.Add(p) })
	default:
		return false, nil
	}
	return true, err
}

// Restore rebuilds the data that snapshots omit.
func (c *State) Restore(h *kernel.Head) error {
	if got := int64(c.Sessions.Players.Len()); got != h.Players {
		return fmt.Errorf("snapshot holds %d player sessions, want %d: %w", got, h.Players, wire.ErrMalformed)
	}
	if err := c.Fleets.Restore(); err != nil {
		return fmt.Errorf("snapshot: %w: %w", err, wire.ErrMalformed)
	}
	c.eventNo, c.placementNo = h.EventNo, h.PlacementNo
	for r, g := range c.Sessions.Games.All() {
		if g.Live() {
			p, ok := c.Fleets.Process(fleet.Key{Fleet: g.FleetID, Compute: g.ComputeName, Process: g.ProcessID})
			if !ok {
				return fmt.Errorf("snapshot: game session %s has no server process: %w", g.ID, wire.ErrMalformed)
			}
			c.Sessions.Games.Mut(r).Process = p.Any()
			x := c.Fleets.Processes.Mut(p)
			x.Session, x.Activating = r.Any(), g.Status == session.Activating
			c.Fleets.Reindex(p)
			c.Waiting.Set(Activation, r.Any(), g.ActivateBy)
		}
	}
	c.restoreDeadlines()
	return nil
}

func (c *State) restoreDeadlines() {
	c.Waiting.Expect(c.Sessions.Players.Len())
	for r, p := range c.Sessions.Players.All() {
		c.Waiting.Set(Reservation, r.Any(), p.ReserveBy)
	}
	c.Waiting.Expect(0)
	for r, p := range c.Fleets.Processes.All() {
		c.Waiting.Set(Ready, r.Any(), p.ReadyBy)
		c.Waiting.Set(Lost, r.Any(), p.LostBy)
		c.Waiting.Set(Unhealthy, r.Any(), p.UnhealthyBy)
		c.Waiting.Set(Termination, r.Any(), p.TerminateBy)
		if p.State == fleet.Ended {
			c.Waiting.SetWall(ForgetProcess, r.Any(), p.ForgetAt)
		}
	}
	for r, x := range c.Fleets.Creations.All() {
		c.Waiting.SetWall(Creation, r.Any(), x.Until)
	}
	for r, p := range c.Placements.Placements.All() {
		if p.Status == placement.Pending {
			c.Waiting.SetWall(PlacementTimeout, r.Any(), p.TimeoutAt)
			c.placementNo = max(c.placementNo, p.No) // older snapshots do not have it
		}
	}
	for r, x := range c.Fleets.Rollouts.All() {
		c.Waiting.Set(RolloutStep, r.Any(), x.StepBy)
		c.summon(r)
	}
	c.findMoving()
	for r, f := range c.Fleets.Fleets.All() {
		if f.Sweeps() {
			c.Waiting.SetWall(Sweep, r.Any(), kernel.AtOnce)
		}
	}
}

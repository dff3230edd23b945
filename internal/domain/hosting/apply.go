package hosting

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/session"
)

func (c *State) Apply(at domain.Time, event kernel.Event) {
	c.Tx().AtEnd(Room) // places may have become free
	if len(c.moving) > 0 {
		c.countForRollouts(at, event)
		defer c.summonRollouts()
	}
	switch e := event.(type) {
	case *Resumed:
		c.applyResumed(e)
	case *LocationChanged:
		c.applyLocation(e)
	case *LocationRemoved:
		r, _ := c.Fleets.Location(e.Name)
		c.Fleets.RemoveLocation(r)
		c.Touch()
	case *FleetChanged:
		c.applyFleet(e)
	case *FleetRemoved:
		r, _ := c.Fleets.Fleet(e.ID)
		c.Waiting.Clear(Sweep, r.Any())
		c.Fleets.RemoveFleet(r)
		c.Touch()
	case *ComputeRegistered:
		c.applyCompute(e)
	case *ComputeRemoved:
		c.applyComputeRemoved(e)
	case *TokenIssued:
		r, _ := c.Fleets.Compute(e.Fleet, e.Compute)
		x := c.Fleets.Computes.Mut(r)
		x.TokenGeneration, x.TokenExpires, x.PreviousExpires, x.TokensVoid = e.Generation, e.Expires, e.PreviousExpires, e.Void
		x.Changed = c.Touch()
	case *FleetEventWritten:
		c.eventNo = e.Event.No
		x := e.Event
		x.Changed = c.Touch()
		if e.Replaces != 0 {
			c.Fleets.RemoveEvent(x.FleetID, e.Replaces)
		}
		c.Fleets.AddEvent(x)
	case *CreationCounted:
		x := e.Creation
		x.Changed = c.Touch()
		c.Waiting.SetWall(Creation, c.Fleets.AddCreation(x).Any(), x.Until)
	case *CreationsForgotten:
		for d, ok := c.Waiting.NextWall(); ok && d.At <= int64(at) && d.Kind == Creation; d, ok = c.Waiting.NextWall() {
			c.Waiting.Clear(Creation, d.Ref)
			c.Fleets.RemoveCreation(fleet.CreationRef(d.Ref))
		}
	case *RolloutChanged, *RolloutTurnTaken, *LaunchFailed:
		c.applyRollout(event)
	case *AliasChanged, *AliasRemoved, *BuildChanged, *BuildStored, *BuildFailed, *BuildRemoved:
		c.applyCatalog(event)
	case *ProcessConnected, *ProcessLinkLost, *ProcessActivated, *ProcessHealthChanged, *ProcessSettled, *ProcessRefreshing,
		*ProcessTerminationAsked, *ProcessDied, *ProcessEnded, *ProcessForgotten:
		c.applyProcess(at, event)
	case *GameSessionCreated:
		c.applyGameCreated(at, e)
	case *GameSessionPrompted, *GameSessionActivated, *GameSessionChanged, *GameSessionTerminating, *GameSessionEnded:
		c.applyGame(at, event)
	case *PlayerReserved:
		game, _ := c.Sessions.Game(e.GameSession)
		p := session.PlayerSession{
			ID: e.PlayerSession, Player: e.Player, Data: e.Data, Game: game,
			Created: at, ReserveBy: e.ReserveBy, Status: session.Reserved, Maker: e.Maker, Holder: e.Holder, Changed: c.Touch(),
		}
		var r session.PlayerRef
		if seat := c.keptSeat(e); seat != 0 {
			r = c.Sessions.ReserveOn(seat, p)
		} else {
			r = c.Sessions.Reserve(p)
		}
		c.Sessions.Games.Mut(game).Changed = c.Number()
		c.Waiting.Set(Reservation, r.Any(), e.ReserveBy)
	case *PlayerAccepted:
		r, _ := c.Sessions.PlayerByID(e.PlayerSession)
		c.Sessions.AcceptPlayer(r, e.Request)
		p := c.Sessions.Players.Mut(r)
		p.Accepted, p.Changed = at, c.Touch()
		c.Waiting.Clear(Reservation, r.Any())
	case *GameSessionMatched:
		r, _ := c.Sessions.Game(e.ID)
		g := c.Sessions.Games.Mut(r)
		g.MatchmakerData, g.Changed = e.MatchmakerData, c.Touch()
	case *PlayerDataWrapped:
		r, _ := c.Sessions.PlayerByID(e.PlayerSession)
		c.Sessions.SetPlayerData(r, e.Data).Changed = c.Touch()
	case *PlayerEnded:
		r, _ := c.Sessions.PlayerByID(e.PlayerSession)
		c.Sessions.EndPlayer(r, at, e.Status, c.Ended.Next())
		c.ended(endedPlayer, r.Any())
		p := c.Sessions.Players.Mut(r)
		p.Changed = c.Touch()
		c.Sessions.Games.Mut(p.Game).Changed = c.Number()
		c.Waiting.Clear(Reservation, r.Any())
	case *QueueChanged, *QueueRemoved, *PlacementStarted, *PlacementRetried, *PlacementPassed, *PlacementEnded:
		c.applyPlacement(at, event)
	}
}

// keptSeat returns the seat that is held for the player of a reservation, or that an older player session of the player still occupies; 0 for none.
func (c *State) keptSeat(e *PlayerReserved) session.SeatRef {
	if !e.Kept || c.hooks == nil {
		return 0
	}
	return c.hooks.KeptSeat(e.Player)
}

// applyResumed moves the contact clock by the downtime and counts connections as lost from now on, so those processes have to connect again. In a
// cluster, connections to nodes that are present stay. After a pause all connections stay, because they were open all the time. A process that was
// already reconnecting gets a new grace period, too, because its next attempt may be half a minute ahead.
func (c *State) applyResumed(e *Resumed) {
	c.AddDowntime(domain.Time(e.Downtime))
	for r, p := range c.Fleets.Processes.All() {
		held := p.Linked && (e.Paused || e.Held && c.nodes.Present(p.Node))
		if !held && (p.Linked || p.LostBy != 0) {
			c.unlink(r, e.LostBy)
		}
	}
	for r, p := range c.Sessions.Players.All() {
		if p.Status == session.Reserved && p.ReserveBy < e.SeatsBy {
			x := c.Sessions.Players.Mut(r)
			x.ReserveBy, x.Changed = e.SeatsBy, c.Number()
			c.Waiting.Set(Reservation, r.Any(), e.SeatsBy)
		}
	}
	c.Touch()
}

func (c *State) applyLocation(e *LocationChanged) {
	l := e.Location
	l.Changed = c.Touch()
	if r, ok := c.Fleets.Location(l.Name); ok {
		*c.Fleets.Locations.Mut(r) = l
		return
	}
	c.Fleets.AddLocation(l)
}

func (c *State) applyFleet(e *FleetChanged) {
	f := e.Fleet
	f.Changed = c.Touch()
	r, ok := c.Fleets.Fleet(f.ID)
	if !ok {
		c.Fleets.AddFleet(f)
		return
	}
	c.Fleets.ChangeFleet(r, f)
	if f.Sweeps() {
		c.Waiting.SetWall(Sweep, r.Any(), kernel.AtOnce)
	} else {
		c.Waiting.Clear(Sweep, r.Any())
	}
}

func (c *State) applyCompute(e *ComputeRegistered) {
	is := e.Compute
	is.Changed = c.Touch()
	if r, ok := c.Fleets.Compute(is.FleetID, is.Name); ok {
		x := c.Fleets.Computes.Mut(r)
		x.IPAddress, x.DNSName, x.CertificatePath = is.IPAddress, is.DNSName, is.CertificatePath
		x.Changed = c.Number()
		c.Fleets.SetComputeTags(r, is.Tags)
		return
	}
	f, _ := c.Fleets.Fleet(is.FleetID)
	is.Fleet, is.FleetID = f, c.fleet(f).ID
	c.Fleets.AddCompute(is)
}

func (c *State) applyComputeRemoved(e *ComputeRemoved) {
	r, _ := c.Fleets.Compute(e.Fleet, e.Name)
	c.Fleets.ProcessesOn(r, func(p fleet.ProcessRef, _ *fleet.Process) bool {
		c.clearProcess(p)
		c.Waiting.Clear(ForgetProcess, p.Any())
		return true
	})
	c.Fleets.RemoveCompute(r)
	c.Touch()
}

func (c *State) applyGameCreated(at domain.Time, e *GameSessionCreated) {
	p, _ := c.Fleets.Process(e.Process)
	process := c.Process(p)
	compute := c.compute(process.Compute)
	f := c.fleet(compute.Fleet)
	port := process.Port
	location := process.Location
	holder := e.Holder
	if r, ok := c.Placements.Placement(e.Placement); ok && e.Placement != "" && c.Level() >= quota.Level {
		p := c.Placement(r)
		holder = quota.HolderOf(p.Holder, p.Maker)
	}
	g := c.Sessions.AddGame(session.GameSession{
		ID: e.ID, FleetID: f.ID, Location: location, Region: f.Region, Account: f.Account,
		Name: e.Name, Data: e.Data, MatchmakerData: e.MatchmakerData, Properties: e.Properties, Creator: e.Creator, Holder: holder,
		ComputeName: compute.Name, ProcessID: process.Key.Process, IPAddress: compute.IPAddress, DNSName: compute.DNSName, Port: port,
		PlayersMax: e.PlayersMax, Status: session.Activating, FullProtection: e.FullProtection,
		Created: at, ActivateBy: e.ActivateBy, Process: p.Any(), Placement: e.Placement, Parameters: e.Parameters, Changed: c.Touch(),
	})
	x := c.Fleets.Processes.Mut(p)
	x.Session, x.Activating, x.HadSession, x.Game, x.Changed = g.Any(), true, true, string(e.ID), c.Number()
	c.Fleets.Reindex(p)
	c.Waiting.Set(Activation, g.Any(), e.ActivateBy)
	if e.Placement != "" {
		c.applyPlaced(at, e.Placement, c.Game(g))
	}
}

func (c *State) applyGame(at domain.Time, event kernel.Event) {
	change := func(id session.ID, f func(*session.GameSession)) session.GameRef {
		r, _ := c.Sessions.Game(id)
		c.Sessions.ChangeGame(r, f)
		c.Sessions.Games.Mut(r).Changed = c.Touch()
		return r
	}
	switch e := event.(type) {
	case *GameSessionPrompted:
		change(e.ID, func(g *session.GameSession) { g.Prompted, g.PromptedAt = true, at })
	case *GameSessionActivated:
		r := change(e.ID, func(g *session.GameSession) { g.Status, g.ActivateBy, g.ActivatedAt = session.Active, 0, at })
		c.activated(r)
	case *GameSessionChanged:
		change(e.ID, func(g *session.GameSession) {
			g.Name, g.PlayersMax, g.DenyPlayers, g.FullProtection = e.Name, e.PlayersMax, e.DenyPlayers, e.FullProtection
			g.Properties, g.Policy = e.Properties, e.Policy
		})
	case *GameSessionTerminating:
		r := change(e.ID, func(g *session.GameSession) { g.Status, g.ActivateBy, g.TerminatingAt = session.Terminating, 0, at })
		c.activated(r)
	case *GameSessionEnded:
		r, _ := c.Sessions.Game(e.ID)
		p := fleet.ProcessRef(c.Game(r).Process)
		c.Sessions.EndGame(r, at, e.Reason, c.Ended.Next())
		c.ended(endedGame, r.Any())
		g := c.Sessions.Games.Mut(r)
		g.Cause, g.Changed = e.Cause, c.Touch()
		if c.hooks != nil {
			c.hooks.GameGone(e.ID)
		}
		c.Waiting.Clear(Activation, r.Any())
		if p != 0 {
			x := c.Fleets.Processes.Mut(p)
			x.Session, x.Activating, x.Changed = 0, false, c.Number()
			c.Fleets.Reindex(p)
		}
	}
}

// activated makes the compute of a game session that has left ACTIVATING available for the next activation.
func (c *State) activated(r session.GameRef) {
	c.Waiting.Clear(Activation, r.Any())
	p := fleet.ProcessRef(c.Game(r).Process)
	c.Fleets.Processes.Mut(p).Activating = false
	c.Fleets.Reindex(p)
}

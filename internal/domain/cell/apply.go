package cell

import (
	"fmt"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/session"
)

// apply folds a fact into the state. It never fails: the thing has happened. It is the only code that writes state.
func (c *Cell) apply(at domain.Time, event Event) {
	c.last = max(c.last, at)
	switch e := event.(type) {
	case *Ticked:
	case *Resumed:
		c.applyResumed(e)
	case *LocationChanged:
		c.applyLocation(e)
	case *LocationRemoved:
		r, _ := c.fleets.Location(e.Name)
		c.fleets.RemoveLocation(r)
		c.touch()
	case *FleetChanged:
		c.applyFleet(e)
	case *FleetRemoved:
		r, _ := c.fleets.Fleet(e.ID)
		c.waiting.clear(sweep, r)
		c.fleets.RemoveFleet(r)
		c.touch()
	case *ComputeRegistered:
		c.applyCompute(e)
	case *ComputeRemoved:
		c.applyComputeRemoved(e)
	case *TokenIssued:
		r, _ := c.fleets.Compute(e.Fleet, e.Compute)
		x := c.fleets.Computes.Mut(r)
		x.TokenGeneration, x.TokenExpires, x.PreviousExpires, x.TokensVoid = e.Generation, e.Expires, e.PreviousExpires, e.Void
		x.Changed = c.touch()
	case *FleetEventWritten:
		c.eventNo = e.Event.No
		x := e.Event
		x.Changed = c.touch()
		c.fleets.AddEvent(x)
	case *CreationCounted:
		x := e.Creation
		x.Changed = c.touch()
		c.waiting.setWall(creation, c.fleets.AddCreation(x), x.Until)
	case *CreationsForgotten:
		for d, ok := c.waiting.wall.next(); ok && d.at <= int64(at) && d.kind == creation; d, ok = c.waiting.wall.next() {
			c.waiting.clear(creation, d.ref)
			c.fleets.RemoveCreation(d.ref)
		}
	case *AliasChanged, *AliasRemoved, *BuildChanged, *BuildRemoved:
		c.applyCatalog(event)
	case *GameServerGroupChanged, *GameServerGroupRemoved, *GameServerChanged, *GameServerRemoved:
		c.applyGameServer(event)
	case *ProcessConnected, *ProcessLinkLost, *ProcessActivated, *ProcessHealthChanged, *ProcessSettled, *ProcessRefreshing,
		*ProcessTerminationAsked, *ProcessEnded, *ProcessForgotten:
		c.applyProcess(at, event)
	case *GameSessionCreated:
		c.applyGameCreated(at, e)
	case *GameSessionPrompted, *GameSessionActivated, *GameSessionChanged, *GameSessionTerminating, *GameSessionEnded:
		c.applyGame(at, event)
	case *PlayerReserved:
		game, _ := c.sessions.Game(e.GameSession)
		p := session.PlayerSession{
			ID: e.PlayerSession, Player: e.Player, Data: e.Data, Game: game,
			Created: at, ReserveBy: e.ReserveBy, Status: session.Reserved, Maker: e.Maker, Changed: c.touch(),
		}
		var r session.Ref
		if seat := c.seatOf(e.Player); e.Kept && seat != 0 {
			r = c.sessions.ReserveOn(seat, p)
		} else {
			r = c.sessions.Reserve(p)
		}
		c.sessions.Games.Mut(game).Changed = c.number
		c.waiting.set(reservation, r, e.ReserveBy)
	case *PlayerAccepted:
		r, _ := c.sessions.PlayerByID(e.PlayerSession)
		c.sessions.AcceptPlayer(r, e.Request)
		p := c.sessions.Players.Mut(r)
		p.Accepted, p.Changed = at, c.touch()
		c.waiting.clear(reservation, r)
	case *PlayerDataWrapped:
		r, _ := c.sessions.PlayerByID(e.PlayerSession)
		c.sessions.SetPlayerData(r, e.Data).Changed = c.touch()
	case *PlayerEnded:
		r, _ := c.sessions.PlayerByID(e.PlayerSession)
		c.sessions.EndPlayer(r, at, e.Status, c.ended.next())
		c.ended.push(endedPlayer, r)
		p := c.sessions.Players.Mut(r)
		p.Changed = c.touch()
		c.sessions.Games.Mut(p.Game).Changed = c.number
		c.waiting.clear(reservation, r)
	case *Forgotten:
		c.forget(int(e.Count))
		c.touch()
	case *QueueChanged, *QueueRemoved, *PlacementStarted, *PlacementRetried, *PlacementPassed, *PlacementEnded:
		c.applyPlacement(at, event)
	case *RuleSetChanged, *RuleSetRemoved, *ConfigurationChanged, *ConfigurationRemoved:
		c.applyMatchmaker(event)
	case *TicketStarted, *TicketsSearching, *TicketEnded:
		c.applyTicket(at, event)
	case *MatchProposed, *PlayersAnswered, *MatchAccepted, *MatchDropped, *MatchCompleted:
		c.applyMatch(at, event)
	case *HostedChanged, *HostedTold, *GameSessionMatched:
		c.applyHosted(event)
	case *NoticeWritten, *NoticesDelivered, *NoticesDropped, *SubscriptionConfirmed:
		c.applyNotice(at, event)
	case *PlayerKeysChanged, *PlayerLoggedIn, *LoginChanged, *LoginRemoved, *PresenceChanged, *FlowResumed,
		*PlayersTold, *EventsTrimmed, *RequestAnswered, *PlayerChanged, *PlayerForgotten, *PartyChanged, *PartyRemoved,
		*InviteChanged, *InviteRemoved, *GameInstanceChanged, *GameInstanceForgotten, *MembershipChanged, *MembershipEnded, *FlowCommitted,
		*LoginTicketChanged, *LoginTicketRemoved, *FlowQueueChanged, *FlowConfigChanged, *PlayersAwaited:
		c.applyFlow(at, event)
	case *SearchAdvised, *SearchAdviceDropped:
		c.applyAdvice(event)
	case *GameInstanceTold, *EventsSubscribed, *EventsUnsubscribed, *EventsTaken, *SubscriptionLapsed:
		c.applyFeed(at, event)
	case *AccessKeysTakenOver, *AccessKeyCreated, *AccessKeyRevoked, *AccessKeysForgotten:
		c.applyAccess(event)
	case *LossAccepted:
		c.applyLoss(e)
	default:
		panic(fmt.Sprintf("no apply for %T", event))
	}
}

// applyResumed moves the contact clock by the time the service was down, and takes every link as lost from now: what was
// connected then has to come back. So has what was already on its way back: its next attempt may lie half a minute
// ahead, whatever was left of its grace.
func (c *Cell) applyResumed(e *Resumed) {
	c.downtime += domain.Time(e.Downtime)
	for r, p := range c.fleets.Processes.All() {
		if p.Linked || p.LostBy != 0 {
			c.unlink(r, e.LostBy)
		}
	}
	for r, p := range c.sessions.Players.All() {
		if p.Status == session.Reserved && p.ReserveBy < e.SeatsBy {
			x := c.sessions.Players.Mut(r)
			x.ReserveBy, x.Changed = e.SeatsBy, c.number
			c.waiting.set(reservation, r, e.SeatsBy)
		}
	}
	c.touch()
}

func (c *Cell) applyLocation(e *LocationChanged) {
	l := e.Location
	l.Changed = c.touch()
	if r, ok := c.fleets.Location(l.Name); ok {
		*c.fleets.Locations.Mut(r) = l
		return
	}
	c.fleets.AddLocation(l)
}

func (c *Cell) applyFleet(e *FleetChanged) {
	f := e.Fleet
	f.Changed = c.touch()
	r, ok := c.fleets.Fleet(f.ID)
	if !ok {
		c.fleets.AddFleet(f)
		return
	}
	c.fleets.ChangeFleet(r, f)
	if mustSweep(&f) {
		c.waiting.setWall(sweep, r, sweepAt)
	} else {
		c.waiting.clear(sweep, r)
	}
}

// mustSweep reports whether something of the fleet is being deleted.
func mustSweep(f *fleet.Fleet) bool {
	for _, l := range f.Locations {
		if l.Status == fleet.Deleting {
			return true
		}
	}
	return f.Status == fleet.Deleting
}

func (c *Cell) applyCompute(e *ComputeRegistered) {
	is := e.Compute
	is.Changed = c.touch()
	if r, ok := c.fleets.Compute(is.FleetID, is.Name); ok {
		x := c.fleets.Computes.Mut(r)
		x.IPAddress, x.DNSName, x.CertificatePath = is.IPAddress, is.DNSName, is.CertificatePath
		x.Changed = c.number
		c.fleets.SetComputeTags(r, is.Tags)
		return
	}
	f, _ := c.fleets.Fleet(is.FleetID)
	is.Fleet, is.FleetID = f, c.fleets.Fleets.Get(f).ID
	c.fleets.AddCompute(is)
}

func (c *Cell) applyComputeRemoved(e *ComputeRemoved) {
	r, _ := c.fleets.Compute(e.Fleet, e.Name)
	c.fleets.ProcessesOn(r, func(p fleet.Ref, _ *fleet.Process) bool {
		c.waiting.clearProcess(p)
		c.waiting.clear(forgetProcess, p)
		return true
	})
	c.fleets.RemoveCompute(r)
	c.touch()
}

func (c *Cell) applyGameCreated(at domain.Time, e *GameSessionCreated) {
	p, _ := c.fleets.Process(e.Process)
	process := c.fleets.Processes.Get(p)
	compute := c.fleets.Computes.Get(process.Compute)
	f := c.fleets.Fleets.Get(compute.Fleet)
	port := process.Port
	location := process.Location
	g := c.sessions.AddGame(session.GameSession{
		ID: e.ID, FleetID: f.ID, Location: location, Region: f.Region, Account: f.Account,
		Name: e.Name, Data: e.Data, MatchmakerData: e.MatchmakerData, Properties: e.Properties, Creator: e.Creator,
		ComputeName: compute.Name, ProcessID: process.Key.Process, IPAddress: compute.IPAddress, DNSName: compute.DNSName, Port: port,
		PlayersMax: e.PlayersMax, Status: session.Activating, FullProtection: e.FullProtection,
		Created: at, ActivateBy: e.ActivateBy, Process: p, Placement: e.Placement, Parameters: e.Parameters, Changed: c.touch(),
	})
	x := c.fleets.Processes.Mut(p)
	x.Session, x.Activating, x.HadSession, x.Game, x.Changed = g, true, true, string(e.ID), c.number
	c.fleets.Reindex(p)
	c.waiting.set(activation, g, e.ActivateBy)
	if e.Placement != "" {
		c.applyPlaced(at, e.Placement, c.sessions.Games.Get(g))
	}
}

func (c *Cell) applyGame(at domain.Time, event Event) {
	change := func(id session.ID, f func(*session.GameSession)) session.Ref {
		r, _ := c.sessions.Game(id)
		c.sessions.ChangeGame(r, f)
		c.sessions.Games.Mut(r).Changed = c.touch()
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
		r, _ := c.sessions.Game(e.ID)
		p := c.sessions.Games.Get(r).Process
		c.sessions.EndGame(r, at, e.Reason, c.ended.next())
		c.ended.push(endedGame, r)
		g := c.sessions.Games.Mut(r)
		g.Cause, g.Changed = e.Cause, c.touch()
		c.matchmaking.RemoveHosted(string(e.ID))
		c.waiting.clear(activation, r)
		if p != 0 {
			x := c.fleets.Processes.Mut(p)
			x.Session, x.Activating, x.Changed = 0, false, c.number
			c.fleets.Reindex(p)
		}
	}
}

// activated notes that a game session no longer waits for its server: its compute may begin another one.
func (c *Cell) activated(r session.Ref) {
	c.waiting.clear(activation, r)
	p := c.sessions.Games.Get(r).Process
	c.fleets.Processes.Mut(p).Activating = false
	c.fleets.Reindex(p)
}

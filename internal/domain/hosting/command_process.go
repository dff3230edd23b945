package hosting

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

// ConnectProcess says that a server process has opened a connection, authenticated for its compute.
type ConnectProcess struct {
	Process fleet.Key
	Link    uint64 // a number that no other connection of the cell has
	SDK     string
	Token   uint32 // generation of the compute's auth token that it showed; 0: it signed

	// Result: the process as it is now. State Ended means that the key belongs to a process that has ended: a new one
	// begins when ActivateProcess is the first request, anything else is a survivor.
	Found fleet.Process
}

func (cmd *ConnectProcess) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	c := t.State
	_, x, err := t.computeByName(cmd.Process.Fleet, cmd.Process.Compute)
	if err != nil {
		return err
	}
	r, known := c.Fleets.Process(cmd.Process)
	switch {
	case !known && int(x.Processes) >= c.Config.ProcessesOnComputeMax:
		return domain.Refuse(domain.LimitExceeded, "compute %s has %d processes; the limit is %d", x.Name, x.Processes, c.Config.ProcessesOnComputeMax)
	case known && c.Fleets.Processes.Get(r).State == fleet.Ended:
		cmd.Found = *c.Fleets.Processes.Get(r)
		return nil
	}
	e := &ProcessConnected{Process: cmd.Process, Link: cmd.Link, SDK: cmd.SDK, New: !known}
	if !known {
		e.ReadyBy, e.Token = t.Contact.Add(c.Config.ReadyTimeout), cmd.Token
	}
	t.Emit(e)
	t.hostChanged(cmd.Process)
	r, _ = c.Fleets.Process(cmd.Process)
	cmd.Found = *c.Fleets.Processes.Get(r)
	return nil
}

// LoseLink says that a process's connection is gone. It is ignored when the process has opened another one since.
type LoseLink struct {
	Process fleet.Key
	Link    uint64
}

func (cmd *LoseLink) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, ok := t.Fleets.Process(cmd.Process)
	if !ok {
		return nil
	}
	if p := t.Fleets.Processes.Get(r); p.Linked && p.Link == cmd.Link && p.State != fleet.Ended {
		t.Emit(&ProcessLinkLost{cmd.Process, t.Contact.Add(t.Config.LinkGrace)})
		t.hostChanged(cmd.Process)
	}
	return nil
}

// ActivateProcess says that a process is ready to host a game session (ActivateServerProcess).
type ActivateProcess struct {
	Process   fleet.Key
	Link      uint64
	Port      uint16
	LogPaths  []string
	SDK, Tool string
	Request   uint64

	// Result: Repeated when this very request was carried out before.
	Repeated bool
}

func (cmd *ActivateProcess) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, ok := t.Fleets.Process(cmd.Process)
	if !ok {
		return domain.Refuse(domain.NotFound, "server process %s not found", cmd.Process.Process)
	}
	p := t.Fleets.Processes.Get(r)
	if p.Activation == cmd.Request {
		cmd.Repeated = true
		return nil
	}
	if p.State == fleet.ProcessReady && (p.HadSession || p.TerminateBy != 0) {
		// A process hosts one game session in its life, and does not get ready after it was told to end: this is another
		// one that took the id.
		t.endProcess(r, fleet.EndedReplaced, 0)
		p = t.Fleets.Processes.Get(r)
	}
	t.Emit(&ProcessActivated{
		Process: cmd.Process, Link: cmd.Link, Port: cmd.Port, LogPaths: cmd.LogPaths, SDK: cmd.SDK, Tool: cmd.Tool,
		Request: cmd.Request, New: p.State == fleet.Ended, UnhealthyBy: t.Contact.Add(t.Config.UnhealthyAfter),
	})
	return nil
}

// ReportHealth says what a process's heartbeats say, when that has changed. Silence is unhealthy too.
type ReportHealth struct {
	Process     fleet.Key
	Healthy     bool
	LastHealthy domain.Time // last good heartbeat, or when its silence began to count; with !Healthy
}

func (cmd *ReportHealth) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, ok := t.Fleets.Process(cmd.Process)
	if !ok {
		return nil
	}
	p := t.Fleets.Processes.Get(r)
	health := fleet.Unhealthy
	if cmd.Healthy {
		health = fleet.Healthy
	}
	if p.State != fleet.ProcessReady || p.Health == health {
		return nil
	}
	e := &ProcessHealthChanged{Process: cmd.Process, Health: health}
	if !cmd.Healthy && p.TerminateBy == 0 {
		e.UnhealthyBy = t.ContactTime(cmd.LastHealthy).Add(t.Config.UnhealthyAfter)
	}
	t.Emit(e)
	t.hostChanged(cmd.Process)
	return nil
}

// SettleProcess says that a process has been ready for a while and no heartbeat has come: its health callback is slow.
type SettleProcess struct{ Process fleet.Key }

func (cmd *SettleProcess) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, ok := t.Fleets.Process(cmd.Process)
	if !ok {
		return nil
	}
	if p := t.Fleets.Processes.Get(r); p.State == fleet.ProcessReady && p.Health == fleet.Unheard && !p.Settled {
		t.Emit(&ProcessSettled{cmd.Process})
	}
	return nil
}

// RefreshProcess says that a process is about to be told to open another connection (RefreshConnection), or, without Begin,
// that it has changed over or will not. In between it gets no game session: SDKs do not read or write for some seconds while
// they change over. It is refused for a process whose game session is not active yet.
type RefreshProcess struct {
	Process fleet.Key
	Begin   bool
}

func (cmd *RefreshProcess) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, ok := t.Fleets.Process(cmd.Process)
	if !ok {
		return nil
	}
	switch p := t.Fleets.Processes.Get(r); {
	case p.Refreshing == cmd.Begin || cmd.Begin && !p.Linked:
		return nil
	case cmd.Begin && p.Activating:
		return domain.Refuse(domain.Conflict, "server process %s is starting game session %s", cmd.Process.Process, p.Game)
	}
	t.Emit(&ProcessRefreshing{cmd.Process, cmd.Begin})
	t.hostChanged(cmd.Process)
	return nil
}

// PromptGameSession says that a process is about to be told of its game session. Only after it succeeded may the first
// byte be written; it succeeds once.
type PromptGameSession struct {
	Process fleet.Key
	Game    session.ID

	// Result
	Prompted session.GameSession
}

func (cmd *PromptGameSession) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, g, err := t.Hosted(cmd.Process, cmd.Game)
	switch {
	case err != nil:
		return err
	case g.Prompted:
		return domain.Refuse(domain.Conflict, "server process %s was told of game session %s already", cmd.Process.Process, cmd.Game)
	case g.Status != session.Activating:
		return domain.Refuse(domain.WrongGameStatus, "game session %s is %s", cmd.Game, g.Status)
	}
	t.Emit(&GameSessionPrompted{cmd.Game})
	cmd.Prompted = *t.Sessions.Games.Get(r)
	return nil
}

// Hosted finds a game session that this process hosts or hosted.
func (t *Tx) Hosted(key fleet.Key, id session.ID) (session.Ref, *session.GameSession, error) {
	r, g, err := t.gameByID(id)
	if err == nil && (g.ProcessID != key.Process || g.ComputeName != key.Compute || g.FleetID != key.Fleet) {
		err = domain.Refuse(domain.NotYours, "game session %s is not hosted by server process %s", id, key.Process)
	}
	return r, g, err
}

// ActivateGameSession says that the server has loaded the game and players may come.
type ActivateGameSession struct {
	Process fleet.Key
	Game    session.ID
}

func (cmd *ActivateGameSession) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	_, g, err := t.Hosted(cmd.Process, cmd.Game)
	switch {
	case err != nil:
		return err
	case g.Status == session.Active:
		return nil // a repeat
	case g.Status != session.Activating:
		return domain.Refuse(domain.WrongGameStatus, "game session %s is %s; only an ACTIVATING one can be activated", g.ID, g.Status)
	}
	t.Emit(&GameSessionActivated{g.ID})
	t.fulfilPlacement(cmd.Game)
	return nil
}

// SetPlayerPolicy says whether a game session takes new players (UpdatePlayerSessionCreationPolicy).
type SetPlayerPolicy struct {
	Process fleet.Key
	Game    session.ID
	Deny    bool
	Request uint64
}

func (cmd *SetPlayerPolicy) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	_, g, err := t.Hosted(cmd.Process, cmd.Game)
	switch {
	case err != nil:
		return err
	case !g.Live():
		return domain.Refuse(domain.WrongGameStatus, "game session %s is %s", g.ID, g.Status)
	case g.Policy == cmd.Request:
		return nil // a repeat must not undo what was set since
	}
	e := changedFrom(g)
	e.DenyPlayers, e.Policy = cmd.Deny, cmd.Request
	t.Emit(e)
	return nil
}

// AcceptPlayer says that a player has connected to the game server with a player session.
type AcceptPlayer struct {
	Process fleet.Key
	Game    session.ID
	Player  domain.UUID
	Request uint64
}

func (cmd *AcceptPlayer) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	p, err := t.playerIn(cmd.Process, cmd.Game, cmd.Player)
	switch {
	case err != nil:
		return err
	case p.Accept == cmd.Request:
		return nil // a repeat
	case p.Status != session.Reserved:
		return domain.Refuse(domain.WrongPlayerState, "PlayerSession (psess-%s) has a status of %s instead of RESERVED", p.ID, p.Status)
	}
	t.Accept(p, cmd.Request)
	return nil
}

// Accept marks a player session as connected, with what follows from it.
func (t *Tx) Accept(p *session.PlayerSession, request uint64) {
	player, id := p.Player, p.ID
	t.Emit(&PlayerAccepted{id, request})
	if t.hooks != nil {
		t.hooks.SeatTaken(player, id)
	}
}

// RemovePlayer says that a player has left the game server.
type RemovePlayer struct {
	Process fleet.Key
	Game    session.ID
	Player  domain.UUID
}

func (cmd *RemovePlayer) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	p, err := t.playerIn(cmd.Process, cmd.Game, cmd.Player)
	switch {
	case err != nil:
		return err
	case p.Status == session.Completed:
		return nil // a repeat
	case !p.Status.Live():
		return domain.Refuse(domain.WrongPlayerState, "PlayerSession (psess-%s) has a status of %s", p.ID, p.Status)
	}
	t.endSeat(p, session.Completed)
	return nil
}

// playerIn finds a player session of a game session that this process hosts or hosted.
func (t *Tx) playerIn(key fleet.Key, game session.ID, id domain.UUID) (*session.PlayerSession, error) {
	g, _, err := t.Hosted(key, game)
	if err != nil {
		return nil, err
	}
	r, ok := t.Sessions.PlayerByID(id)
	if !ok {
		return nil, domain.Refuse(domain.NotFound, "PlayerSession (psess-%s) not found", id)
	}
	p := t.Sessions.Players.Get(r)
	if p.Game != g {
		return nil, domain.Refuse(domain.NotFound, "PlayerSession (psess-%s) is not one of game session %s", id, game)
	}
	return p, nil
}

// EndProcess says that a process ends in good order (TerminateServerProcess).
type EndProcess struct {
	Process fleet.Key
	Request uint64
}

func (cmd *EndProcess) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, ok := t.Fleets.Process(cmd.Process)
	if !ok {
		return domain.Refuse(domain.NotFound, "server process %s not found", cmd.Process.Process)
	}
	// A repeat that comes when another process has the id already must not end that one.
	if p := t.Fleets.Processes.Get(r); p.State != fleet.Ended && p.Ending != cmd.Request {
		t.endProcess(r, fleet.EndedNormally, cmd.Request)
	}
	return nil
}

// endCauses is what the end of a process means for the game session that it hosts.
var endCauses = [...]session.EndCause{
	fleet.EndedNormally: session.EndedByServer, fleet.EndedCrashed: session.EndedByCrash, fleet.EndedReplaced: session.EndedByReplacement,
	fleet.EndedUnhealthy: session.EndedUnhealthy, fleet.EndedForced: session.EndedByForce, fleet.EndedWithCompute: session.EndedWithCompute,
	fleet.EndedActivationLate: session.EndedNotActivated,
}

// endProcess ends a process and its game session, and writes it to the fleet's event log when it is no normal end.
func (t *Tx) endProcess(r fleet.Ref, reason fleet.EndReason, request uint64) {
	c := t.State
	if g := c.Fleets.Processes.Get(r).Session; g != 0 {
		status := session.NoReason
		if c.Sessions.Games.Get(g).Status == session.Terminating {
			status = session.TriggeredOnProcessTerminate
		}
		t.endGame(g, status, endCauses[reason])
	}
	p := c.Fleets.Processes.Get(r)
	fleetID, who := p.Key.Fleet, describeProcess(p)
	t.Emit(&ProcessEnded{p.Key, reason, request, t.Now.Add(c.Config.EndedKept)})
	switch reason {
	case fleet.EndedCrashed:
		t.fleetEvent(fleetID, "SERVER_PROCESS_CRASHED", "Server "+who+" ended without ProcessEnding")
	case fleet.EndedReplaced:
		t.fleetEvent(fleetID, "SERVER_PROCESS_CRASHED", "Server "+who+" was replaced by another one with the same process id")
	case fleet.EndedNeverReady:
		t.fleetEvent(fleetID, "SERVER_PROCESS_PROCESS_READY_TIMEOUT", "Server "+who+" did not call ProcessReady in time")
	}
}

// askTermination tells a process to end.
func (t *Tx) askTermination(r fleet.Ref, why fleet.EndReason) {
	p := t.Fleets.Processes.Get(r)
	if p.TerminateBy != 0 || p.State == fleet.Ended {
		return
	}
	grace := t.Config.TerminateGrace
	t.Emit(&ProcessTerminationAsked{p.Key, t.Contact.Add(grace), t.Now.Add(grace), why})
}

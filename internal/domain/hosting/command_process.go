package hosting

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

// ConnectProcess records that a server process has opened a connection that is authenticated for its compute.
type ConnectProcess struct {
	Process fleet.Key
	Link    uint64 // unique among all connections of the cell
	SDK     string
	Token   uint32      // generation of the compute's auth token that it presented; 0: it used a signature instead
	Node    domain.UUID // the node that has the connection; zero: a single node

	// Result: the process. State Ended means that the key belongs to a process that has ended. If the first request on the connection is
	// ActivateProcess, a new process begins; any other request shows that the ended process has survived.
	Found fleet.Process
}

func (cmd *ConnectProcess) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	c := t.State
	_, x, err := t.computeByName(cmd.Process.Fleet, cmd.Process.Compute)
	if err != nil {
		return err
	}
	node, err := t.nodes.Holder(cmd.Node)
	if err != nil {
		return err
	}
	r, known := c.Fleets.Process(cmd.Process)
	switch {
	case !known && int(x.Processes) >= c.Config.ProcessesOnComputeMax:
		return domain.Refuse(domain.LimitExceeded, "compute %s has %d processes; the limit is %d", x.Name, x.Processes, c.Config.ProcessesOnComputeMax)
	case known && c.Process(r).State == fleet.Ended:
		cmd.Found = *c.Process(r)
		return nil
	}
	e := &ProcessConnected{Process: cmd.Process, Link: cmd.Link, SDK: cmd.SDK, New: !known, Node: node}
	if !known {
		e.ReadyBy, e.Token = t.Contact.Add(c.Config.ReadyTimeout), cmd.Token
	}
	t.Emit(e)
	t.hostChanged(cmd.Process)
	r, _ = c.Fleets.Process(cmd.Process)
	cmd.Found = *c.Process(r)
	return nil
}

// LoseLink records the loss of a process's connection. It is ignored if the process has opened another one since.
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
	if p := t.Process(r); p.Linked && p.Link == cmd.Link && p.State != fleet.Ended {
		t.Emit(&ProcessLinkLost{cmd.Process, t.Contact.Add(t.Config.LinkGrace)})
		t.hostChanged(cmd.Process)
	}
	return nil
}

// ActivateProcess records that a process is ready to host a game session (ActivateServerProcess).
type ActivateProcess struct {
	Process   fleet.Key
	Link      uint64
	Port      uint16
	LogPaths  []string
	SDK, Tool string
	Request   uint64
	Node      domain.UUID // see ConnectProcess

	// Result: whether this very request was already executed.
	Repeated bool
}

func (cmd *ActivateProcess) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, ok := t.Fleets.Process(cmd.Process)
	if !ok {
		return domain.Refuse(domain.NotFound, "server process %s not found", cmd.Process.Process)
	}
	node, err := t.nodes.Holder(cmd.Node)
	if err != nil {
		return err
	}
	p := t.Process(r)
	if p.Activation == cmd.Request {
		cmd.Repeated = true
		return nil
	}
	if p.State == fleet.ProcessReady && (p.HadSession || p.TerminateBy != 0) {
		// A process hosts one game session in its life and does not become ready after it was asked to end, so this is another process
		// with the same id.
		t.endProcess(r, fleet.EndedReplaced, 0)
		p = t.Process(r)
	}
	e := &ProcessActivated{
		Process: cmd.Process, Link: cmd.Link, Port: cmd.Port, LogPaths: cmd.LogPaths, SDK: cmd.SDK, Tool: cmd.Tool,
		Request: cmd.Request, New: p.State == fleet.Ended, UnhealthyBy: t.Contact.Add(t.Config.UnhealthyAfter),
	}
	if e.New {
		e.Node = node
	}
	t.Emit(e)
	return nil
}

// ReportHealth records a change of a process's health, as reported by its heartbeats. A process without heartbeats is unhealthy, too.
type ReportHealth struct {
	Process     fleet.Key
	Healthy     bool
	LastHealthy domain.Time // with !Healthy: time of the last good heartbeat, or when the process became silent
}

func (cmd *ReportHealth) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, ok := t.Fleets.Process(cmd.Process)
	if !ok {
		return nil
	}
	p := t.Process(r)
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

// SettleProcess records that a process has been ready for a while without a heartbeat, because its health callback is slow.
type SettleProcess struct{ Process fleet.Key }

func (cmd *SettleProcess) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, ok := t.Fleets.Process(cmd.Process)
	if !ok {
		return nil
	}
	if p := t.Process(r); p.State == fleet.ProcessReady && p.Health == fleet.Unheard && !p.Settled {
		t.Emit(&ProcessSettled{cmd.Process})
	}
	return nil
}

// RefreshProcess precedes the message that asks a process to open another connection (RefreshConnection). Without Begin, it records that
// the process has switched connections or will not. In between, the process gets no game session, because SDKs neither read nor write for
// some seconds while they switch. It is refused for a process whose game session is not active yet.
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
	switch p := t.Process(r); {
	case p.Refreshing == cmd.Begin || cmd.Begin && !p.Linked:
		return nil
	case cmd.Begin && p.Activating:
		return domain.Refuse(domain.Conflict, "server process %s is starting game session %s", cmd.Process.Process, p.Game)
	}
	t.Emit(&ProcessRefreshing{cmd.Process, cmd.Begin})
	t.hostChanged(cmd.Process)
	return nil
}

// PromptGameSession precedes the message that gives a process its game session. It succeeds once, and the first byte of the message must
// not be written before that.
type PromptGameSession struct {
	Process fleet.Key
	Game    session.ID
	Link    uint64 // the connection for the message: refused if the process has another one; 0: a single node, which checks that itself

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
		return domain.Refuse(domain.Conflict, "server process %s has received game session %s already", cmd.Process.Process, cmd.Game)
	case g.Status != session.Activating:
		return domain.Refuse(domain.WrongGameStatus, "game session %s is %s", cmd.Game, g.Status)
	}
	if cmd.Link != 0 && !t.HasLink(cmd.Game, cmd.Link) {
		return domain.Refuse(domain.Conflict, "server process %s has another connection", cmd.Process.Process)
	}
	t.Emit(&GameSessionPrompted{cmd.Game})
	cmd.Prompted = *t.Game(r)
	return nil
}

// HasLink reports whether a connection is the current one of a game session's process.
func (t *Tx) HasLink(id session.ID, link uint64) bool {
	_, g, err := t.gameByID(id)
	if err != nil {
		return false
	}
	r, ok := t.Fleets.Process(fleet.Key{Fleet: g.FleetID, Compute: g.ComputeName, Process: g.ProcessID})
	return ok && t.Process(r).Linked && t.Process(r).Link == link
}

// Hosted finds a game session that the process hosts or hosted.
func (t *Tx) Hosted(key fleet.Key, id session.ID) (session.GameRef, *session.GameSession, error) {
	r, g, err := t.gameByID(id)
	if err == nil && (g.ProcessID != key.Process || g.ComputeName != key.Compute || g.FleetID != key.Fleet) {
		err = domain.Refuse(domain.NotYours, "game session %s is not hosted by server process %s", id, key.Process)
	}
	return r, g, err
}

// ActivateGameSession records that the server has loaded the game and accepts players.
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

// SetPlayerPolicy sets whether a game session accepts new players (UpdatePlayerSessionCreationPolicy).
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
		return nil // a repeat must not undo a later change
	}
	e := changedFrom(g)
	e.DenyPlayers, e.Policy = cmd.Deny, cmd.Request
	t.Emit(e)
	return nil
}

// AcceptPlayer records that a player has connected to the game server with a player session.
type AcceptPlayer struct {
	Process fleet.Key
	Game    session.ID
	Player  domain.PlayerSessionID
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
		return domain.Refuse(domain.WrongPlayerState, "PlayerSession (%s) has a status of %s instead of RESERVED", p.ID, p.Status)
	}
	t.Accept(p, cmd.Request)
	return nil
}

// Accept marks a player session as connected, and calls the hooks.
func (t *Tx) Accept(p *session.PlayerSession, request uint64) {
	player, id := p.Player, p.ID
	t.Emit(&PlayerAccepted{id, request})
	if t.hooks != nil {
		t.hooks.SeatTaken(player, id)
	}
}

// RemovePlayer records that a player has left the game server.
type RemovePlayer struct {
	Process fleet.Key
	Game    session.ID
	Player  domain.PlayerSessionID
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
		return domain.Refuse(domain.WrongPlayerState, "PlayerSession (%s) has a status of %s", p.ID, p.Status)
	}
	t.endSeat(p, session.Completed)
	return nil
}

// playerIn finds a player session of a game session that the process hosts or hosted.
func (t *Tx) playerIn(key fleet.Key, game session.ID, id domain.PlayerSessionID) (*session.PlayerSession, error) {
	g, _, err := t.Hosted(key, game)
	if err != nil {
		return nil, err
	}
	r, ok := t.Sessions.PlayerByID(id)
	if !ok {
		return nil, domain.Refuse(domain.NotFound, "PlayerSession (%s) not found", id)
	}
	p := t.PlayerSession(r)
	if p.Game != g {
		return nil, domain.Refuse(domain.NotFound, "PlayerSession (%s) is not one of game session %s", id, game)
	}
	return p, nil
}

// EndProcess records that a process ends normally (TerminateServerProcess).
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
	// A late repeat must not end another process that has since taken the id.
	if p := t.Process(r); p.State != fleet.Ended && p.Ending != cmd.Request {
		t.endProcess(r, fleet.EndedNormally, cmd.Request)
	}
	return nil
}

// endCauses maps the end of a process to the end of its game session.
var endCauses = [...]session.EndCause{
	fleet.EndedNormally: session.EndedByServer, fleet.EndedCrashed: session.EndedByCrash, fleet.EndedReplaced: session.EndedByReplacement,
	fleet.EndedUnhealthy: session.EndedUnhealthy, fleet.EndedForced: session.EndedByForce, fleet.EndedWithCompute: session.EndedWithCompute,
	fleet.EndedActivationLate: session.EndedNotActivated, fleet.EndedNeverReady: session.EndedByCrash,
}

// endProcess ends a process and its game session. An abnormal end goes to the fleet's event log.
func (t *Tx) endProcess(r fleet.ProcessRef, reason fleet.EndReason, request uint64) {
	p := t.State.Process(r)
	fleetID, who := p.Key.Fleet, describeProcess(p)
	lost := t.closeProcess(r, reason, request)
	switch reason {
	case fleet.EndedCrashed:
		t.lossEvent(fleetID, "SERVER_PROCESS_CRASHED", "Server "+who+" ended without ProcessEnding", lost)
	case fleet.EndedReplaced:
		t.lossEvent(fleetID, "SERVER_PROCESS_CRASHED", "Server "+who+" was replaced by another one with the same process id", lost)
	case fleet.EndedNeverReady:
		t.fleetEvent(fleetID, "SERVER_PROCESS_PROCESS_READY_TIMEOUT", "Server "+who+" did not call ProcessReady in time")
	}
}

// closeProcess ends a process and its game session without writing to the fleet's event log. It returns what players lost.
func (t *Tx) closeProcess(r fleet.ProcessRef, reason fleet.EndReason, request uint64) (lost loss) {
	c := t.State
	if g := session.GameRef(c.Process(r).Session); g != 0 {
		lost = loss{c.Game(g).ID, int64(c.Game(g).SeatsHeld)}
		status := session.NoReason
		if c.Game(g).Status == session.Terminating {
			status = session.TriggeredOnProcessTerminate
		}
		t.endGame(g, status, endCauses[reason])
	}
	t.Emit(&ProcessEnded{c.Process(r).Key, reason, request, t.Now.Add(c.Config.EndedKept)})
	return lost
}

// askTermination asks a process to end.
func (t *Tx) askTermination(r fleet.ProcessRef, why fleet.EndReason) {
	t.askTerminationWithin(r, why, t.Config.TerminateGrace)
}

func (t *Tx) askTerminationWithin(r fleet.ProcessRef, why fleet.EndReason, grace time.Duration) {
	p := t.Process(r)
	if p.TerminateBy != 0 || p.State == fleet.Ended {
		return
	}
	t.Emit(&ProcessTerminationAsked{p.Key, t.Contact.Add(grace), t.Now.Add(grace), why})
}

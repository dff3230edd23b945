package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/session"
)

// RequestHash makes the number under which a game server's RequestId is remembered with what it changed, so that a
// repeat gets the same answer. It is never zero (FNV-1a, 64 bits).
func RequestHash(id string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	return max(h, 1)
}

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

func (cmd *ConnectProcess) decide(t *tx) error {
	c := t.c
	_, x, err := t.computeByName(cmd.Process.Fleet, cmd.Process.Compute)
	if err != nil {
		return err
	}
	r, known := c.fleets.Process(cmd.Process)
	switch {
	case !known && int(x.Processes) >= c.config.ProcessesOnComputeMax:
		return domain.Refuse(domain.LimitExceeded, "compute %s has %d processes; the limit is %d", x.Name, x.Processes, c.config.ProcessesOnComputeMax)
	case known && c.fleets.Processes.Get(r).State == fleet.Ended:
		cmd.Found = *c.fleets.Processes.Get(r)
		return nil
	}
	e := &ProcessConnected{Process: cmd.Process, Link: cmd.Link, SDK: cmd.SDK, New: !known}
	if !known {
		e.ReadyBy, e.Token = t.contact.Add(c.config.ReadyTimeout), cmd.Token
	}
	t.emit(e)
	t.reviewHost(cmd.Process)
	r, _ = c.fleets.Process(cmd.Process)
	cmd.Found = *c.fleets.Processes.Get(r)
	return nil
}

// LoseLink says that a process's connection is gone. It is ignored when the process has opened another one since.
type LoseLink struct {
	Process fleet.Key
	Link    uint64
}

func (cmd *LoseLink) decide(t *tx) error {
	r, ok := t.c.fleets.Process(cmd.Process)
	if !ok {
		return nil
	}
	if p := t.c.fleets.Processes.Get(r); p.Linked && p.Link == cmd.Link && p.State != fleet.Ended {
		t.emit(&ProcessLinkLost{cmd.Process, t.contact.Add(t.c.config.LinkGrace)})
		t.reviewHost(cmd.Process)
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

func (cmd *ActivateProcess) decide(t *tx) error {
	r, ok := t.c.fleets.Process(cmd.Process)
	if !ok {
		return domain.Refuse(domain.NotFound, "server process %s not found", cmd.Process.Process)
	}
	p := t.c.fleets.Processes.Get(r)
	if p.Activation == cmd.Request {
		cmd.Repeated = true
		return nil
	}
	if p.State == fleet.ProcessReady && (p.HadSession || p.TerminateBy != 0) {
		// A process hosts one game session in its life, and does not get ready after it was told to end: this is another
		// one that took the id.
		t.endProcess(r, fleet.EndedReplaced, 0)
		p = t.c.fleets.Processes.Get(r)
	}
	t.emit(&ProcessActivated{
		Process: cmd.Process, Link: cmd.Link, Port: cmd.Port, LogPaths: cmd.LogPaths, SDK: cmd.SDK, Tool: cmd.Tool,
		Request: cmd.Request, New: p.State == fleet.Ended, UnhealthyBy: t.contact.Add(t.c.config.UnhealthyAfter),
	})
	return nil
}

// ReportHealth says what a process's heartbeats say, when that has changed. Silence is unhealthy too.
type ReportHealth struct {
	Process     fleet.Key
	Healthy     bool
	LastHealthy domain.Time // last good heartbeat, or when its silence began to count; with !Healthy
}

func (cmd *ReportHealth) decide(t *tx) error {
	r, ok := t.c.fleets.Process(cmd.Process)
	if !ok {
		return nil
	}
	p := t.c.fleets.Processes.Get(r)
	health := fleet.Unhealthy
	if cmd.Healthy {
		health = fleet.Healthy
	}
	if p.State != fleet.ProcessReady || p.Health == health {
		return nil
	}
	e := &ProcessHealthChanged{Process: cmd.Process, Health: health}
	if !cmd.Healthy && p.TerminateBy == 0 {
		e.UnhealthyBy = t.c.contact(cmd.LastHealthy).Add(t.c.config.UnhealthyAfter)
	}
	t.emit(e)
	t.reviewHost(cmd.Process)
	return nil
}

// SettleProcess says that a process has been ready for a while and no heartbeat has come: its health callback is slow.
type SettleProcess struct{ Process fleet.Key }

func (cmd *SettleProcess) decide(t *tx) error {
	r, ok := t.c.fleets.Process(cmd.Process)
	if !ok {
		return nil
	}
	if p := t.c.fleets.Processes.Get(r); p.State == fleet.ProcessReady && p.Health == fleet.Unheard && !p.Settled {
		t.emit(&ProcessSettled{cmd.Process})
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

func (cmd *RefreshProcess) decide(t *tx) error {
	r, ok := t.c.fleets.Process(cmd.Process)
	if !ok {
		return nil
	}
	switch p := t.c.fleets.Processes.Get(r); {
	case p.Refreshing == cmd.Begin || cmd.Begin && !p.Linked:
		return nil
	case cmd.Begin && p.Activating:
		return domain.Refuse(domain.Conflict, "server process %s is starting game session %s", cmd.Process.Process, p.Game)
	}
	t.emit(&ProcessRefreshing{cmd.Process, cmd.Begin})
	t.reviewHost(cmd.Process)
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

func (cmd *PromptGameSession) decide(t *tx) error {
	r, g, err := t.hosted(cmd.Process, cmd.Game)
	switch {
	case err != nil:
		return err
	case g.Prompted:
		return domain.Refuse(domain.Conflict, "server process %s was told of game session %s already", cmd.Process.Process, cmd.Game)
	case g.Status != session.Activating:
		return domain.Refuse(domain.WrongGameStatus, "game session %s is %s", cmd.Game, g.Status)
	}
	t.emit(&GameSessionPrompted{cmd.Game})
	cmd.Prompted = *t.c.sessions.Games.Get(r)
	return nil
}

// hosted finds a game session that this process hosts or hosted.
func (t *tx) hosted(key fleet.Key, id session.ID) (session.Ref, *session.GameSession, error) {
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

func (cmd *ActivateGameSession) decide(t *tx) error {
	_, g, err := t.hosted(cmd.Process, cmd.Game)
	switch {
	case err != nil:
		return err
	case g.Status == session.Active:
		return nil // a repeat
	case g.Status != session.Activating:
		return domain.Refuse(domain.WrongGameStatus, "game session %s is %s; only an ACTIVATING one can be activated", g.ID, g.Status)
	}
	t.emit(&GameSessionActivated{g.ID})
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

func (cmd *SetPlayerPolicy) decide(t *tx) error {
	_, g, err := t.hosted(cmd.Process, cmd.Game)
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
	t.emit(e)
	return nil
}

// AcceptPlayer says that a player has connected to the game server with a player session.
type AcceptPlayer struct {
	Process fleet.Key
	Game    session.ID
	Player  domain.UUID
	Request uint64
}

func (cmd *AcceptPlayer) decide(t *tx) error {
	p, err := t.playerIn(cmd.Process, cmd.Game, cmd.Player)
	switch {
	case err != nil:
		return err
	case p.Accept == cmd.Request:
		return nil // a repeat
	case p.Status != session.Reserved:
		return domain.Refuse(domain.WrongPlayerState, "PlayerSession (psess-%s) has a status of %s instead of RESERVED", p.ID, p.Status)
	}
	t.accept(p, cmd.Request)
	return nil
}

// RemovePlayer says that a player has left the game server.
type RemovePlayer struct {
	Process fleet.Key
	Game    session.ID
	Player  domain.UUID
}

func (cmd *RemovePlayer) decide(t *tx) error {
	p, err := t.playerIn(cmd.Process, cmd.Game, cmd.Player)
	switch {
	case err != nil:
		return err
	case p.Status == session.Completed:
		return nil // a repeat
	case !p.Status.Live():
		return domain.Refuse(domain.WrongPlayerState, "PlayerSession (psess-%s) has a status of %s", p.ID, p.Status)
	}
	player, game, last := p.Player, p.Game, t.lastReservation(p.Player, cmd.Player)
	t.emit(&PlayerEnded{cmd.Player, session.Completed})
	t.playerCompleted(player, cmd.Player, last)
	t.playerLeft(game)
	return nil
}

// playerIn finds a player session of a game session that this process hosts or hosted.
func (t *tx) playerIn(key fleet.Key, game session.ID, id domain.UUID) (*session.PlayerSession, error) {
	g, _, err := t.hosted(key, game)
	if err != nil {
		return nil, err
	}
	r, ok := t.c.sessions.PlayerByID(id)
	if !ok {
		return nil, domain.Refuse(domain.NotFound, "PlayerSession (psess-%s) not found", id)
	}
	p := t.c.sessions.Players.Get(r)
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

func (cmd *EndProcess) decide(t *tx) error {
	r, ok := t.c.fleets.Process(cmd.Process)
	if !ok {
		return domain.Refuse(domain.NotFound, "server process %s not found", cmd.Process.Process)
	}
	// A repeat that comes when another process has the id already must not end that one.
	if p := t.c.fleets.Processes.Get(r); p.State != fleet.Ended && p.Ending != cmd.Request {
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
func (t *tx) endProcess(r fleet.Ref, reason fleet.EndReason, request uint64) {
	c := t.c
	if g := c.fleets.Processes.Get(r).Session; g != 0 {
		status := session.NoReason
		if c.sessions.Games.Get(g).Status == session.Terminating {
			status = session.TriggeredOnProcessTerminate
		}
		t.endGame(g, status, endCauses[reason])
	}
	p := c.fleets.Processes.Get(r)
	fleetID, who := p.Key.Fleet, describeProcess(p)
	t.emit(&ProcessEnded{p.Key, reason, request, t.now.Add(c.config.EndedKept)})
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
func (t *tx) askTermination(r fleet.Ref, why fleet.EndReason) {
	p := t.c.fleets.Processes.Get(r)
	if p.TerminateBy != 0 || p.State == fleet.Ended {
		return
	}
	grace := t.c.config.TerminateGrace
	t.emit(&ProcessTerminationAsked{p.Key, t.contact.Add(grace), t.now.Add(grace), why})
}

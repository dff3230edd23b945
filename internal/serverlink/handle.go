package serverlink

import (
	"context"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

// Bounds of the values in ActivateServerProcess that the service stores.
const (
	portMax       = 65535
	logPathsMax   = 100
	logPathBytes  = 1024
	toolTextBytes = 128
)

// handle executes a request and answers it. docs/spec/server-sdk.md#requests.
func (l *link) handle(ctx context.Context, r *request) {
	b := newFrame()
	began, outcome := time.Now(), callstats.OK
	ctx, span := l.beginRequest(ctx, r)
	defer func() {
		l.process.server.calls.Done(r.action, outcome, began)
		span.End(outcome)
	}()
	var err error
	if r.action != actActivateServerProcess && r.action != actHeartbeatServerProcess && l.process.endedHint() && l.evict() &&
		r.action != actTerminateServerProcess {
		outcome = callstats.Refused
		*b = appendFailure(*b, r, 400, "server process "+l.process.key.Process+" has ended")
		l.reply(b)
		return
	}
	switch r.action {
	case actHeartbeatServerProcess:
		putFrame(b)
		l.heartbeat(r)
		return
	case actDescribePlayerSessions:
		*b, err = l.describePlayers(ctx, *b, r)
	case actStartMatchBackfill:
		var ticket string
		if ticket, err = l.startBackfill(ctx, r); err == nil {
			*b = appendTicket(*b, r, ticket)
		}
	case actGetComputeCertificate:
		*b, err = l.certificate(ctx, *b, r)
	case actGetFleetRoleCredentials:
		*b = appendNoCredentials(*b, r)
	default:
		err = l.change(ctx, r)
		if err == nil {
			*b = appendOK(*b, r)
		}
	}
	if err != nil {
		status, message := answerStatus(err)
		outcome = callstats.OfStatus(status)
		if status == 500 {
			l.process.server.log.Error("a game server's request failed", "process", l.process.key, "action", r.action, "request", r.id, "error", err)
		}
		*b = appendFailure((*b)[:headRoom], r, status, message)
	}
	l.reply(b)
}

// change executes a request that changes state and is answered with the envelope only.
func (l *link) change(ctx context.Context, r *request) error {
	p := l.process
	s := p.server
	switch r.action {
	case actActivateServerProcess:
		return l.activate(ctx, r)
	case actActivateGameSession:
		return s.engine.Do(ctx, &hosting.ActivateGameSession{Process: p.key, Game: gameID(r.gameSession)})
	case actUpdatePlayerSessionCreationPolicy:
		if r.policy != "ACCEPT_ALL" && r.policy != "DENY_ALL" {
			return domain.Refuse(domain.Invalid, "PlayerSessionPolicy is %.40q, must be ACCEPT_ALL or DENY_ALL", r.policy)
		}
		return s.engine.Do(ctx, &hosting.SetPlayerPolicy{
			Process: p.key, Game: gameID(r.gameSession), Deny: r.policy == "DENY_ALL", Request: kernel.RequestHash(r.id),
		})
	case actAcceptPlayerSession:
		id, err := playerID(r.playerSession)
		if err != nil {
			return err
		}
		request := kernel.RequestHash(r.id)
		err = s.engine.Do(ctx, &hosting.AcceptPlayer{Process: p.key, Game: gameID(r.gameSession), Player: id, Request: request})
		return l.ifArchived(ctx, err, gameID(r.gameSession), id, func(old *hosting.PlayerSession) error {
			if old.Accept == request {
				return nil // a repeat of a request that was already answered with 200
			}
			return domain.Refuse(domain.WrongPlayerState, "PlayerSession (%s) has a status of %s instead of RESERVED", id, old.Status)
		})
	case actRemovePlayerSession:
		id, err := playerID(r.playerSession)
		if err != nil {
			return err
		}
		err = s.engine.Do(ctx, &hosting.RemovePlayer{Process: p.key, Game: gameID(r.gameSession), Player: id})
		return l.ifArchived(ctx, err, gameID(r.gameSession), id, func(old *hosting.PlayerSession) error {
			if old.Status == session.Completed {
				return nil
			}
			return domain.Refuse(domain.WrongPlayerState, "PlayerSession (%s) has a status of %s", id, old.Status)
		})
	case actTerminateServerProcess:
		return s.engine.Do(ctx, &hosting.EndProcess{Process: p.key, Request: kernel.RequestHash(r.id)})
	case actStopMatchBackfill:
		return l.stopBackfill(ctx, r)
	}
	return domain.Refuse(domain.Invalid, "%s: no request of this version of Muster", r.action)
}

func (l *link) activate(ctx context.Context, r *request) error {
	p := l.process
	s := p.server
	if r.port < 0 || r.port > portMax {
		return domain.Refuse(domain.Invalid, "Port is %d, must be 0 to %d", r.port, portMax)
	}
	if len(r.logPaths) > logPathsMax {
		return domain.Refuse(domain.Invalid, "LogPaths has %d entries, at most %d are kept", len(r.logPaths), logPathsMax)
	}
	for i, path := range r.logPaths {
		if len(path) > logPathBytes {
			return domain.Refuse(domain.Invalid, "LogPaths[%d] has %d bytes, at most %d are kept", i, len(path), logPathBytes)
		}
	}
	cmd := hosting.ActivateProcess{
		Process: p.key, Link: l.id, Node: l.node, Port: uint16(r.port), LogPaths: r.logPaths, Request: kernel.RequestHash(r.id),
		Tool: strings.TrimSpace(cut(r.toolName, toolTextBytes) + " " + cut(r.toolVersion, sdkText)),
	}
	if r.sdkLanguage != "" {
		cmd.SDK = cut(r.sdkLanguage, sdkText) + " " + cut(r.sdkVersion, sdkText)
	}
	if err := s.engine.Do(ctx, &cmd); err != nil || cmd.Repeated {
		return err
	}
	// A process that begins here has sent no heartbeats. Only the core knows whether this is a new process on an old
	// connection.
	return p.look(func(now fleet.Process, ok bool) {
		if !ok {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.know(now, true)
		l.evicted, l.endBy = false, 0
		if now.Link == l.id && p.current != l {
			p.makeCurrent(l)
		}
	})
}

// look reads the process from the core. The core's state does not change until take returns, so if two connections of a
// process copy state concurrently, they do so in the order of the changes. take may lock p.mu; callers of look must not hold
// it.
func (p *process) look(take func(now fleet.Process, ok bool)) error {
	return p.server.engine.Read(p.server.ctx, func(v *cell.View) error {
		take(v.Process(p.key))
		return nil
	})
}

// ifArchived handles a player session that has left memory since it ended.
func (l *link) ifArchived(ctx context.Context, err error, game session.ID, id domain.PlayerSessionID, decide func(*hosting.PlayerSession) error) error {
	if !domain.IsRefused(err, domain.NotFound) {
		return err
	}
	old, lookErr := l.process.server.engine.PlayerSession(ctx, id)
	switch {
	case domain.IsRefused(lookErr, domain.NotFound), lookErr == nil && old.GameID != game:
		return err
	case lookErr != nil:
		return lookErr
	}
	g, lookErr := l.process.server.engine.GameSession(ctx, game)
	switch {
	case lookErr != nil:
		return lookErr
	case !hosts(l.process, &g):
		return domain.Refuse(domain.NotYours, "game session %s is not hosted by server process %s", g.ID, l.process.key.Process)
	}
	return decide(&old)
}

// hosts reports whether the process hosts or hosted the game session.
func hosts(p *process, g *session.GameSession) bool {
	return g.FleetID == p.key.Fleet && g.ComputeName == p.key.Compute && g.ProcessID == p.key.Process
}

func (l *link) certificate(ctx context.Context, b []byte, r *request) ([]byte, error) {
	p := l.process
	path := ""
	err := p.server.engine.Read(ctx, func(v *cell.View) error {
		compute, ok := v.Compute(p.key.Fleet, p.key.Compute)
		if !ok {
			return domain.Refuse(domain.NotFound, "compute %s is not registered in fleet %s", p.key.Compute, p.key.Fleet)
		}
		path = compute.CertificatePath
		return nil
	})
	return appendCertificate(b, r, path, p.key.Compute), err
}

// gameID extracts the id from an ARN. Any other text yields an id that does not exist.
func gameID(arn string) session.ID {
	id, _ := session.CutARN(arn)
	return id
}

// playerID parses a player session id. If the service cannot have issued it, the error is "not found".
func playerID(text string) (domain.PlayerSessionID, error) {
	id, err := domain.ParseID[domain.PlayerSessionID](text)
	if err != nil {
		return id, domain.Refuse(domain.NotFound, "PlayerSession (%.100s) not found", text)
	}
	return id, nil
}

func cut(s string, most int) string { return s[:min(most, len(s))] }

// endedHint reports whether the process seems to have ended.
func (p *process) endedHint() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// unlike reports whether the core has to record a change of a process's health.
func (p *process) unlike(h fleet.Health) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready && !p.ended && p.health != h
}

// reportHealth records in the core the health reported by heartbeats, or their absence.
func (p *process) reportHealth(healthy bool) {
	s := p.server
	p.mu.Lock()
	last := domain.TimeOf(s.engine.Now().Add(-s.now().Sub(p.lastHealthy)))
	p.mu.Unlock()
	if err := s.engine.Do(s.ctx, &hosting.ReportHealth{Process: p.key, Healthy: healthy, LastHealthy: last}); err != nil {
		s.log.Warn("the health of a game server could not be recorded", "process", p.key, "healthy", healthy, "error", err)
		return // the next heartbeat, or the next check for silence, tries again
	}
	p.learn()
}

// learn reads the recorded health from the core after a change.
func (p *process) learn() {
	_ = p.look(func(now fleet.Process, ok bool) { // on an error the engine has stopped
		if !ok {
			return // the known health stays
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.health, p.settled = now.Health, now.Settled
	})
}

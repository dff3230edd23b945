//go:build !quick

package agones

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/linkclient"
)

// Time limits of the link, as in the server SDKs.
const (
	dialTime    = 20 * time.Second
	answerTime  = 20 * time.Second
	beatEvery   = 60 * time.Second
	beatSpread  = 10 * time.Second
	retryFirst  = time.Second
	retryMost   = 30 * time.Second
	refusalWait = time.Second // after an answer that asks to try again later
)

// link represents the process at the service. It makes the service's view match the memory: whether the process is ready, that its game session is
// active, and which players have seats.
type link struct {
	process *Process
	target  Target                  // of the latest connection
	again   chan linkclient.Refresh // the service wants another connection
}

func newLink(p *Process) *link { return &link{process: p, again: make(chan linkclient.Refresh, 1)} }

var errRefresh = errors.New("the service asks for another connection")

// run maintains the link as long as the service has to know the process, until ctx ends.
func (l *link) run(ctx context.Context) {
	p := l.process
	for pause := retryFirst; ; {
		m, changed := p.look()
		target, renewed := p.config.Service.get()
		if target.Token != "" && (m.Fleet == "" || m.Fleet == target.Fleet && m.Compute == target.Compute) { // otherwise it belongs to a fleet that the host served earlier
			l.target = target
		}
		if !m.Registered && !m.wantsSessions() || l.target.Token == "" {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			case <-renewed:
			}
			continue
		}
		began := time.Now()
		err := l.session(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil || errors.Is(err, errRefresh):
			pause = retryFirst
			continue
		}
		p.log.Warn("connection of an Agones server is lost: it reconnects", "error", err)
		if time.Since(began) > retryMost {
			pause = retryFirst
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause + time.Duration(rand.Float64()*float64(pause)/4)):
		}
		pause = min(2*pause, retryMost)
	}
}

// session runs one connection. It returns nil when the service no longer has to know the process.
func (l *link) session(ctx context.Context) error {
	p := l.process
	dialing, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	client, err := linkclient.Dial(dialing, linkclient.Options{
		URL: l.target.URL, Process: p.config.ID, Fleet: l.target.Fleet, Compute: l.target.Compute, Token: l.target.Token,
		TLS: p.config.TLS, OnPush: l.push,
	})
	if err != nil {
		return err
	}
	defer client.Drop()
	p.change(func(m *Memory) error { m.Fleet, m.Compute = l.target.Fleet, l.target.Compute; return nil })
	var beat, rest time.Time // when the next heartbeat is due; until when no other requests are sent
	for {
		m, changed := p.look()
		now := time.Now()
		player, seat, hasSeat := m.seatWork()
		switch {
		case m.Registered && !m.Leaving && !now.Before(beat):
			err = l.ask(ctx, client, "HeartbeatServerProcess", linkclient.HealthMembers(m.State != Unhealthy))
			beat = now.Add(beatEvery - beatSpread + rand.N(2*beatSpread))
		case now.Before(rest):
			err = l.wait(ctx, client, changed, rest)
		case m.Leaving:
			if err = gone(l.ask(ctx, client, "TerminateServerProcess", "")); err == nil {
				p.change(func(m *Memory) error { m.Registered, m.Leaving = false, false; return nil })
			}
		case !m.Registered && m.wantsSessions():
			err = l.activate(ctx, client)
			beat = time.Time{} // the service gives it no game session before the first one
		case !m.Registered:
			return nil
		case m.Session != "" && !m.Active:
			if err = gone(l.ask(ctx, client, "ActivateGameSession", linkclient.GameSessionMembers(m.Session))); err == nil {
				p.inSession(m.Session, func(m *Memory) { m.Active = true })
			}
		case hasSeat:
			err = l.seat(ctx, client, &m, player, seat)
		default:
			err = l.wait(ctx, client, changed, beat)
		}
		if later(err) {
			rest, err = now.Add(refusalWait), nil
		}
		if err != nil {
			return err
		}
	}
}

// refresh changes the target of future connections. The other processes of the host use it, too, unless the host serves another fleet by now.
func (l *link) refresh(r linkclient.Refresh) {
	l.target.URL, l.target.Token = r.RefreshConnectionEndpoint, r.AuthToken
	l.process.config.Service.renew(l.target)
}

// wait waits for a change, or until an instant.
func (l *link) wait(ctx context.Context, client *linkclient.Client, changed <-chan struct{}, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-client.Closed():
		return errors.New("the connection is closed")
	case r := <-l.again:
		l.refresh(r)
		return errRefresh
	case <-changed:
	case <-timer.C:
	}
	return nil
}

func (l *link) ask(ctx context.Context, client *linkclient.Client, action, members string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err := client.Do(ctx, action, members)
	return err
}

// activate makes the process available for game sessions at the service.
func (l *link) activate(ctx context.Context, client *linkclient.Client) error {
	p := l.process
	port := p.config.Ports[""]
	err := l.ask(ctx, client, "ActivateServerProcess", `"SdkVersion":"5.5.0","SdkLanguage":"Go","SdkToolName":"Agones","SdkToolVersion":"","LogPaths":null,"Port":`+strconv.Itoa(port))
	if err != nil {
		return fmt.Errorf("report the process as ready: %w", err)
	}
	return p.change(func(m *Memory) error {
		m.Registered = true
		switch m.State {
		case RequestReady:
			m.State = Ready
		default:
			m.Leaving = true // it has changed its mind meanwhile
		}
		return nil
	})
}

// inSession changes the memory, unless the process has another game session by now.
func (p *Process) inSession(session string, f func(m *Memory)) {
	p.change(func(m *Memory) error {
		if m.Session == session {
			f(m)
		}
		return nil
	})
}

// gone turns a refusal that is final into nil: the service has already ended what the request is about.
func gone(err error) error {
	if refused, ok := errors.AsType[*linkclient.StatusError](err); ok && !later(err) && refused.Status < 500 {
		return nil
	}
	return err
}

// later reports whether an error asks to try again later on the same connection.
func later(err error) bool {
	refused, ok := errors.AsType[*linkclient.StatusError](err)
	return ok && (refused.Status == 429 || refused.Status >= 500)
}

// seatWork returns a player whom the game has named but who has no seat yet, or a player with a seat whom the game no longer names, with
// that seat.
func (m *Memory) seatWork() (player, seat string, ok bool) {
	if m.Session == "" || !m.Active || m.Leaving {
		return "", "", false
	}
	named := m.seated()
	for player, seat := range m.Seats {
		if _, still := slices.BinarySearch(named, player); !still {
			return player, seat, true
		}
	}
	for _, player := range named {
		if _, known := m.Seats[player]; !known {
			return player, "", true
		}
	}
	return "", "", false
}

// seat accepts or removes the player session of a player. The service does not know of a player who has none.
func (l *link) seat(ctx context.Context, client *linkclient.Client, m *Memory, player, seat string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if _, leaves := m.Seats[player]; leaves {
		if seat != "" {
			if err := gone(client.RemovePlayer(ctx, m.Session, seat)); err != nil {
				return err
			}
		}
		l.process.inSession(m.Session, func(m *Memory) { delete(m.Seats, player) })
		return nil
	}
	seat, reserved, err := l.find(ctx, client, m.Session, player)
	if err == nil && reserved {
		err = client.AcceptPlayer(ctx, m.Session, seat)
	}
	if err != nil {
		if gone(err) != nil {
			return err
		}
		l.process.log.Info("the service does not accept the player session of an Agones server's player", "player_session", seat, "error", err)
		seat = ""
	}
	l.process.inSession(m.Session, func(m *Memory) {
		if m.Seats == nil {
			m.Seats = map[string]string{}
		}
		m.Seats[player] = seat
	})
	return nil
}

// find returns the player session of a player in the game session, or "", and whether it has to be accepted: an earlier agent may have
// accepted it without recording that.
func (l *link) find(ctx context.Context, client *linkclient.Client, session, player string) (seat string, reserved bool, err error) {
	queries := []linkclient.PlayerQuery{
		{PlayerId: player, PlayerSessionStatusFilter: "RESERVED", Limit: 50}, {PlayerId: player, PlayerSessionStatusFilter: "ACTIVE", Limit: 50},
	}
	if _, err := domain.ParseID[domain.PlayerSessionID](player); err == nil {
		queries = []linkclient.PlayerQuery{{PlayerSessionId: player}}
	}
	for _, query := range queries {
		page, err := client.DescribePlayers(ctx, query)
		if err != nil {
			return "", false, err
		}
		for _, s := range slices.Backward(page.PlayerSessions) {
			if s.GameSessionId == session && (s.Status == "RESERVED" || s.Status == "ACTIVE") {
				return s.PlayerSessionId, s.Status == "RESERVED", nil
			}
		}
	}
	return "", false, nil
}

// push handles a push of the service. It must not block.
func (l *link) push(_ *linkclient.Client, push linkclient.Push) {
	p := l.process
	var err error
	switch push.Action {
	case "CreateGameSession":
		var g linkclient.GameSession
		if g, err = push.GameSession(); err == nil {
			err = p.host(&g)
		}
	case "UpdateGameSession":
		err = p.update(push.Raw)
	case "TerminateProcess":
		p.log.Info("the service ends an Agones server")
		p.terminate()
	case "RefreshConnection":
		var r linkclient.Refresh
		if r, err = push.Refresh(); err == nil {
			select {
			case <-l.again: // this one is newer
			default:
			}
			select {
			case l.again <- r:
			default: // the previous connection was just as late with its own
			}
		}
	}
	if err != nil {
		p.log.Warn("message of the service ignored", "action", push.Action, "error", err)
	}
}

// host starts a game session.
func (p *Process) host(g *linkclient.GameSession) error {
	return p.change(func(m *Memory) error {
		if !m.Registered || m.Leaving || m.State != Ready {
			return fmt.Errorf("game session %.300s for a process that is %s", g.GameSessionId, m.State)
		}
		m.begin(g, time.Now())
		return nil
	})
}

// update applies what match backfill has changed in the game session.
func (p *Process) update(raw []byte) error {
	var u struct {
		UpdateReason string
		GameSession  struct {
			linkclient.GameSession
			Name string
		}
	}
	if err := json.Unmarshal(raw, &u); err != nil {
		return err
	}
	g := u.GameSession.GameSession
	g.GameSessionName = u.GameSession.Name
	p.inSession(g.GameSessionId, func(m *Memory) {
		if u.UpdateReason == "MATCHMAKING_DATA_UPDATED" {
			m.describe(&g)
		}
		m.Annotations[updateReason] = u.UpdateReason
	})
	return nil
}

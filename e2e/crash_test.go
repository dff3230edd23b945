package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/waittest"
	"github.com/musterhq/muster/mustertest"
)

// The answer to an AcceptPlayerSession is lost between its commit and the network, the service is killed, and the
// game server repeats the request as the C++ SDK does: it gets its 200.
func TestKilledBetweenCommitAndAnswer(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	n := startNetwork(t, p.address)
	server := p.dial("process-1", n.address)
	id := server.host(t, 2)
	psess := p.mustReserve(id, "p1")

	n.set(false, true)
	lost := make(chan error, 1)
	const request = "0123456789abcdef0123456789abcdef"
	server.GoWithID(request, "AcceptPlayerSession", linkclient.PlayerMembers(id, psess), func(_ linkclient.Answer, err error) { lost <- err })
	p.untilPlayer(psess, types.PlayerSessionStatusActive) // told, so durable
	p.kill()
	n.cut(false)
	if err := <-lost; err == nil {
		t.Fatal("the answer was not lost")
	}
	n.set(false, false)
	p.start()

	server.connect()
	if _, err := server.DoWithID(t.Context(), request, "AcceptPlayerSession", linkclient.PlayerMembers(id, psess)); err != nil {
		t.Errorf("the repeated request: %v, want success", err)
	}
	_, err := server.DoWithID(t.Context(), "another", "AcceptPlayerSession", linkclient.PlayerMembers(id, psess))
	if status, ok := errors.AsType[*linkclient.StatusError](err); !ok || status.Status != 400 {
		t.Errorf("another request for the same player: got %v, want 400", err)
	}
	if got := p.gameSession(id); got.Status != types.GameSessionStatusActive || *got.CurrentPlayerSessionCount != 1 {
		t.Errorf("after the restart: %s with %d places, want ACTIVE with 1", got.Status, *got.CurrentPlayerSessionCount)
	}
}

// kill -9 under load, several times: all acknowledged changes exist, and nothing is half done.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const (
		games   = 4
		workers = 8
	)
	rounds := 4
	if testing.Short() {
		rounds = 2
	}
	p := startService(t, "--reservation", "10m").prepare()
	servers := make([]*bareServer, games)
	ids := make([]string, games)
	for i := range servers {
		servers[i] = p.dial(fmt.Sprintf("process-%d", i), "")
		ids[i] = servers[i].host(t, 200)
	}
	acknowledged := &ledger{state: map[string]types.PlayerSessionStatus{}}

	for round := range rounds {
		ctx, cancel := context.WithCancel(t.Context())
		var load sync.WaitGroup
		var done atomic.Int64
		for w := range workers {
			load.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					g := (w + i) % games
					cycle(ctx, p, servers[g], ids[g], fmt.Sprintf("p-%d-%d-%d", round, w, i), acknowledged, i%3)
					done.Add(1)
				}
			})
		}
		target := int64(100 + 50*round)
		waittest.Until(t, "some load", func() bool { return done.Load() >= target })
		p.kill()
		cancel()
		load.Wait()

		p.start()
		for i, s := range servers {
			s.Drop()
			s.connect()
			must(t, s.Heartbeat(t.Context(), true))
			checkSession(t, p, ids[i])
		}
		acknowledged.check(t, p, ids)
	}
}

// ledger records the service's answers about player sessions. A lost answer leaves a session in doubt, in which two
// states are correct.
type ledger struct {
	mu    sync.Mutex
	state map[string]types.PlayerSessionStatus
	doubt map[string]types.PlayerSessionStatus // the other state that is possible
}

func (l *ledger) begin(id string, next types.PlayerSessionStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.doubt == nil {
		l.doubt = map[string]types.PlayerSessionStatus{}
	}
	l.doubt[id] = next
}

func (l *ledger) told(id string, now types.PlayerSessionStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state[id] = now
	delete(l.doubt, id)
}

func (l *ledger) check(t *testing.T, p *place, games []string) {
	t.Helper()
	there := map[string]types.PlayerSessionStatus{}
	for _, g := range games {
		for pages := gamelift.NewDescribePlayerSessionsPaginator(p.api(), &gamelift.DescribePlayerSessionsInput{GameSessionId: &g}); pages.HasMorePages(); {
			page, err := pages.NextPage(t.Context())
			must(t, err)
			for _, ps := range page.PlayerSessions {
				there[*ps.PlayerSessionId] = ps.Status
			}
		}
	}
	for id, want := range l.state {
		got, ok := there[id]
		if !ok || got != want && got != l.doubt[id] {
			t.Errorf("player session %s: got %q, was told %s (in doubt: %q)", id, got, want, l.doubt[id])
		}
		if ok {
			l.state[id] = got // the doubt is over
		}
	}
	l.doubt = nil
}

// cycle runs the first upTo steps of a player's life: reserve, accept, remove.
func cycle(ctx context.Context, p *place, s *bareServer, game, player string, l *ledger, upTo int) {
	out, err := p.api().CreatePlayerSession(ctx, &gamelift.CreatePlayerSessionInput{GameSessionId: &game, PlayerId: &player})
	if err != nil {
		return // the service was killed, or the session is full
	}
	id := *out.PlayerSession.PlayerSessionId
	l.told(id, types.PlayerSessionStatusReserved)
	if upTo < 1 {
		// Free the seat at once, so that sessions do not fill up.
		upTo = 2
	} else {
		l.begin(id, types.PlayerSessionStatusActive)
		if s.AcceptPlayer(ctx, game, id) != nil {
			return
		}
		l.told(id, types.PlayerSessionStatusActive)
	}
	if upTo < 2 && len(player)%4 == 0 {
		return
	}
	l.begin(id, types.PlayerSessionStatusCompleted)
	if s.RemovePlayer(ctx, game, id) == nil {
		l.told(id, types.PlayerSessionStatusCompleted)
	}
}

// checkSession compares a session's count with the player sessions that it counts.
func checkSession(t *testing.T, p *place, id string) {
	t.Helper()
	gs := p.gameSession(id)
	if gs.Status != types.GameSessionStatusActive {
		t.Errorf("session %s is %s, want ACTIVE", id, gs.Status)
	}
	open := int32(0)
	for _, status := range []string{"RESERVED", "ACTIVE"} {
		for pages := gamelift.NewDescribePlayerSessionsPaginator(p.api(), &gamelift.DescribePlayerSessionsInput{
			GameSessionId: &id, PlayerSessionStatusFilter: &status}); pages.HasMorePages(); {
			page, err := pages.NextPage(t.Context())
			must(t, err)
			open += int32(len(page.PlayerSessions))
		}
	}
	if held := aws.ToInt32(gs.CurrentPlayerSessionCount); held != open || held > *gs.MaximumPlayerSessionCount {
		t.Errorf("session %s counts %d places, %d player sessions hold one, maximum %d", id, held, open, *gs.MaximumPlayerSessionCount)
	}
}

// A reservation waits for a player who could not reach the service while it was down: the downtime does not count.
// Then it ends on time.
func TestReservationOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	p := startService(t, "--virtual-clock", "--reservation", "1s").prepare()
	server := p.dial("process-1", "")
	id := server.host(t, 2)
	used, unused := p.mustReserve(id, "p1"), p.mustReserve(id, "p2")
	p.kill()
	time.Sleep(2 * time.Second) // longer than the reservation: its wall time passes while the service is down
	p.start()
	server.connect()
	must(t, server.Heartbeat(t.Context(), true))
	if err := server.AcceptPlayer(t.Context(), id, used); err != nil {
		t.Errorf("a player after the outage: %v", err)
	}
	p.advance(time.Second)
	p.untilPlayer(unused, types.PlayerSessionStatusTimedout)
	if got := p.playerSession(used).Status; got != types.PlayerSessionStatusActive {
		t.Errorf("the player who came is %s, want ACTIVE", got)
	}
}

// A seat's time is nearly over when the service crashes, and crashes again before its game server is back: the player is accepted
// all the same. A seat that no player takes ends 35 s after the last start.
func TestASeatWaitsForItsGameServerThroughRestarts(t *testing.T) {
	t.Parallel()
	p := startService(t, "--virtual-clock").prepare()
	server := p.dial("process-1", "")
	id := server.host(t, 2)
	used, unused := p.mustReserve(id, "p1"), p.mustReserve(id, "p2")
	p.advance(58 * time.Second)
	for range 3 {
		p.kill()
		p.start()
		p.advance(30 * time.Second) // as long as SDKs pause between two attempts
	}
	server.connect()
	must(t, server.Heartbeat(t.Context(), true))
	if err := server.AcceptPlayer(t.Context(), id, used); err != nil {
		t.Errorf("a player whose game server came back 30 s after the start: %v", err)
	}
	if got := p.playerSession(unused).Status; got != types.PlayerSessionStatusReserved {
		t.Errorf("30 s after the start the other seat is %s, want RESERVED", got)
	}
	p.advance(5 * time.Second)
	p.untilPlayer(unused, types.PlayerSessionStatusTimedout)
}

// A token also expires while the service is down.
func TestTokenThatExpiredDuringAnOutage(t *testing.T) {
	t.Parallel()
	srv := mustertest.Start(t)
	fleet := srv.NewFleet()
	dial := func(p mustertest.ServerParameters) error {
		server, err := linkclient.Dial(t.Context(), linkclient.Options{
			URL: p.WebSocketURL, Process: p.ProcessID, Compute: p.HostID, Fleet: p.FleetID, Token: p.AuthToken})
		if err == nil {
			server.Drop()
		}
		return err
	}
	short, long := fleet.ServerParameters(), fleet.ServerParameters()
	srv.RestartAfter(3*time.Hour - time.Second)
	must(t, dial(short))
	srv.RestartAfter(time.Second)
	if refused, ok := errors.AsType[*linkclient.RefusedError](dial(long)); !ok || refused.Status != 403 {
		t.Errorf("an expired token: got %v, want 403", refused)
	}
	must(t, dial(fleet.ServerParameters()))
}

// A game server that stays away after the restart has its whole grace, then its session ends.
func TestServerThatDoesNotComeBackAfterARestart(t *testing.T) {
	t.Parallel()
	p := startService(t, "--virtual-clock", "--link-grace", "2s").prepare()
	server := p.dial("process-1", "")
	id := server.host(t, 2)
	psess := p.mustReserve(id, "p1")
	must(t, server.AcceptPlayer(t.Context(), id, psess))
	p.kill()
	p.start()
	if got := p.gameSession(id).Status; got != types.GameSessionStatusActive {
		t.Errorf("right after the restart the session is %s, want ACTIVE", got)
	}
	p.advance(2 * time.Second)
	p.untilGameSession(id, types.GameSessionStatusTerminated)
	p.untilPlayer(psess, types.PlayerSessionStatusCompleted)
}

// A process that was free before a restart can be given a session after it; one that has received its session does not receive it again.
func TestPromptAcrossARestart(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	server := p.dial("process-1", "")
	must(t, server.Activate(t.Context(), 7777))
	must(t, server.Heartbeat(t.Context(), true))
	p.kill()
	p.start()
	server.connect()
	must(t, server.Heartbeat(t.Context(), true))
	id := *p.createGameSession(1).GameSessionId
	for push := range server.pushes {
		if push.action == "CreateGameSession" {
			break
		}
	}
	p.kill()
	p.start()
	server.connect()
	must(t, server.Heartbeat(t.Context(), true))
	must(t, server.ActivateGameSession(t.Context(), id))
	p.untilGameSession(id, types.GameSessionStatusActive)
	select {
	case push := <-server.pushes:
		t.Errorf("after the restart came %s, want nothing: the session was pushed before", push.text)
	default:
	}
}

// A push that was written to a dead connection is not sent again, since servers would start the game twice; the
// activation timeout ends the session.
func TestPromptThatWasLost(t *testing.T) {
	t.Parallel()
	p := startService(t, "--virtual-clock", "--activation-timeout", "2s").prepare()
	n := startNetwork(t, p.address)
	server := p.dial("process-1", n.address)
	must(t, server.Activate(t.Context(), 7777))
	must(t, server.Heartbeat(t.Context(), true))
	n.set(false, true)
	id := *p.createGameSession(1).GameSessionId
	waittest.Until(t, "the push to be swallowed", func() bool { return n.swallowed() > 0 })
	n.set(false, false)
	n.cut(false)
	<-server.Closed()
	server.connect()
	must(t, server.Heartbeat(t.Context(), true))
	p.advance(2 * time.Second)
	p.untilGameSession(id, types.GameSessionStatusTerminated)
	for push := range server.pushes {
		if push.action == "CreateGameSession" {
			t.Errorf("the session was pushed again: %s", push.text)
		}
		if push.action == "TerminateProcess" {
			break
		}
	}
}

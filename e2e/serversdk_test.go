package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/waittest"
)

// The numbers of the SDK's error types that tests look for; they are part of its public interface.
const (
	sdkBadRequest = 22
	sdkForbidden  = 24
	sdkNotFound   = 25
)

// forEachVersion runs a test with servers on both official SDKs.
func forEachVersion(t *testing.T, test func(t *testing.T, version string)) {
	for _, version := range []string{"5.4.0", "5.5.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			test(t, version)
		})
	}
}

// From the start to the normal end, from the view of both sides.
func TestWholeLifeWithServerSDK(t *testing.T) {
	t.Parallel()
	forEachVersion(t, func(t *testing.T, version string) {
		p := startService(t).prepare()
		server, id := p.hosting(sdkOptions{version: version}, 2)
		started := server.untilEvent("start", 1).Session
		if started.FleetId != p.fleet || started.IpAddress != "127.0.0.1" || started.Port != 7777 || started.GameProperties == nil {
			t.Errorf("the session the server got: %+v", started)
		}
		psess := p.mustReserve(id, "p1")
		server.must("accept", psess)
		list := server.must("players", "ACTIVE").Players
		if len(list) != 1 || list[0].PlayerSessionId != psess || list[0].PlayerId != "p1" || list[0].Status != "ACTIVE" ||
			list[0].FleetId != p.fleet || list[0].CreationTime == 0 || list[0].TerminationTime != 0 {
			t.Errorf("player sessions: got %+v", list)
		}
		if c := server.must("certificate").Value; c != p.compute+" " {
			t.Errorf("certificate: got %q, want the compute's name and no path", c)
		}
		if l := server.do("credentials", "arn:aws:iam::123456789012:role/x"); l.Type != sdkBadRequest {
			t.Errorf("role credentials: got %q, want the SDK's own \"only on managed fleets\"", l.Error)
		}
		if l := server.do("termination"); l.Error == "" {
			t.Errorf("termination time: got %s without a termination", l.Value)
		}
		server.must("ending")
		if got := p.untilGameSession(id, types.GameSessionStatusTerminated); aws.ToInt32(got.CurrentPlayerSessionCount) != 0 || got.StatusReason != "" {
			t.Errorf("ended session: got %d places and reason %q", *got.CurrentPlayerSessionCount, got.StatusReason)
		}
		if got := p.playerSession(psess); got.Status != types.PlayerSessionStatusCompleted {
			t.Errorf("player of the ended session: got %s", got.Status)
		}
		server.must("destroy")
	})
}

// The authority of --dev is what SSL_CERT_FILE names, as the guide says.
func TestServerSDKOverTLS(t *testing.T) {
	t.Parallel()
	forEachVersion(t, func(t *testing.T, version string) {
		p := startService(t).prepare()
		ca := p.authority()
		server := p.startSDKServer(sdkOptions{version: version, url: "wss://" + p.address + "/some/path", env: []string{"SSL_CERT_FILE=" + ca}})
		server.must("init")
		server.must("ready", "7777")
		server.must("ending")
	})
}

// A session that is created at the very moment when a process becomes free always arrives.
func TestSessionRightAfterReady(t *testing.T) {
	t.Parallel()
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	forEachVersion(t, func(t *testing.T, version string) {
		p := startService(t).prepare()
		for range rounds {
			server := p.startSDKServer(sdkOptions{version: version})
			server.must("init")
			server.begin("ready", "7777")
			id := *p.createGameSession(1).GameSessionId // tries without a pause
			server.finish()
			if got := server.untilEvent("start", 1).Session.GameSessionId; got != id {
				t.Fatalf("got session %s, want %s", got, id)
			}
			server.must("activate")
			server.must("ending")
			server.kill()
		}
	})
}

// After a broken connection, the server reconnects, and nothing has changed.
func TestConnectionThatBreaks(t *testing.T) {
	t.Parallel()
	forEachVersion(t, func(t *testing.T, version string) {
		for _, reset := range []bool{true, false} {
			p := startService(t).prepare()
			n := startNetwork(t, p.address)
			server, id := p.hosting(sdkOptions{version: version, url: "ws://" + n.address}, 2)
			psess := p.mustReserve(id, "p1")
			before := server.connections()
			n.cut(reset)
			server.untilConnected(before)
			server.must("accept", psess)
			if got := p.gameSession(id).Status; got != types.GameSessionStatusActive {
				t.Errorf("reset=%v: the session is %s", reset, got)
			}
			if got := server.countEvents("start"); got != 1 {
				t.Errorf("reset=%v: the session was started %d times", reset, got)
			}
			if got := server.countEvents("terminate"); got != 0 {
				t.Errorf("reset=%v: the server was told to end", reset)
			}
			server.must("ending")
			p.untilGameSession(id, types.GameSessionStatusTerminated)
			server.kill()
		}
	})
}

// After the link's grace, the process counts as crashed. A process that returns afterwards is asked to end.
func TestServerThatStaysAway(t *testing.T) {
	t.Parallel()
	p := startService(t, "--link-grace", "1s").prepare()
	n := startNetwork(t, p.address)
	server, id := p.hosting(sdkOptions{url: "ws://" + n.address}, 2)
	psess := p.mustReserve(id, "p1")
	server.must("accept", psess)
	release := n.hold()
	n.cut(false)
	p.untilGameSession(id, types.GameSessionStatusTerminated)
	p.untilPlayer(psess, types.PlayerSessionStatusCompleted)
	p.untilEvent(types.EventCodeServerProcessCrashed)
	release()
	server.untilEvent("terminate", 1)
	if l := server.do("accept", psess); l.Type != sdkBadRequest && l.Type != sdkNotFound && l.Type != sdkForbidden {
		t.Errorf("a survivor's request: got %d %q", l.Type, l.Error)
	}
}

// kill -9 of the game server, with and without a session. The kernel closes the connection, so the service notices at once.
func TestKilledGameServer(t *testing.T) {
	t.Parallel()
	p := startService(t, "--link-grace", "1s").prepare()
	idle := p.ready(sdkOptions{})
	idle.kill()
	p.untilEvent(types.EventCodeServerProcessCrashed)
	server, id := p.hosting(sdkOptions{}, 2)
	psess, waiting := p.mustReserve(id, "p1"), p.mustReserve(id, "p2")
	server.must("accept", psess)
	server.kill()
	got := p.untilGameSession(id, types.GameSessionStatusTerminated)
	if got.TerminationTime == nil || *got.CurrentPlayerSessionCount != 0 {
		t.Errorf("ended session: got %+v", got)
	}
	p.untilPlayer(psess, types.PlayerSessionStatusCompleted)
	p.untilPlayer(waiting, types.PlayerSessionStatusTimedout)
}

// TerminateGameSession reaches a server with a callback, and one without, whose SDK ends it.
func TestTerminateWithServerSDK(t *testing.T) {
	t.Parallel()
	forEachVersion(t, func(t *testing.T, version string) {
		p := startService(t).prepare()
		terminate := func(id string) {
			_, err := p.api().TerminateGameSession(t.Context(), &gamelift.TerminateGameSessionInput{
				GameSessionId: &id, TerminationMode: types.TerminationModeTriggerOnProcessTerminate})
			must(t, err)
		}
		server, id := p.hosting(sdkOptions{version: version}, 1)
		terminate(id)
		server.untilEvent("terminate", 1)
		at, err := strconv.ParseInt(server.must("termination").Value, 10, 64)
		if left := time.Until(time.Unix(at, 0)); err != nil || left < time.Minute || left > 6*time.Minute {
			t.Errorf("termination time: got %v from now, want about 5 minutes", left)
		}
		server.must("ending")
		p.untilGameSession(id, types.GameSessionStatusTerminated)

		silent := p.startSDKServer(sdkOptions{version: version})
		silent.must("init")
		silent.must("ready", "7778", "silent")
		id = *p.createGameSession(1).GameSessionId
		silent.untilEvent("start", 1)
		silent.must("activate")
		terminate(id)
		if code := silent.exitCode(); code != 0 {
			t.Errorf("a server without a callback ended with %d, want 0", code)
		}
		p.untilGameSession(id, types.GameSessionStatusTerminated)
	})
}

// An unhealthy process gets no session until it is healthy.
func TestUnhealthyProcessGetsNoGameSession(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	server := p.startSDKServer(sdkOptions{})
	server.must("init")
	server.must("health", "false")
	server.must("ready", "7777")
	p.untilHealth(server.process, "UNHEALTHY")
	_, err := p.api().CreateGameSession(t.Context(), &gamelift.CreateGameSessionInput{
		FleetId: &p.fleet, Location: &p.location, MaximumPlayerSessionCount: aws.Int32(1)})
	refused(t, "a session on a process that is not well", err, "FleetCapacityExceededException")
	server.must("health", "true")
	p.createGameSession(1)
	server.untilEvent("start", 1)
}

// A session that is never activated ends, and its process is asked to end.
func TestSessionThatIsNeverActivated(t *testing.T) {
	t.Parallel()
	p := startService(t, "--virtual-clock", "--activation-timeout", "1s").prepare()
	server := p.ready(sdkOptions{})
	id := *p.createGameSession(1).GameSessionId
	server.untilEvent("start", 1)
	p.advance(time.Second)
	p.untilGameSession(id, types.GameSessionStatusTerminated)
	p.untilEvent(types.EventCodeGameSessionActivationTimeout)
	server.untilEvent("terminate", 1)
	if l := server.do("activate"); l.Type != sdkBadRequest && l.Type != sdkNotFound && l.Type != sdkForbidden {
		t.Errorf("activating too late: got %d %q", l.Type, l.Error)
	}
	server.must("ending")
}

// 62 player sessions come in two pages, and an unused reservation ends.
func TestPlayerSessionsInPages(t *testing.T) {
	t.Parallel()
	forEachVersion(t, func(t *testing.T, version string) {
		p := startService(t, "--virtual-clock", "--reservation", "3s").prepare()
		server, id := p.hosting(sdkOptions{version: version}, 100)
		for from := 0; from < 62; from += 25 {
			in := &gamelift.CreatePlayerSessionsInput{GameSessionId: &id}
			for i := from; i < min(from+25, 62); i++ {
				in.PlayerIds = append(in.PlayerIds, fmt.Sprintf("p%02d", i))
			}
			_, err := p.api().CreatePlayerSessions(t.Context(), in)
			must(t, err)
		}
		first := server.must("players")
		second := server.must("players", "", "50", first.Value)
		if len(first.Players) != 50 || len(second.Players) != 12 || second.Value != "" {
			t.Fatalf("pages of %d and %d, then token %q; want 50, 12 and none", len(first.Players), len(second.Players), second.Value)
		}
		seen := map[string]bool{}
		for _, ps := range slices.Concat(first.Players, second.Players) {
			seen[ps.PlayerSessionId] = true
		}
		if len(seen) != 62 {
			t.Errorf("got %d different player sessions, want 62", len(seen))
		}
		p.advance(3 * time.Second)
		waittest.Until(t, "all reservations to time out", func() bool {
			return aws.ToInt32(p.gameSession(id).CurrentPlayerSessionCount) == 0
		})
		if l := server.do("accept", first.Players[0].PlayerSessionId); l.Type != sdkBadRequest || !strings.Contains(l.Error, "TIMEDOUT instead of RESERVED") {
			t.Errorf("accepting too late: got %d %q", l.Type, l.Error)
		}
	})
}

// The largest session data of the API arrives whole.
func TestLargeSessionData(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	server := p.ready(sdkOptions{})
	data := strings.Repeat("x", 262_143) + "ü" // 262,144 characters
	p.createWhenFree(&gamelift.CreateGameSessionInput{MaximumPlayerSessionCount: aws.Int32(1), GameSessionData: &data})
	if got := server.untilEvent("start", 1).Session.GameSessionData; got != data {
		t.Errorf("got %d bytes of session data, want %d", len(got), len(data))
	}
}

// Errors from the game's view.
func TestErrorsOfServerSDK(t *testing.T) {
	t.Parallel()
	forEachVersion(t, func(t *testing.T, version string) {
		p := startService(t).prepare()
		server, id := p.hosting(sdkOptions{version: version}, 4)
		other, otherID := p.hosting(sdkOptions{version: version}, 4)
		unknown := "psess-00000000-0000-4000-8000-000000000000"
		if l := server.do("accept", unknown); l.Type != sdkNotFound {
			t.Errorf("an unknown player session: got %d %q, want not found", l.Type, l.Error)
		}
		foreign := p.mustReserve(otherID, "p1")
		if l := server.do("accept", foreign); l.Type != sdkNotFound && l.Type != sdkForbidden {
			t.Errorf("another session's player: got %d %q, want forbidden or not found", l.Type, l.Error)
		}
		if got := p.playerSession(foreign).Status; got != types.PlayerSessionStatusReserved {
			t.Errorf("another session's player is %s after the attempt, want RESERVED", got)
		}
		mine := p.mustReserve(id, "p2")
		server.must("accept", mine)
		if l := server.do("accept", mine); l.Type != sdkBadRequest || !strings.Contains(l.Error, "has a status of ACTIVE instead of RESERVED") {
			t.Errorf("accepted twice: got %d %q", l.Type, l.Error)
		}
		server.must("remove", mine)
		server.must("remove", mine)
		if l := server.do("accept", mine); l.Type != sdkBadRequest || !strings.Contains(l.Error, "has a status of COMPLETED instead of RESERVED") {
			t.Errorf("accepted after leaving: got %d %q", l.Type, l.Error)
		}
		other.must("ending")
		if l := other.do("ending"); l.Error != "" {
			t.Errorf("ending twice: got %q, want success", l.Error)
		}
	})
}

// The SDK retries a wrong token for minutes; its log has the reasons.
func TestWrongToken(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	p.token = "00000000-0000-0000-0000-000000000000"
	server := p.startSDKServer(sdkOptions{})
	server.begin("init")
	server.until("forbidden: ")
}

// Two processes with one id: the second to report ready takes it, and the first one's session ends.
func TestTwoProcessesWithOneID(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	_, id := p.hosting(sdkOptions{process: "twin"}, 2)
	second := p.startSDKServer(sdkOptions{process: "twin"})
	second.must("init")
	if got := p.gameSession(id).Status; got != types.GameSessionStatusActive {
		t.Errorf("after a second connection the session is %s, want ACTIVE", got)
	}
	second.must("ready", "7778")
	p.untilGameSession(id, types.GameSessionStatusTerminated)
	next := *p.createGameSession(1).GameSessionId
	if got := second.untilEvent("start", 1).Session.GameSessionId; got != next {
		t.Errorf("the second process got %s, want %s", got, next)
	}
}

// A normal restart sends no close frame, so every game server returns to the same session.
func TestOrderlyRestartKeepsGameServers(t *testing.T) {
	t.Parallel()
	forEachVersion(t, func(t *testing.T, version string) {
		p := startService(t).prepare()
		n := startNetwork(t, p.address)
		server, id := p.hosting(sdkOptions{version: version, url: "ws://" + n.address}, 2)
		psess := p.mustReserve(id, "p1")
		before, release := server.connections(), n.hold()
		p.stop()
		server.until("Detected network interruption")
		p.start()
		release()
		server.untilConnected(before)
		server.must("accept", psess)
		if got := p.gameSession(id); got.Status != types.GameSessionStatusActive || *got.CurrentPlayerSessionCount != 1 {
			t.Errorf("after the restart: got %s with %d places", got.Status, *got.CurrentPlayerSessionCount)
		}
		if server.countEvents("start") != 1 || server.countEvents("terminate") != 0 {
			t.Error("the restart started or ended the session again")
		}
		if strings.Contains(server.logs.String(), "close 1000") || strings.Contains(server.logs.String(), "close 1001") {
			t.Errorf("a close frame was sent:\n%s", server.logs)
		}
	})
}

// The service is down for longer than the SDK's first attempts; afterwards all servers are connected again.
func TestServersComeBackAfterAnOutage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the SDK's next attempts are 8 and 24 s after the loss")
	}
	p := startService(t).prepare()
	const n = 10
	servers := make([]*sdkServer, n)
	ids := make([]string, n)
	for i := range servers {
		servers[i], ids[i] = p.hosting(sdkOptions{}, 2)
	}
	p.kill()
	for _, s := range servers {
		s.until("Detected network interruption")
	}
	time.Sleep(3 * time.Second) // an outage has a duration: the first attempt of each server has failed
	p.start()
	for i, s := range servers {
		s.untilConnected(1)
		psess := p.mustReserve(ids[i], "p1")
		s.must("accept", psess)
		if s.countEvents("start") != 1 || s.countEvents("terminate") != 0 {
			t.Errorf("server %d was started or ended again", i)
		}
	}
	if codes := p.eventsOf(); slices.Contains(codes, types.EventCodeServerProcessCrashed) {
		t.Errorf("a server counts as crashed: %v", codes)
	}
}

// SIGTERM to the example server: it informs players, the session ends, the status is 0.
func TestArenaEndsProperly(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	a := p.startArena()
	id := *p.createGameSession(2).GameSessionId
	p.untilGameSession(id, types.GameSessionStatusActive)
	player := a.join(p.mustReserve(id, "p1"), "Ann")
	must(t, a.cmd.Process.Signal(syscall.SIGTERM))
	over := false
	for m := range player.Events() {
		over = over || m.Kind == "over"
	}
	if !over {
		t.Error("the player was not told that the game is over")
	}
	if code := a.exitCode(); code != 0 {
		t.Errorf("the server ended with %d, want 0", code)
	}
	p.untilGameSession(id, types.GameSessionStatusTerminated)
	if codes := p.eventsOf(); slices.Contains(codes, types.EventCodeServerProcessCrashed) {
		t.Errorf("a proper end counts as a crash: %v", codes)
	}
}

// The last player leaves, and so does the server.
func TestArenaEndsWhenEmpty(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	a := p.startArena("-end-when-empty")
	id := *p.createGameSession(2).GameSessionId
	p.untilGameSession(id, types.GameSessionStatusActive)
	psess := p.mustReserve(id, "p1")
	must(t, a.join(psess, "Ann").Leave())
	if code := a.exitCode(); code != 0 {
		t.Errorf("the server ended with %d, want 0", code)
	}
	p.untilGameSession(id, types.GameSessionStatusTerminated)
	p.untilPlayer(psess, types.PlayerSessionStatusCompleted)
}

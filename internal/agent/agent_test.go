package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/musterhq/muster/internal/agent/agenttest"
	"github.com/musterhq/muster/internal/agent/link"
	"github.com/musterhq/muster/internal/agent/output"
	"github.com/musterhq/muster/internal/agent/ports"
	"github.com/musterhq/muster/internal/agent/process"
	"github.com/musterhq/muster/internal/agent/restart"
	"github.com/musterhq/muster/internal/agent/state"
	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/hostproof"
	"github.com/musterhq/muster/internal/logtest"
)

func TestMain(m *testing.M) {
	agenttest.Main()
	agentToKill()
	os.Exit(m.Run())
}

// service is the agents' service: it answers them, and records their messages.
type service struct {
	*testing.T
	server *httptest.Server

	mu           sync.Mutex
	socket       *websocket.Conn
	conf         agentproto.RuntimeConfiguration
	unregistered bool // whether it says that it knows no process
	unhealthy    []string
	down         bool
	revoked      bool // the host was
	turnedAway   int  // connections, because of that
	hellos       int
	beat         *agentproto.SendHeartbeat
	ends         []agentproto.NotifyServerProcessTermination
	heartbeat    int64                            // milliseconds
	overtakes    *agentproto.RuntimeConfiguration // pushed before the answer that has conf; nil: none
	moves        *agentproto.HelloAnswer          // pushed before the answer that has the first token; nil: none
	tokens       int                              // requested
	output       strings.Builder
	outputEnds   int
	number       int64 // of the last message of a stream
	slow         bool  // messages with output get 429
	forgets      bool  // and 404
	refusals     int
	forgotten    int

	uploadURL      string
	uploadRequests []agentproto.RequestLogUpload
}

func newService(t *testing.T, processes ...agentproto.ServerProcess) *service {
	s := &service{T: t, conf: agentproto.RuntimeConfiguration{ServerProcesses: processes}, unregistered: true, heartbeat: 50}
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.cut()
		s.server.Close()
	})
	return s
}

func (s *service) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	down, revoked := s.down, s.revoked
	if revoked {
		s.turnedAway++
	}
	s.mu.Unlock()
	if revoked {
		http.Error(w, "revoked", hostproof.StatusRevoked)
		return
	}
	if down || r.URL.Query().Get("Authorization") != "token" || r.URL.Query().Get("AgentKind") != "native" {
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	upgrader := websocket.Upgrader{}
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer socket.Close()
	s.mu.Lock()
	s.socket = socket
	s.mu.Unlock()
	for {
		_, text, err := socket.ReadMessage()
		if err != nil {
			return
		}
		request, action, id, err := agentproto.DecodeRequest(text)
		if err != nil {
			s.Errorf("request %s: %v", action, err)
			return
		}
		answer, err := agentproto.EncodeAnswer(action, id, s.answer(request))
		if status := s.refuses(request); status != 0 {
			answer, err = agentproto.EncodeFailure(action, id, status, "no")
		}
		if err != nil {
			s.Error(err)
			return
		}
		s.mu.Lock()
		err = socket.WriteMessage(websocket.TextMessage, answer)
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *service) answer(request agentproto.Request) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r := request.(type) {
	case *agentproto.AgentHello:
		s.hellos++
		return agentproto.HelloAnswer{FleetID: "fleet-1", ComputeName: "host-1", Location: "custom-x", SDKEndpoint: "wss://example", HeartbeatMillis: s.heartbeat}
	case *agentproto.GetServerToken:
		token := agentproto.ServerToken{FleetID: "fleet-1", ComputeName: "host-1", AuthToken: "process-token", ExpirationTimestamp: time.Now().Add(time.Hour).Unix()}
		if s.tokens++; s.moves != nil && s.tokens == 1 {
			s.pushNow(&agentproto.UpdateHost{HelloAnswer: *s.moves})
		} else if s.moves != nil {
			token.FleetID, token.ComputeName = s.moves.FleetID, s.moves.ComputeName
		}
		return token
	case *agentproto.DescribeRuntimeConfiguration:
		if s.overtakes != nil {
			s.pushNow(&agentproto.UpdateRuntimeConfiguration{RuntimeConfiguration: *s.overtakes})
		}
		return s.conf
	case *agentproto.SendHeartbeat:
		s.beat = r
		answer := agentproto.HeartbeatAnswer{Status: agentproto.OrderActive, UnhealthyProcesses: s.unhealthy, UnregisteredProcesses: []string{}}
		if s.unregistered {
			answer.UnregisteredProcesses = r.ProcessList
		}
		return answer
	case *agentproto.NotifyServerProcessTermination:
		s.ends = append(s.ends, *r)
	case *agentproto.RequestLogUpload:
		s.uploadRequests = append(s.uploadRequests, *r)
		return agentproto.LogUpload{URL: s.uploadURL}
	case *agentproto.SendOutput:
		if s.slow || s.forgets || r.Number == s.number {
			break
		}
		s.number = r.Number
		s.output.WriteString(r.Output)
		if r.End {
			s.outputEnds++
		}
	}
	return nil
}

func (s *service) refuses(request agentproto.Request) (status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := request.(*agentproto.SendOutput); ok && s.forgets {
		s.forgotten++
		s.number = 0
		return 404
	} else if ok && s.slow {
		s.refusals++
		return 429
	}
	if _, ok := request.(*agentproto.RequestLogUpload); ok && s.uploadURL == "" {
		return 404
	}
	return 0
}

func (s *service) push(p agentproto.Push) {
	s.Helper()
	text, err := agentproto.EncodePush(p)
	if err != nil {
		s.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.socket.WriteMessage(websocket.TextMessage, text); err != nil {
		s.Fatal(err)
	}
}

// pushNow pushes under the lock.
func (s *service) pushNow(p agentproto.Push) {
	text, err := agentproto.EncodePush(p)
	if err == nil {
		err = s.socket.WriteMessage(websocket.TextMessage, text)
	}
	if err != nil {
		s.Error(err)
	}
}

// cut ends the connection; set keeps the service down or brings it back.
func (s *service) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.socket != nil {
		s.socket.Close()
	}
}

func (s *service) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// eventually waits for a condition of the service.
func (s *service) eventually(what string, is func() bool) {
	s.Helper()
	for end := time.Now().Add(agenttest.Patience); ; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		ok := is()
		s.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(end) {
			s.mu.Lock()
			defer s.mu.Unlock()
			beat, _ := json.Marshal(s.beat)
			s.Fatalf("not within %v: %s\nlast heartbeat %s\nends %+v", agenttest.Patience, what, beat, s.ends)
		}
	}
}

// processes returns the processes of the latest heartbeat in a state; under the lock.
func (s *service) processes(state string) (list []agentproto.ProcessState) {
	if s.beat != nil {
		for _, p := range s.beat.Processes {
			if p.State == state {
				list = append(list, p)
			}
		}
	}
	return list
}

// some waits until so many processes are in a state, and returns them.
func (s *service) some(state string, n int) (list []agentproto.ProcessState) {
	s.Helper()
	s.eventually(fmt.Sprintf("%d processes are %s", n, state), func() bool { list = s.processes(state); return len(list) == n })
	return list
}

// ended waits for the end of a process, and returns it.
func (s *service) ended(id string) (end agentproto.NotifyServerProcessTermination) {
	s.Helper()
	s.eventually("the end of "+id, func() bool {
		i := slices.IndexFunc(s.ends, func(e agentproto.NotifyServerProcessTermination) bool { return id == "" || e.ProcessID == id })
		if i >= 0 {
			end = s.ends[i]
		}
		return i >= 0
	})
	return end
}

// A runtime configuration that the service pushes while the agent requests it takes effect, even though the older answer arrives later.
func TestPushOvertakesAnswer(t *testing.T) {
	s := newService(t)
	s.overtakes = &agentproto.RuntimeConfiguration{ServerProcesses: []agentproto.ServerProcess{play(1, "wait")}}
	s.run(nil)
	s.some(agentproto.ProcessStarting, 1)
}

// A token that the agent requested for its former fleet does not count for the fleet that the host serves now: the server processes would be refused
// with it until it expires.
func TestTokenOfTheFormerFleet(t *testing.T) {
	s := newService(t, play(1, "wait"))
	s.moves = &agentproto.HelloAnswer{HostID: "host-a", FleetID: "fleet-2", ComputeName: "host-2", Location: "custom-x", SDKEndpoint: "wss://example", HeartbeatMillis: 50}
	s.run(nil)
	s.eventually("a request for the token of the new fleet", func() bool { return s.tokens >= 2 })
	s.some(agentproto.ProcessStarting, 1)
}

// play returns an entry in which this binary plays server processes.
func play(n int, words ...string) agentproto.ServerProcess {
	return agentproto.ServerProcess{LaunchPath: "game/server", Parameters: agenttest.Parameters(words...), ConcurrentExecutions: n}
}

// dirs makes the directories of an agent, with this binary as the game.
func dirs(t *testing.T) string {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "root", "game"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(self, filepath.Join(dir, "root", "game", "server")); err != nil {
		text, err := os.ReadFile(self)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "root", "game", "server"), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func testConfig(dir, endpoint string) (Config, error) {
	groups, err := process.NewGroups("")
	policy := restart.Default()
	policy.First, policy.Longest = 10*time.Millisecond, 80*time.Millisecond
	return Config{
		Version: "test", Root: filepath.Join(dir, "root"), StateDir: filepath.Join(dir, "state"), LogDir: filepath.Join(dir, "logs"), Builds: filepath.Join(dir, "builds"),
		Target: func(context.Context) (link.Target, error) {
			return link.Target{Endpoint: endpoint, Query: url.Values{"FleetId": {"fleet-1"}, "ComputeName": {"host-1"}, "Authorization": {"token"}}}, nil
		},
		Ports: ports.Range{First: 20000, Last: 20999}, Groups: groups, KillTimeout: 200 * time.Millisecond, StartTimeout: time.Hour, Restart: policy,
		Output: output.Default(), Keep: output.DefaultKeep(), Log: slog.New(slog.DiscardHandler),
	}, err
}

// run runs an agent in this process; its server processes end with the test.
func (s *service) run(change func(*Config)) (dir string) {
	dir = dirs(s.T)
	s.runIn(dir, change)
	return dir
}

func (s *service) runIn(dir string, change func(*Config)) (stop func()) {
	config, err := testConfig(dir, "ws"+strings.TrimPrefix(s.server.URL, "http"))
	if err != nil {
		s.Fatal(err)
	}
	config.EndProcesses = true
	if testing.Verbose() {
		config.Log = slog.New(slog.NewTextHandler(s.T.Output(), nil))
	}
	if change != nil {
		change(&config)
	}
	a, err := New(config)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.Error(err)
		}
	})
	s.Cleanup(stop)
	return stop
}

func TestProcessesAreStartedAndRegistered(t *testing.T) {
	s := newService(t, play(3, "print", "GAMELIFT_SDK_PROCESS_ID", "GAMELIFT_SDK_AUTH_TOKEN", "GAMELIFT_SDK_WEBSOCKET_URL", "GAMELIFT_SDK_FLEET_ID", "GAMELIFT_SDK_HOST_ID", "MUSTER_PORT", "AWS_SECRET_ACCESS_KEY"))
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	dir := s.run(nil)
	list := s.some(agentproto.ProcessStarting, 3)
	seen := map[int]bool{}
	for _, p := range list {
		if p.PID <= 1 || p.Port < 20000 || seen[p.Port] {
			t.Errorf("%+v", p)
		}
		seen[p.Port] = true
		want := fmt.Sprintf("ready\nGAMELIFT_SDK_PROCESS_ID=%s\nGAMELIFT_SDK_AUTH_TOKEN=process-token\nGAMELIFT_SDK_WEBSOCKET_URL=wss://example\nGAMELIFT_SDK_FLEET_ID=fleet-1\nGAMELIFT_SDK_HOST_ID=host-1\nMUSTER_PORT=%d\nAWS_SECRET_ACCESS_KEY=\n", p.ProcessID, p.Port)
		s.eventually("the output of "+p.ProcessID, func() bool {
			text, _ := os.ReadFile(filepath.Join(dir, "logs", p.ProcessID, "output.log"))
			return string(text) == want
		})
	}
	s.push(&agentproto.NotifyProcessRegistered{ProcessID: list[0].ProcessID, LogPaths: agentproto.NoLogPaths})
	s.some(agentproto.ProcessRunning, 1)
	s.set(func() { s.unregistered = false })
	s.some(agentproto.ProcessRunning, 3)
	s.set(func() {
		if l := s.beat.Launches; len(l) != 1 || l[0].Wanted != 3 || l[0].Running != 3 || l[0].State != agentproto.LaunchRunning || s.beat.Metrics == nil || s.beat.Metrics.PortsUsed != 3 {
			t.Errorf("%+v, %+v", l, s.beat.Metrics)
		}
	})
}

func TestEnds(t *testing.T) {
	s := newService(t, play(1, "exit", "3"))
	s.run(nil)
	end := s.ended("")
	if end.TerminationReason != agentproto.Crashed || end.EventCode != "SERVER_PROCESS_CRASHED" || end.Exit.Code == nil || *end.Exit.Code != 3 || end.Exit.LastOutput != "ready\n" {
		t.Errorf("%+v, %+v", end, end.Exit)
	}
	s.eventually("the entry fails after six crashes", func() bool {
		return s.beat != nil && len(s.beat.Launches) == 1 && s.beat.Launches[0].State == agentproto.LaunchFailed
	})
	s.eventually("six ends", func() bool { return len(s.ends) == 6 })
	s.set(func() {
		if l := s.beat.Launches[0]; l.Reason != "exit code 3" || l.Crashes != 6 || l.NextTryMillis <= time.Now().UnixMilli() {
			t.Errorf("%+v", l)
		}
	})

	s.push(&agentproto.UpdateRuntimeConfiguration{RuntimeConfiguration: agentproto.RuntimeConfiguration{ServerProcesses: []agentproto.ServerProcess{play(1, "exit", "0")}}})
	s.eventually("normal ends are replaced at once", func() bool { return len(s.ends) > 16 })
	s.set(func() {
		if end := s.ends[len(s.ends)-1]; end.TerminationReason != agentproto.NormalTermination || end.EventCode != "" {
			t.Errorf("%+v", end)
		}
	})
}

func TestInvalidPaths(t *testing.T) {
	for _, path := range []string{"none", "../outside", "/bin/sh", "game"} {
		s := newService(t, agentproto.ServerProcess{LaunchPath: path, ConcurrentExecutions: 1})
		s.run(nil)
		if end := s.ended(""); end.TerminationReason != agentproto.InvalidPath || !strings.Contains(end.Exit.LastOutput, path) {
			t.Errorf("%s: %+v, %+v", path, end, end.Exit)
		}
		s.eventually("the cause", func() bool {
			return s.beat != nil && len(s.beat.Launches) == 1 && s.beat.Launches[0].Cause == agentproto.CausePath && s.beat.Launches[0].State != agentproto.LaunchRunning
		})
	}
}

// A program that does not start because the host lacks something is not reported as missing.
func TestStartFailsForAnotherReason(t *testing.T) {
	s := newService(t, play(1, "wait"))
	s.run(func(c *Config) {
		c.MemoryMax = 1 << 30
		c.Groups, _ = process.NewGroups("none")
	})
	s.eventually("the cause", func() bool {
		return s.beat != nil && len(s.beat.Launches) == 1 && s.beat.Launches[0].State != agentproto.LaunchRunning &&
			s.beat.Launches[0].Cause == agentproto.CauseNoStart && strings.Contains(s.beat.Launches[0].Reason, "memory limit")
	})
}

func TestProgramThatCannotRun(t *testing.T) {
	_, noProgram := exec.LookPath("no-such-program-anywhere")
	for err, want := range map[error]bool{
		noProgram: true,
		&fs.PathError{Op: "fork/exec", Path: "/srv/game", Err: syscall.ENOENT}:                            true,
		&fs.PathError{Op: "fork/exec", Path: "/srv/game", Err: syscall.EACCES}:                            true,
		&fs.PathError{Op: "fork/exec", Path: "/srv/game", Err: syscall.EAGAIN}:                            false,
		&fs.PathError{Op: "fork/exec", Path: "/srv/game", Err: syscall.ENOMEM}:                            false,
		fmt.Errorf("make cgroup: %w", &fs.PathError{Op: "mkdir", Path: "/sys/fs/x", Err: syscall.ENOSPC}): false,
		errors.New("no job object"): false,
	} {
		if got := cannotRun(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}

func TestForceExitAndUnhealthy(t *testing.T) {
	s := newService(t, play(2, "stubborn"))
	s.run(nil)
	list := s.some(agentproto.ProcessStarting, 2)
	s.push(&agentproto.ForceExitServerProcess{ProcessID: list[0].ProcessID, TerminationReason: agentproto.CustomerInitiated})
	if end := s.ended(list[0].ProcessID); end.TerminationReason != agentproto.CustomerInitiated {
		t.Errorf("%+v", end)
	}
	s.set(func() { s.unhealthy = []string{list[1].ProcessID} })
	if end := s.ended(list[1].ProcessID); end.TerminationReason != agentproto.TerminatedUnhealthy {
		t.Errorf("%+v", end)
	}
}

// An agent whose identity another one uses logs that, and its server processes continue.
func TestSharedIdentityIsLogged(t *testing.T) {
	s := newService(t, play(1, "wait"))
	var log logtest.Log
	s.run(func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	s.some(agentproto.ProcessStarting, 1)
	s.push(&agentproto.HostShared{Addresses: []string{"192.0.2.1", "192.0.2.2"}})
	s.eventually("a line about the other agent", func() bool {
		text := log.String()
		return strings.Contains(text, "another agent uses the identity of this host") && strings.Contains(text, "host.json") && strings.Contains(text, "192.0.2.2")
	})
	s.some(agentproto.ProcessStarting, 1)
}

// An agent ends its server processes when it learns that its host was revoked: by a push, or when it connects again. Nothing starts after that.
func TestRevoked(t *testing.T) {
	for _, connected := range []bool{true, false} {
		t.Run(fmt.Sprint("connected ", connected), func(t *testing.T) {
			s := newService(t, play(2, "stubborn"))
			s.run(nil)
			list := s.some(agentproto.ProcessStarting, 2)
			s.push(&agentproto.NotifyGameSessionActivated{ProcessID: list[0].ProcessID, GameSessionID: "g"})
			s.some(agentproto.ProcessRunning, 1)
			if connected {
				s.push(&agentproto.DrainCompute{DeadlineMillis: 1, Reason: "the host was revoked"})
			} else {
				s.set(func() { s.revoked = true })
				s.cut()
				s.eventually("a connection that is refused", func() bool { return s.turnedAway > 0 })
				s.set(func() { s.revoked = false }) // to see what became of the processes
			}
			for _, p := range list {
				if end := s.ended(p.ProcessID); end.TerminationReason != agentproto.ComputeShuttingDown {
					t.Errorf("%+v", end)
				}
			}
			s.eventually("a heartbeat of an empty host", func() bool { return len(s.beat.ProcessList) == 0 && s.beat.Status == agentproto.Terminating })
		})
	}
}

func TestProcessThatNeverRegistersEnds(t *testing.T) {
	s := newService(t, play(1, "wait"))
	s.run(func(c *Config) { c.StartTimeout = 0 })
	if end := s.ended(""); end.TerminationReason != agentproto.SDKInitializationTimeout {
		t.Errorf("%+v", end)
	}
}

// TestStubbornProcessIsKilled: SIGTERM first, SIGKILL after the timeout.
func TestStubbornProcessIsKilled(t *testing.T) {
	s := newService(t, play(1, "stubborn"))
	s.run(func(c *Config) { c.KillTimeout = 50 * time.Millisecond })
	id := s.some(agentproto.ProcessStarting, 1)[0].ProcessID
	s.push(&agentproto.UpdateRuntimeConfiguration{})
	if end := s.ended(id); end.TerminationReason != agentproto.NormalTermination {
		t.Errorf("%+v", end)
	}
}

// TestRetiringProcessesKeepTheirSessions changes the configuration below a game session.
func TestRetiringProcessesKeepTheirSessions(t *testing.T) {
	s := newService(t, play(2, "wait"))
	s.run(nil)
	list := s.some(agentproto.ProcessStarting, 2)
	s.push(&agentproto.NotifyGameSessionActivated{ProcessID: list[0].ProcessID, GameSessionID: "gs-1"})
	s.some(agentproto.ProcessRunning, 1)
	s.push(&agentproto.UpdateRuntimeConfiguration{RuntimeConfiguration: agentproto.RuntimeConfiguration{ServerProcesses: []agentproto.ServerProcess{play(2, "stubborn")}}})
	s.ended(list[1].ProcessID)
	if got := s.some(processRetiring, 1); got[0].ProcessID != list[0].ProcessID {
		t.Errorf("retiring %+v", got)
	}
	s.some(agentproto.ProcessStarting, 1) // two in all: the new one waits for the room of the old one
	s.push(&agentproto.ForceExitServerProcess{ProcessID: list[0].ProcessID})
	s.some(agentproto.ProcessStarting, 2)
}

func TestConcurrencyShrinks(t *testing.T) {
	s := newService(t, play(3, "wait"))
	s.run(nil)
	list := s.some(agentproto.ProcessStarting, 3)
	last := slices.MaxFunc(list, func(x, y agentproto.ProcessState) int { return x.Port - y.Port }).ProcessID // in the last slot
	s.push(&agentproto.NotifyGameSessionActivated{ProcessID: last, GameSessionID: "gs-1"})
	s.some(agentproto.ProcessRunning, 1)
	s.push(&agentproto.UpdateRuntimeConfiguration{RuntimeConfiguration: agentproto.RuntimeConfiguration{ServerProcesses: []agentproto.ServerProcess{play(1, "wait")}}})
	s.eventually("only the one with a game session is left", func() bool {
		return len(s.beat.Processes) == 1 && s.beat.Processes[0].ProcessID == last && s.beat.Processes[0].State == agentproto.ProcessRunning && len(s.ends) == 2
	})
}

func TestDrain(t *testing.T) {
	s := newService(t, play(2, "wait"))
	s.run(nil)
	list := s.some(agentproto.ProcessStarting, 2)
	s.push(&agentproto.NotifyGameSessionActivated{ProcessID: list[0].ProcessID, GameSessionID: "gs-1"})
	s.push(&agentproto.DrainCompute{Reason: "update"})
	s.ended(list[1].ProcessID)
	s.eventually("one is left", func() bool { return s.beat.Status == agentproto.Terminating && len(s.beat.Processes) == 1 })
	s.push(&agentproto.DrainCompute{DeadlineMillis: time.Now().UnixMilli()})
	if end := s.ended(list[0].ProcessID); end.TerminationReason != agentproto.ComputeShuttingDown {
		t.Errorf("%+v", end)
	}
	s.push(&agentproto.DrainCompute{Cancel: true})
	s.some(agentproto.ProcessStarting, 2)
}

// TestWithoutTheService: a process ends while the service is down. The others continue, and the service is told later.
func TestWithoutTheService(t *testing.T) {
	s := newService(t, play(2, "wait"))
	s.run(nil)
	list := s.some(agentproto.ProcessStarting, 2)
	s.set(func() { s.unregistered = false })
	s.some(agentproto.ProcessRunning, 2)
	s.set(func() { s.down = true })
	s.cut()
	if p, err := os.FindProcess(list[0].PID); err != nil || p.Kill() != nil {
		t.Fatal("cannot be killed")
	}
	time.Sleep(100 * time.Millisecond)
	s.set(func() {
		if len(s.ends) != 0 {
			t.Fatalf("%+v", s.ends)
		}
		s.down = false
	})
	end := s.ended(list[0].ProcessID)
	if end.TerminationReason != agentproto.Crashed {
		t.Errorf("%+v", end)
	}
	s.eventually("a new process beside the old one", func() bool {
		return len(s.beat.Processes) == 2 && slices.ContainsFunc(s.beat.Processes, func(p agentproto.ProcessState) bool { return p.PID == list[1].PID })
	})
	s.set(func() {
		if s.hellos != 2 {
			t.Errorf("%d hellos, want 2", s.hellos)
		}
	})
}

func TestOutputIsFollowed(t *testing.T) {
	s := newService(t, play(1, "wait"))
	dir := s.run(nil)
	id := s.some(agentproto.ProcessStarting, 1)[0].ProcessID
	path := filepath.Join(dir, "logs", id, "output.log")
	s.eventually("output", func() bool { text, _ := os.ReadFile(path); return string(text) == "ready\n" })
	s.push(&agentproto.StartOutput{StreamID: "s", ProcessID: id, TailBytes: 3, Follow: true})
	s.eventually("the tail", func() bool { return s.output.String() == "dy\n" })
	s.push(&agentproto.ForceExitServerProcess{ProcessID: id})
	s.eventually("the stream ends with the process", func() bool { return s.outputEnds == 1 })
	s.push(&agentproto.StartOutput{StreamID: "t", ProcessID: id, TailBytes: 100})
	s.eventually("output of an ended process", func() bool { return s.output.String() == "dy\nready\n" && s.outputEnds == 2 })
	s.push(&agentproto.StartOutput{StreamID: "u", ProcessID: "../../state", TailBytes: 100})
	s.eventually("no other files", func() bool { return s.outputEnds == 3 })
}

// TestPortOfAnotherProgram: a port that a process uses although it was assigned to another process is not assigned again.
func TestPortOfAnotherProgram(t *testing.T) {
	s := newService(t, play(1, "listen", "20500"))
	s.run(nil)
	s.some(agentproto.ProcessStarting, 1)
	pool := ports.NewPool(ports.Range{First: 20500, Last: 20500}, nil)
	s.eventually("the port is taken", func() bool {
		port, err := pool.Take(time.Now())
		pool.Return(port)
		return err != nil
	})
}

// earlier starts a process as an earlier agent did, and returns its entry in the state file.
func earlier(t *testing.T, config Config, id string) state.Process {
	t.Helper()
	p, err := config.Groups.Start(process.Command{ID: id, Path: filepath.Join(config.Root, "game", "server"), Args: agenttest.Args("wait"), Env: os.Environ(), Output: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		<-p.Done()
	})
	return state.Process{ID: id, Record: p.Record()}
}

// An agent that is killed while it takes over processes loses none of them: the state file never lacks one.
func TestStateWhileProcessesAreAdopted(t *testing.T) {
	s := newService(t)
	dir := dirs(t)
	config, err := testConfig(dir, s.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer a.unlock()
	before := state.State{BootID: process.BootID()}
	for _, id := range []string{"ending", "running"} {
		before.Processes = append(before.Processes, earlier(t, config, id))
	}
	before.Processes[0].Reason = agentproto.NormalTermination
	if err := a.file.Write(before); err != nil {
		t.Fatal(err)
	}
	a.adopt(before)
	text, err := os.ReadFile(filepath.Join(config.StateDir, "agent.json"))
	if err != nil || !strings.Contains(string(text), `"ending"`) || !strings.Contains(string(text), `"running"`) {
		t.Errorf("%s, %v; want both processes", text, err)
	}
}

// A change of another entry, or the end of a drain, does not end the failure of an entry, although one of its processes has been running for long.
func TestFailureOutlivesAnotherConfiguration(t *testing.T) {
	s := newService(t)
	config, err := testConfig(dirs(t), s.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer a.unlock()
	failing := agentproto.ServerProcess{LaunchPath: "failing", ConcurrentExecutions: 2}
	a.want(agentproto.RuntimeConfiguration{ServerProcesses: []agentproto.ServerProcess{failing}})
	e, now := a.entries[0], time.Now()
	old := &server{id: "old", entry: e, spec: failing, started: now.Add(-time.Hour)}
	a.running[old.id], e.slots[0] = old, old
	e.crash.Started(0, old.started)
	for range config.Restart.CrashesMax + 1 {
		e.crash.Started(1, now)
		e.crash.Ended(1, true, now)
	}
	a.want(agentproto.RuntimeConfiguration{ServerProcesses: []agentproto.ServerProcess{failing, {LaunchPath: "other", ConcurrentExecutions: 1}}})
	a.endDrain()
	if e := a.entries[0]; !e.crash.Failed(now) || e.slots[0] != old {
		t.Errorf("failed: %v, slots %v", e.crash.Failed(now), e.slots)
	}
}

func TestRuntimeConfigurationFile(t *testing.T) {
	dir := dirs(t)
	file := filepath.Join(dir, "runtime.json")
	write := func(processes ...agentproto.ServerProcess) {
		text, err := json.Marshal(agentproto.RuntimeConfiguration{ServerProcesses: processes})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		now := time.Now().Add(time.Duration(len(processes)) * time.Hour) // a file system may have coarse times
		if err := os.Chtimes(file, now, now); err != nil {
			t.Fatal(err)
		}
	}
	count := func() (n int) {
		entries, _ := os.ReadDir(filepath.Join(dir, "logs"))
		return len(entries)
	}
	s := newService(t)
	write(play(1, "wait"))
	s.runIn(dir, func(c *Config) { c.File, c.Target = file, nil })
	s.eventually("one process", func() bool { return count() == 1 })
	write(play(1, "wait"), play(1, "stubborn"))
	s.eventually("another one", func() bool { return count() == 2 })
	for text, want := range map[string]string{
		`{`: "JSON", `{"ServerProcesses":[{"ConcurrentExecutions":1}]}`: "LaunchPath", `{"ServerProcesses":[{"LaunchPath":"x"}]}`: "ConcurrentExecutions",
	} {
		if _, err := ParseRuntime([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %s", text, err, want)
		}
	}
}

// agentToKill runs an agent in a process of its own, if this is one.
func agentToKill() {
	dir := os.Getenv("AGENT_TO_KILL")
	if dir == "" || len(os.Args) > 1 {
		return
	}
	config, err := testConfig(dir, os.Getenv("AGENT_SERVICE"))
	if err != nil {
		panic(err)
	}
	a, err := New(config)
	if err != nil {
		panic(err)
	}
	panic(a.Run(context.Background()))
}

// A process that no entry wants is ended only after the agent was connected for the activation time of a game session: the service may have placed one
// on it that is not active yet.
func TestRetiringProcessMayBeActivating(t *testing.T) {
	config, err := testConfig(dirs(t), "ws://example")
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer a.unlock()
	old := earlier(t, config, "old")
	old.Registered = true
	a.adopt(state.State{BootID: process.BootID(), Processes: []state.Process{old}})
	s := a.running["old"]
	s.retiring = time.Now().Add(-time.Hour) // the service was down for so long
	a.connect(agentproto.HelloAnswer{FleetID: "fleet-1"})
	a.want(agentproto.RuntimeConfiguration{GameSessionActivationTimeoutSeconds: 300})
	now := time.Now()
	if a.retire(now.Add(2 * time.Minute)); s.stopping {
		t.Error("the process was ended 2 minutes after the connection; a game session may take 5 minutes to activate")
	}
	if a.retire(now.Add(6 * time.Minute)); !s.stopping {
		t.Error("the process was not ended 6 minutes after the connection")
	}
}

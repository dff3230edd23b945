package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	game "github.com/musterhq/muster/examples/arena"
	"github.com/musterhq/muster/internal/waittest"
)

// program is a game server or another helper process.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	logs   *output
	exited chan struct{}
}

// run starts a program whose output goes to p.logs, and kills it at the end of the test.
func run(t *testing.T, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{t: t, cmd: cmd, logs: newOutput(), exited: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = p.logs
	}
	cmd.Stderr = p.logs
	must(t, cmd.Start())
	go func() {
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("log of %v:\n%s", cmd.Args[0], p.logs.tail(30))
		}
	})
	return p
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill() // fails only when it is over already
	<-p.exited
}

// exitCode waits for the end.
func (p *program) exitCode() int {
	p.t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("%v does not end:\n%s", p.cmd.Args, p.logs.tail(30))
		return -1
	}
}

func (p *program) until(part string) string {
	p.t.Helper()
	return p.logs.mustHave(p.t, part)
}

// hurried makes the Go SDK report its health every second instead of every minute, and reconnect without the pause
// of 5 s in which it flushes the old connection.
var hurried = []string{"HEALTHCHECK_INTERVAL=1s", "HEALTHCHECK_MAX_JITTER=1ms", "DISCONNECT_WEBSOCKET_TIMEOUT=1ms"}

type arena struct {
	*program
	address string // where players connect
}

// startArena starts the example game server and waits until it listens.
func (p *place) startArena(flags ...string) *arena {
	p.t.Helper()
	args := append([]string{
		"-authtoken=" + p.token, "-hostid=" + p.compute, "-fleetid=" + p.fleet, "-websocketurl=" + p.ws(),
		"-port", "0", "-bind", "127.0.0.1",
	}, flags...)
	cmd := exec.Command(arenaServerBinary, args...)
	cmd.Env = cleanEnvironment(hurried...)
	a := &arena{program: run(p.t, cmd)}
	line := a.until("listening for players")
	a.address = regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(line)[1]
	return a
}

// sdkServer is a game server on the bare official SDK that does what the test says.
type sdkServer struct {
	*program
	process string // its id
	words   *json.Encoder
	replies chan sdkLine

	mu     sync.Mutex
	events []sdkLine
	more   chan struct{} // closed and replaced with every event
}

// sdkLine is a line of such a server's output: see serversdk/main.go.
type sdkLine struct {
	Reply, Event, Error, Value string
	Type                       int
	Session                    *sdkSession
	Update                     *sdkUpdate
	Players                    []sdkPlayer
}

type sdkSession struct {
	GameSessionId, Name, FleetId, GameSessionData, MatchmakerData, IpAddress, DnsName string
	MaximumPlayerSessionCount, Port                                                   int
	GameProperties                                                                    map[string]string
}

type sdkUpdate struct {
	BackfillTicketId, UpdateReason string
	GameSession                    sdkSession
}

type sdkPlayer struct {
	PlayerSessionId, PlayerId, Status, GameSessionId, FleetId, PlayerData, IpAddress string
	Port                                                                             int
	CreationTime, TerminationTime                                                    int64
}

// sdkOptions determine how a server connects; empty fields come from the place.
type sdkOptions struct {
	version string // 5.5.0
	url     string
	process string
	env     []string
	slow    bool // with the SDK's own intervals
}

func (p *place) startSDKServer(o sdkOptions) *sdkServer {
	p.t.Helper()
	if o.version == "" {
		o.version = "5.5.0"
	}
	if o.url == "" {
		o.url = p.ws()
	}
	if o.process == "" {
		o.process = fmt.Sprintf("process-%d", time.Now().UnixNano())
	}
	cmd := exec.Command(sdkServerBinaries[o.version])
	cmd.Env = cleanEnvironment(
		"GAMELIFT_SDK_WEBSOCKET_URL="+o.url, "GAMELIFT_SDK_AUTH_TOKEN="+p.token, "GAMELIFT_SDK_FLEET_ID="+p.fleet,
		"GAMELIFT_SDK_HOST_ID="+p.compute, "GAMELIFT_SDK_PROCESS_ID="+o.process)
	if !o.slow {
		cmd.Env = append(cmd.Env, hurried...)
	}
	cmd.Env = append(cmd.Env, o.env...)
	stdin, err := cmd.StdinPipe()
	must(p.t, err)
	stdout, printed := io.Pipe() // not StdoutPipe: its end would be cut off when the program exits
	cmd.Stdout = printed
	s := &sdkServer{process: o.process, words: json.NewEncoder(stdin), replies: make(chan sdkLine, 1), more: make(chan struct{})}
	s.program = run(p.t, cmd)
	go s.listen(stdout)
	go func() {
		<-s.exited
		printed.Close()
	}()
	return s
}

func (s *sdkServer) listen(in io.Reader) {
	defer close(s.replies)
	for lines := json.NewDecoder(in); ; {
		var l sdkLine
		if lines.Decode(&l) != nil {
			return // the program has ended
		}
		if l.Reply != "" {
			s.replies <- l
			continue
		}
		s.mu.Lock()
		s.events = append(s.events, l)
		close(s.more)
		s.more = make(chan struct{})
		s.mu.Unlock()
	}
}

// do makes one call of the SDK and waits for its end. A server makes one call at a time.
func (s *sdkServer) do(words ...string) sdkLine {
	s.t.Helper()
	s.begin(words...)
	return s.finish()
}

func (s *sdkServer) begin(words ...string) {
	s.t.Helper()
	must(s.t, s.words.Encode(words))
}

func (s *sdkServer) finish() sdkLine {
	s.t.Helper()
	select {
	case l, ok := <-s.replies:
		if !ok {
			s.t.Fatalf("the game server ended during a call:\n%s", s.logs.tail(30))
		}
		return l
	case <-time.After(patience):
		s.t.Fatalf("the call does not end:\n%s", s.logs.tail(30))
		return sdkLine{}
	}
}

// must makes a call that must succeed.
func (s *sdkServer) must(words ...string) sdkLine {
	s.t.Helper()
	l := s.do(words...)
	if l.Error != "" {
		s.t.Fatalf("%s: %s", strings.Join(words, " "), l.Error)
	}
	return l
}

// untilEvent waits for the n-th event of a kind, from 1.
func (s *sdkServer) untilEvent(kind string, n int) sdkLine {
	s.t.Helper()
	for timeout := time.After(patience); ; {
		s.mu.Lock()
		seen, more := 0, s.more
		for _, e := range s.events {
			if e.Event == kind {
				if seen++; seen == n {
					s.mu.Unlock()
					return e
				}
			}
		}
		s.mu.Unlock()
		select {
		case <-more:
		case <-timeout:
			s.t.Fatalf("event %q number %d never came:\n%s", kind, n, s.logs.tail(30))
		}
	}
}

// connections returns how many connections the SDK has made, according to its log. The first log line may arrive after a reply, which uses another pipe.
func (s *sdkServer) connections() int {
	s.until(": starting\n")
	return strings.Count(s.logs.String(), ": starting\n")
}

// untilConnected waits until the SDK has made one more connection than before. It does not repeat a request that it wrote to a lost
// connection.
func (s *sdkServer) untilConnected(before int) {
	s.t.Helper()
	waittest.Until(s.t, "the game server to be back", func() bool { return s.connections() > before })
}

func (s *sdkServer) countEvents(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.events {
		if e.Event == kind {
			n++
		}
	}
	return n
}

// ready starts a server and waits until it can host a session.
func (p *place) ready(o sdkOptions) *sdkServer {
	p.t.Helper()
	s := p.startSDKServer(o)
	s.must("init")
	s.must("ready", "7777")
	return s
}

// hosting starts a server with an ACTIVE game session.
func (p *place) hosting(o sdkOptions, playersMax int32) (*sdkServer, string) {
	p.t.Helper()
	s := p.ready(o)
	id := *p.createGameSession(playersMax).GameSessionId
	s.untilEvent("start", 1)
	s.must("activate")
	p.untilGameSession(id, "ACTIVE")
	return s, id
}

// join lets a player play.
func (a *arena) join(playerSession, name string) *game.Client {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	c, err := game.Dial(ctx, a.address, playerSession, name)
	must(a.t, err)
	return c
}

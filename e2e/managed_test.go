package e2e

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// valve is a proxy that stops forwarding after a number of bytes, so that a test can interrupt a transfer in the middle.
type valve struct {
	listener net.Listener
	to       string

	mu     sync.Mutex
	change *sync.Cond
	passed int64
	shutAt int64 // the number of bytes after which it is shut; 0: never
}

func newValve(t *testing.T, to string) *valve {
	t.Helper()
	l, err := net.Listen("tcp", porttest.Free(t))
	must(t, err)
	v := &valve{listener: l, to: to}
	v.change = sync.NewCond(&v.mu)
	t.Cleanup(func() {
		l.Close()
		v.open()
	})
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go v.serve(in)
		}
	}()
	return v
}

func (v *valve) url() string { return "http://" + v.listener.Addr().String() }

func (v *valve) serve(in net.Conn) {
	out, err := net.Dial("tcp", v.to)
	if err != nil {
		in.Close()
		return
	}
	both := func() { in.Close(); out.Close() }
	go func() {
		defer both()
		_, _ = io.Copy(valvePart{v, out}, in)
	}()
	defer both()
	_, _ = io.Copy(valvePart{v, in}, out)
}

// valvePart is one direction of a connection.
type valvePart struct {
	valve *valve
	net.Conn
}

func (p valvePart) Write(b []byte) (int, error) {
	v := p.valve
	v.mu.Lock()
	v.passed += int64(len(b))
	v.change.Broadcast()
	for v.shutAt > 0 && v.passed >= v.shutAt {
		v.change.Wait()
	}
	v.mu.Unlock()
	return p.Conn.Write(b)
}

// shutAfter lets n more bytes pass, and returns the number so far.
func (v *valve) shutAfter(n int64) (before int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shutAt = v.passed + n
	return v.passed
}

func (v *valve) untilShut(t *testing.T) {
	t.Helper()
	waittest.Until(t, "the valve to be shut in the middle of a transfer", func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.passed >= v.shutAt
	})
}

func (v *valve) open() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shutAt = 0
	v.change.Broadcast()
}

func (v *valve) count() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.passed
}

// From a directory to a game session on a host that joined with a token, with the same programs as users. The service is killed in the middle of the upload and of the fetch, the
// agent in the middle of the fetch; each transfer continues where it was interrupted.
func TestManagedFleetThroughKills(t *testing.T) {
	t.Parallel()
	s := newService(t, "--dev=false")
	v := newValve(t, s.address)
	s.args = append(s.args, "--public-url", v.url())
	id, secret := s.key("admin")
	s.start()
	ctx := t.Context()
	admin := s.apiWith(id, secret)
	restart := func() {
		t.Helper()
		s.kill()
		v.open()
		s.start()
		admin = s.apiWith(id, secret)
	}

	const size = 48 << 20
	root := buildRoot(t, size)
	server, err := os.ReadFile(arenaServerBinary)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(root, "bin", "server"), server, 0o755))
	whole := int64(size + len(server))

	// The upload.
	before := v.shutAfter(whole * 2 / 3)
	pushed := newOutput()
	push := exec.CommandContext(ctx, musterBinary, "build", "push", root, "--server", v.url(), "--name", "arena")
	push.Env = cleanEnvironment("HOME="+t.TempDir(), "AWS_ACCESS_KEY_ID="+id, "AWS_SECRET_ACCESS_KEY="+secret)
	push.Stdout, push.Stderr = pushed, pushed
	must(t, push.Start())
	v.untilShut(t)
	restart()
	if err := push.Wait(); err != nil {
		t.Fatalf("push: %v\n%s", err, pushed)
	}
	if text := pushed.String(); !strings.Contains(text, "is READY") || !strings.Contains(text, "the service does not answer") || !strings.Contains(text, "answers again") {
		t.Errorf("push printed %s", text)
	}
	if n := v.count() - before; n > whole*3/2 { // some parts were on the way
		t.Errorf("the push of %d bytes took %d on the wire: it did not go on where it was", whole, n)
	}
	builds, err := admin.ListBuilds(ctx, &gamelift.ListBuildsInput{})
	must(t, err)

	// The fleet, and a host for it.
	const location = "custom-rack"
	_, err = admin.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: aws.String(location)})
	must(t, err)
	createFleet := func() *string {
		t.Helper()
		created, err := admin.CreateFleet(ctx, &gamelift.CreateFleetInput{
			Name: aws.String("arena"), BuildId: builds.Builds[0].BuildId, Locations: []types.LocationConfiguration{{Location: aws.String(location)}},
			RuntimeConfiguration: &types.RuntimeConfiguration{ServerProcesses: []types.ServerProcess{
				{LaunchPath: aws.String("/local/game/bin/server"), Parameters: aws.String("--port {port}"), ConcurrentExecutions: aws.Int32(1)},
			}},
		})
		must(t, err)
		return created.FleetAttributes.FleetId
	}
	fleet := createFleet()
	dir := t.TempDir()
	token := filepath.Join(dir, "join")
	must(t, os.WriteFile(token, []byte(s.command("hosts", "join-token", "--location", location, "--data", s.data, "--listen", s.address)), 0o600))
	agentLog := newOutput()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the agent:\n%s", agentLog.tail(40))
		}
	})
	runAgent := func() *exec.Cmd {
		t.Helper()
		cmd := exec.CommandContext(context.WithoutCancel(ctx), musterBinary, "agent", "--server", v.url(), "--join-token-file", token, "--compute-name", "rack-1", "--ip", "127.0.0.1",
			"--state-dir", filepath.Join(dir, "agent"), "--ports", "10000-10999", "--end-processes", "--kill-timeout", "1s")
		cmd.Env = cleanEnvironment()
		cmd.Stdout, cmd.Stderr = agentLog, agentLog
		must(t, cmd.Start())
		return cmd
	}

	// The fetch.
	before = v.shutAfter(whole / 3)
	agent := runAgent()
	v.untilShut(t)
	must(t, agent.Process.Kill())
	_ = agent.Wait() // it was killed
	v.shutAfter(whole / 3)
	agent = runAgent()
	t.Cleanup(func() {
		_ = agent.Process.Signal(syscall.SIGTERM) // ends its server processes
		_ = agent.Wait()
	})
	v.untilShut(t)
	restart()
	p := &place{service: s, fleet: *fleet, location: location}
	s.client = admin
	status := func(fleet *string) types.FleetStatus {
		t.Helper()
		out, err := admin.DescribeFleetAttributes(ctx, &gamelift.DescribeFleetAttributesInput{FleetIds: []string{*fleet}})
		must(t, err)
		if len(out.FleetAttributes) == 0 {
			return ""
		}
		return out.FleetAttributes[0].Status
	}
	waittest.Until(t, "the fleet to be ACTIVE", func() bool { return status(fleet) == types.FleetStatusActive })
	if n := v.count() - before; n > whole*3/2 {
		t.Errorf("the fetch of %d bytes took %d on the wire: it did not go on where it was", whole, n)
	}
	game := p.createGameSession(2)
	s.untilGameSession(*game.GameSessionId, types.GameSessionStatusActive)
	if codes := p.eventsOf(); !slices.Contains(codes, "FLEET_STATE_DOWNLOADING") || !slices.Contains(codes, "FLEET_STATE_ACTIVE") {
		t.Errorf("events %v", codes)
	}

	// It is deleted as Terraform does it, with its host and its game session. The host serves the next fleet.
	_, err = admin.DeleteFleet(ctx, &gamelift.DeleteFleetInput{FleetId: fleet})
	must(t, err)
	waittest.Until(t, "the fleet to be gone", func() bool { return status(fleet) == "" })
	s.untilGameSession(*game.GameSessionId, types.GameSessionStatusTerminated)
	next := createFleet()
	waittest.Until(t, "the next fleet to be ACTIVE", func() bool { return status(next) == types.FleetStatusActive })
}

package e2e

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"golang.org/x/sys/unix"

	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/waittest"
)

// racks is the setup of docs/guide/ten-hosts.md: a service with TLS, and hosts that joined with one token. Each has a network namespace.
type racks struct {
	t     *testing.T
	wires *wires // the service is at 0, the hosts follow
	url   string
	data  string
	env   []string // for commands and agents
	api   *gamelift.Client
	fleet string
	hosts []*rackHost
}

// rackHost is a host and its agent.
type rackHost struct {
	r    *racks
	no   int
	dir  string // of the agent's state, on a disk of its own
	cmd  *exec.Cmd
	logs *output
}

const (
	rackLocation  = "custom-rack"
	rackProcesses = 2 // of each host
)

func (h *rackHost) name() string { return fmt.Sprintf("host-%d", h.no) }

func (h *rackHost) address() string { return h.r.wires.address(h.no) }

// startRacks starts the service.
func startRacks(t *testing.T, hosts int) *racks {
	t.Helper()
	r := &racks{t: t, wires: newWires(t, hosts+1), data: t.TempDir()}
	at := net.JoinHostPort(r.wires.address(0), "8443")
	r.url = "https://" + at
	ca := newAuthority(t)
	cert, key := inFiles(t, ca.certificate("muster", x509.ExtKeyUsageServerAuth, net.ParseIP(r.wires.address(0))))
	roots := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw}), 0o600))
	r.env = cleanEnvironment("SSL_CERT_FILE=" + roots)

	found := regexp.MustCompile(`AWS_ACCESS_KEY_ID=(\S+)\n.*AWS_SECRET_ACCESS_KEY=(\S+)`).FindStringSubmatch(
		r.muster("keys", "create", "--data", r.data, "--role", "admin", "--format", "env"))
	if found == nil {
		t.Fatal("no key was printed")
	}
	r.env = append(r.env, "AWS_ACCESS_KEY_ID="+found[1], "AWS_SECRET_ACCESS_KEY="+found[2])
	client := caller(t, ca.pool())
	client.Transport.(*http.Transport).DialContext = r.wires.ends[0].dial
	r.api = gamelift.New(gamelift.Options{
		Region: region, BaseEndpoint: &r.url, Credentials: credentials.NewStaticCredentialsProvider(found[1], found[2], ""),
		RetryMaxAttempts: 1, HTTPClient: wholeAnswers{client, nil},
	})

	logs := newOutput()
	cmd := exec.Command(musterBinary, "serve", "--data", r.data, "--listen", at, "--tls-cert", cert, "--tls-key", key, "--public-url", r.url)
	cmd.Env, cmd.Stdout, cmd.Stderr = cleanEnvironment(), logs, logs
	must(t, r.wires.ends[0].in(cmd.Start))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("log of the service:\n%s", logs.tail(40))
		}
	})
	waittest.Until(t, "the service to answer", func() bool {
		_, err := r.api.ListFleets(t.Context(), &gamelift.ListFleetsInput{})
		return err == nil
	})
	return r
}

// muster runs a command on the machine of the service.
func (r *racks) muster(args ...string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, musterBinary, args...)
	cmd.Env = r.env
	var out, problems strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := r.wires.ends[0].in(cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		r.t.Fatalf("muster %v: %v\n%s", args, err, &problems)
	}
	return out.String()
}

// list returns the output of muster hosts, by name.
func (r *racks) list() map[string]operator.Host {
	r.t.Helper()
	var list operator.HostList
	must(r.t, json.Unmarshal([]byte(r.muster("hosts", "--json", "--server", r.url)), &list))
	byName := map[string]operator.Host{}
	for _, h := range list.Hosts {
		byName[h.Name] = h
	}
	return byName
}

// managedFleet pushes the game as a build and makes a fleet with it.
func (r *racks) managedFleet() {
	r.t.Helper()
	game := r.t.TempDir()
	// The server is this binary: a build of a few bytes, so that eleven machines fit on one.
	must(r.t, os.WriteFile(filepath.Join(game, "server"), []byte("#!/bin/sh\nexec "+musterBinary+" arena-server \"$@\"\n"), 0o755))
	build := regexp.MustCompile(`build-[0-9a-f-]+`).FindString(r.muster("build", "push", game, "--name", "arena", "--server", r.url))
	_, err := r.api.CreateLocation(r.t.Context(), &gamelift.CreateLocationInput{LocationName: aws.String(rackLocation)})
	must(r.t, err)
	made, err := r.api.CreateFleet(r.t.Context(), &gamelift.CreateFleetInput{
		Name: aws.String("arena"), BuildId: &build, EC2InstanceType: "c5.large", Locations: []types.LocationConfiguration{{Location: aws.String(rackLocation)}},
		RuntimeConfiguration: &types.RuntimeConfiguration{ServerProcesses: []types.ServerProcess{
			{LaunchPath: aws.String("/local/game/server"), Parameters: aws.String("-port={port}"), ConcurrentExecutions: aws.Int32(rackProcesses)},
		}},
	})
	must(r.t, err)
	r.fleet = *made.FleetAttributes.FleetId
}

// join makes hosts join with one token. The state of each is on its own small disk.
func (r *racks) join(n int) {
	r.t.Helper()
	token := filepath.Join(r.t.TempDir(), "join")
	must(r.t, os.WriteFile(token, []byte(r.muster("hosts", "join-token", "--server", r.url, "--location", rackLocation, "--uses", fmt.Sprint(n))), 0o600))
	for no := 1; no <= n; no++ {
		h := &rackHost{r: r, no: no, dir: r.t.TempDir(), logs: newOutput()}
		if err := unix.Mount("tmpfs", h.dir, "tmpfs", 0, "size=16m"); err != nil {
			cannotRun(r.t, "no disk of its own for a host, which needs root: %v", err)
		}
		r.t.Cleanup(func() {
			h.kill()
			_ = unix.Unmount(h.dir, unix.MNT_DETACH)
			if r.t.Failed() {
				r.t.Logf("log of %s:\n%s", h.name(), h.logs.tail(15))
			}
		})
		r.hosts = append(r.hosts, h)
		h.start(token)
	}
}

func (h *rackHost) start(token string) {
	h.r.t.Helper()
	h.cmd = exec.Command(musterBinary, "agent", "--server", h.r.url, "--join-token-file", token, "--compute-name", h.name(), "--state-dir", h.dir)
	h.cmd.Env, h.cmd.Stdout, h.cmd.Stderr = h.r.env, h.logs, h.logs
	must(h.r.t, h.r.wires.ends[h.no].in(h.cmd.Start))
}

// processes returns the process numbers of the host's server processes, by id.
func (h *rackHost) processes() map[string]int {
	text, err := os.ReadFile(filepath.Join(h.dir, "agent.json"))
	if err != nil {
		return nil
	}
	var state struct {
		Processes []struct {
			ID     string
			Record struct{ PID int }
		}
	}
	must(h.r.t, json.Unmarshal(text, &state))
	byID := map[string]int{}
	for _, p := range state.Processes {
		byID[p.ID] = p.Record.PID
	}
	return byID
}

// kill ends the agent and all server processes of the host at once, as the loss of its power does.
func (h *rackHost) kill() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
	for _, pid := range h.processes() {
		if pid > 0 {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	}
}

// cut cuts a host off, or connects it again.
func (r *racks) cut(host int, off bool) {
	r.wires.set(func(from, to int) *line {
		if off && (from == host || to == host) {
			return &line{cut: true}
		}
		return nil
	})
}

// untilProcesses waits until hosts have n connected server processes.
func (r *racks) untilProcesses(what string, n int, of ...string) {
	r.t.Helper()
	waittest.Until(r.t, what, func() bool {
		for name, h := range r.list() {
			if (len(of) == 0 || slices.Contains(of, name)) && (h.State != "ready" || h.Processes != n) {
				return false
			}
		}
		return true
	})
}

func (r *racks) create() (*types.GameSession, error) {
	out, err := r.api.CreateGameSession(r.t.Context(), &gamelift.CreateGameSessionInput{
		FleetId: &r.fleet, Location: aws.String(rackLocation), MaximumPlayerSessionCount: aws.Int32(2),
	})
	if err != nil {
		return nil, err
	}
	return out.GameSession, nil
}

// fill creates a game session for each free server process, and returns them by the address of their host.
func (r *racks) fill(n int) map[string][]string {
	r.t.Helper()
	games := map[string][]string{}
	for range n {
		var g *types.GameSession
		waittest.Until(r.t, "a game session", func() (ok bool) {
			var err error
			g, err = r.create() // a process is eligible slightly after it is ready
			if full := (*types.FleetCapacityExceededException)(nil); err != nil && !errors.As(err, &full) {
				r.t.Fatal(err)
			}
			return err == nil
		})
		games[*g.IpAddress] = append(games[*g.IpAddress], *g.GameSessionId)
	}
	for _, of := range games {
		for _, id := range of {
			r.until(id, types.GameSessionStatusActive)
		}
	}
	return games
}

func (r *racks) session(id string) types.GameSession {
	r.t.Helper()
	out, err := r.api.DescribeGameSessions(r.t.Context(), &gamelift.DescribeGameSessionsInput{GameSessionId: &id})
	must(r.t, err)
	if len(out.GameSessions) != 1 {
		r.t.Fatalf("%d game sessions %s", len(out.GameSessions), id)
	}
	return out.GameSessions[0]
}

func (r *racks) until(id string, want types.GameSessionStatus) {
	r.t.Helper()
	waittest.Until(r.t, fmt.Sprintf("game session %s to be %s", id, want), func() bool { return r.session(id).Status == want })
}

// play makes a player join a game session over the network, say something and leave.
func (r *racks) play(id, player string) {
	r.t.Helper()
	seat, err := r.api.CreatePlayerSession(r.t.Context(), &gamelift.CreatePlayerSessionInput{GameSessionId: &id, PlayerId: &player})
	must(r.t, err)
	p := seat.PlayerSession
	out := r.muster("arena-client", "-address", net.JoinHostPort(*p.IpAddress, fmt.Sprint(*p.Port)), "-player-session", *p.PlayerSessionId, "-name", player,
		"-script", "say hello; wait said; leave", "-timeout", patience.String())
	if !strings.Contains(out, "said "+player+": hello") {
		r.t.Errorf("%s played: %s", player, out)
	}
}

// TestTenHosts follows docs/guide/ten-hosts.md, and then causes faults at the hosts.
func TestTenHosts(t *testing.T) {
	t.Parallel()
	const n = 10
	r := startRacks(t, n)
	r.managedFleet()
	r.join(n)
	waittest.Until(t, "ten hosts to have joined", func() bool { return len(r.list()) == n })
	_, err := r.api.UpdateFleetCapacity(t.Context(), &gamelift.UpdateFleetCapacityInput{
		FleetId: &r.fleet, Location: aws.String(rackLocation), DesiredInstances: aws.Int32(n), MaxSize: aws.Int32(n),
	})
	must(t, err)
	r.untilProcesses("all hosts to run their server processes", rackProcesses)

	waittest.Until(t, "the fleet to be ACTIVE", func() bool {
		out, err := r.api.DescribeFleetAttributes(t.Context(), &gamelift.DescribeFleetAttributesInput{FleetIds: []string{r.fleet}})
		must(t, err)
		return out.FleetAttributes[0].Status == types.FleetStatusActive
	})

	games := r.fill(n * rackProcesses)
	for _, h := range r.hosts {
		if len(games[h.address()]) != rackProcesses {
			t.Errorf("%s has the game sessions %v, want %d of them", h.name(), games[h.address()], rackProcesses)
		}
	}
	if _, err := r.create(); !isError[*types.FleetCapacityExceededException](err) {
		t.Errorf("one more game session: %v", err)
	}
	r.play(games[r.hosts[0].address()][0], "ann")

	t.Run("cut off", func(t *testing.T) { r.cutOff(r.hosts[1], games[r.hosts[1].address()]) })
	t.Run("reboot", func(t *testing.T) { r.reboot(r.hosts[2], games[r.hosts[2].address()]) })
	t.Run("full disk", func(t *testing.T) { r.fullDisk(r.hosts[3], games[r.hosts[3].address()]) })
	for i, h := range r.hosts {
		if i == 0 || i > 3 {
			for _, id := range games[h.address()] {
				if s := r.session(id); s.Status != types.GameSessionStatusActive {
					t.Errorf("game session %s on %s, to which nothing happened, is %s", id, h.name(), s.Status)
				}
			}
		}
	}
}

// cutOff: a process of a host ends while the host is cut off. The service learns of that when the host is back; the other match has continued.
func (r *racks) cutOff(h *rackHost, games []string) {
	r.cut(h.no, true)
	ended := r.killOne(h)
	waittest.Until(r.t, "the agent to see the end", func() bool { return h.processes()[ended] == 0 })
	if over := r.over(games); over != 0 {
		r.t.Errorf("%d game sessions of a host that cannot be reached have ended", over)
	}
	r.cut(h.no, false)
	waittest.Until(r.t, "the game session of the ended process to end", func() bool { return r.over(games) == 1 })
	r.untilProcesses("another server process in its place", rackProcesses, h.name())
	for _, id := range games {
		if r.session(id).Status == types.GameSessionStatusActive {
			r.play(id, "bob")
		}
	}
}

// killOne kills a server process of a host, and returns its id.
func (r *racks) killOne(h *rackHost) string {
	r.t.Helper()
	for id, pid := range h.processes() {
		must(r.t, syscall.Kill(pid, syscall.SIGKILL))
		return id
	}
	r.t.Fatalf("%s has no server process", h.name())
	return ""
}

// over counts the game sessions that have ended.
func (r *racks) over(games []string) (n int) {
	for _, id := range games {
		if r.session(id).Status == types.GameSessionStatusTerminated {
			n++
		}
	}
	return n
}

// reboot: agent and server processes end at once. The host returns with its identity, without a token, and runs new processes.
func (r *racks) reboot(h *rackHost, games []string) {
	before := r.list()[h.name()].ID
	h.kill()
	h.start("/nonexistent")
	waittest.Until(r.t, "the game sessions of the host to end", func() bool { return r.over(games) == len(games) })
	r.untilProcesses("new server processes after the reboot", rackProcesses, h.name())
	if all := r.list(); all[h.name()].ID != before || len(all) != len(r.hosts) {
		r.t.Errorf("%d hosts, and %s is %s, which was %s", len(all), h.name(), all[h.name()].ID, before)
	}
	for address := range r.fill(rackProcesses) {
		if address != h.address() && address != r.hosts[1].address() {
			r.t.Errorf("a game session was created at %s, want the host that is back", address)
		}
	}
}

// fullDisk: with a full disk, the match of a host continues, and the end of its other process is reported. Once there is room, another one starts.
func (r *racks) fullDisk(h *rackHost, games []string) {
	ballast := filepath.Join(h.dir, "ballast")
	file, err := os.Create(ballast)
	must(r.t, err)
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	file.Close()
	if !errors.Is(err, syscall.ENOSPC) {
		r.t.Fatal(err)
	}
	r.killOne(h)
	waittest.Until(r.t, "the game session of the ended process to end", func() bool { return r.over(games) == 1 })
	waittest.Until(r.t, "the agent to say what is wrong", func() bool { return strings.Contains(h.logs.String(), "no space left on device") })
	for _, id := range games {
		if r.session(id).Status == types.GameSessionStatusActive {
			r.play(id, "cid")
		}
	}
	must(r.t, os.Remove(ballast))
	r.untilProcesses("another server process once there is room", rackProcesses, h.name())
}

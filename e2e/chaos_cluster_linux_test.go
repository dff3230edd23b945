package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/powertest"
	"github.com/musterhq/muster/internal/waittest"
)

// inNamespace is the address of every node: on the loopback interface of its own namespace, where development mode may listen.
const inNamespace = "127.0.0.1:8080"

// clusterOf is a cluster of real nodes, each in a network namespace.
type clusterOf struct {
	t     *testing.T
	wires *wires
	disk  *powertest.Disk // of the first node
	nodes []*clusterNode
}

// clusterNode is one node, which can be killed, stopped and started again.
type clusterNode struct {
	c    *clusterOf
	no   int
	data string
	id   string // in the cluster
	logs *output
	args []string

	clients *clientWire // to the node

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{}
}

// startCluster starts n nodes. The logs of a failed test stay in its artifacts.
func startCluster(t *testing.T, n int, args ...string) *clusterOf {
	t.Helper()
	c := &clusterOf{t: t, wires: newWires(t, n), disk: powertest.Mount(t, 1)}
	for no := range n {
		x := &clusterNode{c: c, no: no, data: t.TempDir(), logs: newOutput(), args: args, clients: newClientWire()}
		if no == 0 {
			x.data = filepath.Join(c.disk.Dir(), "data")
		}
		c.nodes = append(c.nodes, x)
		t.Cleanup(func() {
			c.heal()
			x.kill()
			if t.Failed() {
				file := filepath.Join(t.ArtifactDir(), fmt.Sprintf("node-%d.log", no+1))
				if err := os.WriteFile(file, []byte(x.logs.String()), 0o600); err != nil {
					t.Error(err)
				}
				t.Logf("log of node %d: %s, of which these are the last lines:\n%s", no+1, file, x.logs.tail(30))
			}
		})
	}
	c.nodes[0].start()
	c.nodes[0].untilReady()
	for _, x := range c.nodes[1:] {
		token := c.nodes[0].muster("cluster", "join-token")
		x.args = append(x.args[:len(x.args):len(x.args)], "--join", strings.TrimSpace(token))
		x.start()
		x.untilReady()
	}
	for _, x := range c.nodes {
		waittest.Until(t, fmt.Sprintf("node %d to know all voters", x.no+1), func() bool {
			s, err := x.status()
			if err != nil {
				return false
			}
			voters := 0
			for _, m := range s.Members {
				if m.Address == x.address() {
					x.id = m.ID
				}
				if m.Role != "observer" {
					voters++
				}
			}
			return voters == n
		})
	}
	return c
}

// address returns the address of this node for other nodes.
func (x *clusterNode) address() string { return x.c.wires.address(x.no) + ":8090" }

func (x *clusterNode) start() {
	x.c.t.Helper()
	args := append([]string{"serve", "--data", x.data, "--listen", inNamespace, "--dev", "--cluster-listen", x.address()}, x.args...)
	cmd := exec.Command(musterBinary, args...)
	cmd.Env = cleanEnvironment()
	cmd.Stdout, cmd.Stderr = x.logs, x.logs
	must(x.c.t, x.c.wires.ends[x.no].in(cmd.Start))
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		close(exited)
	}()
	x.mu.Lock()
	x.cmd, x.exited = cmd, exited
	x.mu.Unlock()
}

func (x *clusterNode) process() (*exec.Cmd, chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.cmd, x.exited
}

// kill ends the process without a warning.
func (x *clusterNode) kill() {
	if cmd, exited := x.process(); cmd != nil {
		_ = cmd.Process.Kill() // fails only when it is over already
		<-exited
	}
}

// stop ends the process normally. A process that does not end is a failure.
func (x *clusterNode) stop() error {
	cmd, exited := x.process()
	_ = cmd.Process.Signal(syscall.SIGTERM) // fails only when it is over already
	select {
	case <-exited:
		return nil
	case <-time.After(time.Minute):
		_ = cmd.Process.Signal(syscall.SIGQUIT) // its goroutines are in the log
		<-exited
		return fmt.Errorf("node %d did not end within a minute after SIGTERM", x.no+1)
	}
}

// running reports whether the process runs.
func (x *clusterNode) running() bool {
	_, exited := x.process()
	select {
	case <-exited:
		return false
	default:
		return true
	}
}

// freeze stops the process where it is, until the result is called.
func (x *clusterNode) freeze() (thaw func()) {
	cmd, _ := x.process()
	_ = cmd.Process.Signal(syscall.SIGSTOP) // fails only when it is over
	return func() { _ = cmd.Process.Signal(syscall.SIGCONT) }
}

// muster runs a command on the node's machine.
func (x *clusterNode) muster(args ...string) string {
	x.c.t.Helper()
	out, err := x.try(args...)
	must(x.c.t, err)
	return out
}

func (x *clusterNode) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, musterBinary, append(args, "--data", x.data)...)
	cmd.Env = cleanEnvironment()
	var out, problems strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := x.c.wires.ends[x.no].in(cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		err = fmt.Errorf("muster %v: %w: %s", args, err, problems.String())
	}
	return out.String(), err
}

type shownStatus struct {
	By, Leader string
	Members    []struct{ ID, Address, Role string }
}

func (x *clusterNode) status() (s shownStatus, err error) {
	out, err := x.try("cluster", "status", "--json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &s)
	}
	return s, err
}

// dial connects a client or a game server to the node.
func (x *clusterNode) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return x.clients.dial(ctx, func(ctx context.Context) (net.Conn, error) { return x.c.wires.ends[x.no].dial(ctx, network, address) })
}

// ready reports whether clients should use the node.
func (x *clusterNode) ready() bool {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DialContext: x.c.wires.ends[x.no].dial}} // on the node's machine
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://" + inNamespace + "/readyz")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (x *clusterNode) untilReady() {
	x.c.t.Helper()
	waittest.Until(x.c.t, fmt.Sprintf("node %d to be ready", x.no+1), func() bool {
		if !x.running() {
			cmd, _ := x.process()
			x.c.t.Fatalf("node %d ended: %v\n%s", x.no+1, cmd.ProcessState, x.logs.tail(40))
		}
		return x.ready()
	})
}

// api returns a client of only this node, without retries, so that tests see the first answer.
func (x *clusterNode) api() *gamelift.Client {
	return gamelift.New(gamelift.Options{
		Region: region, BaseEndpoint: aws.String("http://" + inNamespace), Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""),
		RetryMaxAttempts: 1, HTTPClient: wholeAnswers{&http.Client{Timeout: clusterPatience, Transport: &http.Transport{DialContext: x.dial, MaxIdleConnsPerHost: 100}}, nil},
	})
}

// clusterPatience is longer than a node waits for a leader.
const clusterPatience = 15 * time.Second

// leader returns the node that reports itself as leader.
func (c *clusterOf) leader() (leader *clusterNode) {
	c.t.Helper()
	waittest.Until(c.t, "a node to lead", func() bool {
		for _, x := range c.nodes {
			if !x.running() {
				continue
			}
			s, err := x.status() // of the leader, if the node reaches it
			for _, y := range c.nodes {
				if err == nil && s.By == s.Leader && s.Leader == y.id {
					leader = y
					return true
				}
			}
		}
		return false
	})
	return leader
}

// others returns all nodes except one.
func (c *clusterOf) others(than *clusterNode) (others []*clusterNode) {
	for _, x := range c.nodes {
		if x != than {
			others = append(others, x)
		}
	}
	return others
}

// heal repairs the networks and the disk.
func (c *clusterOf) heal() {
	c.wires.heal()
	for _, x := range c.nodes {
		x.clients.set(clientLine{})
	}
	c.disk.Fill(false)
	c.disk.Slow(0)
}

// settle heals everything, starts nodes that do not run, and waits until all are ready.
func (c *clusterOf) settle() {
	c.t.Helper()
	c.heal()
	start := func() {
		for _, x := range c.nodes {
			if !x.running() {
				x.start()
			}
		}
	}
	start()
	// A node whose disk was full may have been on its way out: its supervisor starts it once more.
	waittest.Until(c.t, "all nodes to be ready, or one to end", func() bool {
		return slices.ContainsFunc(c.nodes, func(x *clusterNode) bool { return !x.running() }) || !slices.ContainsFunc(c.nodes, func(x *clusterNode) bool { return !x.ready() })
	})
	start()
	for _, x := range c.nodes {
		x.untilReady()
	}
}

// note writes a line into the logs of all nodes, so that they show the steps of the test.
func (c *clusterOf) note(text string) {
	for _, x := range c.nodes {
		fmt.Fprintf(x.logs, "time=%s TEST %s\n", time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), text)
	}
}

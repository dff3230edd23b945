package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/demo"
	"github.com/musterhq/muster/internal/localdoor"
)

// demoCluster is a cluster of three nodes, each a process with its own directory.
type demoCluster struct {
	nodes []*demoNode
	out   io.Writer
}

type demoNode struct {
	dir, endpoint string
	process       *os.Process
	ended         chan struct{}
}

// demoPatience limits each wait of the demo.
const demoPatience = time.Minute

// startCluster starts three nodes in directories below dir.
func startCluster(ctx context.Context, first, dir string, out io.Writer) (_ *demoCluster, err error) {
	c := &demoCluster{out: out}
	defer func() {
		if err != nil {
			c.end()
		}
	}()
	host, port, err := net.SplitHostPort(first)
	if err != nil {
		return nil, fmt.Errorf("--listen %q: %w", first, err)
	}
	for i := range 3 {
		listen := first
		if i > 0 || port == "0" {
			if listen, err = freeOn(host); err != nil {
				return nil, err
			}
		}
		var join []string
		if i > 0 {
			token, err := c.nodes[0].token(ctx)
			if err != nil {
				return nil, err
			}
			join = []string{"--join", token}
		}
		peers, err := freeOn(host)
		if err != nil {
			return nil, err
		}
		n, err := startNode(filepath.Join(dir, fmt.Sprint("node", i+1)), listen, peers, join)
		if err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, n)
		if err := n.untilReady(ctx); err != nil {
			return nil, err
		}
		fmt.Fprintf(out, "Node %d is up at %s.\n", i+1, n.endpoint)
	}
	_, err = c.until(ctx, "three nodes vote", func(s node.Status) bool {
		return len(s.Members) == 3 && s.Members[0].Role != "observer" && s.Members[1].Role != "observer" && s.Members[2].Role != "observer"
	}, c.nodes[0])
	return c, err
}

func freeOn(host string) (string, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func startNode(dir, listen, peers string, flags []string) (*demoNode, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	log, err := os.Create(dir + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(self, append([]string{"serve", "--dev", "--player-flow", "--data", dir, "--listen", listen, "--cluster-listen", peers}, flags...)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a node: %w", err)
	}
	n := &demoNode{dir: dir, endpoint: "http://" + listen, process: cmd.Process, ended: make(chan struct{})}
	go func() {
		defer close(n.ended)
		_ = cmd.Wait() // its log says how it ended
	}()
	return n, nil
}

func (n *demoNode) untilReady(ctx context.Context) error {
	why := "did not become ready"
	client := http.Client{Timeout: time.Second} // another program that has the port may never answer
	for end := time.Now().Add(demoPatience); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		answer, err := client.Get(n.endpoint + "/readyz")
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK && n.answers(ctx) { // another program that has the port may be ready
				return nil
			}
		}
		if n.over() {
			why = "has ended"
			break
		}
	}
	log, _ := os.ReadFile(n.dir + ".log")
	return errors.Join(ctx.Err(), fmt.Errorf("the node at %s %s:\n%s", n.endpoint, why, log))
}

// client returns a client of the node's commands.
func (n *demoNode) client() (*localdoor.Client, error) {
	return localdoor.NewClient(n.dir, nil, userName())
}

// answers reports whether the node answers commands on this machine.
func (n *demoNode) answers(ctx context.Context) bool {
	client, err := n.client()
	if err != nil {
		return false
	}
	_, err = client.ClusterStatus(ctx)
	return err == nil
}

func (n *demoNode) token(ctx context.Context) (string, error) {
	client, err := n.client()
	if err != nil {
		return "", err
	}
	return client.JoinToken(ctx)
}

// until waits until one of the nodes reports a given state of the cluster.
func (c *demoCluster) until(ctx context.Context, what string, is func(node.Status) bool, n *demoNode) (s node.Status, err error) {
	for end := time.Now().Add(demoPatience); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		var client *localdoor.Client
		if client, err = n.client(); err != nil {
			continue
		}
		if s, err = client.ClusterStatus(ctx); err == nil && is(s) {
			return s, nil
		}
	}
	return s, errors.Join(err, ctx.Err(), fmt.Errorf("waiting until %s", what))
}

// killLeader kills the first node, which leads, and waits until another node leads.
func (c *demoCluster) killLeader(ctx context.Context) (command, state string, err error) {
	leader := c.nodes[0]
	client, err := leader.client()
	if err != nil {
		return "", "", err
	}
	s, err := client.ClusterStatus(ctx)
	if err != nil {
		return "", "", err
	}
	began := time.Now()
	if err := leader.kill(); err != nil {
		return "", "", err
	}
	now, err := c.until(ctx, "another node leads", func(now node.Status) bool { return now.Leader != "" && now.Leader != s.Leader }, c.nodes[1])
	return "kill -9 the leader, " + s.Leader, fmt.Sprintf("%s leads after %s; the game, its server's connection and the players continue", now.Leader, time.Since(began).Round(10*time.Millisecond)), err
}

func (n *demoNode) kill() error {
	if err := n.process.Kill(); err != nil {
		return err
	}
	<-n.ended
	return nil
}

func (n *demoNode) over() bool {
	select {
	case <-n.ended:
		return true
	default:
		return false
	}
}

// end stops the remaining nodes.
func (c *demoCluster) end() {
	for _, n := range c.nodes {
		if runtime.GOOS == "windows" || n.process.Signal(os.Interrupt) != nil {
			_ = n.process.Kill() // the process may have ended
		}
		<-n.ended
	}
}

// config makes the demo use all three nodes: API calls rotate among them; game servers and players use the second node, which survives.
func (c *demoCluster) config() demo.Config {
	survivor := c.nodes[1].endpoint
	return demo.Config{
		Endpoint: survivor, Nodes: []string{c.nodes[0].endpoint, survivor, c.nodes[2].endpoint},
		Midway: c.killLeader, Out: c.out,
	}
}

// leadFirst makes the first node the leader if an election chose another one.
func (c *demoCluster) leadFirst(ctx context.Context) error {
	client, err := c.nodes[0].client()
	if err != nil {
		return err
	}
	s, err := client.ClusterStatus(ctx)
	if err != nil {
		return err
	}
	if founder := s.Members[0].ID; s.Leader != founder {
		_, err = client.ChangeCluster(ctx, node.Change{Do: node.HandOver, Node: founder})
	}
	return err
}

// runCluster plays the demo through three nodes.
func (c *demoCommand) runCluster(ctx context.Context, dir string, gameServer, gameClient []string, stdout io.Writer) error {
	fmt.Fprintln(stdout, "Three nodes of a cluster start on this machine (development mode, state and logs in "+dir+").")
	cluster, err := startCluster(ctx, c.Listen, dir, stdout)
	if err != nil {
		return err
	}
	defer cluster.end()
	if err := cluster.leadFirst(ctx); err != nil {
		return err
	}
	config := cluster.config()
	config.GameServer, config.GameClient = gameServer, gameClient
	return c.play(ctx, config, "Every step showed the expected state, even after the death of the leader.", nil)
}

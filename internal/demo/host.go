package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/operator"
)

// joinToken makes the token with which this machine joins as a host of the fleet.
func (d *Demo) joinToken(ctx context.Context) error {
	d.host = "DesktopPC"
	if d.again {
		d.host += strings.TrimPrefix(d.fleet, "fleet")[:9] // the host of an earlier demo has the plain name
	}
	var token bytes.Buffer
	if err := d.config.Muster(ctx, &token, "hosts", "join-token", "--server", d.config.Endpoint, "--fleet", d.fleet, "--location", location); err != nil {
		return fmt.Errorf("hosts join-token: %w", err)
	}
	if err := os.WriteFile(d.tokenFile(), token.Bytes(), 0o600); err != nil {
		return err
	}
	d.show("muster hosts join-token --server "+d.config.Endpoint+" --fleet FLEET --location "+location+" > join", "one host may join within an hour")
	return nil
}

func (d *Demo) tokenFile() string { return filepath.Join(d.config.Dir, "join") }

// agent is a running agent.
type agent struct {
	stop  context.CancelFunc
	ended chan struct{}
	err   error // why it ended; read after ended
}

// problem returns why the agent has ended unexpectedly, or nil.
func (a *agent) problem() error {
	select {
	case <-a.ended:
		return fmt.Errorf("the agent has ended: %w", a.err)
	default:
		return nil
	}
}

// startAgent starts the agent and waits until it is connected as a host. The agent does not end with ctx but with End, so that its game servers end in order.
func (d *Demo) startAgent(ctx context.Context) error {
	first := 20000 + 100*rand.IntN(100) // another demo may run on this machine
	ports := fmt.Sprintf("%d-%d", first, first+99)
	root := filepath.Dir(d.config.GameServer[0])
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	d.agent = &agent{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(d.agent.ended)
		d.agent.err = d.config.Muster(running, io.Discard, "agent", "--server", d.config.Endpoint, "--join-token-file", d.tokenFile(), "--compute-name", d.host,
			"--root", root, "--ports", ports, "--state-dir", filepath.Join(d.config.Dir, "agent"),
			"--end-processes", "--kill-timeout", "5s", "--log-level", "warn")
	}()
	host, err := d.awaitHost(ctx, "the agent is connected", func(h *operator.Host) bool { return h.State == "ready" })
	if err != nil {
		return err
	}
	d.show("muster agent --server "+d.config.Endpoint+" --join-token-file join --compute-name "+d.host+" --root "+root+" --ports "+ports,
		"%s is %s, serves %s and has %d free ports", host.Name, host.State, host.Serves, host.Ports)
	return nil
}

// awaitHost waits for a state of the host.
func (d *Demo) awaitHost(ctx context.Context, what string, is func(*operator.Host) bool) (host operator.Host, err error) {
	err = d.until(ctx, what, func() (bool, error) {
		var text bytes.Buffer
		if err := d.config.Muster(ctx, &text, "hosts", "--json", "--server", d.config.Endpoint); err != nil {
			return false, err
		}
		var list operator.HostList
		if err := json.Unmarshal(text.Bytes(), &list); err != nil {
			return false, err
		}
		for _, h := range list.Hosts {
			if h.Name == d.host && is(&h) {
				host = h
				return true, nil
			}
		}
		return false, d.agent.problem()
	})
	return host, err
}

// serverProcess is an entry of the runtime configuration: a game server for players of this machine only.
func (d *Demo) serverProcess(flags ...string) types.ServerProcess {
	program := d.config.GameServer
	service, _ := url.Parse(d.config.Endpoint) // has led to the service already
	words := slices.Concat(program[1:], []string{"-bind=" + service.Hostname(), "-port={port}"}, flags)
	return types.ServerProcess{
		LaunchPath: aws.String(filepath.Base(program[0])), Parameters: aws.String(strings.Join(words, " ")), ConcurrentExecutions: aws.Int32(1),
	}
}

// configure makes the fleet's hosts run the given game servers, and waits until they are ready.
func (d *Demo) configure(ctx context.Context, servers ...types.ServerProcess) error {
	began := time.Now()
	if _, err := d.api.UpdateRuntimeConfiguration(ctx, &gamelift.UpdateRuntimeConfigurationInput{
		FleetId: &d.fleet, RuntimeConfiguration: &types.RuntimeConfiguration{ServerProcesses: servers},
	}); err != nil {
		return fmt.Errorf("update-runtime-configuration: %w", err)
	}
	if err := d.untilServers(ctx, len(servers)); err != nil {
		return err
	}
	text := ""
	for _, s := range servers {
		text += fmt.Sprintf(" {LaunchPath=%s,Parameters=%q,ConcurrentExecutions=%d}", *s.LaunchPath, *s.Parameters, *s.ConcurrentExecutions)
	}
	d.show("aws gamelift update-runtime-configuration --fleet-id FLEET --runtime-configuration 'ServerProcesses=["+strings.ReplaceAll(text[1:], "} {", "},{")+"]'",
		"active server processes: %d, %s later", len(servers), time.Since(began).Round(time.Millisecond))
	return nil
}

func (d *Demo) firstServer(ctx context.Context) error { return d.configure(ctx, d.serverProcess()) }

// secondServer adds a game server for the friends. It ends when both have left.
func (d *Demo) secondServer(ctx context.Context) error {
	return d.configure(ctx, d.serverProcess(), d.serverProcess("-end-when-empty"))
}

// untilServers waits until the service counts the wanted number of server processes.
func (d *Demo) untilServers(ctx context.Context, want int) error {
	return d.until(ctx, "the game servers are ready", func() (bool, error) {
		out, err := d.api.DescribeFleetUtilization(ctx, &gamelift.DescribeFleetUtilizationInput{FleetIds: []string{d.fleet}})
		if err != nil || len(out.FleetUtilization) == 0 {
			return false, err
		}
		return int(aws.ToInt32(out.FleetUtilization[0].ActiveServerProcessCount)) == want, d.agent.problem()
	})
}

func (d *Demo) seeHost(ctx context.Context) error {
	h, err := d.awaitHost(ctx, "the host has a server process", func(h *operator.Host) bool { return h.Processes == 1 })
	if err == nil {
		d.show("muster hosts --server "+d.config.Endpoint, "%s in %s is %s: processes %d, game sessions %d", h.Name, h.Location, h.State, h.Processes, h.GameSessions)
	}
	return err
}

// serverReplaced waits until the friends' game session has ended and the agent has started a replacement for their game server.
func (d *Demo) serverReplaced(ctx context.Context) error {
	err := d.until(ctx, "the friends' game session is over", func() (bool, error) {
		out, err := d.api.DescribeGameSessions(ctx, &gamelift.DescribeGameSessionsInput{FleetId: &d.fleet, StatusFilter: aws.String("TERMINATED")})
		return err == nil && len(out.GameSessions) == 1, err
	})
	if err != nil {
		return err
	}
	h, err := d.awaitHost(ctx, "another game server has replaced the friends'", func(h *operator.Host) bool { return h.Processes == 2 && h.GameSessions == 1 })
	if err == nil {
		d.show("muster hosts --server "+d.config.Endpoint, "processes %d, game sessions %d: the friends' game server has ended, and the agent has started another", h.Processes, h.GameSessions)
	}
	return err
}

// End stops the agent, which ends its game servers.
func (d *Demo) End() error {
	if d.agent == nil {
		return nil
	}
	d.agent.stop()
	<-d.agent.ended
	if errors.Is(d.agent.err, context.Canceled) {
		return nil
	}
	return d.agent.err
}

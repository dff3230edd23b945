package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/operator"
)

// agents measures host agents: memory, their return with all server processes after a crash of the service, how soon a runtime configuration takes effect,
// how soon the death of a process frees its players, and how fast a build reaches hosts.
func (b *bench) agents(ctx context.Context) error {
	return b.runEach(ctx, []part{{"memory", b.agentMemory}, {"hosts with server processes", b.busyHosts}, {"build", b.buildToHosts}})
}

// serveHosts starts a service in development mode, with a location.
func (b *bench) serveHosts(ctx context.Context, name string, more ...string) (*server, *conn, string, error) {
	dir, err := b.freshDir(name)
	if err != nil {
		return nil, nil, "", err
	}
	s, err := b.start(ctx, "the service", dir, append([]string{"serve", "--dev"}, more...)...)
	if err != nil {
		return nil, nil, "", err
	}
	c, err := dial(ctx, s.addr, awsJSON, s.key)
	if err == nil {
		_, err = callJSON[struct{}](c, "CreateLocation", map[string]any{"LocationName": location})
	}
	if err != nil {
		s.kill()
		return nil, nil, "", err
	}
	return s, c, dir, nil
}

// anywhereFleet makes a fleet whose hosts run the given number of server processes each.
func anywhereFleet(c *conn, processes int) (string, error) {
	made, err := callJSON[struct{ FleetAttributes struct{ FleetId string } }](c, "CreateFleet", map[string]any{
		"Name": "bench", "ComputeType": "ANYWHERE", "Locations": []map[string]string{{"Location": location}}, "RuntimeConfiguration": serverProcesses(processes),
	})
	return made.FleetAttributes.FleetId, err
}

func serverProcesses(n int) map[string]any {
	return map[string]any{"ServerProcesses": []map[string]any{{"LaunchPath": "/local/game/server", "ConcurrentExecutions": n}}}
}

// joinToken makes a token with which hosts join, and returns the name of its file.
func (b *bench) joinToken(ctx context.Context, s *server, fleet string, uses int) (string, error) {
	body, err := json.Marshal(operator.NewHostToken{Fleet: fleet, Location: location, Uses: uint32(uses), ValidSeconds: 3600})
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.addr+operator.Prefix+"hosts/tokens", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var made operator.HostToken
	if answer.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("make a join token: HTTP %d", answer.StatusCode)
	}
	if err := json.NewDecoder(answer.Body).Decode(&made); err != nil {
		return "", fmt.Errorf("make a join token: %w", err)
	}
	file := filepath.Join(b.dir, "join-"+made.ID)
	return file, os.WriteFile(file, []byte(made.Token), 0o600)
}

// agentMemory measures the service's memory for an agent: its connection, its host in the state, and its reports about processes. Garbage accumulates up to the
// floor of the heap regardless of the number of agents, so the floor is low here.
func (b *bench) agentMemory(ctx context.Context) error {
	s, c, _, err := b.serveHosts(ctx, "agents", "--limit-computes-per-fleet", "100000", "--heap-floor", "1MiB")
	if err != nil {
		return err
	}
	defer s.kill()
	defer c.close()
	fleet, err := anywhereFleet(c, b.sizes.agentProcesses)
	if err != nil {
		return err
	}
	n := b.sizes.agentIdle
	live, err := s.liveHeap(ctx)
	if err != nil {
		return err
	}
	before := s.resident()
	all, err := b.newHosts(ctx, s, fleet, n)
	if err != nil {
		return err
	}
	defer all.close()
	if err := all.waitConnected(ctx, n); err != nil {
		return err
	}
	time.Sleep(b.sizes.idleSettle)
	resident := s.resident() - before
	after, err := s.liveHeap(ctx)
	if err != nil {
		return err
	}
	if err := b.profileHeap(ctx, s, "agents"); err != nil {
		return err
	}
	each := func(bytes int64) float64 { return float64(bytes) / float64(n) / 1024 }
	b.table.addFact(fmt.Sprintf("connected agent with %d processes: resident memory of the service for each of %s", b.sizes.agentProcesses, thousands(int64(n))), "30 KiB",
		"%.1f KiB", each(resident))
	b.table.addFact("… live heap", "–", "%.1f KiB", each(after-live))
	return nil
}

// busyHosts measures hosts whose server processes are also connected.
func (b *bench) busyHosts(ctx context.Context) error {
	s, c, dir, err := b.serveHosts(ctx, "hosts")
	if err != nil {
		return err
	}
	defer func() { s.kill() }()
	defer func() { c.close() }()
	fleet, err := anywhereFleet(c, b.sizes.agentProcesses)
	if err != nil {
		return err
	}
	n := b.sizes.agentHosts
	all, err := b.newHosts(ctx, s, fleet, n)
	if err != nil {
		return err
	}
	defer all.close()
	what := fmt.Sprintf("%s hosts with %d processes each", thousands(int64(n)), b.sizes.agentProcesses)
	began := time.Now()
	if err := all.waitProcesses(ctx, c, n*b.sizes.agentProcesses); err != nil {
		return err
	}
	b.progress("    %s are connected after %s", what, time.Since(began).Round(time.Millisecond))

	deaths, err := all.deaths(ctx, c, b.sizes.agentDeaths)
	if err != nil {
		return err
	}
	b.table.addFact(what+": death of a process, as its agent tells it, until its player is free, p99", "1 s", "%s (p50 %s, at most %s)",
		milliseconds(deaths.quantile(0.99)), milliseconds(deaths.quantile(0.5)), milliseconds(deaths.quantile(1)))

	began = time.Now()
	if _, err := callJSON[struct{}](c, "UpdateRuntimeConfiguration", map[string]any{
		"FleetId": fleet, "RuntimeConfiguration": serverProcesses(b.sizes.agentProcesses + 1),
	}); err != nil {
		return err
	}
	if err := all.waitProcesses(ctx, c, n*(b.sizes.agentProcesses+1)); err != nil {
		return err
	}
	acted := time.Since(began)
	told := all.lastPush().Sub(began)
	b.table.addFact(fmt.Sprintf("a new runtime configuration: the last of %s hosts has it", thousands(int64(n))), "5 s", "%s", milliseconds(told))
	b.table.addFact("… and its new server process is ready for players", "5 s", "%.2f s", acted.Seconds())

	s.kill()
	c.close()
	if err := all.waitConnected(ctx, 0); err != nil {
		return err
	}
	down := time.Now()
	address := s.addr
	if s, err = b.start(ctx, "the service", dir, "serve", "--dev", "--listen", address); err != nil {
		return err
	}
	ready := time.Since(down)
	if c, err = dial(ctx, s.addr, awsJSON, s.key); err != nil {
		return err
	}
	if err := all.waitConnected(ctx, n); err != nil {
		return err
	}
	back := time.Since(down)
	if err := all.waitServers(ctx); err != nil {
		return err
	}
	b.table.addFact(what+": the service is killed and started; all agents are back", "–", "%.1f s (ready after %.1f s)", back.Seconds(), ready.Seconds())
	b.table.addFact("… and all server processes, trying every second", "10 s", "%.1f s", time.Since(down).Seconds())
	return nil
}

// deaths starts n game sessions with a player, one after another, kills the process of each, and measures the time until the player is free.
func (x *hostCrowd) deaths(ctx context.Context, c *conn, n int) (*histogram, error) {
	var h histogram
	for i := range n {
		made, err := callJSON[struct {
			GameSession struct{ GameSessionId string }
		}](c, "CreateGameSession", map[string]any{"FleetId": x.fleet, "Location": location, "MaximumPlayerSessionCount": 2})
		if err != nil {
			return nil, err
		}
		arn := made.GameSession.GameSessionId
		var p *hostedProcess
		select {
		case p = <-x.games:
		case <-time.After(startWait):
			return nil, fmt.Errorf("game session %s was not started", arn)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		seat, err := callJSON[struct {
			PlayerSession struct{ PlayerSessionId string }
		}](c, "CreatePlayerSession", map[string]any{"GameSessionId": arn, "PlayerId": fmt.Sprint("player-", i)})
		if err != nil {
			return nil, err
		}
		if err := p.connection().AcceptPlayer(ctx, arn, seat.PlayerSession.PlayerSessionId); err != nil {
			return nil, err
		}
		began := time.Now()
		p.die()
		for {
			if time.Since(began) > startWait {
				return nil, fmt.Errorf("player session %s is still ACTIVE", seat.PlayerSession.PlayerSessionId)
			}
			state, err := callJSON[struct{ PlayerSessions []struct{ Status string } }](c, "DescribePlayerSessions", map[string]any{
				"PlayerSessionId": seat.PlayerSession.PlayerSessionId,
			})
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(state.PlayerSessions, func(s struct{ Status string }) bool { return s.Status == "ACTIVE" }) {
				break
			}
		}
		h.add(time.Since(began))
	}
	return &h, nil
}

// hostedProcess is a server process of a simulated host.
type hostedProcess struct {
	host   *benchHost
	id     string
	client *linkclient.Client

	mu   sync.Mutex
	dead bool
}

// die closes the connection of the process, as the kernel of its host does, and makes the agent report its end. The agent starts another process.
func (p *hostedProcess) die() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.connection().Reset()
	go p.host.ended(p, &agentproto.NotifyServerProcessTermination{
		ProcessID: p.id, EventCode: agentproto.Crashed.EventCode(), TerminationReason: agentproto.Crashed,
		Exit: &agentproto.Exit{Signal: "SIGKILL", EndedMillis: time.Now().UnixMilli()},
	})
}

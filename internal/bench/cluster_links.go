package bench

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/linkclient"
)

// serversOutliveLeader measures game servers that are connected to a surviving node when the leader is killed.
func (b *bench) serversOutliveLeader(ctx context.Context, _ struct{}) error {
	c, err := b.foundThree(ctx, "--dev")
	if err != nil {
		return err
	}
	defer c.close()
	leader, others, err := c.roles(ctx)
	if err != nil {
		return err
	}
	survivor := others[0]
	setup, err := dial(ctx, survivor.addr, awsJSON, survivor.key)
	if err != nil {
		return err
	}
	defer setup.close()
	h, err := b.setUp(setup)
	if err != nil {
		return err
	}
	crowd := newCrowd(h, "wss://"+survivor.addr, cmp.Or(b.options.Servers, b.sizes.clusterServers))
	defer crowd.close()
	playing, err := crowd.connectWithGames(ctx, setup, min(64, len(crowd.clients)/2))
	if err != nil {
		return err
	}
	cycles, err := newCycles(ctx, survivor.server, playing, awsJSON, 32)
	if err != nil {
		return err
	}
	defer cycles.close()
	var failed atomic.Int64
	run := make(chan *measured, 1)
	go func() {
		m, err := load{workers: 32, rate: b.sizes.clusterHandOverRate / 4, warm: b.sizes.clusterPause, measure: 10 * b.sizes.clusterPause}.run(ctx, nil, func(i int) error {
			if err := cycles.unit(i); err != nil && ctx.Err() == nil {
				if failed.Add(1) == 1 {
					b.progress("    a call failed: %v", err)
				}
			}
			return nil
		})
		if err != nil {
			m = &measured{}
		}
		run <- m
	}()
	wait(ctx, 2*b.sizes.clusterPause)
	leader.kill()
	m := <-run
	active, err := activeServers(setup, h.fleet)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s game servers over wss on a surviving node while the leader dies", thousands(int64(len(crowd.clients))))
	b.progress("    %d connections lost, %d calls failed, longest cycle %s, %d active processes", crowd.lost.Load(), failed.Load(), m.latency.quantile(1), active)
	b.table.addFact(what+": connections lost", "0", "%d", crowd.lost.Load())
	b.table.addFact("… failed calls, of clients and game servers", "0", "%d", failed.Load())
	b.table.addFact("… longest join and leave of a player, three calls", "–", "%.2f s (p50 %s)", m.latency.quantile(1).Seconds(), milliseconds(m.latency.quantile(0.5)))
	if active != len(crowd.clients) {
		return fmt.Errorf("%d of %d server processes are active afterwards", active, len(crowd.clients))
	}
	return nil
}

// serversReturn measures how the game servers of a killed node return to other nodes, which each game server has in a list. For comparison, a single
// node is killed and restarted at once.
func (b *bench) serversReturn(ctx context.Context, _ struct{}) error {
	n := cmp.Or(b.options.Servers, b.sizes.clusterServers)
	servers := thousands(int64(n)) + " game servers over wss, trying every second, "
	dir, err := b.freshDir("single")
	if err != nil {
		return err
	}
	single := &nodes{bench: b, all: []*clusterNode{{data: dir, arguments: []string{"serve", "--dev"}}}}
	if err := single.all[0].start(ctx, b); err != nil {
		return err
	}
	took, err := b.deathOf(ctx, single, single.all[0], n, func() error { return single.all[0].start(ctx, b) })
	single.close()
	if err != nil {
		return fmt.Errorf("a single node dies: %w", err)
	}
	b.table.addFact(servers+"a single node killed and started at once: all back after", "–", "%.1f s", took.Seconds())
	roles := []string{"the leader", "a node that does not lead"}
	if b.options.Quick {
		roles = roles[:1]
	}
	for _, role := range roles {
		c, err := b.foundThree(ctx, "--dev")
		if err != nil {
			return err
		}
		dies, others, err := c.roles(ctx)
		if err == nil {
			if role != "the leader" {
				dies = others[0]
			}
			took, err = b.deathOf(ctx, c, dies, n, nil)
		}
		c.close()
		if err != nil {
			return fmt.Errorf("%s dies: %w", role, err)
		}
		b.table.addFact(servers+role+" killed: all back at the others after", "10 s", "%.1f s", took.Seconds())
	}
	return nil
}

// deathOf connects game servers to a node, kills the node, and measures the time until all are back: at other nodes, or at this one after again.
func (b *bench) deathOf(ctx context.Context, c *nodes, dies *clusterNode, n int, again func() error) (time.Duration, error) {
	setup, err := dial(ctx, dies.addr, awsJSON, dies.key)
	if err != nil {
		return 0, err
	}
	defer setup.close()
	h, err := b.setUp(setup)
	if err != nil {
		return 0, err
	}
	list := []string{"wss://" + dies.addr}
	at := dies
	for _, other := range c.all {
		if other != dies {
			list, at = append(list, "wss://"+other.addr), other
		}
	}
	crowd := newCrowd(h, "", n)
	crowd.urls = list
	defer crowd.close()
	if err := crowd.connect(ctx); err != nil {
		return 0, err
	}
	wait(ctx, b.sizes.clusterPause)
	began := time.Now()
	dies.kill()
	if again != nil {
		if err := again(); err != nil {
			return 0, err
		}
	}
	if err := waitUntil(ctx, func() string {
		return fmt.Sprintf("%d of %d connections noticed the death of their node", crowd.lost.Load(), n)
	}, func() (bool, error) { return crowd.lost.Load() >= int64(n), nil }); err != nil {
		return 0, err
	}
	if err := crowd.waitFor(ctx, n); err != nil {
		return 0, err
	}
	took := time.Since(began)
	after, err := dial(ctx, at.addr, awsJSON, at.key)
	if err != nil {
		return took, err
	}
	defer after.close()
	active, err := activeServers(after, h.fleet)
	b.progress("    all of %d back after %s; connections lost %d, active processes %d", n, took.Round(time.Millisecond), crowd.lost.Load(), active)
	if err == nil && active != n {
		err = fmt.Errorf("%d of %d server processes are active afterwards", active, n)
	}
	return took, err
}

// activeServers returns how many server processes of a fleet are active.
func activeServers(c *conn, fleet string) (int, error) {
	used, err := callJSON[struct {
		FleetUtilization []struct{ ActiveServerProcessCount int }
	}](c, "DescribeFleetUtilization", map[string]any{"FleetIds": []string{fleet}})
	if err != nil {
		return 0, err
	}
	if n := len(used.FleetUtilization); n != 1 {
		return 0, fmt.Errorf("DescribeFleetUtilization of fleet %s: %d fleets", fleet, n)
	}
	return used.FleetUtilization[0].ActiveServerProcessCount, nil
}

// connectWithGames connects all game servers, and creates games on some of them, which it returns.
func (c *crowd) connectWithGames(ctx context.Context, setup *conn, games int) (*hall, error) {
	type ready struct {
		server *gameServer
		err    error
	}
	active := make(chan ready, games)
	c.hall.onGame = func(g *gameServer, p linkclient.Push) {
		g.game = p.GameSessionID()
		g.client.Go("ActivateGameSession", linkclient.GameSessionMembers(g.game), func(a linkclient.Answer, err error) {
			active <- ready{g, answered(a, err)}
		})
	}
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	for range games {
		if err := c.hall.createGame(ctx, setup, "setup", seatsMax); err != nil {
			return nil, err
		}
	}
	playing := &hall{fleet: c.hall.fleet, token: c.hall.token}
	for range games {
		select {
		case r := <-active:
			if r.err != nil {
				return nil, r.err
			}
			playing.servers = append(playing.servers, r.server)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return playing, nil
}

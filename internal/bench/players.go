package bench

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// kind is one line of the comparison.
type kind struct {
	protocol    *protocol
	connections int
}

func (k kind) String() string {
	return fmt.Sprintf("%s, %d connections", k.protocol.name, k.connections)
}

// pair has the best results of the bare and the durable service over all rounds, and of the durable one at half its highest rate.
type pair struct{ bare, durable, half *measured }

const requestsInCycle = 3

// players measures the bare and the durable service alternately, so that other work on the machine affects both.
func (b *bench) players(ctx context.Context) error {
	var kinds []kind
	for _, n := range b.sizes.cycleConnections {
		for _, p := range protocols {
			kinds = append(kinds, kind{p, n})
		}
	}
	if b.options.Rate > 0 {
		return b.playersAtRate(ctx, kinds)
	}
	best := make([]pair, len(kinds))
	for round := range b.options.Rounds {
		if err := b.bareRound(ctx, kinds, best); err != nil {
			return fmt.Errorf("bare: %w", err)
		}
		last := round == b.options.Rounds-1
		if err := b.durableRound(ctx, kinds, best, last); err != nil {
			return fmt.Errorf("durable: %w", err)
		}
	}
	for i, k := range kinds {
		p := &best[i]
		name := "player sessions, " + k.protocol.name
		b.table.addLoad(name+", bare", "cycles", requestsInCycle, p.bare, 0)
		b.table.addLoad(name+", durable", "cycles", requestsInCycle, p.durable, p.durable.perSecond()/p.bare.perSecond())
		b.table.addLoad(name+", durable", "cycles", requestsInCycle, p.half, 0)
	}
	return nil
}

// playersAtRate measures the durable service only at a given rate, so that two builds can be compared at the same rate.
func (b *bench) playersAtRate(ctx context.Context, kinds []kind) error {
	return b.serving(ctx, "players", func(s *server, c *conn) error {
		h, err := b.setUpCycles(ctx, s, c)
		if err != nil {
			return err
		}
		defer h.close()
		for _, k := range kinds {
			m, err := b.paced(ctx, s, h, k, b.options.Rate)
			if err != nil {
				return err
			}
			b.table.addLoad("player sessions, "+k.protocol.name+", durable", "cycles", requestsInCycle, m, 0)
		}
		return nil
	})
}

// paced measures one kind at a rate.
func (b *bench) paced(ctx context.Context, s *server, h *hall, k kind, rate float64) (m *measured, err error) {
	// The profile begins when the load is warm.
	if _, err := b.measureCycles(ctx, s, h, k, load{rate: rate, warm: b.sizes.cycleWarm, measure: time.Millisecond}); err != nil {
		return nil, err
	}
	err = b.profileWhile(ctx, s, profileName("paced "+k.String()), func() (err error) {
		m, err = b.measureCycles(ctx, s, h, k, load{rate: rate, warm: time.Second, measure: b.options.Measure})
		return err
	})
	if err == nil {
		b.progress("  durable, %s, at %.0f a second: %s", k, rate, m)
	}
	return m, err
}

func (b *bench) bareRound(ctx context.Context, kinds []kind, best []pair) error {
	dir, err := b.freshDir("bare")
	if err != nil {
		return err
	}
	s, err := b.start(ctx, "the bare service", dir, "bench-bare")
	if err != nil {
		return err
	}
	defer s.kill()
	h := &hall{fleet: "fleet-00000000-0000-0000-0000-000000000000", token: "none"}
	defer h.close()
	if err := h.connect(ctx, s, b.sizes.cycleServers); err != nil {
		return err
	}
	for i, g := range h.servers {
		g.game = fmt.Sprintf("arn:aws:gamelift:%s::gamesession/%s/%s/gsess-00000000-0000-0000-0000-%012d", region, h.fleet, location, i)
	}
	return b.eachKind(ctx, s, h, "bare", kinds, b.options.Measure/4, func(i int, m *measured) error {
		keepBest(&best[i].bare, m)
		return nil
	})
}

func (b *bench) durableRound(ctx context.Context, kinds []kind, best []pair, last bool) error {
	return b.serving(ctx, "players", func(s *server, c *conn) error { return b.durableOn(ctx, s, c, kinds, best, last) })
}

func (b *bench) durableOn(ctx context.Context, s *server, c *conn, kinds []kind, best []pair, last bool) error {
	h, err := b.setUpCycles(ctx, s, c)
	if err != nil {
		return err
	}
	defer h.close()
	warm := kind{awsJSON, kinds[0].connections}
	if _, err := b.measureCycles(ctx, s, h, warm, load{warm: b.sizes.cycleWarm, measure: time.Millisecond}); err != nil {
		return err
	}
	err = b.eachKind(ctx, s, h, "durable", kinds, b.options.Measure/4, func(i int, m *measured) error {
		keepBest(&best[i].durable, m)
		return nil
	})
	if err != nil || !last {
		return err
	}
	for i, k := range kinds {
		m, err := b.paced(ctx, s, h, k, best[i].durable.perSecond()/2)
		if err != nil {
			return err
		}
		best[i].half = m
	}
	return nil
}

// setUpCycles makes the game servers for cycles, each with a game session.
func (b *bench) setUpCycles(ctx context.Context, s *server, c *conn) (*hall, error) {
	h, err := b.setUp(c)
	if err != nil {
		return nil, err
	}
	if err := h.connectWithGames(ctx, s, c, b.sizes.cycleServers); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// eachKind measures the highest throughput of the server, in each protocol and with each number of connections.
func (b *bench) eachKind(ctx context.Context, s *server, h *hall, which string, kinds []kind, warm time.Duration, keep func(i int, m *measured) error) error {
	for i, k := range kinds {
		err := b.profileWhile(ctx, s, profileName(which+" "+k.String()), func() error {
			m, err := b.measureCycles(ctx, s, h, k, load{warm: warm, measure: b.options.Measure})
			if err != nil {
				return err
			}
			b.progress("  %s, %s: %s", which, k, m)
			return keep(i, m)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func profileName(line string) string {
	return strings.NewReplacer(" ", "-", ".", "-", ",", "").Replace(line)
}

func (b *bench) measureCycles(ctx context.Context, s *server, h *hall, k kind, l load) (*measured, error) {
	c, err := newCycles(ctx, s, h, k.protocol, k.connections)
	if err != nil {
		return nil, err
	}
	defer c.close()
	l.workers = k.connections
	return l.run(ctx, s, c.unit)
}

func keepBest(best **measured, m *measured) {
	if *best == nil || m.perSecond() > (*best).perSecond() {
		*best = m
	}
}

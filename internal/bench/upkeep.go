package bench

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Unkept is the option of `serve` for a service without metrics and audit log, for comparison in the scenario upkeep.
const Unkept = "bench-unkept"

// upkeep measures the cost of metrics and the audit log: it runs the load of the scenario players on two services that run side by side, one
// without metrics and audit log. Short loads on them alternate, so that other work on the machine affects both, and pairs of loads are compared.
func (b *bench) upkeep(ctx context.Context) error {
	return b.serving(ctx, "upkeep", func(s *server, c *conn) error {
		with := &upkept{name: "with", server: s}
		defer with.close()
		if err := with.prepare(ctx, b, c); err != nil {
			return err
		}
		return b.serving(ctx, "unkept", func(s *server, c *conn) error {
			without := &upkept{name: "without", server: s}
			defer without.close()
			if err := without.prepare(ctx, b, c); err != nil {
				return err
			}
			return b.compareUpkeep(ctx, with, without)
		}, "--"+Unkept)
	})
}

// upkept is one of the two services, with its load.
type upkept struct {
	name   string
	server *server
	hall   *hall
	cycles *cycles
	units  atomic.Int64 // all units done
	pairs  []float64    // processor time of a cycle in each load, in microseconds
}

func (u *upkept) close() {
	if u.cycles != nil {
		u.cycles.close()
	}
	if u.hall != nil {
		u.hall.close()
	}
}

func (u *upkept) prepare(ctx context.Context, b *bench, c *conn) (err error) {
	if u.hall, err = b.setUp(c); err != nil {
		return err
	}
	if err := u.hall.connectWithGames(ctx, u.server, c, b.sizes.cycleServers); err != nil {
		return err
	}
	if u.cycles, err = newCycles(ctx, u.server, u.hall, awsJSON, b.sizes.cycleConnections[0]); err != nil {
		return err
	}
	_, err = u.run(ctx, load{warm: b.sizes.cycleWarm, measure: time.Millisecond})
	return err
}

func (u *upkept) run(ctx context.Context, l load) (*measured, error) {
	l.workers = len(u.cycles.workers)
	return l.run(ctx, u.server, func(worker int) error {
		err := u.cycles.unit(worker)
		u.units.Add(1)
		return err
	})
}

// Each load of a pair lasts a tenth of a measurement, after a fifth of that for warming up.
const (
	upkeepPairs = 40
	upkeepPart  = 10
)

func (b *bench) compareUpkeep(ctx context.Context, with, without *upkept) error {
	each := b.options.Measure / upkeepPart
	pairs := upkeepPairs
	if b.options.Quick {
		pairs = 2
	}
	both := []*upkept{with, without}
	var used [2]time.Duration // so far
	var units [2]int64
	for i, u := range both {
		used[i], units[i] = processorTime(u.server), u.units.Load()
	}
	others, took := 0.0, 0.0
	for range pairs {
		for _, u := range both {
			m, err := u.run(ctx, load{warm: each / 5, measure: each})
			if err != nil {
				return fmt.Errorf("%s: %w", u.name, err)
			}
			u.pairs = append(u.pairs, float64(m.used.Microseconds())/float64(max(1, m.units)))
			others, took = others+m.others.Seconds(), took+m.took.Seconds()
		}
		slices.Reverse(both) // the second service of a pair is the first of the next
	}
	var ratios []float64
	for i := range with.pairs {
		if without.pairs[i] > 0 {
			ratios = append(ratios, with.pairs[i]/without.pairs[i])
		}
	}
	whole := map[*upkept]float64{}
	for i, u := range []*upkept{with, without} {
		whole[u] = float64((processorTime(u.server) - used[i]).Microseconds()) / float64(max(1, u.units.Load()-units[i]))
	}
	b.progress("  with: %.1f µs, without: %.1f µs; processors: others %.2f", whole[with], whole[without], max(0, others/took))
	b.table.addFact("metrics and audit log: processor time of a cycle (create, accept, remove a player session), beside the same service without them", "≤ 3 % more",
		"%+.1f %% (median of %d pairs of loads; quartiles %+.1f %% and %+.1f %%); all of the run %.1f µs and %.1f µs, %+.1f %%; others on the machine used %.2f processors",
		percentMore(quantile(ratios, 0.5)), len(ratios), percentMore(quantile(ratios, 0.25)), percentMore(quantile(ratios, 0.75)),
		whole[with], whole[without], percentMore(whole[with]/max(0.001, whole[without])), max(0, others/took))
	return nil
}

func percentMore(ratio float64) float64 { return 100 * (ratio - 1) }

// quantile returns a quantile of a few numbers; 1 if there are none.
func quantile(of []float64, q float64) float64 {
	if len(of) == 0 {
		return 1
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

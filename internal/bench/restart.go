package bench

import (
	"context"
	"fmt"
	"time"
)

// restart measures the start of the service on a large state.
func (b *bench) restart(ctx context.Context) error {
	dir, err := b.freshDir("restart")
	if err != nil {
		return err
	}
	if _, err := b.fillCell(ctx, dir); err != nil {
		return err
	}
	what := fmt.Sprintf("restart with %s player sessions in %s game sessions", thousands(int64(b.sizes.corePlayers)), thousands(int64(b.sizes.coreGames)))
	return b.startOn(ctx, dir, startAims{what, b.sizes.corePlayers, "player session", "5 s", "1024 B", "512 B"}, "serve")
}

// startAims describes a state and the targets for a start with it.
type startAims struct {
	what                  string
	records               int
	record                string
	ready, resident, live string // targets; –: none
}

// startOn measures the start of the service on an existing state.
func (b *bench) startOn(ctx context.Context, dir string, aims startAims, arguments ...string) error {
	var ready time.Duration
	var resident, live int64
	for range b.options.Rounds { // the first start follows an orderly end, the others a kill
		s, err := b.start(ctx, "the service", dir, arguments...)
		if err != nil {
			return err
		}
		if ready == 0 || s.ready < ready {
			ready, resident = s.ready, s.resident()
		}
		live, err = s.liveHeap(ctx)
		s.kill()
		if err != nil {
			return err
		}
	}
	each := func(n int64) float64 { return float64(n) / float64(aims.records) }
	b.progress("  ready after %s; %.0f bytes resident, %.0f of live heap for each %s", ready.Round(time.Millisecond), each(resident), each(live), aims.record)
	b.table.addFact(aims.what+": ready after", aims.ready, "%.1f s", ready.Seconds())
	b.table.addFact(aims.what+": resident memory for each "+aims.record, aims.resident, "%.0f B", each(resident))
	b.table.addFact(aims.what+": live heap for each "+aims.record, aims.live, "%.0f B", each(live))
	return nil
}

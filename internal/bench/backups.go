package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// backups measures how long players wait while `muster backup` runs: cycles at a constant rate on a state with many player sessions, first alone, and then
// during continuous backups.
func (b *bench) backups(ctx context.Context) error {
	dir, err := b.freshDir("backups")
	if err != nil {
		return err
	}
	if _, err := b.fillCellWith(ctx, dir, b.sizes.backupGames, b.sizes.backupPlayers); err != nil {
		return err
	}
	return b.servingIn(ctx, dir, func(s *server, setup *conn) error { return b.besideBackups(ctx, s, setup) }, "--link-grace", "1h") // the game servers in the state do not reconnect
}

// besideBackups measures cycles on a service with a filled state.
func (b *bench) besideBackups(ctx context.Context, s *server, c *conn) error {
	h, err := b.setUpFleet(c, location)
	if err != nil {
		return err
	}
	defer h.close()
	if err := h.connectWithGames(ctx, s, c, b.sizes.cycleServers); err != nil {
		return err
	}
	load := load{rate: b.sizes.backupRate, warm: b.sizes.cycleWarm, measure: b.options.Measure}
	if b.options.Rate > 0 {
		load.rate = b.options.Rate
	}
	k := kind{awsJSON, b.sizes.cycleConnections[0]}
	name := fmt.Sprintf("player sessions beside %s others", thousands(int64(b.sizes.backupPlayers)))
	measure := func(what string) error {
		return b.profileWhile(ctx, s, profileName(what), func() error {
			m, err := b.measureCycles(ctx, s, h, k, load)
			if err != nil {
				return err
			}
			load.warm = b.options.Measure / 4
			b.progress("  %s: %s, p99.9 %s", what, m, milliseconds(m.latency.quantile(0.999)))
			b.table.addLoad(name+", "+what, "cycles", requestsInCycle, m, 0)
			return nil
		})
	}
	for range b.options.Rounds {
		if err := measure("no backup"); err != nil {
			return err
		}
		for _, to := range []struct{ what, place string }{{"backups into files", "file"}, {"backups into a directory", "directory" + string(filepath.Separator)}} {
			made := b.backupsOn(ctx, s, filepath.Join(b.dir, to.place))
			err := errors.Join(measure(to.what), made.stop())
			if err != nil {
				return err
			}
			b.progress("  %s: %d, each in %s", to.what, made.count, (made.took / time.Duration(max(1, made.count))).Round(time.Millisecond))
		}
	}
	return nil
}

// backing makes one backup after another.
type backing struct {
	count int
	took  time.Duration
	end   context.CancelFunc
	done  chan error
}

// backupsOn begins to make full backups of a service at a place. If the place is a file, it is removed after each backup.
func (b *bench) backupsOn(ctx context.Context, s *server, place string) *backing {
	ctx, end := context.WithCancel(ctx)
	x := &backing{end: end, done: make(chan error, 1)}
	arguments := []string{"backup", "--data", s.data, "--to", place}
	if place[len(place)-1] == filepath.Separator {
		arguments = append(arguments, "--full", "--keep", "1")
	}
	go func() {
		for ctx.Err() == nil {
			began := time.Now()
			if out, err := exec.CommandContext(ctx, b.options.Binary, arguments...).CombinedOutput(); err != nil {
				if ctx.Err() == nil {
					x.done <- fmt.Errorf("muster backup: %w\n%s", err, out)
					return
				}
				break
			}
			x.count++
			x.took += time.Since(began)
			_ = os.Remove(place) // a directory with backups stays
		}
		x.done <- nil
	}()
	return x
}

// stop also ends the running backup.
func (x *backing) stop() error {
	x.end()
	return <-x.done
}

package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/cluster/node"
)

// liveCluster is a cluster with many live player sessions. It begins as the directory of a single node; parts that need more nodes make them join.
type liveCluster struct {
	data  string
	games []localGame
	live  int
	nodes *nodes // nil before the first part that needs them
}

// keepGames keeps game sessions alive although their game servers are never connected.
var keepGames = []string{"--link-grace", "24h"}

func (b *bench) withLivePlayers(ctx context.Context) error {
	dir, err := b.freshDir("cluster")
	if err != nil {
		return err
	}
	x := &liveCluster{data: dir, live: cmp.Or(b.options.Sessions, b.sizes.corePlayers)}
	perGame := b.sizes.corePlayers / b.sizes.coreGames
	if x.games, err = b.fillCellWith(ctx, dir, max(1, x.live/perGame), x.live); err != nil {
		return err
	}
	defer func() {
		if x.nodes != nil {
			x.nodes.close()
		}
	}()
	return runParts(b, ctx, x, liveParts)
}

func (x *liveCluster) players() string { return thousands(int64(x.live)) + " live player sessions" }

// singleDies measures the outage without a cluster when the process is killed and restarted at once.
func (b *bench) singleDies(ctx context.Context, x *liveCluster) error {
	var took []time.Duration
	s, err := b.start(ctx, "the service", x.data, append([]string{"serve"}, keepGames...)...)
	if err != nil {
		return err
	}
	for range min(b.repeats(), b.options.Rounds) {
		began := time.Now()
		s.kill()
		if s, err = b.start(ctx, "the service", x.data, append([]string{"serve"}, keepGames...)...); err != nil {
			return err
		}
		r := &reserver{games: x.games, node: s}
		err := r.reserve(ctx)
		r.close()
		if err != nil {
			s.kill()
			return err
		}
		took = append(took, time.Since(began))
	}
	s.kill()
	b.durations(fmt.Sprintf("a single node with %s, killed and started at once: to the next acknowledged write", x.players()), "–", took)
	return nil
}

// durations adds a line with the median and the maximum of measurements that are too few for other quantiles.
func (b *bench) durations(what, aim string, took []time.Duration) {
	slices.Sort(took)
	p50, highest := took[len(took)/2], took[len(took)-1]
	b.progress("    %s: %s", what, took)
	b.table.addFact(what, aim, "p50 %.2f s, at most %.2f s of %d", p50.Seconds(), highest.Seconds(), len(took))
}

// three extends the cluster to three nodes if necessary.
func (x *liveCluster) three(ctx context.Context, b *bench) error {
	if err := x.two(ctx, b); err != nil {
		return err
	}
	if len(x.nodes.all) < 3 {
		if err := x.nodes.join(ctx, keepGames...); err != nil {
			return err
		}
	}
	return x.nodes.whole(ctx)
}

func (x *liveCluster) two(ctx context.Context, b *bench) (err error) {
	if x.nodes == nil {
		if x.nodes, err = b.found(ctx, x.data, keepGames...); err != nil {
			return err
		}
		if err := x.nodes.join(ctx, keepGames...); err != nil {
			return err
		}
	}
	return x.nodes.whole(ctx)
}

// nodeJoins measures how an empty node joins while clients write.
func (b *bench) nodeJoins(ctx context.Context, x *liveCluster) error {
	if err := x.two(ctx, b); err != nil {
		return err
	}
	rate := b.sizes.clusterJoinRate
	w := writeAt(ctx, x.nodes.all, x.games, 16, rate)
	defer w.end()
	wait(ctx, b.sizes.clusterPause)
	before := time.Now()
	wait(ctx, 5*b.sizes.clusterPause)
	usual, answers := w.longestGap(before)
	usualRate := float64(answers) / time.Since(before).Seconds()

	began := time.Now()
	if err := x.nodes.join(ctx, keepGames...); err != nil {
		return err
	}
	ready := time.Since(began)
	if err := x.nodes.whole(ctx); err != nil {
		return err
	}
	took := time.Since(began)
	stalled, answers := w.longestGap(began)
	failed := w.stop()
	b.progress("    ready after %s, a voter that has caught up after %s; %.0f writes a second before, %.0f meanwhile; longest gap %s before, %s meanwhile; failed: %s",
		ready.Round(time.Millisecond), took.Round(time.Millisecond), usualRate, float64(answers)/took.Seconds(), milliseconds(usual), milliseconds(stalled), failures(failed))
	what := fmt.Sprintf("an empty node joins two others at %s, %s changes a second going on", x.players(), thousands(int64(rate)))
	b.table.addFact(what+": votes and has caught up after", "60 s", "%.1f s", took.Seconds())
	b.table.addFact("… longest time without an acknowledged write, of 32 writers", "10 ms", "%s (%s before)", milliseconds(stalled), milliseconds(usual))
	b.table.addFact("… failed calls", "0", "%s", failures(failed))
	return nil
}

// leaderDies measures kills of the leader.
func (b *bench) leaderDies(ctx context.Context, x *liveCluster) error {
	if err := x.three(ctx, b); err != nil {
		return err
	}
	var took []time.Duration
	var failed []error
	for range b.repeats() {
		once, errs, err := x.killLeader(ctx, b)
		if err != nil {
			return err
		}
		took, failed = append(took, once), append(failed, errs...)
	}
	what := "kill -9 of the leader to the next acknowledged write at another node, " + x.players()
	b.durations(what, "p50 2 s, p99 4 s", took)
	b.table.addFact("… failed calls", "0", "%s", failures(failed))
	return nil
}

// killLeader kills the leader, and writes to both other nodes until a call succeeds. Then the node returns.
func (x *liveCluster) killLeader(ctx context.Context, b *bench) (took time.Duration, failed []error, err error) {
	leader, others, err := x.nodes.roles(ctx)
	if err != nil {
		return 0, nil, err
	}
	type answer struct {
		err error
		at  time.Time
	}
	answers := make(chan answer)
	trying, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	leader.kill() // calls that succeed from here on were decided by another node
	for _, n := range others {
		writerNumbers++
		r := &reserver{games: x.games, node: n.server, number: writerNumbers}
		go func() {
			defer r.close()
			err := errors.New("not yet")
			for err != nil && trying.Err() == nil {
				err = r.reserve(trying)
				select {
				case answers <- answer{err, time.Now()}:
				case <-trying.Done():
				}
			}
		}()
	}
	for succeeded := 0; succeeded < len(others); {
		select {
		case a := <-answers:
			switch {
			case a.err != nil:
				failed = append(failed, a.err)
			case succeeded == 0:
				took = a.at.Sub(began)
				fallthrough
			default:
				succeeded++
			}
		case <-trying.Done():
			return 0, failed, fmt.Errorf("no write succeeds after the death of the leader: %w", errors.Join(append(failed, trying.Err())...))
		}
	}
	if err := leader.start(ctx, b); err != nil {
		return 0, failed, err
	}
	b.progress("    %s; the killed node was ready %s after its start", took.Round(time.Millisecond), leader.ready.Round(time.Millisecond))
	if err := x.nodes.whole(ctx); err != nil {
		return 0, failed, err
	}
	wait(ctx, b.sizes.clusterPause)
	return took, failed, nil
}

// leaderHandsOver measures planned changes of the leader while clients of all nodes write.
func (b *bench) leaderHandsOver(ctx context.Context, x *liveCluster) error {
	if err := x.three(ctx, b); err != nil {
		return err
	}
	w := writeAt(ctx, x.nodes.all, x.games, 8, b.sizes.clusterHandOverRate)
	defer w.end()
	wait(ctx, b.sizes.clusterPause)
	before := time.Now()
	wait(ctx, b.sizes.clusterPause)
	usual, _ := w.longestGap(before)
	var gaps []time.Duration
	for i := range 2 * b.repeats() {
		leader, _, err := x.nodes.roles(ctx)
		if err != nil {
			return err
		}
		next := x.nodes.all[i%3]
		if next == leader {
			next = x.nodes.all[(i+1)%3]
		}
		door, err := leader.door()
		if err != nil {
			return err
		}
		began := time.Now()
		if _, err := door.ChangeCluster(ctx, node.Change{Do: node.HandOver, Node: next.id}); err != nil {
			return err
		}
		wait(ctx, b.sizes.clusterPause)
		gap, _ := w.longestGap(began)
		gaps = append(gaps, gap)
	}
	failed := w.stop()
	slices.Sort(gaps)
	b.progress("    gaps %s, %s without a hand-over; failed: %s", gaps, usual, failures(failed))
	b.table.addFact(fmt.Sprintf("planned hand-over, %s, 24 writers at three nodes: longest time without an acknowledged write", x.players()), "300 ms",
		"p50 %s, at most %s of %d (%s without one)", milliseconds(gaps[len(gaps)/2]), milliseconds(gaps[len(gaps)-1]), len(gaps), milliseconds(usual))
	b.table.addFact("… failed calls", "0", "%s", failures(failed))
	return nil
}

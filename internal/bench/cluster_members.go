package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/heap"
	"github.com/musterhq/muster/internal/office"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/settings"
)

// localMember is a node of a cluster in this process: everything except the doors.
type localMember struct {
	*engine.Engine
	node *node.Node
}

// members are three nodes in this process with directories of their own.
type members struct {
	all   []*localMember // the first one leads
	games []localGame
}

func openMember(ctx context.Context, dir, token string) (*localMember, error) {
	log := slog.New(slog.DiscardHandler)
	n, err := node.Open(ctx, node.Options{
		Data: datadir.Options{Dir: dir, Program: "muster bench"}, Listen: "127.0.0.1:0", Join: token, Panics: panics.New(log), Log: log,
	})
	if err != nil {
		return nil, err
	}
	m := &localMember{node: n}
	m.Engine, err = engine.OpenReplica(ctx, engine.Config{
		Archive: n.Data().Archive, Cell: settings.Defaults().Cell(), Loaded: n.Data().CheckState, Peers: n.Peers(), Log: log,
	}, n.Journal())
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	n.Attach(m.Engine, "")
	n.Run(office.Parts{}, nil)
	return m, nil
}

func (m *localMember) close() error {
	ctx := context.Background()
	m.Engine.StepDown() // makes its decisions durable, so that it need not load its state again while closing
	m.node.StepDown(ctx)
	m.node.Leave(ctx)
	return errors.Join(m.Engine.Close(), m.node.Close())
}

// votes reports whether this node sees n voting nodes, one of which leads.
func (m *localMember) votes(n int) bool {
	voters := 0
	s := m.node.Status()
	for _, x := range s.Members {
		if x.Role != "observer" {
			voters++
		}
	}
	return voters == n && s.Leader != "" && m.node.Ready() == nil
}

func (b *bench) openMembers(ctx context.Context) (x *members, err error) {
	x = &members{}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.close())
		}
	}()
	for i := range 3 {
		dir, err := b.freshDir("member")
		if err != nil {
			return x, err
		}
		token := ""
		if i > 0 {
			if token, err = x.all[0].node.NewJoinToken(ctx, loader); err != nil {
				return x, err
			}
		}
		m, err := openMember(ctx, dir, token)
		if err != nil {
			return x, err
		}
		x.all = append(x.all, m)
		if err := waitUntil(ctx, func() string {
			return fmt.Sprintf("node %d of the cluster does not get its vote: %+v", i+1, m.node.Status())
		}, func() (bool, error) { return m.votes(i + 1), nil }); err != nil {
			return x, err
		}
	}
	x.games, err = b.fillSmall(ctx, x.all[0].Engine)
	return x, err
}

// fillSmall fills a node in this process, single or of a cluster.
func (b *bench) fillSmall(ctx context.Context, e *engine.Engine) ([]localGame, error) {
	return fill(ctx, e, min(b.sizes.coreGames, 1000), min(b.sizes.corePlayers, 10_000))
}

func (x *members) close() error {
	var errs []error
	for _, m := range x.all {
		errs = append(errs, m.close())
	}
	return errors.Join(errs...)
}

func (b *bench) inProcess(ctx context.Context) error {
	defaults := settings.Defaults()
	floor := heap.Tune(defaults.GCPercent, int64(defaults.HeapFloor))
	defer floor.Release()
	errs := []error{runParts(b, ctx, struct{}{}, singleParts)}
	if !b.chosen(names(memberParts)) {
		return errs[0]
	}
	x, err := b.openMembers(ctx)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	return errors.Join(append(errs, runParts(b, ctx, x, memberParts), x.close())...)
}

// singleChanges measures a single node as clusterChanges measures the cluster. It closes the node before the cluster begins: the node would go on archiving
// ended records, and its reads, which never wait, would keep the cluster's goroutines off the processors for so long that the leader would lose its office.
func (b *bench) singleChanges(ctx context.Context, _ struct{}) (err error) {
	dir, err := b.freshDir("single")
	if err != nil {
		return err
	}
	single, err := openCell(ctx, dir, 0, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, single.close()) }()
	games, err := b.fillSmall(ctx, single.Engine)
	if err != nil {
		return err
	}
	at := place{"a single node", games, func(context.Context) (*engine.Engine, error) { return single.Engine, nil }, nil}
	for _, callers := range []int{64, 512} {
		if err := b.changesAt(ctx, nil, at, callers, 0); err != nil {
			return err
		}
	}
	return b.readsAt(ctx, nil, at)
}

// place is a node at which callers in this process make calls.
type place struct {
	name  string
	games []localGame
	cell  func(ctx context.Context) (*engine.Engine, error)
	aims  map[int]string // for changes per second, by number of callers
}

// places returns the places in the cluster, whose leader may change between calls.
func (x *members) places() (leader, other place) {
	return place{"the leader of three", x.games, func(ctx context.Context) (*engine.Engine, error) {
			at, _, err := x.roles(ctx)
			return at.Engine, err
		}, map[int]string{64: "20,000 a second", 512: "80,000 a second"}},
		place{"another node of three", x.games, func(ctx context.Context) (*engine.Engine, error) {
			_, at, err := x.roles(ctx)
			return at.Engine, err
		}, nil}
}

// roles waits until a node leads and the others follow it, and returns the leader and another node.
func (x *members) roles(ctx context.Context) (leader, other *localMember, err error) {
	leader, other = x.all[0], x.all[1]
	for end := time.Now().Add(patience); ctx.Err() == nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		leads := 0
		for i, m := range x.all {
			if m.votes(len(x.all)) && m.Decides(ctx) == nil {
				leader, other = m, x.all[(i+1)%len(x.all)]
				leads++
			}
		}
		if leads == 1 && other.votes(len(x.all)) && other.Applied() >= leader.Applied() {
			return leader, other, nil
		}
	}
	return leader, other, errors.Join(ctx.Err(), fmt.Errorf("no node leads the others: %+v", leader.node.Status()))
}

// clusterChanges measures durable changes and linearizable reads by callers in this process.
func (b *bench) clusterChanges(ctx context.Context, x *members) error {
	leader, other := x.places()
	for _, callers := range []int{64, 512} {
		for _, at := range []place{leader, other} {
			if err := b.changesAt(ctx, x, at, callers, 0); err != nil {
				return err
			}
		}
	}
	for _, at := range []place{leader, other} {
		if err := b.readsAt(ctx, x, at); err != nil {
			return err
		}
	}
	leader.name, leader.aims = leader.name+", with the archive", nil
	return b.changesAt(ctx, x, leader, 512, b.sizes.clusterWarm)
}

func (b *bench) changesAt(ctx context.Context, x *members, at place, callers int, warm time.Duration) error {
	return b.inPlace(ctx, x, at, "durable changes", callers, warm, func(e *engine.Engine) func(int) error {
		return newChanges(ctx, e, at.games, callers).unit
	})
}

func (b *bench) readsAt(ctx context.Context, x *members, at place) error {
	return b.inPlace(ctx, x, at, "linearizable reads", callers, 0, func(e *engine.Engine) func(int) error {
		return func(int) error { return readPlayer(ctx, e, at.games) }
	})
}

// inPlace measures calls of one kind. If the leader of the cluster changed meanwhile, the line notes that. x is nil for a single node; warm is 0 for the usual time.
func (b *bench) inPlace(ctx context.Context, x *members, at place, what string, callers int, warm time.Duration, unit func(*engine.Engine) func(int) error) error {
	e, err := at.cell(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", at.name, err)
	}
	term := x.term()
	l := load{workers: callers, warm: cmp.Or(warm, b.sizes.clusterMeasure/5), measure: b.sizes.clusterMeasure}
	m, err := l.run(ctx, nil, unit(e))
	if err != nil {
		return fmt.Errorf("%s: %w", at.name, err)
	}
	name, aim := what+" at "+at.name, ""
	if x.term() != term {
		name += ", the leader changed meanwhile"
	}
	if what == "durable changes" {
		aim = at.aims[callers]
	}
	b.report(name, strings.Fields(what)[1], aim, m)
	return nil
}

// term returns the term of the cluster; 0 for a single node.
func (x *members) term() uint64 {
	if x == nil {
		return 0
	}
	return x.all[0].node.Status().Term
}

func (b *bench) report(what, unit, aim string, m *measured) {
	b.progress("    %s, %d callers: %s", what, m.workers, m)
	b.table.addLoad(what+", in process", unit, 1, m, 0)
	if aim != "" {
		b.table.addFact(fmt.Sprintf("%s, %d callers in process", what, m.workers), aim, "%s a second", thousands(int64(m.perSecond())))
	}
}

func readPlayer(ctx context.Context, e *engine.Engine, games []localGame) error {
	g := &games[rand.IntN(len(games))]
	id := g.players[rand.IntN(len(g.players))]
	return e.Read(ctx, func(v *cell.View) error {
		if _, ok := v.PlayerSession(id); !ok {
			return fmt.Errorf("player session %s is missing", id)
		}
		return nil
	})
}

// clusterLag measures the time from the acknowledgement of a change at the leader until the change is in the state of the other nodes.
func (b *bench) clusterLag(ctx context.Context, x *members) error {
	leader, _, err := x.roles(ctx)
	if err != nil {
		return err
	}
	rate := b.sizes.clusterLagRate
	loaded, stop := context.WithCancel(ctx)
	beside := make(chan *measured, 1)
	var writing error
	go func() {
		l := load{workers: callers, rate: rate, warm: b.sizes.clusterMeasure / 5, measure: b.sizes.clusterMeasure}
		m, err := l.run(ctx, nil, newChanges(ctx, leader.Engine, x.games, callers).unit)
		writing = err
		stop()
		beside <- m
	}()
	lag, err := x.lag(loaded, ctx, leader)
	stop()
	wrote := <-beside
	if err := errors.Join(err, writing); err != nil {
		return err
	}
	b.progress("    %s; lag p50 %s, p99 %s, at most %s of %d", wrote, milliseconds(lag.quantile(0.5)), milliseconds(lag.quantile(0.99)), milliseconds(lag.quantile(1)), lag.total)
	b.table.addFact(fmt.Sprintf("follower behind the leader at %s changes a second, p99", thousands(int64(wrote.perSecond()))), "50 ms", "%s (p50 %s, at most %s)",
		milliseconds(lag.quantile(0.99)), milliseconds(lag.quantile(0.5)), milliseconds(lag.quantile(1)))

	alone, cancel := context.WithTimeout(ctx, b.sizes.clusterMeasure)
	defer cancel()
	if lag, err = x.lag(alone, ctx, leader); err != nil {
		return err
	}
	b.table.addFact("… one change at a time on an idle cluster, p99", "–", "%s (p50 %s)", milliseconds(lag.quantile(0.99)), milliseconds(lag.quantile(0.5)))
	return nil
}

// lag makes one change after another at the leader until the first context ends, and measures when each has reached both other nodes.
func (x *members) lag(until, ctx context.Context, leader *localMember) (*histogram, error) {
	h := &histogram{}
	one := newChanges(ctx, leader.Engine, x.games, 1)
	for until.Err() == nil {
		if err := one.unit(0); err != nil {
			return h, err
		}
		began, number := time.Now(), leader.Applied()
		for _, follower := range x.all { // the leader has it
			for follower.Applied() < number && ctx.Err() == nil {
				time.Sleep(50 * time.Microsecond)
			}
		}
		h.add(time.Since(began)) // when the later node has it
		wait(until, 2*time.Millisecond)
	}
	return h, ctx.Err()
}

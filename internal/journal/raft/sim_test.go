package raft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
	"github.com/musterhq/muster/internal/journal"
)

// TestElections plays minutes of partitions, crashes that lose unsynced data, kills, restarts, hand-overs, snapshots and trims in virtual time. It
// checks that every acknowledged entry is in every later leader's journal, in order and once. The seed determines the faults, but not the library's timeouts
// and the order of goroutines. So a seed that fails is likely, but not certain, to fail again. RAFT_SEEDS=n plays n new seeds.
func TestElections(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4}
	if testing.Short() { // under the race detector
		seeds = seeds[:1]
	}
	if n, _ := strconv.Atoi(os.Getenv("RAFT_SEEDS")); n > 0 {
		seeds = nil
		for range n {
			seeds = append(seeds, rand.Uint64())
		}
	}
	if seed, err := strconv.ParseUint(os.Getenv("RAFT_SEED"), 10, 64); err == nil {
		seeds = []uint64{seed}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newWorld(t, seed).play(3 * time.Minute) })
		})
	}
}

// world is a cluster with the entries that it acknowledged.
type world struct {
	*testing.T
	cluster *cluster
	ids     []string
	engines map[string]*simEngine
	disks   map[string]*embeddbtest.Power

	mu      sync.Mutex
	chance  *rand.Rand
	chosen  []string // chosen[n-1] is what entry n was seen to be
	acked   uint64   // the highest acknowledged number
	appends int
	leaders int
	done    map[string]int // what happened, by kind
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{T: t, ids: []string{"a", "b", "c"}, engines: map[string]*simEngine{}, disks: map[string]*embeddbtest.Power{},
		chance: rand.New(rand.NewPCG(seed, 14)), done: map[string]int{}}
	for i, id := range w.ids {
		w.disks[id] = embeddbtest.NewPower(seed + uint64(i)<<32)
	}
	w.cluster = newCluster(t, func(id string) Options {
		trailing := 1 + w.draw(20)
		return Options{Dir: "data", FS: w.disks[id], Trailing: trailing, CommitTimeout: 50 * time.Millisecond}
	})
	return w
}

func (w *world) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.chance.IntN(n)
}

func (w *world) pause(most time.Duration) { time.Sleep(time.Duration(1 + w.draw(int(most)))) }

// saw records the content of an entry, and fails the test if it was different before.
func (w *world) saw(by string, number uint64, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch have := uint64(len(w.chosen)); {
	case number <= have:
		if w.chosen[number-1] != what {
			w.Errorf("%s has %q as entry %d, which was %q", by, what, number, w.chosen[number-1])
		}
	case number == have+1:
		w.chosen = append(w.chosen, what)
	default:
		w.Errorf("%s has entry %d, and no node had entry %d", by, number, have+1)
	}
}

func (w *world) acknowledged(by string, number uint64, what string) {
	w.saw(by, number, what)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked = max(w.acked, number)
	w.appends++
}

func (w *world) ackedSoFar() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acked
}

func (w *world) play(length time.Duration) {
	if err := w.cluster.grow(w.ids...); err != nil {
		w.Fatal(err)
	}
	for _, id := range w.ids {
		w.run(id)
	}
	until := time.Now().Add(length)
	for time.Now().Before(until) && !w.Failed() {
		w.pause(4 * time.Second)
		w.disturb()
	}
	for _, id := range w.ids {
		if w.engines[id] == nil {
			w.restart(id)
		}
	}
	w.cluster.heal()
	w.settle()
	for _, id := range w.ids {
		w.halt(id)
	}
	if err := w.cluster.stopAll(); err != nil {
		w.Error(err)
	}
	seen := map[string]uint64{}
	for n, what := range w.chosen {
		if before, twice := seen[what]; twice {
			w.Errorf("%q is entry %d and entry %d", what, before, n+1)
		}
		seen[what] = uint64(n) + 1
	}
	if w.appends == 0 || w.leaders < 2 {
		w.Errorf("%d appends by %d leaders: the seed tests nothing", w.appends, w.leaders)
	}
	w.Logf("%d appends acknowledged, %d runs of leaders, %v", w.appends, w.leaders, w.done)
}

// settle waits until all nodes have the same entries, the last of which is acknowledged.
func (w *world) settle() {
	from := w.ackedSoFar()
	for range 600 {
		same := w.ackedSoFar() > from
		for _, id := range w.ids {
			same = same && w.engines[id] != nil && w.engines[id].applied() > from
		}
		if same {
			return
		}
		time.Sleep(100 * time.Millisecond)
		for _, id := range w.ids {
			if w.down(id) { // its plan to lose power came true late, or it received a snapshot in place of its log
				w.restart(id)
				w.cluster.heal()
			}
		}
	}
	for _, id := range w.ids {
		w.Errorf("%s: %+v, applied %d", id, w.engines[id].node.Status(), w.engines[id].applied())
	}
	w.Errorf("no progress after entry %d although all nodes are well", from)
	stacks := make([]byte, 1<<20)
	w.Logf("what everything waits for:\n%s", stacks[:runtime.Stack(stacks, true)])
}

// down reports whether a node has failed or is without power. A node learns only from a write to its log that its power was cut. A node that waits for a
// snapshot may write nothing: it tells the leader each time that it cannot store the snapshot.
func (w *world) down(id string) bool {
	select {
	case <-w.engines[id].node.Failed():
		return true
	default:
		return w.disks[id].Off()
	}
}

func (w *world) disturb() {
	a := w.ids[w.draw(len(w.ids))]
	b := w.ids[w.draw(len(w.ids))]
	kind := []string{"isolate", "cut", "one way", "heal", "heal", "crash", "plan a crash", "kill", "restart", "hand over", "remove and add"}[w.draw(11)]
	if w.engines[a] == nil {
		w.restart(a)
		w.cluster.heal()
		return
	}
	if w.down(a) {
		kind = "restart"
	}
	w.mu.Lock()
	w.done[kind]++
	w.mu.Unlock()
	switch kind {
	case "isolate":
		w.cluster.isolate(a)
	case "cut":
		if a != b && w.engines[b] != nil {
			w.cluster.cut(a, b)
		}
	case "one way":
		if a != b && w.engines[b] != nil {
			w.cluster.links[a].Disconnect(w.cluster.links[b].LocalAddr())
		}
	case "heal":
		w.cluster.heal()
	case "crash":
		w.disks[a].Cut()
		w.halt(a)
		w.disks[a] = w.disks[a].Survivor()
	case "plan a crash":
		w.disks[a].CutAfter(1 + w.draw(200))
	case "kill":
		w.disks[a] = w.disks[a].Whole()
		w.halt(a)
	case "restart":
		w.restart(a)
	case "hand over":
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
		_ = w.engines[a].node.HandOver(ctx, "")
		cancel()
	case "remove and add":
		w.changeMembers(a)
	}
}

// changeMembers, if a leads, removes another node's vote and restores it.
func (w *world) changeMembers(a string) {
	b := w.ids[w.draw(len(w.ids))]
	ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
	defer cancel()
	if w.engines[a].node.Demote(ctx, b) == nil {
		w.pause(time.Second)
		_ = w.engines[a].node.Promote(ctx, b)
	}
}

// run starts the engine above a node.
func (w *world) run(id string) {
	ctx, cancel := context.WithCancel(context.Background())
	e := &simEngine{world: w, id: id, node: w.cluster.nodes[id], stop: cancel}
	w.engines[id] = e
	e.routines.Go(func() { e.work(ctx) })
	e.routines.Go(func() { e.readAhead(ctx) })
}

// halt stops an engine and its node.
func (w *world) halt(id string) {
	e := w.engines[id]
	if e == nil {
		return
	}
	w.engines[id] = nil
	e.stop()
	if w.cluster.nodes[id] != nil {
		_ = w.cluster.stop(id)
	}
	e.routines.Wait()
}

func (w *world) restart(id string) {
	if w.engines[id] != nil {
		w.halt(id)
	}
	if w.disks[id].Off() {
		w.disks[id] = w.disks[id].Survivor()
	}
	w.disks[id].CutAfter(0)
	if _, err := w.cluster.start(id, false); err != nil {
		w.Fatalf("open %s: %v", id, err)
	}
	w.run(id)
}

// simEngine does the same as an engine above a node: it applies committed entries, leads when it can, and saves snapshots. Its
// state is the list of all entries.
type simEngine struct {
	*world
	id       string
	node     *Node
	stop     func()
	routines sync.WaitGroup

	lock    sync.Mutex
	history []string
}

func (e *simEngine) applied() uint64 {
	e.lock.Lock()
	defer e.lock.Unlock()
	return uint64(len(e.history))
}

func (e *simEngine) apply(entry journal.Entry) {
	e.lock.Lock()
	defer e.lock.Unlock()
	if entry.Number != uint64(len(e.history))+1 {
		e.Errorf("%s: entry %d after %d", e.id, entry.Number, len(e.history))
		return
	}
	e.history = append(e.history, string(entry.Batch))
	e.saw(e.id, entry.Number, string(entry.Batch))
}

func (e *simEngine) over(ctx context.Context) bool { return ctx.Err() != nil || e.node.usable() != nil }

// load begins with the latest snapshot.
func (e *simEngine) load(ctx context.Context) error {
	at, r, err := e.node.LatestSnapshot(ctx)
	if err != nil {
		return err
	}
	var history []string
	if r != nil {
		content, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			return err
		}
		history = strings.Split(string(content), "\n")
		if uint64(len(history)) != at {
			e.Errorf("%s: a snapshot after entry %d with %d entries", e.id, at, len(history))
		}
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	e.history = history
	for n, what := range history {
		e.saw(e.id+"'s snapshot", uint64(n)+1, what)
	}
	return nil
}

func (e *simEngine) work(ctx context.Context) {
	if err := e.load(ctx); err != nil && !e.over(ctx) {
		e.Errorf("%s: load: %v", e.id, err)
	}
	for !e.over(ctx) {
		following, stop := context.WithCancel(ctx)
		var followed sync.WaitGroup
		followed.Go(func() { e.follow(following) })
		j, err := e.node.Lead(ctx)
		stop()
		followed.Wait()
		if err == nil {
			e.lead(ctx, j)
		}
	}
}

func (e *simEngine) follow(ctx context.Context) {
	for ctx.Err() == nil && e.node.usable() == nil {
		for entry, err := range e.node.Follow(ctx, e.applied()+1) {
			if err == nil {
				e.apply(entry)
				if e.draw(50) == 0 {
					e.save(ctx, e.node.SaveSnapshot, e.node.Trim)
				}
			} else if errors.Is(err, journal.ErrTrimmed) {
				if err := e.load(ctx); err != nil && !e.over(ctx) {
					e.Errorf("%s: load: %v", e.id, err)
				}
			} else if !e.over(ctx) {
				e.Errorf("%s: follow: %v", e.id, err)
				return
			}
		}
	}
}

func (e *simEngine) save(ctx context.Context, save func(context.Context, uint64, func(io.Writer) error) error, trim func(context.Context, uint64) error) {
	e.lock.Lock()
	history := e.history
	e.lock.Unlock()
	at := uint64(len(history))
	err := save(ctx, at, func(out io.Writer) error {
		_, err := io.WriteString(out, strings.Join(history, "\n"))
		return err
	})
	if err == nil {
		err = trim(ctx, at+1-min(at, uint64(e.draw(3))))
	}
	if err != nil && !e.over(ctx) && !errors.Is(err, journal.ErrFailed) && !errors.Is(err, journal.ErrOutOfOrder) && !errors.Is(err, embeddbtest.ErrPowerCut) {
		e.Errorf("%s: save after entry %d: %v", e.id, at, err)
	}
}

// lead appends until the run ends. At the start it must have every acknowledged entry.
func (e *simEngine) lead(ctx context.Context, j *Journal) {
	acked := e.ackedSoFar()
	last, err := j.Last(ctx)
	if err != nil {
		return
	}
	e.mu.Lock()
	e.leaders++
	e.mu.Unlock()
	if last < acked {
		e.Errorf("%s leads with %d entries in term %d; %d were acknowledged", e.id, last, j.Term(), acked)
	}
	for entry, err := range j.Read(ctx, e.applied()+1) {
		switch {
		case errors.Is(err, journal.ErrTrimmed):
			_ = e.load(ctx)
			return
		case err != nil:
			return
		}
		e.apply(entry)
	}
	if have := e.applied(); have != last {
		if e.node.usable() == nil {
			e.Errorf("%s leads with %d entries and read %d", e.id, last, have)
		}
		return
	}
	defer j.Close()
	for count := 0; ; count++ {
		e.pause(200 * time.Millisecond)
		if e.draw(300) == 0 {
			return // a new run of the same node
		}
		number := e.applied() + 1
		what := fmt.Sprintf("%s in term %d, number %d at %d", e.id, j.Term(), count, time.Now().UnixNano())
		if err := j.Append(ctx, number, []byte(what)); err != nil {
			if errors.Is(err, journal.ErrOutOfOrder) {
				e.Errorf("%s: %v", e.id, err)
			}
			// Whether it was written is unknown until the next run, or until this node follows.
			return
		}
		e.acknowledged(e.id, number, what)
		e.apply(journal.Entry{Number: number, Batch: []byte(what)})
		if e.draw(30) == 0 {
			e.save(ctx, j.SaveSnapshot, j.Trim)
		}
	}
}

// readAhead makes linearizable reads.
func (e *simEngine) readAhead(ctx context.Context) {
	for !e.over(ctx) {
		e.pause(300 * time.Millisecond)
		acked := e.ackedSoFar()
		number, err := e.node.VerifyRead(ctx)
		if err == nil && number < acked {
			e.Errorf("%s: a linearizable read as of entry %d; %d were acknowledged before it", e.id, number, acked)
		}
	}
}

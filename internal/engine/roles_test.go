package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/archive/archivetest"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/journal/journaltest"
	"github.com/musterhq/muster/internal/sim/canon"
	"github.com/musterhq/muster/internal/waittest"
)

// group is a cluster's log, which never loses an entry, and the node that may append to it.
type group struct {
	lock    sync.Mutex
	entries [][]byte
	more    chan struct{} // closed with the next entry
	term    int           // of the node that leads
	ended   chan struct{} // closed when it leads no more
}

func newGroup() *group { return &group{more: make(chan struct{}), ended: make(chan struct{})} }

// elect begins a term.
func (g *group) elect() {
	g.term++
	close(g.ended)
	g.ended = make(chan struct{})
}

// add commits an entry.
func (g *group) add(batch []byte) {
	g.entries = append(g.entries, bytes.Clone(batch))
	close(g.more)
	g.more = make(chan struct{})
}

// disk is one node's copy of the log.
type disk struct {
	group *group
	cut   *int   // it has only so many entries, because its node is cut off; nil: all. Guarded by group.lock, as the next one.
	first uint64 // the oldest entry that it has, once it was sent a snapshot
	lock  sync.Mutex
	at    uint64
	state []byte
	slow  chan struct{} // closed when the latest snapshot is asked for, which takes until the caller gives up; nil: it takes no time
}

// cutOff stops a node from receiving further entries.
func (d *disk) cutOff() {
	d.group.lock.Lock()
	defer d.group.lock.Unlock()
	d.cut = new(len(d.group.entries))
}

// install sends a snapshot and the entries after it to a node that was cut off.
func (d *disk) install(at uint64, state []byte) {
	d.lock.Lock()
	d.at, d.state = at, state
	d.lock.Unlock()
	g := d.group
	g.lock.Lock()
	defer g.lock.Unlock()
	d.cut, d.first = nil, at+1
	close(g.more)
	g.more = make(chan struct{})
}

func (d *disk) Read(_ context.Context, from uint64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		d.group.lock.Lock()
		entries, first := d.group.entries, d.first
		if d.cut != nil {
			entries = entries[:*d.cut]
		}
		d.group.lock.Unlock()
		if max(from, 1) < first {
			yield(journal.Entry{}, fmt.Errorf("%w: the oldest is %d", journal.ErrTrimmed, first))
			return
		}
		for n := max(from, 1); n <= uint64(len(entries)); n++ {
			if !yield(journal.Entry{Number: n, Batch: bytes.Clone(entries[n-1])}, nil) {
				return
			}
		}
	}
}

func (d *disk) Follow(ctx context.Context, from uint64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		for {
			d.group.lock.Lock()
			more := d.group.more
			d.group.lock.Unlock()
			for entry, err := range d.Read(ctx, from) {
				if !yield(entry, err) || err != nil {
					return
				}
				from = entry.Number + 1
			}
			select {
			case <-more:
			case <-ctx.Done():
				yield(journal.Entry{}, ctx.Err())
				return
			}
		}
	}
}

func (d *disk) SaveSnapshot(_ context.Context, at uint64, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	if at < d.at { // another node has sent a newer one meanwhile
		return fmt.Errorf("%w: the latest snapshot was taken after entry %d", journal.ErrOutOfOrder, d.at)
	}
	d.at, d.state = at, b.Bytes()
	return nil
}

func (d *disk) LatestSnapshot(ctx context.Context) (uint64, io.ReadCloser, error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.slow != nil {
		close(d.slow)
		<-ctx.Done()
		return 0, nil, ctx.Err()
	}
	if d.state == nil {
		return 0, nil, nil
	}
	return d.at, io.NopCloser(bytes.NewReader(d.state)), nil
}

func (d *disk) Trim(context.Context, uint64) error { return nil }

// office is the journal of a leader during its term.
type office struct {
	*disk
	term  int
	ended chan struct{}
	fails func() journaltest.Fault // what becomes of an append; nil: it succeeds
}

func (o *office) Append(_ context.Context, next uint64, batch []byte) error {
	g := o.group
	g.lock.Lock()
	defer g.lock.Unlock()
	fault := journaltest.None
	if o.fails != nil {
		fault = o.fails()
	}
	switch {
	case o.term != g.term:
		return fmt.Errorf("%w: %w", journal.ErrFailed, journal.ErrFenced)
	case next != uint64(len(g.entries))+1:
		return journal.ErrOutOfOrder
	case fault == journaltest.NotWritten:
		g.elect()
		return fmt.Errorf("%w: leadership lost", journal.ErrFailed)
	case fault == journaltest.Written:
		g.add(batch)
		g.elect()
		return fmt.Errorf("%w: leadership lost", journal.ErrFailed)
	}
	g.add(batch)
	return nil
}

func (o *office) Last(context.Context) (uint64, error) {
	o.group.lock.Lock()
	defer o.group.lock.Unlock()
	return uint64(len(o.group.entries)), nil
}

func (o *office) Close() error { return nil }

func (o *office) Ended() <-chan struct{} { return o.ended }

// member is a node of a cluster, with the events that its observers were told.
type member struct {
	*engine.Engine
	disk  *disk
	past  *archivetest.Memory
	vault archive.Archive

	lock sync.Mutex
	told []telling
}

type telling struct {
	number uint64
	part   uint32
	event  string
}

func (m *member) heard() []telling {
	m.lock.Lock()
	defer m.lock.Unlock()
	return slices.Clone(m.told)
}

// cluster is some nodes with one log.
type cluster struct {
	*testing.T
	group   *group
	members []*member
}

func newCluster(t *testing.T, nodes int, config engine.Config) *cluster {
	c := &cluster{T: t, group: newGroup()}
	for range nodes {
		c.members = append(c.members, c.open(config, &disk{group: c.group}, archivetest.NewMemory(1)))
	}
	return c
}

// open starts a node on its disks.
func (c *cluster) open(config engine.Config, d *disk, past *archivetest.Memory) *member {
	c.Helper()
	m := &member{disk: d, past: past}
	var err error
	if m.vault, err = past.Open(); err != nil {
		c.Fatal(err)
	}
	if config.Archive == nil {
		config.Archive = m.vault
	}
	if config.Cell == (cell.Config{}) {
		config.Cell = cell.DefaultConfig()
	}
	if w, ok := config.Peers.(*wires); ok {
		config.Peers = &wired{w, m}
	}
	if m.Engine, err = engine.OpenReplica(c.Context(), config, m.disk); err != nil {
		c.Fatal(err)
	}
	m.Follow(kernel.AllKinds(), func(x engine.Committed) {
		m.lock.Lock()
		defer m.lock.Unlock()
		if x.Gap {
			m.told = append(m.told, telling{number: x.Number, event: "gap"})
		}
		for _, e := range x.Events {
			m.told = append(m.told, telling{x.Number, e.Part, fmt.Sprintf("%T %+v before %+v", e.Event, e.Event, e.Before)})
		}
	})
	c.Cleanup(func() { _ = m.Close() })
	return m
}

// lead makes a node the leader without informing the previous one.
func (c *cluster) lead(m *member, fails func() journaltest.Fault) error {
	c.group.lock.Lock()
	c.group.elect()
	o := &office{m.disk, c.group.term, c.group.ended, fails}
	c.group.lock.Unlock()
	return m.Lead(c.Context(), o)
}

// house makes a node usable like a single machine.
func (c *cluster) house(m *member) *house { return &house{t: c.T, Engine: m.Engine} }

// agree waits until every node has the same state and has told its observers the same events.
func (c *cluster) agree() {
	c.Helper()
	first := c.members[0]
	for _, m := range c.members[1:] {
		waittest.Until(c.T, "the same state everywhere", func() bool {
			return canon.Differ("a node", m.Freeze(), first.Freeze()) == nil
		})
		waittest.Until(c.T, "the same news everywhere", func() bool { return slices.Equal(m.heard(), first.heard()) })
	}
}

// TestReplicasFollow: each replica has the leader's state, and tells its observers the same events.
func TestReplicasFollow(t *testing.T) {
	c := newCluster(t, 3, engine.Config{})
	if err := c.members[0].Do(t.Context(), &hosting.CreateLocation{Name: testLocation}); !errors.Is(err, engine.ErrNotLeading) {
		t.Fatalf("a command at a replica: %v", err)
	}
	if err := c.lead(c.members[0], nil); err != nil {
		t.Fatal(err)
	}
	h := c.house(c.members[0])
	h.hall()
	game := h.game("g1", 10)
	for i := range 5 {
		if err := h.reserve(game, i); err != nil {
			t.Fatal(err)
		}
	}
	c.agree()
	if got := c.house(c.members[2]).held(game); got != 5 {
		t.Errorf("a replica shows %d seats held, want 5", got)
	}
	waittest.Until(t, "a replica's followers to hear of ten events", func() bool { return len(c.members[1].heard()) >= 10 })
}

// TestTakeover: a leader that was replaced without notice drops its later decisions, and acknowledges none of them.
func TestTakeover(t *testing.T) {
	c := newCluster(t, 2, engine.Config{})
	if err := c.lead(c.members[0], nil); err != nil {
		t.Fatal(err)
	}
	old, next := c.house(c.members[0]), c.house(c.members[1])
	old.hall()
	game := old.game("g1", 10)
	if err := c.lead(c.members[1], nil); err != nil {
		t.Fatal(err)
	}
	if err := old.reserve(game, 1); !errors.Is(err, engine.ErrStopped) && !errors.Is(err, engine.ErrNotLeading) {
		t.Fatalf("a reservation at the node that was replaced: %v", err)
	}
	if err := next.reserve(game, 2); err != nil {
		t.Fatal(err)
	}
	c.agree()
	if got := old.held(game); got != 1 {
		t.Errorf("%d seats are held, want 1", got)
	}
	if err := old.reserve(game, 3); !errors.Is(err, engine.ErrNotLeading) {
		t.Errorf("the node that was replaced says %v", err)
	}
}

// TestUnknownOutcome: an entry whose append failed, and that is committed nevertheless, reaches every node. Each reports it once.
func TestUnknownOutcome(t *testing.T) {
	for _, fault := range []journaltest.Fault{journaltest.Written, journaltest.NotWritten} {
		c := newCluster(t, 2, engine.Config{})
		var next journaltest.Fault
		if err := c.lead(c.members[0], func() journaltest.Fault { return next }); err != nil {
			t.Fatal(err)
		}
		h := c.house(c.members[0])
		h.hall()
		game := h.game("g1", 10)
		c.group.lock.Lock()
		next = fault
		c.group.lock.Unlock()
		if err := h.reserve(game, 1); !errors.Is(err, engine.ErrStopped) {
			t.Fatalf("the outcome is unknown, yet the error is %v", err)
		}
		if err := c.lead(c.members[1], nil); err != nil {
			t.Fatal(err)
		}
		c.house(c.members[1]).must(&hosting.CreateLocation{Name: "custom-later"})
		c.agree()
		want := int32(0)
		if fault == journaltest.Written {
			want = 1
		}
		if got := h.held(game); got != want {
			t.Errorf("after %d: %d seats are held, want %d", fault, got, want)
		}
	}
}

// TestStepDown: a leader that hands over keeps all its decisions, and can lead again.
func TestStepDown(t *testing.T) {
	c := newCluster(t, 2, engine.Config{})
	for i := range 6 {
		m := c.members[i%2]
		if err := c.lead(m, nil); err != nil {
			t.Fatal(err)
		}
		c.house(m).must(&hosting.CreateLocation{Name: fmt.Sprint("custom-", i)})
		m.StepDown()
	}
	c.agree()
}

// TestCloseWhileTheStateIsLoadedAgain: a node that loses its leadership with uncommitted changes, and is then closed, has not failed.
func TestCloseWhileTheStateIsLoadedAgain(t *testing.T) {
	c := newCluster(t, 1, engine.Config{})
	m := c.members[0]
	var fault atomic.Int32
	if err := c.lead(m, func() journaltest.Fault { return journaltest.Fault(fault.Load()) }); err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	m.disk.lock.Lock()
	m.disk.slow = asked
	m.disk.lock.Unlock()
	fault.Store(int32(journaltest.NotWritten))
	if err := m.Do(t.Context(), &hosting.CreateLocation{Name: "custom-1"}); !errors.Is(err, engine.ErrStopped) {
		t.Fatalf("an append that failed: %v", err)
	}
	<-asked
	if err := m.Close(); err != nil {
		t.Errorf("closed with %v", err)
	}
}

// TestReplicasKeepWhatEnded: no node lets a record leave memory before its own archive has it, not even a node that restarts from a snapshot.
func TestReplicasKeepWhatEnded(t *testing.T) {
	c := newCluster(t, 2, engine.Config{EndedLinger: time.Nanosecond})
	if err := c.lead(c.members[0], nil); err != nil {
		t.Fatal(err)
	}
	h := c.house(c.members[0])
	h.hall()
	var games []session.ID
	for i := range 20 {
		id := h.game(fmt.Sprint("g", i), 2)
		games = append(games, id)
		h.must(&hosting.EndProcess{Process: fleet.Key{Fleet: testFleet, Compute: testCompute, Process: fmt.Sprint("p-g", i)}, Request: 1})
	}
	for _, m := range c.members {
		for _, id := range games {
			waittest.Until(t, "the archive of each node", func() bool {
				_, found, err := m.vault.Get(t.Context(), archive.GameSession, string(id))
				return err == nil && found
			})
		}
	}
	c.agree()
	// A third node begins with nothing and sees everything that happened.
	m := &member{disk: &disk{group: c.group}}
	var err error
	if m.vault, err = archivetest.NewMemory(1).Open(); err != nil {
		t.Fatal(err)
	}
	if m.Engine, err = engine.OpenReplica(t.Context(), engine.Config{Archive: m.vault, Cell: cell.DefaultConfig()}, m.disk); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, id := range games {
		waittest.Until(t, "the archive of the late node", func() bool {
			_, found, err := m.vault.Get(t.Context(), archive.GameSession, string(id))
			return err == nil && found
		})
	}
}

// TestReplicasStoreManyAtOnce: records leave memory in many entries, and a replica does not write a table of its archive for each of them.
func TestReplicasStoreManyAtOnce(t *testing.T) {
	config := engine.Config{EndedLinger: time.Nanosecond}
	c := newCluster(t, 1, config)
	vault, err := archivetest.NewMemory(1).Open()
	if err != nil {
		t.Fatal(err)
	}
	late := &fullArchive{Archive: vault}
	late.full.Store(true)
	config.Archive = late
	c.members = append(c.members, c.open(config, &disk{group: c.group}, archivetest.NewMemory(1)))
	if err := c.lead(c.members[0], nil); err != nil {
		t.Fatal(err)
	}
	h := c.house(c.members[0])
	h.hall()
	const games, players = 6, 200
	for g := range games {
		id := h.game(fmt.Sprint("g", g), players)
		for n := range players {
			if err := h.reserve(id, g*players+n); err != nil {
				t.Fatal(err)
			}
		}
	}
	for g := range games {
		h.must(&hosting.EndProcess{Process: fleet.Key{Fleet: testFleet, Compute: testCompute, Process: fmt.Sprint("p-g", g)}, Request: 1})
	}
	emptied := func(m *member) func() bool {
		return func() bool {
			left := 1
			_ = m.ReadHere(t.Context(), func(v *cell.View) error { left = v.Totals().Ended; return nil })
			return left == 0
		}
	}
	waittest.Until(t, "everything to leave the memory of the node that decides", emptied(c.members[0]))
	late.full.Store(false)
	waittest.Until(t, "everything to leave the memory of the replica", emptied(c.members[1]))
	// The first write, which was held up, may have a part of them.
	if largest := late.largest.Load(); largest < games*players/2 {
		t.Errorf("the largest write of the replica's archive had %d records of %d, want half of them at least", largest, games*players)
	}
	for n := range games * players {
		id := playerID(n)
		if _, found, err := vault.Get(t.Context(), archive.PlayerSession, string(id[:])); err != nil || !found {
			t.Errorf("player session %s left memory and is not in the archive: %v", id, err)
		}
	}
}

// TestChangesOfLeaders: whichever node leads and whether or not its appends succeed, every acknowledged reservation is at every node exactly
// once. All nodes have told their observers the same events in the same order.
func TestChangesOfLeaders(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			c := newCluster(t, 3, engine.Config{SnapshotEvery: 2 << 10})
			if err := c.lead(c.members[0], nil); err != nil {
				t.Fatal(err)
			}
			h := c.house(c.members[0])
			h.hall()
			var games [6]session.ID // for each caller its own
			for i := range games {
				games[i] = h.game(fmt.Sprint("g", i), 200)
			}
			var lock sync.Mutex
			acknowledged := map[int]bool{}
			ctx, stop := context.WithCancel(t.Context())
			var work sync.WaitGroup
			for caller := range games {
				work.Go(func() {
					for i, at := 0, caller; ctx.Err() == nil && i < 190; at++ {
						n := caller*1000 + i
						switch err := c.house(c.members[at%3]).reserve(games[caller], n); {
						case err == nil:
							lock.Lock()
							acknowledged[n] = true
							lock.Unlock()
							i++
						case errors.Is(err, engine.ErrNotLeading):
							time.Sleep(time.Millisecond)
						case errors.Is(err, engine.ErrStopped):
							i++ // it may have happened
						default:
							t.Error(err)
							i++
						}
					}
				})
			}
			for range 12 {
				m := c.members[rnd.IntN(3)]
				m.StepDown()
				left, fault := 1+rnd.IntN(20), []journaltest.Fault{journaltest.NotWritten, journaltest.Written}[rnd.IntN(2)]
				over := make(chan struct{})
				if err := c.lead(m, func() journaltest.Fault {
					if left--; left != 0 {
						return journaltest.None
					}
					close(over)
					return fault
				}); err != nil {
					t.Log(err) // the first command was already one too many
					continue
				}
				select {
				case <-over:
				case <-time.After(time.Second): // everything is reserved
				}
			}
			stop()
			work.Wait()
			c.members[0].StepDown()
			if err := c.lead(c.members[0], nil); err != nil {
				t.Fatal(err)
			}
			c.agree()
			for n := range acknowledged {
				if err := c.members[1].Read(t.Context(), func(v *cell.View) error {
					if p, ok := v.PlayerSession(playerID(n)); !ok || p.GameID != games[n/1000] {
						return fmt.Errorf("player %d is not there", n)
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
			c.group.lock.Lock()
			defer c.group.lock.Unlock()
			t.Logf("%d reservations acknowledged, %d entries", len(acknowledged), len(c.group.entries))
		})
	}
}

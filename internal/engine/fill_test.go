package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/archive/archivetest"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/journal/journaltest"
	"github.com/musterhq/muster/internal/waittest"
)

// vaults has the archives of other nodes, with pages so small that there are many.
type vaults struct {
	lock  sync.Mutex
	nodes map[string]*member
	page  func(node string) error // called before a page is answered
	asked atomic.Int32            // pages
	sent  map[string]bool         // ids of the records in them
}

func (v *vaults) was(id string) bool {
	v.lock.Lock()
	defer v.lock.Unlock()
	return v.sent[id]
}

func (v *vaults) forget() {
	v.lock.Lock()
	defer v.lock.Unlock()
	clear(v.sent)
}

func (v *vaults) set(node string, m *member) {
	v.lock.Lock()
	defer v.lock.Unlock()
	v.nodes[node] = m
}

func (v *vaults) Nodes() (all []string) {
	v.lock.Lock()
	defer v.lock.Unlock()
	for node := range v.nodes {
		all = append(all, node)
	}
	slices.Sort(all)
	return all
}

var errDown = errors.New("the node is down")

func (v *vaults) Ask(ctx context.Context, node string, q *engine.ArchiveQuestion) (*engine.ArchiveAnswer, error) {
	v.lock.Lock()
	m, page := v.nodes[node], v.page
	v.lock.Unlock()
	if m == nil {
		return nil, errDown
	}
	copied := *q
	if q.Bytes > 0 {
		copied.Bytes = 300
		if page != nil {
			if err := page(node); err != nil {
				return nil, err
			}
		}
		v.asked.Add(1)
	}
	a, err := m.AnswerArchive(ctx, &copied)
	if err == nil && q.Bytes > 0 {
		v.lock.Lock()
		defer v.lock.Unlock()
		for _, r := range a.Records {
			v.sent[r.ID] = true
		}
	}
	return a, err
}

// onPage sets what is called before a page is answered.
func (v *vaults) onPage(f func(node string) error) {
	v.lock.Lock()
	defer v.lock.Unlock()
	v.page = f
}

// bygone has the records of a test that have ended and left memory.
type bygone struct {
	games   []session.ID
	players map[session.ID]int // a seat of each game
}

var seats atomic.Int64

// endGames begins and ends games with a player each, and waits until they have left a node's memory.
func (c *cluster) endGames(m *member, name string, n int) (b bygone) {
	c.Helper()
	h := c.house(m)
	b.players = map[session.ID]int{}
	for i := range n {
		id := h.game(fmt.Sprint(name, i), 2)
		seat := int(seats.Add(1))
		if err := h.reserve(id, seat); err != nil {
			c.Fatal(err)
		}
		h.must(&hosting.EndProcess{Process: fleet.Key{Fleet: testFleet, Compute: testCompute, Process: fmt.Sprint("p-", name, i)}, Request: 1})
		b.games, b.players[id] = append(b.games, id), seat
	}
	c.forgotten(m)
	return b
}

// forgotten waits until no ended record is in the memory of a node.
func (c *cluster) forgotten(m *member) {
	c.Helper()
	waittest.Until(c.T, "what ended to leave memory", func() bool {
		left := 1
		_ = m.ReadHere(c.Context(), func(v *cell.View) error { left = v.Totals().Ended; return nil })
		return left == 0
	})
}

// answers checks that a node answers requests for ended records.
func (c *cluster) answers(m *member, all ...bygone) error {
	for _, b := range all {
		for _, id := range b.games {
			if _, err := m.GameSession(c.Context(), id); err != nil {
				return fmt.Errorf("game session %s: %w", id, err)
			}
			p, err := m.PlayerSession(c.Context(), playerID(b.players[id]))
			if err != nil || p.GameID != id {
				return fmt.Errorf("player session of %s: %w", id, err)
			}
			in, _, err := m.PlayersIn(c.Context(), id, 0, engine.PlayerPlace{}, 10)
			if err != nil || len(in) != 1 {
				return fmt.Errorf("%d player sessions in %s: %w", len(in), id, err)
			}
		}
	}
	var listed []session.GameSession
	for at, more := (hosting.GamePlace{}), true; more; {
		page, next, err := m.GameSessions(c.Context(), testFleet, hosting.GameFilter{}, at, 7)
		if err != nil {
			return fmt.Errorf("list game sessions: %w", err)
		}
		if more = next; more {
			last := page[len(page)-1]
			at = hosting.GamePlace{Created: last.Created, ID: last.ID}
		}
		listed = append(listed, page...)
	}
	for _, b := range all {
		for _, id := range b.games {
			if !slices.ContainsFunc(listed, func(g session.GameSession) bool { return g.ID == id }) {
				return fmt.Errorf("game session %s is not in the list of %d", id, len(listed))
			}
		}
	}
	return nil
}

// contents returns all records of an archive that have not expired.
func contents(t *testing.T, a archive.Archive) (all []archive.Record) {
	t.Helper()
	page, err := a.Page(t.Context(), archive.Place{}, 1<<40)
	if err != nil || page.More {
		t.Fatalf("more: %t, %v", page.More, err)
	}
	page.Records = slices.DeleteFunc(page.Records, func(r archive.Record) bool {
		return r.Ended < time.Now().Add(-engine.DefaultRetention+time.Minute).UnixMilli()
	})
	slices.SortFunc(page.Records, func(a, b archive.Record) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID)) })
	return page.Records
}

// complete waits until a node's archive is complete, and compares it with that of another one.
func (c *cluster) complete(m, with *member) {
	c.Helper()
	waittest.Until(c.T, "a complete archive", func() bool { _, lacks := m.ArchiveLacks(); return !lacks })
	c.same(m, with)
	c.forgotten(m)
	if got, want := archive.Sum(contents(c.T, m.vault)), archive.Sum(contents(c.T, with.vault)); got != want {
		c.Errorf("%d records are in the archive, %d in the other one", len(contents(c.T, m.vault)), len(contents(c.T, with.vault)))
	}
	if covers, ok, err := m.vault.Coverage(); err != nil || !ok || covers.Lacks {
		c.Errorf("the archive says %+v, %t, %v", covers, ok, err)
	}
}

// newArchives returns a cluster of two whose first node leads, and a disk for a third node. The third receives a snapshot first: a snapshot of its own
// would claim that its archive has the earlier records.
func newArchives(t *testing.T) (c *cluster, others *vaults, config engine.Config, third *disk) {
	others = &vaults{nodes: map[string]*member{}, sent: map[string]bool{}}
	config = engine.Config{EndedLinger: time.Nanosecond, SnapshotEvery: 1 << 10, Archives: others}
	c = newCluster(t, 2, config)
	third = &disk{group: c.group}
	third.cutOff()
	if err := c.lead(c.members[0], nil); err != nil {
		t.Fatal(err)
	}
	c.house(c.members[0]).hall()
	return c, others, config, third
}

// TestJoinerGetsTheArchive: a node that begins with a snapshot answers for earlier records while its own archive is empty, while it is copied, and
// once it is complete. The archive also gets the records that end meanwhile.
func TestJoinerGetsTheArchive(t *testing.T) {
	c, others, config, disk := newArchives(t)
	leader := c.members[0]
	before := c.endGames(leader, "before", 40)
	c.snapshotBehind(leader)
	pages := make(chan struct{})
	others.onPage(func(string) error { <-pages; return nil })
	others.set("n1", leader)
	others.set("n2", c.members[1])
	late := c.open(config, disk, archivetest.NewMemory(1))
	if _, lacks := late.ArchiveLacks(); lacks {
		t.Error("an empty node of an empty cluster lacks records")
	}
	c.install(leader, late)
	waittest.Until(t, "the snapshot to be noticed", func() bool { _, lacks := late.ArchiveLacks(); return lacks })
	if err := c.answers(late, before); err != nil {
		t.Errorf("before the copy: %v", err)
	}
	if _, err := late.GameSession(t.Context(), "nonsense"); !domain.IsRefused(err, domain.NotFound) {
		t.Errorf("a game session that never was: %v", err)
	}
	if _, err := late.AnswerArchive(t.Context(), &engine.ArchiveQuestion{Kind: archive.GameSession, ID: "x"}); !errors.Is(err, engine.ErrArchiveLacks) {
		t.Errorf("asked by another node it says %v", err)
	}
	var meanwhile []bygone
	for i := range 5 {
		meanwhile = append(meanwhile, c.endGames(leader, fmt.Sprint("meanwhile", i), 3))
		for range 4 {
			pages <- struct{}{}
		}
		if err := c.answers(late, append(meanwhile, before)...); err != nil {
			t.Errorf("during the copy: %v", err)
		}
	}
	close(pages)
	c.complete(late, leader)
	others.set("n1", nil)
	others.set("n2", nil)
	if err := c.answers(late, append(meanwhile, before)...); err != nil {
		t.Errorf("alone: %v", err)
	}
	if others.asked.Load() < 20 {
		t.Errorf("the copy took %d pages", others.asked.Load())
	}
}

// TestCopyGoesOn: a copy continues with the next node when one dies, and after a kill of the copying node. It does not start again.
func TestCopyGoesOn(t *testing.T) {
	c, others, config, disk := newArchives(t)
	leader := c.members[0]
	all := c.endGames(leader, "recent", 8)
	c.snapshotBehind(leader)
	old := history(leader.Now(), 800)
	for _, m := range c.members {
		waittest.Until(t, "the same archives", func() bool { return len(contents(t, m.vault)) >= 16 })
		if err := m.vault.Put(t.Context(), old); err != nil {
			t.Fatal(err)
		}
	}
	others.set("n1", leader)
	others.set("n2", c.members[1])
	var left atomic.Int32
	left.Store(100)
	killed := make(chan struct{})
	others.onPage(func(node string) error {
		if left.Add(-1) == 0 {
			close(killed)
		}
		if left.Load() <= 0 {
			return errDown
		}
		return nil
	})
	past := archivetest.NewMemory(1)
	late := c.open(config, disk, past)
	c.install(leader, late)
	<-killed
	past.Crash()
	_ = late.Close()
	late = c.open(config, disk, past)
	from, lacks := late.ArchiveLacks()
	if !lacks || from.UnixMilli() == 0 {
		t.Fatalf("after the restart: lacks records %t, from %s", lacks, from)
	}
	if err := c.answers(late, all); err != nil {
		t.Errorf("after the restart: %v", err)
	}
	had := contents(t, late.vault)
	others.forget()
	others.onPage(func(node string) error { // the first node dies in the middle
		if node == "n1" && left.Add(1) > 3 {
			return errDown
		}
		return nil
	})
	c.complete(late, leader)
	if err := c.answers(late, all); err != nil {
		t.Error(err)
	}
	again := 0
	for _, r := range had {
		if others.was(r.ID) {
			again++
		}
	}
	if len(had) < 100 || again > len(had)/2 {
		t.Errorf("%d records were there before the restart, and %d of them were copied again", len(had), again)
	}
	last := old[len(old)-1]
	if _, found, err := late.vault.Get(t.Context(), last.Kind, last.ID); err != nil || found {
		t.Errorf("what had expired was brought back, or %v", err)
	}
	if others.was(last.ID) {
		t.Error("a node sent what had expired")
	}
}

// history returns records that ended in the past, hours apart.
func history(now time.Time, n int) (records []archive.Record) {
	for i := range n {
		at := now.Add(-time.Duration(i) * time.Hour).UnixMilli()
		records = append(records, archive.Record{Kind: archive.Placement, ID: fmt.Sprint("history-", i), Created: at, Ended: at, Data: make([]byte, 100)})
	}
	return records
}

// TestNoArchiveToAsk: while no other node can be asked, a node that lacks records says so, instead of "not found" and incomplete lists. It still accepts commands.
func TestNoArchiveToAsk(t *testing.T) {
	c, _, config, disk := newArchives(t)
	leader := c.members[0]
	gone := c.endGames(leader, "gone", 3)
	c.snapshotBehind(leader)
	late := c.open(config, disk, archivetest.NewMemory(1))
	c.install(leader, late)
	waittest.Until(t, "the snapshot to be noticed", func() bool { _, lacks := late.ArchiveLacks(); return lacks })
	if err := c.answers(late, gone); !domain.IsRefused(err, domain.Overloaded) {
		t.Errorf("a game session: %v", err)
	}
	if _, _, err := late.GameSessions(t.Context(), testFleet, hosting.GameFilter{}, hosting.GamePlace{}, 10); !domain.IsRefused(err, domain.Overloaded) {
		t.Errorf("a list: %v", err)
	}
	if err := c.lead(late, nil); err != nil {
		t.Fatal(err)
	}
	c.house(late).must(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: testFleet, Name: "other", Location: testLocation, IPAddress: "127.0.0.1"}})
	c.endGames(late, "now", 2)
}

// TestLaggedNodeCopiesThePart: a node that lagged copies only the records that it missed, even while it misses more.
func TestLaggedNodeCopiesThePart(t *testing.T) {
	c, others, config, disk := newArchives(t)
	leader := c.members[0]
	others.set("n1", leader)
	disk.install(0, nil) // it gets every entry
	late := c.open(config, disk, archivetest.NewMemory(1))
	early := c.endGames(leader, "early", 30)
	c.forgotten(late)
	c.savedBehind(late, leader)
	var all []bygone
	all = append(all, early)
	others.onPage(func(string) error { return errDown })
	for i := range 4 {
		late.disk.cutOff()
		all = append(all, c.endGames(leader, fmt.Sprint("missed", i), 5))
		c.snapshotBehind(leader)
		at := c.install(leader, late)
		waittest.Until(t, "the jump", func() bool { covers, _, _ := late.vault.Coverage(); return covers.Entry >= at })
	}
	var jumps atomic.Int32
	others.onPage(func(string) error { // the node jumps again during each page
		if n := jumps.Add(1); n <= 8 {
			late.disk.cutOff()
			all = append(all, c.endGames(leader, fmt.Sprint("meanwhile", n), 1))
			c.snapshotBehind(leader)
			at := c.install(leader, late)
			waittest.Until(t, "the jump", func() bool { covers, _, _ := late.vault.Coverage(); return covers.Entry >= at })
		}
		return nil
	})
	waittest.Until(t, "the pages with jumps", func() bool { return jumps.Load() > 8 })
	c.complete(late, leader)
	if err := c.answers(late, all...); err != nil {
		t.Error(err)
	}
	for _, id := range early.games[:10] {
		if others.was(string(id)) {
			t.Errorf("%s was there, and was copied again", id)
		}
	}
}

// TestNobodyForgetsFirst: no node lets a record leave memory before its archive has stored it, whatever the node's role and however that changes.
func TestNobodyForgetsFirst(t *testing.T) {
	c := newCluster(t, 2, engine.Config{EndedLinger: time.Nanosecond})
	past := archivetest.NewMemory(1)
	vault, err := past.Open()
	if err != nil {
		t.Fatal(err)
	}
	full := &fullArchive{Archive: vault}
	full.full.Store(true)
	slow := c.open(engine.Config{EndedLinger: time.Nanosecond, Archive: full}, &disk{group: c.group}, archivetest.NewMemory(1))
	if err := c.lead(c.members[0], nil); err != nil {
		t.Fatal(err)
	}
	c.house(c.members[0]).hall()
	gone := c.endGames(c.members[0], "g", 3)
	waittest.Until(t, "the node to be held up", func() bool { return full.refused.Load() > 0 })
	ended := func() (n int) {
		_ = slow.ReadHere(t.Context(), func(v *cell.View) error { n = v.Totals().Ended; return nil })
		return n
	}
	if ended() == 0 {
		t.Error("records have left the memory of a node whose archive does not take them")
	}
	led := make(chan error, 1)
	refused := full.refused.Load()
	go func() { led <- c.lead(slow, nil) }()
	waittest.Until(t, "the takeover to be held up", func() bool { return full.refused.Load() > refused })
	select {
	case err := <-led:
		t.Errorf("it leads without what its archive lacks: %v", err)
	default:
	}
	full.full.Store(false)
	if err := <-led; err != nil {
		t.Fatal(err)
	}
	for _, id := range gone.games {
		if _, found, err := vault.Get(t.Context(), archive.GameSession, string(id)); err != nil || !found {
			t.Errorf("%s left memory and is not in the archive: %v", id, err)
		}
	}
	full.full.Store(true) // now it decides
	h := c.house(slow)
	id := h.game("later", 2)
	refused = full.refused.Load()
	h.must(&hosting.EndProcess{Process: fleet.Key{Fleet: testFleet, Compute: testCompute, Process: "p-later"}, Request: 1})
	waittest.Until(t, "the archive to refuse", func() bool { return full.refused.Load() > refused })
	slow.StepDown()
	if ended() == 0 {
		t.Error("a record has left the memory of the node that decided")
	}
	full.full.Store(false)
	if err := c.lead(c.members[0], nil); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the record to reach the archive", func() bool {
		_, found, err := vault.Get(t.Context(), archive.GameSession, string(id))
		return err == nil && found
	})
}

// fullArchive delays writes while it is full.
type fullArchive struct {
	archive.Archive
	full    atomic.Bool
	refused atomic.Int32
	largest atomic.Int64 // records in one write
}

func (a *fullArchive) Put(ctx context.Context, records []archive.Record) error {
	if a.full.Load() && len(records) > 0 {
		a.refused.Add(1)
	}
	for a.full.Load() && len(records) > 0 {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	a.largest.Store(max(a.largest.Load(), int64(len(records))))
	return a.Archive.Put(ctx, records)
}

// TestNodeLeavesTheCluster: a node is opened alone, with entries in its journal that it had not applied. It archives the records that leave memory with them.
func TestNodeLeavesTheCluster(t *testing.T) {
	c := newCluster(t, 2, engine.Config{EndedLinger: time.Nanosecond})
	leader, other := c.members[0], c.members[1]
	if err := c.lead(leader, nil); err != nil {
		t.Fatal(err)
	}
	c.house(leader).hall()
	c.same(other, leader)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	gone := c.endGames(leader, "g", 3)
	_ = other.vault.Close()
	vault, err := other.past.Open()
	if err != nil {
		t.Fatal(err)
	}
	alone, err := journaltest.NewMemory(1).Open()
	if err != nil {
		t.Fatal(err)
	}
	for entry, err := range other.disk.Read(t.Context(), 1) {
		if err := cmp.Or(err, alone.Append(t.Context(), entry.Number, entry.Batch)); err != nil {
			t.Fatal(err)
		}
	}
	e, err := engine.Open(t.Context(), engine.Config{Journal: alone, Archive: vault, Cell: cell.DefaultConfig()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := c.answers(&member{Engine: e}, gone); err != nil {
		t.Error(err)
	}
}

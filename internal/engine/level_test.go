package engine_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/wire"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/sim/canon"
	"github.com/musterhq/muster/internal/waittest"
)

// The additions of an invented next release: a room with an event and a record of level 2.
const (
	nextRoom = kernel.RoomNo(15)
	nextKind = 511
	nextPart = 255
)

type foretold struct{ Word string }

func (*foretold) Kind() kernel.Kind      { return nextKind }
func (*foretold) Level() uint            { return kernel.Level + 1 }
func (e *foretold) Fields(c *wire.Codec) { c.String(1, &e.Word) }
func newForetold() kernel.Event          { return &foretold{} }

type oracle struct {
	kernel.Plain
	words []string
}

func (*oracle) Events() []func() kernel.Event         { return []func() kernel.Event{newForetold} }
func (o *oracle) Apply(_ domain.Time, e kernel.Event) { o.words = append(o.words, e.(*foretold).Word) }
func (*oracle) Restore(*kernel.Head) error            { return nil }

// Freeze also has a record when nothing was foretold.
func (o *oracle) Freeze(*kernel.Head) []kernel.Frozen {
	all := strings.Join(o.words, " ")
	return []kernel.Frozen{func(w *kernel.PartWriter) { w.Part(nextPart, &foretold{all}) }}
}

func (o *oracle) Load(l *kernel.Loader, kind uint64, body []byte) (known bool, err error) {
	if kind != nextPart {
		return false, nil
	}
	return true, kernel.LoadWith(l, body, func(x foretold) { o.words = strings.Fields(x.Word) })
}

// foretell is a command of the next release.
type foretell struct{ word string }

func (cmd *foretell) Decide(t *kernel.Tx) error {
	t.Emit(&foretold{cmd.word})
	return nil
}

// next returns the configuration of a node with the next release.
func next(config engine.Config) engine.Config {
	config.Extend(func(c *cell.Cell) { c.Register(nextRoom, &oracle{}) })
	return config
}

// members are the levels that a cluster's members have reported.
type members struct {
	lock     sync.Mutex
	lowest   uint
	complete bool
}

func (m *members) Levels() (lowest uint, complete bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.lowest, m.complete
}

func (m *members) set(lowest uint, complete bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.lowest, m.complete = lowest, complete
}

func isLater(t *testing.T, what string, err error) {
	t.Helper()
	later, ok := errors.AsType[*kernel.LaterRelease](err)
	if !ok {
		t.Fatalf("%s: %v; want that a later release has written the data", what, err)
	}
	if later.Level != kernel.Level+1 || later.Known != kernel.Level {
		t.Errorf("%s: %+v", what, later)
	}
}

func levelOf(e *engine.Engine) uint { inForce, _ := e.Level(); return inForce }

// TestUpgrade: a cluster of this release gets a node of the next one, which leads. Until all nodes run the next release, it writes nothing that this release does
// not know. Afterwards it does, and this release refuses the data, however it receives them.
func TestUpgrade(t *testing.T) {
	c := newCluster(t, 2, engine.Config{})
	old := c.members[1]
	if err := c.lead(old, nil); err != nil {
		t.Fatal(err)
	}
	c.house(old).hall()
	levels := &members{lowest: kernel.Level + 1}
	d := &disk{group: c.group}
	leader := &member{disk: d, Engine: c.join(next(engine.Config{Levels: levels, SnapshotEvery: 1}), d)}
	if err := c.lead(leader, nil); err != nil {
		t.Fatal(err)
	}
	h := c.house(leader)
	if inForce, known := h.Level(); inForce != kernel.Level || known != kernel.Level+1 {
		t.Fatalf("level %d is in force, %d is known", inForce, known)
	}
	before := c.entries()
	err := h.Do(t.Context(), &foretell{"no"})
	if refusal, ok := errors.AsType[*domain.Refusal](err); !ok || refusal.Reason != domain.Overloaded || !strings.Contains(refusal.Detail, "foretell is possible as soon as all nodes") {
		t.Fatalf("an event that not every node knows: %v", err)
	}
	if got := c.entries(); got != before {
		t.Errorf("the refused command has written %d entries", got-before)
	}
	h.must(&hosting.CreateLocation{Name: "custom-later"})
	waittest.Until(t, "both releases side by side", func() bool { return canon.Differ("the old node", old.Freeze(), leader.Freeze()) == nil })
	c.snapshotBehind(leader)
	c.join(engine.Config{}, d.copy()) // the snapshot of the next release is one of this release

	for _, x := range []struct {
		lowest   uint
		complete bool
	}{{kernel.Level, true}, {kernel.Level + 1, false}} {
		levels.set(x.lowest, x.complete)
		h.must(&hosting.CreateLocation{Name: "custom-" + map[bool]string{true: "complete", false: "incomplete"}[x.complete]})
		if got := levelOf(h.Engine); got != kernel.Level {
			t.Fatalf("level %d is in force with the members at %+v", got, x)
		}
	}
	behind := d.copy() // of a node that stopped before the level was raised
	cut := &disk{group: c.group}
	cutOff := c.join(engine.Config{}, cut)
	cut.cutOff()
	levels.set(kernel.Level+1, true)
	waittest.Until(t, "the next level", func() bool { return levelOf(h.Engine) == kernel.Level+1 })
	h.must(&foretell{"yes"})
	<-old.Stopped()
	isLater(t, "an entry that a node follows", old.Err())

	c.snapshotBehind(leader)
	_, err = engine.OpenReplica(t.Context(), engine.Config{Archive: old.vault, Cell: cell.DefaultConfig()}, d.copy())
	isLater(t, "a node's own snapshot", err)
	late := c.join(engine.Config{}, behind)
	<-late.Stopped()
	isLater(t, "an entry that a node catches up with", late.Err())
	c.install(leader, &member{disk: cut})
	<-cutOff.Stopped()
	isLater(t, "a snapshot that another node has sent", cutOff.Err())
	second := c.join(next(engine.Config{}), d.copy())
	waittest.Until(t, "the next release at the other node", func() bool { return canon.Differ("the second node", second.Freeze(), leader.Freeze()) == nil })
	if got := levelOf(second); got != kernel.Level+1 {
		t.Errorf("the second node is at level %d", got)
	}
}

// copy returns the disk of another node with the same content.
func (d *disk) copy() *disk {
	d.lock.Lock()
	defer d.lock.Unlock()
	return &disk{group: d.group, at: d.at, state: d.state}
}

func (c *cluster) entries() uint64 {
	c.group.lock.Lock()
	defer c.group.lock.Unlock()
	return uint64(len(c.group.entries))
}

// TestLevelOfASingleMachine: the next release raises the level when it starts. Afterwards this release refuses the data and writes nothing.
func TestLevelOfASingleMachine(t *testing.T) {
	for name, fresh := range map[string]bool{"a new installation": true, "existing data": false} {
		t.Run(name, func(t *testing.T) {
			config := next(engine.Config{})
			if !fresh {
				config = engine.Config{}
			}
			h := newHouse(t, config)
			h.hall()
			if !fresh {
				h.config = next(h.config)
				h.reopen()
			}
			if got := levelOf(h.Engine); got != kernel.Level+1 {
				t.Fatalf("level %d is in force", got)
			}
			h.must(&foretell{"yes"})
			_ = h.close()
			h.config.Extend(nil)
			j, err := h.disk.Open()
			if err != nil {
				t.Fatal(err)
			}
			before, _ := j.Last(t.Context())
			h.config.Journal = j
			_, err = engine.Open(t.Context(), h.config)
			isLater(t, "the journal", err)
			_, err = engine.OpenOffline(t.Context(), h.config)
			isLater(t, "the journal, offline", err)
			if after, _ := j.Last(t.Context()); after != before {
				t.Errorf("%d entries were written", after-before)
			}
			_ = j.Close()
		})
	}
}

// TestLevelOfANewCluster: a new cluster has the level of its first node at once, and a snapshot that an earlier release refuses.
func TestLevelOfANewCluster(t *testing.T) {
	c := newCluster(t, 1, next(engine.Config{}))
	if err := c.lead(c.members[0], nil); err != nil {
		t.Fatal(err)
	}
	if got := levelOf(c.members[0].Engine); got != kernel.Level+1 {
		t.Fatalf("level %d is in force", got)
	}
	waittest.Until(t, "a snapshot", func() bool { at, _, _ := c.members[0].disk.LatestSnapshot(t.Context()); return at > 0 })
	_, err := engine.OpenReplica(t.Context(), engine.Config{Archive: c.members[0].vault, Cell: cell.DefaultConfig()}, c.members[0].disk.copy())
	isLater(t, "its snapshot", err)
}

// TestLaterReleaseIsClear: the error says which level this release knows, and what to do.
func TestLaterReleaseIsClear(t *testing.T) {
	text := (&kernel.LaterRelease{Level: 3, Known: 2}).Error()
	for _, want := range []string{"level 3", "levels up to 2", "Start the later release", "backup"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
}

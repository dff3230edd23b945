package engine

import (
	"log/slog"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/quotas"
	"github.com/musterhq/muster/internal/tracing"
)

// Shortage is the cause of a refusal because of Config.Short. Its text names directories of this machine, so only operators may see it.
type Shortage struct{ why error }

func (s *Shortage) Error() string { return s.why.Error() }

// ForOperators returns the detail of a refusal; if a Shortage caused it, the detail includes what is short.
func ForOperators(r *domain.Refusal) string {
	if s, ok := r.Cause.(*Shortage); ok {
		return r.Detail + ": " + s.Error()
	}
	return r.Detail
}

// Config configures an engine. The caller closes Journal and Archive after Close.
type Config struct {
	Journal journal.Journal
	Archive archive.Archive
	Cell    cell.Config
	Log     *slog.Logger

	Now           func() time.Time // this machine's clock; nil: the wall clock
	Clock         *Clock           // replaces Now with a clock that only Advance moves; single machine only; nil: none
	SnapshotEvery int64            // bytes of journal between two snapshots; 0: DefaultSnapshotEvery
	JournalKept   int64            // most bytes of journal that are kept for the next backup; 0: DefaultJournalKept
	EndedLinger   time.Duration    // how long ended records stay in memory; 0: DefaultEndedLinger
	Retention     time.Duration    // how long the archive keeps them; 0: DefaultRetention
	Short         func() error     // returns why new changes are refused, such as a full disk, or nil; nil: never
	// Fill wraps the loading of the snapshot in Open, while the process does nothing else, for example to tune the runtime. nil: no wrapper.
	Fill func(load func() error) error

	// Loaded checks the loaded state before anything is appended. Its error ends Open. nil: no check.
	Loaded   func(v *cell.View) error
	QueueMax int // commands that may wait; more are refused as Overloaded; 0: DefaultQueueMax

	Peers    Peers         // of a cluster; nil: a replica refuses commands with ErrNotLeading, and its reads may be stale
	Archives Archives      // of the other nodes; nil: records missing from this node's archive stay missing
	Patience time.Duration // how long a command or read waits for a leader, and a read until this node has caught up with it; 0: DefaultPatience
	Levels   Levels        // of a cluster's members; nil: a cluster keeps the level of its journal

	Unrecorded bool // commands never get entries in the audit log, even if their context has an origin

	Quotas *quotas.Desk // names the holders of what commands create; nil: they have none

	Tracing *tracing.Tracer // of commands whose context is traced; nil: none is

	extend func(*cell.Cell) // for tests: adds what a later release knows

	wall   bool // Now is the wall clock
	pauses bool // jumps of Now are noticed
}

func (c *Config) setDefaults() {
	orDefault(&c.SnapshotEvery, DefaultSnapshotEvery)
	orDefault(&c.JournalKept, DefaultJournalKept)
	orDefault(&c.EndedLinger, DefaultEndedLinger)
	orDefault(&c.Retention, DefaultRetention)
	orDefault(&c.QueueMax, DefaultQueueMax)
	orDefault(&c.Patience, DefaultPatience)
	if c.Clock != nil {
		c.Now = c.Clock.Now
	}
	if c.Now == nil {
		c.Now, c.wall, c.pauses = time.Now, true, true
	}
	if c.Short == nil {
		c.Short = func() error { return nil }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

// loaded checks a cell before it is used.
func (c *Config) loaded(x *cell.Cell) error {
	if c.Loaded == nil {
		return nil
	}
	v := x.View()
	return c.Loaded(&v)
}

func orDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

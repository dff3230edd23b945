package engine

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/journal"
)

// pendingSnapshot is the frozen state after a journal entry, to be written to disk.
type pendingSnapshot struct {
	at     uint64
	next   domain.Time // see archive.Coverage
	frozen *kernel.Snapshot
}

// freezeIfDue takes a snapshot if the journal has grown enough. The state is that after g, because the next group is empty. It also takes one after
// the level was raised, so that a replica of an earlier release is refused by the snapshot at once instead of after it has begun to follow.
func (e *Engine) freezeIfDue(g *Group) *pendingSnapshot {
	e.unsaved += int64(len(g.Batch))
	e.written.Add(int64(len(g.Batch)))
	e.metrics.unsaved.Store(e.unsaved)
	level := e.seq.Cell().Level()
	if e.unsaved < e.config.SnapshotEvery && level == e.level || len(e.snapshots) > 0 || e.saving.Load() || e.config.Short() != nil {
		return nil
	}
	e.unsaved, e.level = 0, level
	e.metrics.unsaved.Store(0)
	e.saving.Store(true)
	began := time.Now()
	s := &pendingSnapshot{g.Number, nextEnd(e.seq.Cell()), e.seq.Cell().Freeze()}
	e.freezeTook.Store(int64(time.Since(began)))
	return s
}

// saveSnapshots is the goroutine that writes snapshots and trims the journal before them. A failure to write a snapshot only makes the next restart
// longer, because the journal still contains everything.
func (e *Engine) saveSnapshots() {
	ctx := e.context
	for {
		select {
		case s := <-e.snapshots:
			e.saveSnapshot(ctx, s)
			e.saving.Store(false)
		case <-ctx.Done():
			return
		}
	}
}

func (e *Engine) saveSnapshot(ctx context.Context, s *pendingSnapshot) {
	began := time.Now()
	err := e.coverUpTo(ctx, s.at, s.next)
	if err == nil {
		err = e.source.SaveSnapshot(ctx, s.at, func(w io.Writer) error { return s.frozen.Write(whileRoom{w, e.config.Short}) })
	}
	if err == nil {
		before, tooLong := e.kept.trimBefore(s.at+1, e.written.Load(), e.config.JournalKept)
		if tooLong {
			e.log.Info("the journal since the last backup is no longer kept: it has grown too large, and the next backup will not have each entry", "bytes", e.config.JournalKept)
		}
		err = e.source.Trim(ctx, before)
	}
	switch {
	case ctx.Err() != nil:
	case e.cluster != nil && errors.Is(err, journal.ErrOutOfOrder):
		e.log.Info("a snapshot was not saved: a later one has arrived from another node", "entry", s.at)
	case err != nil:
		e.metrics.snapshotsFailed.Inc()
		e.log.Error("a snapshot could not be saved: the journal keeps growing", "entry", s.at, "error", err)
	default:
		e.metrics.snapshot.Observe(time.Since(began).Seconds())
		e.metrics.snapshotAt.SetToCurrentTime()
		e.log.Info("snapshot saved", "entry", s.at, "took", time.Since(began).Round(time.Millisecond),
			"writers_stopped", time.Duration(e.freezeTook.Load()))
	}
}

// whileRoom aborts the writing of a snapshot when space runs short, because the journal needs the rest.
type whileRoom struct {
	io.Writer
	short func() error
}

func (w whileRoom) Write(p []byte) (int, error) {
	if err := w.short(); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}

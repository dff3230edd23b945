package engine

import (
	"context"
	"errors"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
)

const (
	archiveEvery  = 500 * time.Millisecond
	archiveMost   = 16 << 10 // most records moved to the archive at a time
	archiveBytes  = 64 << 20 // most bytes moved at a time; a game session may have half a megabyte of data
	expireEvery   = time.Minute
	expireStep    = 2000
	archiveRetry  = 5 * time.Second
	archiveLocked = 256 // records read while the lock is held once
)

// archiveEnded is the goroutine that moves ended records from memory to the archive.
func (r *run) archiveEnded(ctx context.Context) {
	expired := r.e.Now()
	timer := time.NewTimer(archiveEvery)
	defer timer.Stop()
	for {
		var asked chan struct{}
		select {
		case <-timer.C:
		case asked = <-r.carry:
		case <-ctx.Done():
			return
		}
		if r.e.config.Short() != nil && asked == nil { // on a shortage of space, ended records stay in memory
			timer.Reset(archiveRetry)
			continue
		}
		next := archiveEvery
		full, err := r.archiveSome(ctx)
		for full && asked != nil && err == nil {
			full, err = r.archiveSome(ctx)
		}
		if err == nil && r.e.Now().Sub(expired) >= expireEvery {
			expired = r.e.Now()
			err = r.e.expire(ctx)
		}
		switch {
		case ctx.Err() != nil || r.failure.Load() != nil:
			return
		case errors.Is(err, archive.ErrFailed):
			// A failed archive stays failed until it is opened again, and memory cannot hold all further ended records.
			r.e.log.Error("the archive failed: the engine accepts no more commands before a restart from the journal", "error", err)
			r.fail(err)
			return
		case err != nil:
			r.e.log.Error("the archive refused a write: ended records stay in memory until it accepts them", "error", err)
			next = archiveRetry
		case full:
			next = 0
		}
		if asked != nil {
			close(asked)
		}
		timer.Reset(next)
	}
}

// archiveSome archives the records that ended first and reports whether there may be more. Only this goroutine removes ended records, so
// their positions stay valid.
func (r *run) archiveSome(ctx context.Context) (full bool, err error) {
	r.e.stateLock.RLock()
	gone, forgotten := r.e.ahead.gone, r.e.seq.Cell().Forgotten()
	r.e.stateLock.RUnlock()
	x := &r.ended
	x.begin(gone, forgotten)
	err = x.take(ctx, r.e, archiveMost, domain.TimeOf(r.e.Now().Add(-r.e.config.EndedLinger)))
	if err != nil || x.taken == 0 {
		return false, err
	}
	if err := r.e.store(ctx, x); err != nil {
		return false, err
	}
	for left := x.taken; left > 0; left -= archiveLocked {
		if err := r.submit(&kernel.Forget{Count: min(left, archiveLocked)}); err != nil {
			return false, err
		}
	}
	return x.full, nil
}

// endedRecords is one pass's batch of consecutive entries of the list of ended records.
type endedRecords struct {
	from      int // position of the first one, counted as in ahead
	batch     []archive.Record
	bytes     int    // of their data
	taken     int    // entries passed, including those that need not be archived
	full      bool   // the pass stopped at a limit; there may be more
	forgotten uint64 // Kernel.Forgotten once they have left memory
}

// begin starts a new pass. It reuses the memory of the previous pass, unless that pass used only a small part of it.
func (x *endedRecords) begin(from int, forgotten uint64) {
	batch := x.batch[:0]
	clear(x.batch)
	if len(x.batch) < cap(x.batch)/4 {
		batch = nil
	}
	*x = endedRecords{from: from, batch: batch, forgotten: forgotten}
}

// take adds records that ended before `before`, until the batch has `most` records or archiveBytes.
func (x *endedRecords) take(ctx context.Context, e *Engine, most int, before domain.Time) error {
	x.full = false
	for x.taken < most && x.bytes < archiveBytes {
		var some []kernel.EndedRecord
		want := min(most-x.taken, archiveLocked)
		err := e.read(ctx, func(v *cell.View) error {
			some = v.Ended(x.from+x.taken-e.ahead.gone, want, before)
			return nil
		})
		if err != nil {
			return err
		}
		for _, record := range some {
			if record.Counts() {
				x.forgotten++
			}
			if record.Kind != kernel.Nothing {
				x.batch = append(x.batch, toRecord(record, e.config.Retention))
				x.bytes += len(record.Data)
			}
		}
		x.taken += len(some)
		if len(some) < want {
			return nil
		}
	}
	x.full = true
	return nil
}

// store writes the records to the archive and returns once they are durable.
func (e *Engine) store(ctx context.Context, x *endedRecords) error {
	e.covers.marking.Lock()
	defer e.covers.marking.Unlock()
	e.config.Archive.SetMark(archive.Mark{Forgotten: x.forgotten, Journal: e.durable.reached.Load()})
	began := time.Now()
	if err := e.config.Archive.Put(ctx, x.batch); err != nil {
		e.metrics.archiveRefused.Inc()
		return err
	}
	e.metrics.archive.Observe(time.Since(began).Seconds())
	e.metrics.archived.Add(float64(len(x.batch)))
	return nil
}

// toRecord converts an ended record for the archive. The archive expires all records by the same rule, so a record with a longer
// retention gets a correspondingly later end.
func toRecord(x kernel.EndedRecord, retention time.Duration) archive.Record {
	ended := x.Ended
	if x.Until != 0 {
		ended = max(ended, x.Until.Add(-retention))
	}
	return archive.Record{
		Kind: archiveKinds[x.Kind], ID: x.ID, Created: int64(x.Created), Ended: int64(ended),
		Fleet: x.Fleet, Group: x.GameID, Player: x.Player, Data: x.Data,
	}
}

// expire removes records whose retention has ended from the archive.
func (e *Engine) expire(ctx context.Context) error {
	before := e.Now().Add(-e.config.Retention).UnixMilli()
	for {
		n, err := e.config.Archive.Expire(ctx, before, expireStep)
		if err != nil || n == 0 { // a smaller number than expireStep does not mean that none is left: replaced records do not count
			return err
		}
	}
}

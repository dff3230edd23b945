package pebble

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/journal"
)

// Append implements journal.Journal. It ignores the end of ctx during the sync, because every sync ends.
func (j *Journal) Append(ctx context.Context, next uint64, batch []byte) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("append entry %d: %w", next, err)
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	if err := j.usable(); err != nil {
		return fmt.Errorf("append entry %d: %w", next, err)
	}
	if last := j.last.Load(); next != last+1 {
		return fmt.Errorf("append entry %d: %w: the last one is %d", next, journal.ErrOutOfOrder, last)
	}
	if len(batch) > journal.MaxBatchBytes {
		return fmt.Errorf("append entry %d: batch of %d bytes, at most %d allowed", next, len(batch), journal.MaxBatchBytes)
	}

	write := j.db.NewBatchWithSize(len(batch) + 64)
	set := write.SetDeferred(entryKeySize, checksumSize+len(batch))
	putEntryKey(set.Key, next)
	putEntryValue(set.Value, next, batch)
	if err := set.Finish(); err != nil {
		return fmt.Errorf("append entry %d: %w", next, err)
	}
	if err := j.commit(write); err != nil {
		return fmt.Errorf("append entry %d: %w", next, err)
	}
	j.last.Store(next)
	j.synced.Note(embeddb.Synced{Entry: next, At: j.db.LogPosition()})
	return nil
}

// Trim implements journal.Journal.
func (j *Journal) Trim(ctx context.Context, before uint64) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("trim before entry %d: %w", before, err)
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	if err := j.usable(); err != nil {
		return fmt.Errorf("trim before entry %d: %w", before, err)
	}
	if before <= j.first.Load() {
		return nil
	}
	if at := j.snapshots.latestAt(); before > at+1 {
		return fmt.Errorf("trim before entry %d: %w: the latest snapshot was taken after entry %d", before, journal.ErrOutOfOrder, at)
	}
	write := j.db.NewBatch()
	if err := write.DeleteRange(entryKey(0), entryKey(before), nil); err != nil {
		return err
	}
	if err := write.Set(trimmedKey, binary.LittleEndian.AppendUint64(nil, before), nil); err != nil {
		return err
	}
	j.first.Store(before) // before the entries are removed, so that a reader that misses one knows the reason
	if err := j.commit(write); err != nil {
		return fmt.Errorf("trim before entry %d: %w", before, err)
	}
	return nil
}

// commit makes write durable. Only DB.Err decides, because to Pebble a failed write seems to succeed.
func (j *Journal) commit(write embeddb.Batch) error {
	err := write.Commit(pebble.Sync)
	if failure := j.db.Err(); failure != nil {
		err = failure
	}
	if err != nil {
		return j.fail(err)
	}
	return write.Close()
}

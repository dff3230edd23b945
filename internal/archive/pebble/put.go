package pebble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/embeddb"
)

// Put implements archive.Archive. It does not look up a replaced record, which would cost more than everything else:
// from now on its id refers to the new record, and readers skip list entries that still refer to the old one. Those are
// removed when the old record expires.
func (a *Archive) Put(ctx context.Context, records []archive.Record) error {
	for i := range records {
		if err := check(&records[i]); err != nil {
			return err
		}
	}
	done, err := a.use(ctx)
	if err != nil {
		return fmt.Errorf("put %d records: %w", len(records), err)
	}
	defer done()
	a.writing.Lock()
	defer a.writing.Unlock()
	if err := a.put(records, nil); err != nil {
		return fmt.Errorf("put %d records: %w", len(records), err)
	}
	return nil
}

func check(r *archive.Record) error {
	if err := r.Check(); err != nil {
		return err
	}
	if r.Created > maxTime || r.Ended > maxTime {
		return fmt.Errorf("%w: record %q: created at %d, ended at %d: at most %d allowed", archive.ErrInvalid, r.ID, r.Created, r.Ended, int64(maxTime))
	}
	return nil
}

// put stores the records, and c if it is not nil, else the mark.
func (a *Archive) put(records []archive.Record, c *archive.Coverage) error {
	most := batchBytes
	if len(records) < manyRecords {
		most = smallBatchBytes
	}
	write := a.newBatch(most)
	pace := a.db.Pace(putRests)
	for block := range blocks(records) {
		if err := a.buffer.add(write, a.nextBlock, block); err != nil {
			return err
		}
		a.nextBlock++
		pace.Rest()
		if write.Len() >= most {
			if err := a.apply(write); err != nil {
				return err
			}
			pace.Rest()
			write = a.newBatch(most)
		}
	}
	var err error
	if c == nil { // with the last records, because nothing is certainly durable before a flush
		err = a.writeMark(write)
	} else {
		err = write.Set(coverageKey, encodeCoverage(*c), nil)
	}
	if err != nil {
		return err
	}
	if most == batchBytes {
		a.lastBatch = write.Len()
	}
	if err := a.apply(write); err != nil {
		return err
	}
	return a.checked(a.db.FlushAll())
}

// newBatch returns a batch for up to `most` bytes. Pebble reuses the memory of small batches. A large one gets what the last Put needed at once: growing to it in steps
// leaves as much garbage again.
func (a *Archive) newBatch(most int) embeddb.Batch {
	if most < batchBytes {
		return a.db.NewBatch()
	}
	return a.db.NewBatchWithSize(a.lastBatch)
}

func (a *Archive) apply(write embeddb.Batch) error {
	if err := a.checked(write.Commit(pebble.NoSync)); err != nil {
		return err
	}
	return write.Close()
}

// checked returns the outcome of a write: a success counts only if the database has not failed.
func (a *Archive) checked(err error) error {
	if err := errors.Join(a.db.Err(), err); err != nil {
		return failed(err)
	}
	return nil
}

// blocks splits records into blocks. The records of a block end within archive.Grain of each other, because they expire
// together.
func blocks(records []archive.Record) func(yield func([]archive.Record) bool) {
	return func(yield func([]archive.Record) bool) {
		first, last := int64(math.MaxInt64), int64(0)
		for i := range records {
			first, last = min(first, records[i].Ended), max(last, records[i].Ended)
		}
		if last-first > archive.Grain {
			records = slices.Clone(records)
			slices.SortStableFunc(records, func(a, b archive.Record) int { return cmp.Compare(a.Ended, b.Ended) })
		}
		for len(records) > 0 {
			n, size := 0, 0
			first, last = records[0].Ended, records[0].Ended
			for n < min(len(records), blockRecords) && size < blockBytes {
				first, last = min(first, records[n].Ended), max(last, records[n].Ended)
				if last-first > archive.Grain {
					break
				}
				size += len(records[n].Data) + len(records[n].ID)
				n++
			}
			if !yield(records[:n]) {
				return
			}
			records = records[n:]
		}
	}
}

// builder holds the buffers for building keys and blocks.
type builder struct {
	block, key, value []byte
}

// add adds a block and all keys that refer to its records.
func (b *builder) add(write embeddb.Batch, number uint64, records []archive.Record) error {
	b.block = beginBlock(b.block[:0])
	latest := int64(0)
	for slot := range records {
		r := &records[slot]
		at := location{block: number, slot: uint16(slot)}
		b.block = appendRecord(b.block, r)
		latest = max(latest, r.Ended)
		b.key = appendIDKey(b.key[:0], r.Kind, r.ID)
		b.value = at.append(b.value[:0])
		if err := write.Set(b.key, b.value, nil); err != nil {
			return err
		}
		for _, index := range indexes {
			if r.Key(index) == "" {
				continue
			}
			b.key = appendListKey(b.key[:0], index, r, at)
			if err := write.Set(b.key, nil, nil); err != nil {
				return err
			}
		}
	}
	sealBlock(b.block, number)
	b.key = appendBlockKey(b.key[:0], number)
	if err := write.Set(b.key, b.block, nil); err != nil {
		return err
	}
	b.key = appendExpiryKey(b.key[:0], latest, number)
	return write.Set(b.key, nil, nil)
}

var indexes = [...]archive.Index{archive.ByFleet, archive.ByGroup, archive.ByPlayer}

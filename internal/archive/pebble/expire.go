package pebble

import (
	"context"
	"errors"
	"fmt"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/embeddb"
)

// Expire implements archive.Archive. It removes whole blocks. The removal becomes durable with the next flush. Blocks that a
// crash restores are still expired and are removed again.
func (a *Archive) Expire(ctx context.Context, endedBefore int64, limit int) (removed int, err error) {
	if limit <= 0 {
		return 0, fmt.Errorf("%w: expire at most %d records", archive.ErrInvalid, limit)
	}
	done, err := a.use(ctx)
	if err != nil {
		return 0, fmt.Errorf("expire records: %w", err)
	}
	defer done()
	a.writing.Lock()
	defer a.writing.Unlock()
	removed, err = a.expire(ctx, min(max(endedBefore, 0), maxTime), limit)
	if err != nil {
		return 0, fmt.Errorf("expire records: %w", a.explain(err))
	}
	return removed, nil
}

func (a *Archive) expire(ctx context.Context, endedBefore int64, limit int) (removed int, err error) {
	view := newView(a.db)
	defer view.close()
	expired := &survivor{
		db: view.snapshot, lower: []byte{expiryPrefix}, upper: appendExpiryKey(nil, endedBefore, 0), damaged: a.damage.note,
	}
	defer expired.close()

	write := a.db.NewBatch()
	seen := 0
	for expired.next() {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		block, err := decodeExpiryKey(expired.last)
		if err != nil {
			a.damage.note("expiries", err)
			continue
		}
		all, counted, err := view.removeBlock(write, block)
		if damaged, ok := errors.AsType[*archive.Damaged](err); ok { // the block stays until the archive is repaired
			a.damage.note(damaged.Place, damaged.Err)
			continue
		}
		if err != nil {
			return 0, err
		}
		if err := write.Delete(expired.last, nil); err != nil {
			return 0, err
		}
		seen += all
		removed += counted
		// Replaced records count as work, too, but a result of 0 means that no record is left.
		if seen >= limit && removed > 0 {
			break
		}
	}
	if expired.err != nil {
		return 0, expired.err
	}
	if err := a.apply(write); err != nil {
		return 0, err
	}
	return removed, nil
}

// removeBlock removes a block and all keys that refer to its records. It returns the number of records, and how many of them
// had not been replaced.
func (v *view) removeBlock(write embeddb.Batch, block uint64) (all, counted int, err error) {
	rest, err := v.load(block)
	if err != nil {
		return 0, 0, err
	}
	var key []byte
	for slot := uint16(0); len(rest) > 0; slot++ {
		at := location{block: block, slot: slot}
		var stored encodedRecord
		if stored, rest, err = nextRecord(rest); err != nil {
			return 0, 0, &archive.Damaged{Place: at.place(), Err: err}
		}
		record := stored.record()
		all++
		counts, err := v.counts(&record, at)
		if err != nil {
			return 0, 0, err
		}
		if counts {
			counted++
			key = appendIDKey(key[:0], record.Kind, record.ID)
			if err := write.Delete(key, nil); err != nil {
				return 0, 0, err
			}
		}
		for _, index := range indexes {
			if record.Key(index) == "" {
				continue
			}
			key = appendListKey(key[:0], index, &record, at)
			if err := write.Delete(key, nil); err != nil {
				return 0, 0, err
			}
		}
	}
	return all, counted, write.Delete(appendBlockKey(key[:0], block), nil)
}

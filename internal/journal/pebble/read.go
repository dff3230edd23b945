package pebble

import (
	"context"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/journal"
)

// Read implements journal.Journal.
func (j *Journal) Read(ctx context.Context, from uint64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		if err := j.read(ctx, from, yield); err != nil {
			if cause := j.db.Explain(err); cause != err {
				err = j.fail(cause)
			}
			yield(journal.Entry{}, fmt.Errorf("read journal from entry %d: %w", from, err))
		}
	}
}

func (j *Journal) read(ctx context.Context, from uint64, yield func(journal.Entry, error) bool) error {
	// The last number is read before the iterator is created, because Pebble shows a write before it is durable.
	last := j.last.Load()
	entries, end, err := j.iterate()
	if err != nil {
		return err
	}
	defer end()
	first := j.first.Load() // read after creating the iterator: it reveals a trim in between, so that trimmed entries do not count as damage
	switch {
	case from == 0:
		from = first
	case from < first:
		return fmt.Errorf("%w: the oldest is %d", journal.ErrTrimmed, first)
	}
	if from > last {
		return nil
	}
	number := from
	for found := entries.SeekGE(entryKey(from)); number <= last; found, number = entries.Next(), number+1 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := j.usable(); err != nil {
			return err
		}
		if !found {
			if err := entries.Error(); err != nil {
				return corrupt(number, err)
			}
			return &journal.Damaged{Entry: number, Err: errMissing}
		}
		if stored, ok := entryNumber(entries.Key()); !ok || stored != number {
			return &journal.Damaged{Entry: number, File: fmt.Sprintf("key %x", entries.Key()), Err: errMissing}
		}
		value, err := entries.ValueAndErr()
		if err != nil {
			return corrupt(number, err)
		}
		batch, err := decodeEntry(number, value)
		if err != nil {
			return &journal.Damaged{Entry: number, File: "database", Err: err}
		}
		if !yield(journal.Entry{Number: number, Batch: batch}, nil) {
			return nil
		}
	}
	return nil
}

// iterate returns an iterator. Close waits until end is called.
func (j *Journal) iterate() (entries embeddb.Iterator, end func(), err error) {
	j.state.Lock()
	defer j.state.Unlock()
	if err := j.usableLocked(); err != nil {
		return nil, nil, err
	}
	entries, err = j.db.NewIter(&pebble.IterOptions{LowerBound: []byte{entryPrefix}, UpperBound: []byte{entryPrefix + 1}})
	if err != nil {
		return nil, nil, err
	}
	j.readers.Add(1)
	return entries, func() {
		_ = entries.Close()
		j.readers.Done()
	}, nil
}

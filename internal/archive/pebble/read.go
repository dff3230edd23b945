package pebble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/embeddb"
)

// Get implements archive.Archive.
func (a *Archive) Get(ctx context.Context, kind archive.Kind, id string) (archive.Record, bool, error) {
	record, found, err := a.get(ctx, kind, id)
	a.noteDamage(err)
	if err != nil {
		return archive.Record{}, false, fmt.Errorf("get record %q of kind %d: %w", id, kind, a.explain(err))
	}
	return record, found, nil
}

func (a *Archive) get(ctx context.Context, kind archive.Kind, id string) (record archive.Record, found bool, err error) {
	done, err := a.use(ctx)
	if err != nil {
		return record, false, err
	}
	defer done()
	key := appendIDKey(make([]byte, 0, 32), kind, id)
	// Most ids looked up are new, so a plain look-up comes first.
	if _, closer, err := a.db.Get(key); err != nil {
		return record, false, atPlace("ids", ignoreNotFound(err))
	} else if err := closer.Close(); err != nil {
		return record, false, err
	}
	view := newView(a.db)
	defer view.close()
	at, found, err := view.lookUp(key)
	if err != nil || !found { // it has just expired
		return record, false, err
	}
	stored, err := view.record(at)
	if err != nil {
		return record, false, err
	}
	if stored.kind != kind || string(stored.id) != id {
		return record, false, &archive.Damaged{Place: at.place(), Err: fmt.Errorf("record %q of kind %d is in its place", stored.id, stored.kind)}
	}
	return stored.record(), true, nil
}

// noteDamage records the place of damage found by a read.
func (a *Archive) noteDamage(err error) {
	if damaged, ok := errors.AsType[*archive.Damaged](err); ok {
		a.damage.note(damaged.Place, damaged.Err)
	}
}

func ignoreNotFound(err error) error {
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	return err
}

// List implements archive.Archive.
func (a *Archive) List(ctx context.Context, kind archive.Kind, index archive.Index, key string, after archive.Cursor, limit int) ([]archive.Record, error) {
	if kind == 0 || !slices.Contains(indexes[:], index) || key == "" || limit <= 0 || after.Created < 0 {
		return nil, fmt.Errorf("%w: list kind %d by index %d with key %q after %d, at most %d", archive.ErrInvalid, kind, index, key, after.Created, limit)
	}
	done, err := a.use(ctx)
	if err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	defer done()
	view := newView(a.db)
	defer view.close()
	var damage *archive.Damaged
	records, err := view.list(ctx, kind, index, key, after, limit, func(place string, err error) {
		a.damage.note(place, err)
		if damage == nil {
			damage = &archive.Damaged{Place: place, Err: err}
		}
	})
	if err == nil && damage != nil {
		err = damage
	}
	if err != nil {
		return records, fmt.Errorf("list records by %q: %w", key, a.explain(err))
	}
	return records, nil
}

// view is one state of the database, so that a record found by one key can be read by the next. It caches the last block, because
// neighbours in a list are usually in the same block.
type view struct {
	snapshot embeddb.Snapshot
	key      []byte

	block   uint64
	records []byte // of block, encoded; nil: none read yet
	closer  io.Closer
}

func newView(db *embeddb.DB) *view { return &view{snapshot: db.NewSnapshot()} }

func (v *view) close() {
	v.release()
	_ = v.snapshot.Close()
}

// release releases the last block.
func (v *view) release() {
	if v.closer != nil {
		_ = v.closer.Close()
		v.closer, v.records = nil, nil
	}
}

// lookUp returns the location of the record with that id key.
func (v *view) lookUp(idKey []byte) (at location, found bool, err error) {
	value, closer, err := v.snapshot.Get(idKey)
	if err != nil {
		return at, false, atPlace("ids", ignoreNotFound(err))
	}
	defer closer.Close()
	if at, err = decodeLocation(value); err != nil {
		return at, false, &archive.Damaged{Place: fmt.Sprintf("key %x", idKey), Err: err}
	}
	return at, true, nil
}

// load returns the records of a block, encoded. They are valid until the next load.
func (v *view) load(block uint64) ([]byte, error) {
	if v.records != nil && v.block == block {
		return v.records, nil
	}
	v.release()
	v.key = appendBlockKey(v.key[:0], block)
	value, closer, err := v.snapshot.Get(v.key)
	if err != nil {
		if errors.Is(err, pebble.ErrNotFound) {
			err = &archive.Damaged{Place: blockPlace(block), Err: errors.New("the block is missing")}
		}
		return nil, atPlace(blockPlace(block), err)
	}
	records, err := openBlock(value, block)
	if err != nil {
		_ = closer.Close()
		return nil, &archive.Damaged{Place: blockPlace(block), Err: err}
	}
	v.block, v.records, v.closer = block, records, closer
	return records, nil
}

// record returns a record that is valid until the next load.
func (v *view) record(at location) (r encodedRecord, err error) {
	rest, err := v.load(at.block)
	if err != nil {
		return r, err
	}
	for range int(at.slot) + 1 {
		if r, rest, err = nextRecord(rest); err != nil {
			return r, &archive.Damaged{Place: at.place(), Err: err}
		}
	}
	return r, nil
}

func blockPlace(block uint64) string { return fmt.Sprintf("block %d", block) }

func (l location) place() string { return fmt.Sprintf("block %d, record %d", l.block, l.slot) }

// list returns records like List. It passes the damage that it had to skip to damaged.
func (v *view) list(ctx context.Context, kind archive.Kind, index archive.Index, key string, after archive.Cursor, limit int, damaged func(place string, err error)) (records []archive.Record, err error) {
	prefix := appendListPrefix(nil, index, kind, key)
	entries := &survivor{
		db: v.snapshot, damaged: damaged,
		lower: appendUint48(slices.Clone(prefix), uint64(min(after.Created, maxTime))),
		upper: append(slices.Clone(prefix), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
	}
	defer entries.close()

	run := 0 // index of the first record created in the current millisecond: these are in the order of their places
	sortRun := func() {
		same := records[run:]
		slices.SortStableFunc(same, func(a, b archive.Record) int { return cmp.Compare(a.ID, b.ID) })
		records = records[:run+len(newest(same))]
		run = len(records)
	}
	for entries.next() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		created, at, err := decodeListKey(entries.last)
		if err != nil {
			damaged("lists", err)
			continue
		}
		if run < len(records) && records[run].Created != created {
			if sortRun(); len(records) >= limit {
				break
			}
		}
		record, counts, err := v.listed(at, kind, index, key, after)
		if damage, ok := errors.AsType[*archive.Damaged](err); ok {
			damaged(damage.Place, damage.Err)
		} else if err != nil {
			return nil, err
		}
		if counts {
			records = append(records, record)
		}
	}
	if entries.err != nil {
		return nil, entries.err
	}
	sortRun()
	return records[:min(len(records), limit)], nil
}

// listed returns the record to which a list entry refers, and whether it belongs in the list. If its id cannot be looked up, it may
// have been replaced; it is then included, with a *Damaged.
func (v *view) listed(at location, kind archive.Kind, index archive.Index, key string, after archive.Cursor) (record archive.Record, counts bool, err error) {
	stored, err := v.record(at)
	if err != nil {
		return record, false, err
	}
	record = stored.record()
	if record.Kind != kind || record.Key(index) != key || record.Cursor().Compare(after) <= 0 {
		return record, false, nil // another key with the same hash, or not after the cursor
	}
	counts, err = v.counts(&record, at)
	if _, ok := errors.AsType[*archive.Damaged](err); ok {
		counts = true
	}
	return record, counts, err
}

// newest keeps the last of several records with the same id, which occur here only because of damage.
func newest(records []archive.Record) []archive.Record {
	kept := records[:0]
	for i := range records {
		if i+1 == len(records) || records[i].ID != records[i+1].ID {
			kept = append(kept, records[i])
		}
	}
	return kept
}

// counts reports whether no later record with the same id has replaced the record at that place.
func (v *view) counts(record *archive.Record, at location) (bool, error) {
	v.key = appendIDKey(v.key[:0], record.Kind, record.ID)
	current, found, err := v.lookUp(v.key)
	return found && current == at, err
}

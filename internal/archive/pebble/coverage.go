package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/archive"
)

const coverageSize = 8 + 8 + 8 + 1

func encodeCoverage(c archive.Coverage) []byte {
	b := binary.LittleEndian.AppendUint64(nil, c.Entry)
	b = binary.LittleEndian.AppendUint64(b, uint64(c.Next))
	b = binary.LittleEndian.AppendUint64(b, uint64(c.From))
	if c.Lacks {
		return append(b, 1)
	}
	return append(b, 0)
}

func decodeCoverage(b []byte) archive.Coverage {
	number := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	return archive.Coverage{Entry: number(0), Next: int64(number(8)), From: int64(number(16)), Lacks: b[24] != 0}
}

// Coverage implements archive.Archive.
func (a *Archive) Coverage() (c archive.Coverage, ok bool, err error) {
	value, err := a.small(coverageKey, coverageSize)
	if err != nil || value == nil {
		return c, false, err
	}
	return decodeCoverage(value), true, nil
}

// SetCoverage implements archive.Archive.
func (a *Archive) SetCoverage(ctx context.Context, c archive.Coverage) error {
	done, err := a.use(ctx)
	if err == nil {
		defer done()
		a.writing.Lock()
		defer a.writing.Unlock()
		err = a.put(nil, &c)
	}
	if err != nil {
		return fmt.Errorf("set the coverage of the archive: %w", err)
	}
	return nil
}

// Add implements archive.Archive.
func (a *Archive) Add(ctx context.Context, records []archive.Record, c archive.Coverage) (added int, err error) {
	for i := range records {
		if err := check(&records[i]); err != nil {
			return 0, err
		}
	}
	done, err := a.use(ctx)
	if err != nil {
		return 0, fmt.Errorf("add %d records: %w", len(records), err)
	}
	defer done()
	a.writing.Lock() // a Put may store a later record under the same id
	defer a.writing.Unlock()
	added, err = a.add(ctx, records, c)
	if err != nil {
		return 0, fmt.Errorf("add %d records: %w", len(records), a.explain(err))
	}
	return added, nil
}

func (a *Archive) add(ctx context.Context, records []archive.Record, c archive.Coverage) (added int, err error) {
	view := newView(a.db)
	defer view.close()
	type id struct {
		kind archive.Kind
		id   string
	}
	var fresh []archive.Record
	at := map[id]int{} // in fresh
	for i := range records {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		r := &records[i]
		if n, twice := at[id{r.Kind, r.ID}]; twice {
			if r.Supersedes(&fresh[n]) {
				fresh[n] = *r
			}
			continue
		}
		wanted, err := view.wants(r)
		if err != nil {
			return 0, err
		}
		if wanted {
			at[id{r.Kind, r.ID}] = len(fresh)
			fresh = append(fresh, *r)
		}
	}
	return len(fresh), a.put(fresh, &c)
}

// wants reports whether a record from another archive should be stored. It also replaces a damaged record.
func (v *view) wants(r *archive.Record) (bool, error) {
	v.key = appendIDKey(v.key[:0], r.Kind, r.ID)
	at, found, err := v.lookUp(v.key)
	if err == nil && found {
		var stored encodedRecord
		if stored, err = v.record(at); err == nil {
			return r.Supersedes(&archive.Record{Created: stored.created, Ended: stored.ended}), nil
		}
	}
	if _, damaged := errors.AsType[*archive.Damaged](err); damaged {
		return true, nil
	}
	return err == nil, err
}

// pageTime is how long a page is collected, so that a busy machine also answers in time.
const pageTime = 200 * time.Millisecond

// Page implements archive.Archive. A page consists of whole blocks, in the order in which they expire.
func (a *Archive) Page(ctx context.Context, behind archive.Place, bytesMax int) (page archive.Page, err error) {
	lower := appendUint48([]byte{expiryPrefix}, uint64(min(max(behind.Ended, 0), maxTime)))
	if behind.At != "" {
		lower = append(lower, behind.At...)
		lower = append(lower, 0) // the smallest key after it
	}
	if bytesMax <= 0 || behind.At != "" && len(behind.At) != 6 {
		return page, fmt.Errorf("%w: a page of %d bytes after %d, %x", archive.ErrInvalid, bytesMax, behind.Ended, behind.At)
	}
	done, err := a.use(ctx)
	if err != nil {
		return page, fmt.Errorf("page of the archive: %w", err)
	}
	defer done()
	view := newView(a.db)
	defer view.close()
	page.Next = behind
	if err := view.page(ctx, &page, lower, bytesMax, a.damage.note); err != nil {
		return archive.Page{}, fmt.Errorf("page of the archive: %w", a.explain(err))
	}
	return page, nil
}

func (v *view) page(ctx context.Context, page *archive.Page, lower []byte, bytesMax int, note func(place string, err error)) error {
	damaged := func(place string, err error) {
		page.Damaged++
		note(place, err)
	}
	blocks := &survivor{db: v.snapshot, lower: lower, upper: []byte{expiryPrefix + 1}, damaged: damaged}
	defer blocks.close()
	current := &view{snapshot: v.snapshot}
	defer current.release()
	began, behind := time.Now(), page.Next
	for size := 0; blocks.next(); {
		if err := ctx.Err(); err != nil {
			return err
		}
		if page.More = page.Next != behind && time.Since(began) > pageTime; page.More {
			return nil
		}
		block, err := decodeExpiryKey(blocks.last)
		if err != nil {
			damaged("expiries", err)
			continue
		}
		records, err := v.valid(block, current)
		if damage, ok := errors.AsType[*archive.Damaged](err); ok {
			damaged(damage.Place, damage.Err)
		} else if err != nil {
			return err
		}
		add := 0
		for i := range records {
			add += recordBytes(&records[i])
		}
		if page.More = size > 0 && size+add > bytesMax; page.More {
			return nil
		}
		size += add
		page.Records = append(page.Records, records...)
		page.Next = archive.Place{Ended: int64(uint48(blocks.last[1:])), At: strings.Clone(string(blocks.last[7:]))}
	}
	return blocks.err
}

// recordBytes returns the approximate size of a record in transit.
func recordBytes(r *archive.Record) int {
	return 64 + len(r.ID) + len(r.Fleet) + len(r.Group) + len(r.Player) + len(r.Data)
}

// valid returns the records of a block that no later record has replaced. With a *archive.Damaged, it returns the readable ones.
func (v *view) valid(block uint64, current *view) (records []archive.Record, err error) {
	rest, err := v.load(block)
	for slot := uint16(0); err == nil && len(rest) > 0; slot++ {
		var stored encodedRecord
		if stored, rest, err = nextRecord(rest); err != nil {
			return records, &archive.Damaged{Place: location{block, slot}.place(), Err: err}
		}
		record := stored.record()
		replaced, err := current.replaces(&record, location{block, slot})
		if err != nil {
			return records, err
		}
		if !replaced {
			records = append(records, record)
		}
	}
	return records, err
}

// replaces reports whether another record has replaced the one at a location. The same record, put again, does not count, because its other copy may
// be in a block that a reader has already passed.
func (v *view) replaces(record *archive.Record, at location) (bool, error) {
	v.key = appendIDKey(v.key[:0], record.Kind, record.ID)
	counts, found, err := v.lookUp(v.key)
	if err == nil && found && counts != at {
		var stored encodedRecord
		if stored, err = v.record(counts); err == nil {
			return stored.created != record.Created || stored.ended != record.Ended, nil
		}
	}
	if _, damaged := errors.AsType[*archive.Damaged](err); damaged {
		return false, nil // it is unknown which of them is current
	}
	return !found, err
}

package pebble

import (
	"bytes"
	"context"
	"fmt"
	"math/big"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// entry is a key of a table with its value. Its slices are valid until the next entry.
type entry struct {
	key, value []byte
	seq        uint64
	deleted    bool
}

// table is an open table, read without the database.
type table struct {
	reader *sstable.Reader
	file   *damagedOnce
}

// damagedOnce fails at once where an earlier read found damage. Pebble searches a damaged block for the flipped bit, which takes up to a second of
// processor time, and the search past damage reads such a block many times.
type damagedOnce struct {
	sstable.ReadableFile
	last    extent
	damaged map[extent]error
}

// extent is the range covered by one read of a file.
type extent struct {
	offset int64
	length int
}

func (f *damagedOnce) ReadAt(p []byte, offset int64) (int, error) {
	f.last = extent{offset, len(p)}
	if err := f.damaged[f.last]; err != nil {
		return 0, err
	}
	return f.ReadableFile.ReadAt(p, offset)
}

// remember marks the last read as damaged, if err says so.
func (f *damagedOnce) remember(err error) {
	if pebble.IsCorruptionError(err) {
		f.damaged[f.last] = err
	}
}

func openTable(ctx context.Context, files vfs.FS, path string) (*table, error) {
	file, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	once := &damagedOnce{ReadableFile: file, damaged: map[extent]error{}}
	readable, err := sstable.NewSimpleReadable(once)
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	options := &pebble.Options{}
	options.EnsureDefaults()
	reader, err := sstable.NewReader(ctx, readable, options.MakeReaderOptions())
	if err != nil {
		_ = readable.Close()
		return nil, err
	}
	return &table{reader, once}, nil
}

func (t *table) close() { _ = t.reader.Close() }

// from visits the entries from a key on, until visit returns false. Damage is an error; last is the last key before the damage.
func (t *table) from(lower []byte, visit func(entry) bool) (last []byte, err error) {
	defer func() {
		if reason := recover(); reason != nil { // panics of the table's reader, which trusts its input
			err = fmt.Errorf("%v", reason)
		}
	}()
	keys, err := t.reader.NewIter(sstable.NoTransforms, lower, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := keys.Close(); err == nil {
			err = closeErr
		}
		t.file.remember(err)
	}()
	for kv := keys.First(); kv != nil; kv = keys.Next() {
		value, _, err := kv.Value(nil)
		if err != nil {
			return last, err
		}
		last = append(last[:0], kv.K.UserKey...)
		kind := kv.K.Kind()
		deleted := kind != pebble.InternalKeyKindSet && kind != pebble.InternalKeyKindSetWithDelete
		if len(last) > 0 && !visit(entry{last, value, uint64(kv.K.SeqNum()), deleted}) {
			return last, nil
		}
	}
	return last, keys.Error()
}

// detours are keys found after damage earlier, by the table and the key before the damage.
type detours map[string][]byte

// eachEntry visits the readable entries of a table and reports the unreadable places. It returns an error if the file could not be opened.
func eachEntry(ctx context.Context, files vfs.FS, path string, known detours, visit func(entry), damaged func(after []byte, err error)) error {
	if _, err := files.Stat(path); err != nil {
		return err
	}
	t, err := openTable(ctx, files, path)
	if err != nil {
		damaged(nil, err)
		return nil
	}
	defer t.close()
	for lower := []byte(nil); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		last, err := t.from(lower, func(e entry) bool { visit(e); return true })
		if err == nil {
			return nil
		}
		if last == nil {
			last = lower
		}
		damaged(last, err)
		place := path + "\x00" + string(last)
		behind, ok := known[place]
		if !ok {
			behind = pastDamage(last, nil, func(lower []byte) bool {
				_, err := t.from(lower, func(entry) bool { return false })
				return err == nil
			})
			known[place] = behind
		}
		lower = behind
		if lower == nil {
			return nil
		}
	}
}

// Bounds of keys, for the search past damage.
const (
	keyWidth   = 3 + keyHashSize + 6 + locationSize // of the longest key
	blockTries = 256                                // block numbers that are tried one by one
)

// pastDamage finds a key after last from which on reading succeeds again; nil if there is none below upper (nil: the end of all keys). It tries
// blocks number by number, so that none is skipped; among other keys, it finds the end of the damage by bisection.
func pastDamage(last, upper []byte, readable func(lower []byte) bool) []byte {
	if len(last) == 0 {
		last = appendBlockKey(nil, 0)
		if readable(last) {
			return last
		}
	}
	if number, err := decodeBlockKey(last); err == nil {
		for n := number + 1; n <= number+blockTries && n < 1<<48; n++ {
			if key := appendBlockKey(nil, n); readable(key) {
				return key
			}
		}
	}
	if upper == nil {
		upper = bytes.Repeat([]byte{0xff}, keyWidth)
	}
	number := func(key []byte) *big.Int {
		padded := make([]byte, keyWidth)
		copy(padded, key)
		return new(big.Int).SetBytes(padded)
	}
	bytesOf := func(n *big.Int) []byte { return n.FillBytes(make([]byte, keyWidth)) }
	one := big.NewInt(1)
	origin, end := number(last), new(big.Int).Sub(number(upper), one)
	bad, good := origin, new(big.Int)
	for step := big.NewInt(1); ; step.Lsh(step, 1) {
		good.Add(origin, step)
		atEnd := good.Cmp(end) >= 0
		if atEnd {
			good.Set(end)
		}
		if readable(bytesOf(good)) {
			break
		}
		if atEnd {
			return nil
		}
		bad = new(big.Int).Set(good)
	}
	for {
		gap := new(big.Int).Sub(good, bad)
		if gap.Cmp(one) <= 0 {
			return bytesOf(good)
		}
		middle := gap.Add(bad, gap.Rsh(gap, 1))
		if readable(bytesOf(middle)) {
			good = middle
		} else {
			bad = middle
		}
	}
}

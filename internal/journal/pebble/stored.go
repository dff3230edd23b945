package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/internal/journal"
)

// The content of the database. docs/formats/journal-pebble.md describes it.
const (
	format       = 1
	entryPrefix  = 'e'
	entryKeySize = 1 + 8
	checksumSize = 4
)

var (
	formatKey  = []byte("mformat")       // 4 bytes, little-endian
	ownerKey   = []byte("minstallation") // 16 bytes: id of the installation; absent in journals of releases that had none
	trimmedKey = []byte("mtrimmed")      // 8 bytes, little-endian: number of the oldest entry kept; absent before the first trim
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// putEntryKey writes the key of an entry, in big-endian order, so that the database's order is the journal's.
func putEntryKey(key []byte, number uint64) {
	key[0] = entryPrefix
	binary.BigEndian.PutUint64(key[1:], number)
}

func entryKey(number uint64) []byte {
	key := make([]byte, entryKeySize)
	putEntryKey(key, number)
	return key
}

func entryNumber(key []byte) (uint64, bool) {
	if len(key) != entryKeySize || key[0] != entryPrefix {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[1:]), true
}

// entrySum covers the number as well as the bytes: an intact entry under a wrong number is damage, too.
func entrySum(number uint64, batch []byte) uint32 {
	var stored [8]byte
	binary.BigEndian.PutUint64(stored[:], number)
	return crc32.Update(crc32.Checksum(stored[:], castagnoli), castagnoli, batch)
}

func putEntryValue(value []byte, number uint64, batch []byte) {
	binary.LittleEndian.PutUint32(value, entrySum(number, batch))
	copy(value[checksumSize:], batch)
}

var (
	errShort    = errors.New("shorter than its checksum")
	errChecksum = errors.New("checksum does not match")
	errMissing  = errors.New("missing")
)

// decodeEntry returns the batch stored in value.
func decodeEntry(number uint64, value []byte) ([]byte, error) {
	if len(value) < checksumSize {
		return nil, errShort
	}
	batch := value[checksumSize:]
	if binary.LittleEndian.Uint32(value) != entrySum(number, batch) {
		return nil, errChecksum
	}
	return batch, nil
}

// checkFormat refuses a later release's format, and marks a new database with ours.
func (j *Journal) checkFormat() error {
	value, err := j.get(formatKey, 4)
	if err != nil {
		return err
	}
	if value == nil {
		if err := j.db.Set(formatKey, binary.LittleEndian.AppendUint32(nil, format), pebble.Sync); err != nil {
			return err
		}
		return j.db.Err()
	}
	if stored := binary.LittleEndian.Uint32(value); stored != format {
		return fmt.Errorf("it has format %d, but this release reads format %d", stored, format)
	}
	return nil
}

// trimmedBefore returns the number of the oldest entry that was not trimmed.
func (j *Journal) trimmedBefore() (uint64, error) {
	value, err := j.get(trimmedKey, 8)
	if err != nil || value == nil {
		return 1, err
	}
	if first := binary.LittleEndian.Uint64(value); first > 0 {
		return first, nil
	}
	return 0, &journal.Damaged{File: "key mtrimmed", Err: errors.New("0, at least 1 expected")}
}

// get returns a copy of the value of key, or nil if there is none.
func (j *Journal) get(key []byte, size int) ([]byte, error) {
	value, closer, err := j.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, corrupt(0, err)
	}
	defer closer.Close()
	if len(value) != size {
		return nil, &journal.Damaged{File: "key " + string(key), Err: fmt.Errorf("%d bytes, %d expected", len(value), size)}
	}
	return append([]byte(nil), value...), nil
}

// ends returns the numbers of the oldest and the newest entry in the database; 0 and 0 if there is none.
func (j *Journal) ends() (oldest, newest uint64, err error) {
	entries, err := j.db.NewIter(&pebble.IterOptions{LowerBound: []byte{entryPrefix}, UpperBound: []byte{entryPrefix + 1}})
	if err != nil {
		return 0, 0, err
	}
	defer entries.Close()
	for _, end := range []struct {
		number *uint64
		seek   func() bool
	}{{&oldest, entries.First}, {&newest, entries.Last}} {
		if !end.seek() {
			return 0, 0, corrupt(0, entries.Error())
		}
		number, ok := entryNumber(entries.Key())
		if !ok || number == 0 {
			return 0, 0, &journal.Damaged{File: fmt.Sprintf("key %x", entries.Key()), Err: errors.New("not the key of an entry")}
		}
		*end.number = number
	}
	return oldest, newest, nil
}

// corrupt converts Pebble's corruption errors to *journal.Damaged and returns other errors unchanged.
func corrupt(number uint64, err error) error {
	if err != nil && pebble.IsCorruptionError(err) {
		return &journal.Damaged{Entry: number, File: "database", Err: err}
	}
	return err
}

package pebble

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/musterhq/muster/internal/archive"
)

// The content of the database. docs/formats/archive-pebble.md describes it.
//
// A record is written once, in a block of records that were put together. Block numbers grow, so compactions never rewrite
// blocks. The keys that refer to a record are small and have a fixed size, whatever the ids: keys contain hashes, and
// values contain locations. Compactions move only these, and moving is most of the cost of a put.
const (
	format = 1

	blockPrefix  = 'b' // block number → block
	expiryPrefix = 'e' // latest end in the block, block number → nothing
	idPrefix     = 'i' // kind, hash of the id → location of the current record
	listPrefix   = 'l' // index, kind, hash of the key, created, location → nothing
)

var (
	formatKey = []byte("mformat")       // 4 bytes, little-endian
	ownerKey  = []byte("minstallation") // 16 bytes: id of the installation; absent in archives of releases that had none
	markKey   = []byte("mmark")         // 16 bytes, little-endian: journal, forgotten; absent before the first one was set

	coverageKey = []byte("mcoverage") // 25 bytes, little-endian: entry, next, from, and 1 if it lacks records; absent outside of clusters
)

const (
	blockRecords = 64
	blockBytes   = 16 << 10 // a block is full with the record that reaches this size
	locationSize = 6 + 2
	idHashSize   = 16 // collisions are impossible in practice, so the key alone decides
	keyHashSize  = 8  // collisions are possible, so the record found is compared
	maxTime      = 1<<48 - 1
)

// location is the place of a record.
type location struct {
	block uint64 // below 1<<48
	slot  uint16 // its position in the block
}

func appendUint48(b []byte, v uint64) []byte {
	return append(b, byte(v>>40), byte(v>>32), byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

func uint48(b []byte) uint64 {
	return uint64(b[0])<<40 | uint64(b[1])<<32 | uint64(b[2])<<24 | uint64(b[3])<<16 | uint64(b[4])<<8 | uint64(b[5])
}

func (l location) append(b []byte) []byte {
	return binary.BigEndian.AppendUint16(appendUint48(b, l.block), l.slot)
}

func decodeLocation(b []byte) (location, error) {
	if len(b) != locationSize {
		return location{}, fmt.Errorf("location of %d bytes, %d expected", len(b), locationSize)
	}
	return location{block: uint48(b), slot: binary.BigEndian.Uint16(b[6:])}, nil
}

func appendBlockKey(b []byte, block uint64) []byte {
	return appendUint48(append(b, blockPrefix), block)
}

func decodeBlockKey(key []byte) (block uint64, err error) {
	if len(key) != 1+6 || key[0] != blockPrefix {
		return 0, fmt.Errorf("key %x is not the key of a block", key)
	}
	return uint48(key[1:]), nil
}

func appendExpiryKey(b []byte, ended int64, block uint64) []byte {
	return appendUint48(appendUint48(append(b, expiryPrefix), uint64(ended)), block)
}

func decodeExpiryKey(key []byte) (block uint64, err error) {
	if len(key) != 1+6+6 || key[0] != expiryPrefix {
		return 0, fmt.Errorf("key %x is not the key of an expiry", key)
	}
	return uint48(key[7:]), nil
}

func appendIDKey(b []byte, kind archive.Kind, id string) []byte {
	b = append(b, idPrefix, byte(kind))
	sum := hash(id)
	return append(b, sum[:idHashSize]...)
}

func appendListPrefix(b []byte, index archive.Index, kind archive.Kind, key string) []byte {
	b = append(b, listPrefix, byte(index), byte(kind))
	sum := hash(key)
	return append(b, sum[:keyHashSize]...)
}

func appendListKey(b []byte, index archive.Index, record *archive.Record, at location) []byte {
	b = appendListPrefix(b, index, record.Kind, record.Key(index))
	return at.append(appendUint48(b, uint64(record.Created)))
}

func decodeListKey(key []byte) (created int64, at location, err error) {
	const size = 3 + keyHashSize + 6 + locationSize
	if len(key) != size || key[0] != listPrefix {
		return 0, location{}, fmt.Errorf("key %x is not the key of a list", key)
	}
	at, err = decodeLocation(key[size-locationSize:])
	return int64(uint48(key[3+keyHashSize:])), at, err
}

// hash returns a cryptographic hash, because clients choose the ids.
func hash(s string) [sha256.Size]byte {
	var short [128]byte // keeps the copy of a typical id on the stack
	return sha256.Sum256(append(short[:0], s...))
}

// Blocks.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const checksumSize = 4

// blockSum covers the number as well as the records: an intact block in the wrong place is damage, too.
func blockSum(block uint64, records []byte) uint32 {
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], block)
	return crc32.Update(crc32.Checksum(number[:], castagnoli), castagnoli, records)
}

// beginBlock leaves room for the checksum that sealBlock fills in.
func beginBlock(b []byte) []byte { return append(b, make([]byte, checksumSize)...) }

func sealBlock(b []byte, block uint64) {
	binary.LittleEndian.PutUint32(b, blockSum(block, b[checksumSize:]))
}

var (
	errChecksum = errors.New("checksum does not match")
	errCut      = errors.New("it ends within a record")
)

// openBlock checks a stored block and returns its records, encoded.
func openBlock(b []byte, block uint64) ([]byte, error) {
	if len(b) < checksumSize {
		return nil, errCut
	}
	if binary.LittleEndian.Uint32(b) != blockSum(block, b[checksumSize:]) {
		return nil, errChecksum
	}
	return b[checksumSize:], nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendRecord(b []byte, r *archive.Record) []byte {
	b = append(b, byte(r.Kind))
	b = binary.AppendUvarint(b, uint64(r.Created))
	b = binary.AppendUvarint(b, uint64(r.Ended))
	b = appendString(b, r.ID)
	b = appendString(b, r.Fleet)
	b = appendString(b, r.Group)
	b = appendString(b, r.Player)
	b = binary.AppendUvarint(b, uint64(len(r.Data)))
	return append(b, r.Data...)
}

// encodedRecord is a record whose fields are still in the block.
type encodedRecord struct {
	kind                           archive.Kind
	created, ended                 int64
	id, fleet, group, player, data []byte
}

// nextRecord removes the first record from the records of a block.
func nextRecord(b []byte) (r encodedRecord, rest []byte, err error) {
	if len(b) == 0 {
		return r, nil, errCut
	}
	r.kind, b = archive.Kind(b[0]), b[1:]
	for _, field := range []*int64{&r.created, &r.ended} {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > maxTime {
			return r, nil, errCut
		}
		*field, b = int64(v), b[n:]
	}
	for _, field := range []*[]byte{&r.id, &r.fleet, &r.group, &r.player, &r.data} {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return r, nil, errCut
		}
		*field, b = b[n:n+int(size)], b[n+int(size):]
	}
	return r, b, nil
}

// record copies the fields out of the block.
func (r *encodedRecord) record() archive.Record {
	return archive.Record{
		Kind: r.kind, ID: string(r.id), Created: r.created, Ended: r.ended,
		Fleet: string(r.fleet), Group: string(r.group), Player: string(r.player),
		Data: append([]byte(nil), r.data...),
	}
}

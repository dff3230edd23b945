package raft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/journal"
)

// The content of the database and of a log entry. docs/formats/journal-raft.md describes both.
const (
	format       = 1
	logPrefix    = 'l'
	stablePrefix = 's'
	logKeySize   = 1 + 8
	checksumSize = 4
	logHead      = checksumSize + 8 + 1 + 8 + 4 // checksum, term, type, time, length of the extensions
)

var (
	formatKey  = []byte("mformat")       // 4 bytes, little-endian
	ownerKey   = []byte("minstallation") // 16 bytes: id of the installation
	trimmedKey = []byte("mtrimmed")      // trimmed, 2*8 bytes, little-endian; absent before the first trim
	originKey  = []byte("morigin")       // origin, 2*8 bytes, little-endian; absent before a snapshot arrives
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errShort    = errors.New("shorter than its head")
	errChecksum = errors.New("checksum does not match")
	errMissing  = errors.New("missing")
)

// logKey returns the key of a log entry, in big-endian order, so that the database's order is the log's.
func logKey(index uint64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, logKeySize), logPrefix), index)
}

func stableKey(key []byte) []byte { return append([]byte{stablePrefix}, key...) }

// logSum covers the index as well as the bytes: an intact entry at a wrong index is damage, too.
func logSum(index uint64, rest []byte) uint32 {
	var place [8]byte
	binary.BigEndian.PutUint64(place[:], index)
	return crc32.Update(crc32.Checksum(place[:], castagnoli), castagnoli, rest)
}

func logSize(l *raft.Log) int { return logHead + len(l.Extensions) + len(l.Data) }

// putLog writes an entry into value, which has the exact size.
func putLog(value []byte, l *raft.Log) {
	var at int64
	if !l.AppendedAt.IsZero() {
		at = l.AppendedAt.UnixNano()
	}
	rest := value[checksumSize:checksumSize]
	rest = binary.LittleEndian.AppendUint64(rest, l.Term)
	rest = append(rest, byte(l.Type))
	rest = binary.LittleEndian.AppendUint64(rest, uint64(at))
	rest = binary.LittleEndian.AppendUint32(rest, uint32(len(l.Extensions)))
	rest = append(rest, l.Extensions...)
	rest = append(rest, l.Data...)
	binary.LittleEndian.PutUint32(value, logSum(l.Index, rest))
}

// parseLog parses the entry with that index. Its slices are parts of value.
func parseLog(index uint64, value []byte, l *raft.Log) error {
	if len(value) < logHead {
		return errShort
	}
	rest := value[checksumSize:]
	if binary.LittleEndian.Uint32(value) != logSum(index, rest) {
		return errChecksum
	}
	extensions := uint64(binary.LittleEndian.Uint32(value[logHead-4:]))
	body := value[logHead:]
	if extensions > uint64(len(body)) {
		return errShort
	}
	*l = raft.Log{Index: index, Term: binary.LittleEndian.Uint64(rest), Type: raft.LogType(rest[8]), Data: body[extensions:]}
	if at := int64(binary.LittleEndian.Uint64(rest[9:])); at != 0 {
		l.AppendedAt = time.Unix(0, at)
	}
	if extensions > 0 {
		l.Extensions = body[:extensions]
	}
	return nil
}

// A log entry of the journal contains its number, the term of the run that appended it, and the batch.
const commandHead = 8 + 8

func encodeCommand(number, term uint64, batch []byte) []byte {
	data := make([]byte, 0, commandHead+len(batch))
	data = binary.BigEndian.AppendUint64(data, number)
	data = binary.BigEndian.AppendUint64(data, term)
	return append(data, batch...)
}

func parseCommand(data []byte) (number, term uint64, batch []byte, err error) {
	if len(data) < commandHead {
		return 0, 0, nil, fmt.Errorf("a command of %d bytes, at least %d expected", len(data), commandHead)
	}
	return binary.BigEndian.Uint64(data), binary.BigEndian.Uint64(data[8:]), data[commandHead:], nil
}

// trimmed describes the entries that were removed from the beginning of the log.
type trimmed struct {
	first uint64 // number of the oldest entry that readers may still read
	base  uint64 // number of the newest entry that is no longer in the log
}

func (t trimmed) encode() []byte { return encodeTwo(t.first, t.base) }

func parseTrimmed(value []byte) (t trimmed, err error) {
	t = trimmed{binary.LittleEndian.Uint64(value), binary.LittleEndian.Uint64(value[8:])}
	if t.first == 0 || t.base >= t.first || t.first == math.MaxUint64 {
		return t, &journal.Damaged{File: "key mtrimmed", Err: fmt.Errorf("first entry %d after %d", t.first, t.base)}
	}
	return t, nil
}

// origin is the end of the snapshot that last replaced the log; zero for none. The log has no entry there, and begins after it if no trim
// has moved its beginning. Raft's library needs the term there when a leader refers to that place again, for example after an answer was lost.
type origin struct{ index, term uint64 }

func (o origin) encode() []byte { return encodeTwo(o.index, o.term) }

// parseOrigin returns the zero origin for nil.
func parseOrigin(value []byte) *origin {
	if value == nil {
		return &origin{}
	}
	return &origin{binary.LittleEndian.Uint64(value), binary.LittleEndian.Uint64(value[8:])}
}

func encodeTwo(a, b uint64) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, a), b)
}

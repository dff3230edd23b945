package embeddb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble truncates its newest log at the first unreadable chunk and takes the rest for a torn tail. To tell a torn tail from
// damage, it compares the position with the synced offset in later chunks. But v2.1.7 counts only the last partial block of a
// sync into that offset (record/log_writer.go, writtenOffset), so damage can pass for a torn tail, and everything after it is
// silently dropped, durable or not. checkTail makes its own check: our databases have one commit in flight at a time, so only
// the last record can be torn, and a later chunk that begins a record proves damage.
//
// The log's format (record/record.go): blocks of 32 KiB, chunks within a block, each with a header of
// checksum 4, length 2, type 1, log number 4 and, for types 9 to 12, synced offset 8.
const (
	walBlock        = 32 << 10
	walHeader       = 11
	walSyncedHeader = 19
)

const (
	walFull        = 5
	walFirst       = 6
	walMiddle      = 7
	walLast        = 8
	walSyncedFull  = 9
	walSyncedFirst = 10
	walSyncedLast  = 12
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Tail describes how the newest log ended when the database was opened.
type Tail struct {
	File     string // empty: there was no log
	Readable int64  // bytes before the first unreadable one
	Rest     int64  // bytes from there to the last non-zero one; they may be left over from an older log
	Torn     bool   // a record of this log begins there: an interrupted write
	Last     []byte // beginning of the last readable record, at most walPrefix bytes; nil: none
}

// LastRecord returns the beginning of the last readable record in the newest log of a directory.
func LastRecord(files vfs.FS, dir string) (prefix []byte, ok bool) {
	tail, _ := checkTail(files, dir, LogPosition{})
	return tail.Last, tail.Last != nil
}

// LogPosition is a place in the write-ahead log.
type LogPosition struct {
	Log    uint64 // number of the file; 0: none
	Offset int64  // bytes
}

// Tail returns how the newest log ended when the database was opened.
func (db *DB) Tail() Tail { return db.tail }

// LogPosition returns the end of the written log. It is meaningful only directly after a commit.
func (db *DB) LogPosition() LogPosition {
	return LogPosition{db.stop.log.number.Load(), db.stop.log.written.Load()}
}

// logEnd is the end of the current log.
type logEnd struct {
	number  atomic.Uint64
	written atomic.Int64
}

// checkTail checks the newest log in the directory. It returns *Damaged if more than an interrupted write is lost: if the log
// is damaged before its end, or ends before what was synced. Older logs need no check: Pebble knows that they were closed in
// order and accepts no torn tail in them.
func checkTail(files vfs.FS, dir string, synced LogPosition) (Tail, error) {
	name, number, err := newestLog(files, dir)
	if err != nil {
		return Tail{}, err
	}
	if number < synced.Log {
		return Tail{}, &Damaged{File: files.PathJoin(dir, fmt.Sprintf("%06d.log", synced.Log)), Offset: -1, Tail: true, Err: errNoLog}
	}
	if name == "" {
		return Tail{}, nil
	}
	path := files.PathJoin(dir, name)
	file, err := files.Open(path)
	if err != nil {
		return Tail{}, err
	}
	defer file.Close()
	scan := walScan{log: uint32(number)}
	follows, err := scan.read(file)
	if err != nil {
		return Tail{}, fmt.Errorf("read %s: %w", name, err)
	}
	tail := Tail{File: path, Readable: scan.readable, Rest: max(0, scan.used-scan.readable), Torn: scan.torn, Last: scan.last}
	switch {
	case follows:
		return tail, &Damaged{File: path, Offset: tail.Readable, Tail: true, Err: errDamagedLog}
	case number == synced.Log && tail.Readable < synced.Offset:
		return tail, &Damaged{File: path, Offset: tail.Readable, Tail: true,
			Err: fmt.Errorf("%d bytes that were on the disk cannot be read", synced.Offset-tail.Readable)}
	}
	return tail, nil
}

var (
	errDamagedLog = errors.New("a record cannot be read, although intact records follow it")
	errNoLog      = errors.New("the newest log is missing")
)

// cutTail truncates a log where it becomes unreadable, unless only zeros follow. It keeps a copy of the whole log next to the database. The log is
// replaced atomically, so that after an interruption the whole log is still there to be cut.
func cutTail(files vfs.FS, dir string, tail Tail) error {
	if tail.Rest == 0 {
		return nil
	}
	kept := fmt.Sprintf("%s.%s.lost", dir, files.PathBase(tail.File))
	if err := vfs.Copy(files, tail.File, kept); err != nil {
		return fmt.Errorf("keep %s: %w", tail.File, err)
	}
	if err := SyncDir(files, files.PathDir(kept)); err != nil {
		return err
	}
	cut := files.PathJoin(dir, "cut.tmp") // in this directory, which may be a file system of its own
	if err := vfs.LimitedCopy(files, kept, cut, tail.Readable); err != nil {
		return fmt.Errorf("cut %s: %w", tail.File, err)
	}
	if err := files.Rename(cut, tail.File); err != nil {
		return err
	}
	return SyncDir(files, dir)
}

func newestLog(files vfs.FS, dir string) (name string, number uint64, err error) {
	names, err := files.List(dir)
	if err != nil {
		return "", 0, err
	}
	for _, n := range names {
		if v, ok := logNumber(filepath.Base(n)); ok && (name == "" || v > number) {
			name, number = n, v
		}
	}
	return name, number, nil
}

func logNumber(name string) (number uint64, ok bool) {
	digits, isLog := strings.CutSuffix(name, ".log")
	if !isLog {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, err == nil
}

// walPrefix is how much of a record is kept to identify it.
const walPrefix = 64

// walScan reads the chunks of one log.
type walScan struct {
	log uint32

	readable int64 // before the first unreadable byte
	used     int64 // up to the last non-zero byte
	torn     bool  // a chunk of this log begins at readable
	last     []byte

	begun []byte // the record being read
}

// read reads a whole log, and reports whether a record begins somewhere after the first unreadable chunk.
func (s *walScan) read(log io.Reader) (follows bool, err error) {
	torn := false
	block := make([]byte, walBlock)
	for start := int64(0); ; start += walBlock {
		n, err := io.ReadFull(log, block)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return false, err
		}
		block := block[:n]
		if used := len(bytes.TrimRight(block, "\x00")); used > 0 {
			s.used = start + int64(used)
		}
		at := 0
		if !torn {
			for at < len(block) {
				size := s.chunk(block[at:])
				if size == 0 {
					break
				}
				s.note(block[at : at+size])
				at += size
			}
			if at < len(block) && !isPadding(block[at:], n == walBlock) {
				torn = true
				s.readable = start + int64(at)
				rest := block[at:]
				s.torn = len(rest) >= walHeader && rest[6] != 0 && binary.LittleEndian.Uint32(rest[7:11]) == s.log
				at++
			} else {
				s.readable = start + int64(n)
			}
		}
		if torn && s.recordBegins(block[min(at, len(block)):]) {
			return true, nil
		}
		if err != nil {
			return false, nil
		}
	}
}

// note keeps the beginning of the last complete record.
func (s *walScan) note(chunk []byte) {
	header := walHeader
	if chunk[6] >= walSyncedFull {
		header = walSyncedHeader
	}
	payload := chunk[header:]
	switch chunk[6] {
	case walFull, walSyncedFull:
		s.last = append([]byte(nil), payload[:min(len(payload), walPrefix)]...)
	case walFirst, walSyncedFirst:
		s.begun = append([]byte(nil), payload[:min(len(payload), walPrefix)]...)
	case walLast, walSyncedLast:
		s.last = s.begun
	}
}

// chunk returns the size of the intact chunk of this log at the beginning of b, or 0.
func (s *walScan) chunk(b []byte) int {
	if len(b) < walHeader {
		return 0
	}
	size := walHeader
	switch kind := b[6]; {
	case kind >= walSyncedFull && kind <= walSyncedLast:
		size = walSyncedHeader
	case kind < walFull || kind > walLast:
		return 0
	}
	size += int(binary.LittleEndian.Uint16(b[4:6]))
	if binary.LittleEndian.Uint32(b[7:11]) != s.log || size > len(b) {
		return 0
	}
	crc := crc32.Checksum(b[6:size], castagnoli)
	if binary.LittleEndian.Uint32(b) != (crc>>15|crc<<17)+0xa282ead8 {
		return 0
	}
	return size
}

// isPadding reports whether the rest of a full block is padding: too short for a chunk and zero.
func isPadding(rest []byte, full bool) bool {
	return full && len(rest) < walSyncedHeader && len(bytes.Trim(rest, "\x00")) == 0
}

// recordBegins reports whether a record begins anywhere in b. It checks every position, because the lengths that lead from
// chunk to chunk may be damaged.
func (s *walScan) recordBegins(b []byte) bool {
	for ; len(b) >= walHeader; b = b[1:] {
		switch b[6] {
		case walFull, walFirst, walSyncedFull, walSyncedFirst:
			if s.chunk(b) > 0 {
				return true
			}
		}
	}
	return false
}

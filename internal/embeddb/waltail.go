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

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble cuts its newest log at the first chunk that it cannot read and takes what follows for a torn tail. To tell
// a tear from damage it compares the position with the synced offset that later chunks carry, but v2.1.7 counts only the
// last partial block of a sync into that offset (record/log_writer.go, writtenOffset), so damage can pass for a tear
// and everything after it is silently dropped, durable or not. checkTail looks for itself: our databases have one
// commit in flight at a time, so a tear can only be in the last record, and a chunk further on that begins a record is proof
// of damage.
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

// checkTail returns *Damaged when the newest log in dir is damaged before its end. Older logs need no check: Pebble
// knows that they were closed in order and accepts no tear in them.
func checkTail(files vfs.FS, dir string) error {
	name, number, err := newestLog(files, dir)
	if err != nil || name == "" {
		return err
	}
	file, err := files.Open(files.PathJoin(dir, name))
	if err != nil {
		return err
	}
	defer file.Close()
	scan := walScan{log: uint32(number)}
	offset, err := scan.firstDamage(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if offset >= 0 {
		return &Damaged{File: files.PathJoin(dir, name), Offset: offset, Err: errDamagedLog}
	}
	return nil
}

var errDamagedLog = errors.New("a record cannot be read, and whole records follow it")

func newestLog(files vfs.FS, dir string) (name string, number uint64, err error) {
	names, err := files.List(dir)
	if err != nil {
		return "", 0, err
	}
	for _, n := range names {
		digits, isLog := strings.CutSuffix(filepath.Base(n), ".log")
		if !isLog {
			continue
		}
		if v, err := strconv.ParseUint(digits, 10, 64); err == nil && (name == "" || v > number) {
			name, number = n, v
		}
	}
	return name, number, nil
}

// walScan reads the chunks of one log.
type walScan struct{ log uint32 }

// firstDamage returns where the first unreadable chunk lies, if a record begins somewhere after it, or else -1.
func (s walScan) firstDamage(log io.Reader) (int64, error) {
	tear := int64(-1)
	block := make([]byte, walBlock)
	for start := int64(0); ; start += walBlock {
		n, err := io.ReadFull(log, block)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return 0, err
		}
		block := block[:n]
		at := 0
		if tear < 0 {
			for at < len(block) {
				size := s.chunk(block[at:])
				if size == 0 {
					break
				}
				at += size
			}
			if at < len(block) && !isPadding(block[at:], n == walBlock) {
				tear = start + int64(at)
				at++
			}
		}
		if tear >= 0 && s.recordBegins(block[at:]) {
			return tear, nil
		}
		if err != nil {
			return -1, nil
		}
	}
}

// chunk returns the size of the intact chunk of this log at the beginning of b, or 0.
func (s walScan) chunk(b []byte) int {
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

// isPadding reports whether the rest of a full block is too short for a chunk and left zero.
func isPadding(rest []byte, full bool) bool {
	return full && len(rest) < walSyncedHeader && len(bytes.Trim(rest, "\x00")) == 0
}

// recordBegins looks at every position, since damage may have hit the lengths that lead from chunk to chunk.
func (s walScan) recordBegins(b []byte) bool {
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

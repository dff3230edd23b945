package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/journal"
)

// The file `synced` beside the database records how far the journal is known to be on the disk. A log that was cut, by a tool or by
// a file system, looks like one whose last write did not end; only a record outside the log can distinguish them. The file is
// overwritten after each append and not synced, which costs a microsecond or two: it may be behind, by the writes that the system
// has not carried out yet when the power fails, and is never ahead. After a kill it is behind by at most one entry.
const (
	syncedName  = "synced"
	syncedMagic = "MUSTSYN1"
	syncedSize  = len(syncedMagic) + 3*8 + 4
)

// synced is a durable entry, and the end of the log after it.
type synced struct {
	entry uint64
	at    embeddb.LogPosition
}

func (s synced) encode(b []byte) []byte {
	b = append(b, syncedMagic...)
	b = binary.LittleEndian.AppendUint64(b, s.entry)
	b = binary.LittleEndian.AppendUint64(b, s.at.Log)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.at.Offset))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// readSynced returns the content of the file; zero when there is none, and an error when it is damaged.
func readSynced(files vfs.FS, path string) (s synced, err error) {
	file, err := files.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, int64(syncedSize)+1))
	switch {
	case err != nil:
		return s, err
	case len(content) == 0: // the power failed before its first write
		return s, nil
	case len(content) != syncedSize:
		return s, fmt.Errorf("%s has %d bytes, want %d", path, len(content), syncedSize)
	case crc32.Checksum(content[:syncedSize-4], castagnoli) != binary.LittleEndian.Uint32(content[syncedSize-4:]):
		return s, fmt.Errorf("%s is damaged: its checksum does not match", path)
	}
	numbers := content[len(syncedMagic):]
	s.entry = binary.LittleEndian.Uint64(numbers)
	s.at.Log, s.at.Offset = binary.LittleEndian.Uint64(numbers[8:]), int64(binary.LittleEndian.Uint64(numbers[16:]))
	return s, nil
}

// syncedFile is the open file. Its errors are logged once and stop nothing: the journal is as safe without it, but detects fewer losses.
type syncedFile struct {
	log *slog.Logger

	mu   sync.Mutex // also against a close beside a snapshot that ends
	file vfs.File   // nil: it cannot be written
	buf  []byte
}

func openSynced(files vfs.FS, path string, log *slog.Logger) *syncedFile {
	s := &syncedFile{log: log}
	file, err := files.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err == nil {
		s.file = file
		err = syncDirOf(files, path)
	}
	s.check(err)
	return s
}

func syncDirOf(files vfs.FS, path string) error {
	dir, err := files.OpenDir(files.PathDir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// note records what was synced just now.
func (s *syncedFile) note(to synced) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		s.buf = to.encode(s.buf[:0])
		_, err := s.file.WriteAt(s.buf, 0)
		s.check(err)
	}
}

// sync makes the file durable: from time to time, and when the journal is closed.
func (s *syncedFile) sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		s.check(s.file.Sync())
	}
}

func (s *syncedFile) close() {
	if s == nil {
		return
	}
	s.sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}

// check is called with mu held.
func (s *syncedFile) check(err error) {
	if err == nil {
		return
	}
	s.log.Warn("the service can no longer record how far the journal is synced: a loss at the end of the journal may go undetected", "error", err)
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}

// lostEntries adds the number of lost entries to the error of a log whose end is lost.
func lostEntries(files vfs.FS, dir string, err error, known synced) error {
	lost, ok := errors.AsType[*journal.Damaged](err)
	if !ok || !lost.Tail || known.entry == 0 {
		return err
	}
	last, ok := embeddb.LastRecord(files, dir)
	if number, isEntry := entryOfRecord(last); ok && isEntry && number < known.entry {
		lost.Err = fmt.Errorf("%w: entries %d to %d, %d in all, were on the disk", lost.Err, number+1, known.entry, known.entry-number)
	} else {
		lost.Err = fmt.Errorf("%w: entries up to %d were on the disk", lost.Err, known.entry)
	}
	return err
}

// entryOfRecord returns which entry a record of the log appends. A record is a batch of the database: its sequence number (8),
// the number of its writes (4), and for each its kind (1), the length of the key (uvarint) and the key.
func entryOfRecord(record []byte) (number uint64, ok bool) {
	const header = 12
	if len(record) < header+2+entryKeySize || record[header] != 1 || record[header+1] != entryKeySize {
		return 0, false
	}
	return entryNumber(record[header+2 : header+2+entryKeySize])
}

package embeddb

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
)

// The file `synced` next to the database records how far a journal is known to be on disk. A log that was truncated by a tool or a file
// system looks like one whose last write was interrupted; only a record outside the log can tell them apart. The file is overwritten
// after each append but not synced, which costs a microsecond or two. After a power cut it may lag behind by the writes that the system
// had not carried out; it is never ahead. After a kill it lags behind by at most one entry.
const (
	SyncedName  = "synced"
	syncedMagic = "MUSTSYN1"
	syncedSize  = len(syncedMagic) + 3*8 + 4
)

// Synced is a durable entry and the end of the log after it.
type Synced struct {
	Entry uint64
	At    LogPosition
}

func (s Synced) encode(b []byte) []byte {
	b = append(b, syncedMagic...)
	b = binary.LittleEndian.AppendUint64(b, s.Entry)
	b = binary.LittleEndian.AppendUint64(b, s.At.Log)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.At.Offset))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// ReadSynced returns the content of the file; zero if there is none, and an error if it is damaged.
func ReadSynced(files vfs.FS, path string) (s Synced, err error) {
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
	case len(content) == 0: // power was lost before its first write
		return s, nil
	case len(content) != syncedSize:
		return s, fmt.Errorf("%s has %d bytes, want %d", path, len(content), syncedSize)
	case crc32.Checksum(content[:syncedSize-4], castagnoli) != binary.LittleEndian.Uint32(content[syncedSize-4:]):
		return s, fmt.Errorf("%s is damaged: its checksum does not match", path)
	}
	numbers := content[len(syncedMagic):]
	s.Entry = binary.LittleEndian.Uint64(numbers)
	s.At.Log, s.At.Offset = binary.LittleEndian.Uint64(numbers[8:]), int64(binary.LittleEndian.Uint64(numbers[16:]))
	return s, nil
}

// SyncedFile is the open file. Its errors are logged once and stop nothing: without it, the journal is as safe but detects fewer losses.
type SyncedFile struct {
	files vfs.FS
	path  string
	log   *slog.Logger

	mu   sync.Mutex // also guards against a close while a snapshot is finishing
	file vfs.File   // nil: it can no longer be written
	buf  []byte
}

// OpenSynced opens the file for writing and creates it if necessary.
func OpenSynced(files vfs.FS, path string, log *slog.Logger) *SyncedFile {
	s := &SyncedFile{files: files, path: path, log: log}
	file, err := files.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err == nil {
		s.file = file
		err = SyncDir(files, files.PathDir(path))
	}
	s.check(err)
	return s
}

// Note records what was just synced.
func (s *SyncedFile) Note(to Synced) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		s.buf = to.encode(s.buf[:0])
		_, err := s.file.WriteAt(s.buf, 0)
		s.check(err)
	}
}

// Sync makes the file durable: from time to time, and when the journal is closed.
func (s *SyncedFile) Sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		s.check(s.file.Sync())
	}
}

// Shorten durably records that the log is about to become shorter. A file that cannot be written is removed, because it would be ahead of the log; until
// then its old position still shows losses before it.
func (s *SyncedFile) Shorten(to Synced) {
	s.Note(to)
	s.Sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		return
	}
	err := s.files.Remove(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err = errors.Join(err, SyncDir(s.files, s.files.PathDir(s.path))); err != nil {
		s.log.Warn("the record of how far the journal is synced could not be removed: a later start may take it for a loss", "error", err)
	}
}

// Close makes the file durable and closes it.
func (s *SyncedFile) Close() {
	if s == nil {
		return
	}
	s.Sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}

// check gives the file up after an error.
func (s *SyncedFile) check(err error) {
	if err == nil {
		return
	}
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
	s.log.Warn("the service can no longer record how far the journal is synced: a loss at the end of the journal may go undetected", "error", err)
}

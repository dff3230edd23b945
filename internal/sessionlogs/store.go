// Package sessionlogs keeps the logs of game sessions: an archive for each session, which the host's agent uploads after the session's end, and
// which clients fetch with a URL. New archives replace the oldest. In a cluster an archive is at two nodes, and each node finds it.
package sessionlogs

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/diskfull"
)

const (
	// Keep is how long an archive is kept, as documented in the API.
	Keep = 14 * 24 * time.Hour
	// filesMax is the maximum number of archives: each takes a few hundred bytes of memory.
	filesMax = 200_000

	temporary = ".new-" // begins the names of unfinished files, which are removed at the start
	suffix    = ".zip"
)

// Options of a Store.
type Options struct {
	Dir     string
	Quota   int64 // bytes of all archives
	Reserve int64 // bytes of the disk that must stay free: otherwise archives are refused
	Log     *slog.Logger
	Now     func() time.Time // nil: time.Now
}

// Store is a directory of archives. Its methods may be called concurrently, but only one process may use the directory.
type Store struct {
	Options

	mu     sync.Mutex // also guards Quota and Reserve
	used   int64      // including unfinished files
	order  list.List  // of *archive, the oldest first
	byName map[string]*list.Element
}

type archive struct {
	name  string
	bytes int64
	at    time.Time
}

// Open opens the store of a directory, which it creates if necessary.
func Open(o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{Options: o, byName: map[string]*list.Element{}}
	if err := atomicfile.MakeDir(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("logs of game sessions: %w", err)
	}
	var found []*archive
	err := filepath.WalkDir(o.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if strings.HasPrefix(entry.Name(), temporary) {
			return os.Remove(path)
		}
		info, err := entry.Info()
		if name, ok := strings.CutSuffix(entry.Name(), suffix); ok && err == nil && isName(name) {
			found = append(found, &archive{name, info.Size(), info.ModTime()})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("logs of game sessions: %w", err)
	}
	slices.SortFunc(found, func(a, b *archive) int { return a.at.Compare(b.at) })
	for _, a := range found {
		s.byName[a.name] = s.order.PushBack(a)
		s.used += a.bytes
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, s.makeRoom(0)
}

// nameOf returns the name of a session's archive: ids contain characters that file names cannot contain on every system.
func nameOf(session string) string {
	sum := sha256.Sum256([]byte(session))
	return hex.EncodeToString(sum[:20])
}

func isName(name string) bool {
	b, err := hex.DecodeString(name)
	return err == nil && len(b) == 20 && name == strings.ToLower(name)
}

func (s *Store) pathOf(name string) string { return filepath.Join(s.Dir, name[:2], name+suffix) }

// FullError is the refusal of an archive for which there is no space.
type FullError struct{ Reason string }

func (e *FullError) Error() string { return e.Reason }

func (s *Store) limits() (quota, reserve int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Quota, s.Reserve
}

// SetLimits changes the quota and the reserve. Archives beyond a smaller quota make room when the next one arrives.
func (s *Store) SetLimits(quota, reserve int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Quota, s.Reserve = quota, reserve
}

// put stores an archive of the given size, and replaces an existing one with this name.
func (s *Store) put(name string, content io.Reader, size int64) (err error) {
	quota, reserve := s.limits()
	if usage, err := vfs.Default.GetDiskUsage(s.Dir); err == nil && int64(min(usage.AvailBytes, 1<<62))-size < reserve {
		return &FullError{fmt.Sprintf("the disk has %d MiB free; %d MiB of them are reserved", usage.AvailBytes>>20, reserve>>20)}
	}
	if size > quota {
		return &FullError{fmt.Sprintf("the archive has %d KiB; all archives may have %d KiB (--session-logs-max)", size>>10, quota>>10)}
	}
	s.mu.Lock()
	if err = s.makeRoom(size); err == nil {
		s.used += size
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	kept := false
	defer func() {
		if !kept {
			s.mu.Lock()
			s.used -= size
			s.mu.Unlock()
		}
	}()
	path := s.pathOf(name)
	if err := atomicfile.MakeDir(filepath.Dir(path), 0o700); err != nil {
		return full(err)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), temporary)
	if err != nil {
		return full(err)
	}
	defer os.Remove(temp.Name()) // without effect once it was renamed
	n, err := io.Copy(temp, io.LimitReader(content, size))
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return full(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.Rename(temp.Name(), path); err != nil {
		return full(err)
	}
	kept = true
	if before := s.byName[name]; before != nil {
		s.used -= before.Value.(*archive).bytes
		s.order.Remove(before)
	}
	s.byName[name] = s.order.PushBack(&archive{name, size, s.Now()})
	return nil
}

// full turns an error that means a full disk into a FullError, and returns others unchanged.
func full(err error) error {
	if diskfull.Is(err) {
		return &FullError{"the disk is full"}
	}
	return err
}

// makeRoom removes archives older than Keep, and the oldest ones until the given number of bytes fits. The caller holds s.mu.
func (s *Store) makeRoom(bytes int64) error {
	until := s.Now().Add(-Keep)
	for {
		oldest := s.order.Front()
		if oldest == nil && s.used+bytes > s.Quota {
			return &FullError{"archives that arrive at the same moment take all the space (--session-logs-max)"}
		}
		if oldest == nil {
			return nil
		}
		a := oldest.Value.(*archive)
		if s.used+bytes <= s.Quota && s.order.Len() < filesMax && a.at.After(until) {
			return nil
		}
		if err := os.Remove(s.pathOf(a.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s.order.Remove(oldest)
		delete(s.byName, a.name)
		s.used -= a.bytes
	}
}

// Sweep removes archives older than Keep.
func (s *Store) Sweep() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.makeRoom(0)
}

// Has reports whether there is an archive of a game session.
func (s *Store) Has(session string) bool { return s.has(nameOf(session)) }

func (s *Store) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.byName[name]
	return x != nil && x.Value.(*archive).at.After(s.Now().Add(-Keep))
}

// open opens an archive. The error wraps fs.ErrNotExist if there is none.
func (s *Store) open(name string) (*os.File, error) { return os.Open(s.pathOf(name)) }

// remove removes an archive. It succeeds if there is none.
func (s *Store) remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.Remove(s.pathOf(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if x := s.byName[name]; x != nil {
		s.used -= x.Value.(*archive).bytes
		s.order.Remove(x)
		delete(s.byName, name)
	}
	return nil
}

// Used returns the number of archives, their size in bytes, and the maximum of that size.
func (s *Store) Used() (archives int, bytes, quota int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.order.Len(), s.used, s.Quota
}

package pebble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/journal/snapshot"
)

const (
	snapshotSuffix  = ".snapshot"
	temporarySuffix = ".tmp"
)

// snapshots is the directory of snapshot files. It does not use the database's guarded file system, because a failed
// snapshot does not affect the journal.
type snapshots struct {
	files  vfs.FS
	dir    string
	saving sync.Mutex // held for a whole save
	latest atomic.Uint64
}

func openSnapshots(files vfs.FS, dir string) (*snapshots, error) {
	s := &snapshots{files: files, dir: dir}
	if err := embeddb.MakeDir(files, dir); err != nil {
		return nil, err
	}
	names, err := files.List(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, temporarySuffix) { // left over from an unfinished save
			_ = files.Remove(files.PathJoin(dir, name))
			continue
		}
		if at, ok := snapshotNumber(name); ok && at > s.latest.Load() {
			s.latest.Store(at)
		}
	}
	return s, nil
}

func snapshotNumber(name string) (uint64, bool) {
	digits, isSnapshot := strings.CutSuffix(name, snapshotSuffix)
	if !isSnapshot {
		return 0, false
	}
	at, err := strconv.ParseUint(digits, 10, 64)
	return at, err == nil
}

func (s *snapshots) path(at uint64) string {
	return s.files.PathJoin(s.dir, fmt.Sprintf("%020d%s", at, snapshotSuffix))
}

// latestAt returns the number of the entry after which the latest snapshot was taken; 0 if there is none.
func (s *snapshots) latestAt() uint64 { return s.latest.Load() }

// SaveSnapshot implements journal.Journal.
func (j *Journal) SaveSnapshot(ctx context.Context, at uint64, write func(io.Writer) error) error {
	j.snapshots.saving.Lock()
	defer j.snapshots.saving.Unlock()
	if err := j.usable(); err != nil {
		return fmt.Errorf("save snapshot after entry %d: %w", at, err)
	}
	latest, last := j.snapshots.latestAt(), j.last.Load()
	if at == 0 || at < latest || at > last {
		return fmt.Errorf("save snapshot after entry %d: %w: the latest snapshot was taken after entry %d, the last entry is %d",
			at, journal.ErrOutOfOrder, latest, last)
	}
	goOn := func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return j.usable()
	}
	if err := j.snapshots.save(at, j.Installation(), goOn, write); err != nil {
		return fmt.Errorf("save snapshot after entry %d: %w", at, err)
	}
	j.synced.Sync()
	return nil
}

// save calls goOn between writes, and stops when that returns an error.
func (s *snapshots) save(at uint64, installation uuid.UUID, goOn func() error, write func(io.Writer) error) error {
	temporary := s.path(at) + temporarySuffix
	err := snapshot.WriteFile(s.files, temporary, func(out io.Writer) error { return snapshot.Write(out, at, installation, goOn, write) })
	if err != nil {
		_ = s.files.Remove(temporary)
		return err
	}
	if err := s.files.Rename(temporary, s.path(at)); err != nil {
		_ = s.files.Remove(temporary)
		return err
	}
	if err := embeddb.SyncDir(s.files, s.dir); err != nil {
		// The rename may or may not survive a crash. The name refers to a complete snapshot, so both outcomes are correct;
		// until it is durable, the previous snapshot stays the latest.
		if at != s.latestAt() {
			_ = s.files.Remove(s.path(at))
		}
		return err
	}
	s.latest.Store(at)
	s.removeOlder(at)
	return nil
}

// removeOlder ignores errors: a file that cannot be removed (on Windows, while it is being read) is removed with the next
// snapshot.
func (s *snapshots) removeOlder(at uint64) {
	names, err := s.files.List(s.dir)
	if err != nil {
		return
	}
	for _, name := range names {
		if older, ok := snapshotNumber(name); ok && older < at {
			_ = s.files.Remove(s.files.PathJoin(s.dir, name))
		}
	}
}

// LatestSnapshot implements journal.Journal.
func (j *Journal) LatestSnapshot(ctx context.Context) (at uint64, r io.ReadCloser, err error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	if err := j.usable(); err != nil {
		return 0, nil, fmt.Errorf("open latest snapshot: %w", err)
	}
	at, file, err := j.snapshots.open()
	if file == nil { // do not return a nil pointer in an interface
		return at, nil, err
	}
	return at, file, err
}

func (s *snapshots) open() (at uint64, r *snapshot.File, err error) {
	for {
		at = s.latestAt()
		if at == 0 {
			return 0, nil, nil
		}
		path := s.path(at)
		file, err := s.files.Open(path)
		if errors.Is(err, os.ErrNotExist) && s.latestAt() != at {
			continue // a newer snapshot has just replaced it
		}
		if err != nil {
			return 0, nil, fmt.Errorf("open latest snapshot: %w", err)
		}
		r, err := snapshot.OpenFile(path, file, at)
		return at, r, err
	}
}

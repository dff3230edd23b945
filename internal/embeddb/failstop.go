package embeddb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// failstop is the file system below a database. Pebble reacts to an error of its write-ahead log or its manifest by ending the process: with a panic
// in the caller, sometimes with a mutex in an unrecoverable state, or with Logger.Fatalf. So Pebble never sees such an error. The first failed write
// is remembered, and from then on nothing more reaches the disk: writes, syncs, renames and removals seem to succeed and do nothing. The disk stays
// as it was at that moment, as after a power cut, from which opening again can recover. DB.Err returns the failure; every writer checks it before
// relying on a success.
//
// A shortage of descriptors or space is waited out where nothing is half-written: when a file cannot be created, opened or renamed, and when a table
// cannot grow, because nothing refers to a table before it is complete and synced. A write to the log or the manifest, or any sync, is never retried,
// because it is unknown how much of it is durable.
type failstop struct {
	vfs.FS
	short  *shortages
	first  atomic.Pointer[Failure]
	failed chan struct{} // closed with the first failure
	log    logEnd
	onset  func(*Failure) // called once, by the goroutine that encountered the failure; must not block

	oldLogs struct {
		sync.Mutex
		opened bool     // the database; its next log exists
		names  []string // to be removed afterwards
	}
}

func newFailstop(files vfs.FS, short *shortages, onset func(*Failure)) *failstop {
	failed := make(chan struct{})
	short.failed = failed
	return &failstop{FS: files, short: short, failed: failed, onset: onset}
}

// Failure is the first error below a database. Nothing was written after it.
type Failure struct {
	Doing string // the operation, with the file's name
	Err   error
}

func (f *Failure) Error() string { return fmt.Sprintf("%s: %v", f.Doing, f.Err) }
func (f *Failure) Unwrap() error { return f.Err }

func (s *failstop) hasFailed() bool { return s.first.Load() != nil }

func (s *failstop) fail(doing string, err error) {
	failure := &Failure{Doing: doing, Err: err}
	if s.first.CompareAndSwap(nil, failure) {
		close(s.failed)
		s.onset(failure)
	}
}

// do runs a write. It remembers a failure without reporting it to the caller.
func (s *failstop) do(what, name string, write func() error) {
	if s.hasFailed() {
		return
	}
	if err := write(); err != nil {
		s.fail(what+" "+name, err)
	}
}

// patiently is do for operations without side effects when a shortage stops them.
func (s *failstop) patiently(what, name string, write func() error) {
	s.do(what, name, func() error { return s.short.patiently(what, name, write) })
}

// open returns the file that create returns or, after a failure, a file that discards all writes.
func (s *failstop) open(what, name string, create func() (vfs.File, error)) (vfs.File, error) {
	var file vfs.File
	s.patiently(what, name, func() (err error) {
		file, err = create()
		return err
	})
	if file == nil {
		return &lostFile{name: name}, nil
	}
	if strings.HasSuffix(name, ".log") {
		file = s.withRoom(file, name)
	}
	return &failstopFile{File: file, stop: s, name: name, table: isTable(name)}, nil
}

// Open opens a file for reading. On a shortage of descriptors it waits, because the error would fail a compaction permanently.
func (s *failstop) Open(name string, opts ...vfs.OpenOption) (file vfs.File, err error) {
	err = s.short.patiently("open", name, func() (err error) {
		file, err = s.FS.Open(name, opts...)
		return err
	})
	return file, err
}

// Create makes the names in a directory durable before it creates a manifest marker there. Pebble syncs the directory only once, after creating both
// the manifest and the marker that names it: after a power cut in between, the marker could exist without the manifest.
func (s *failstop) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(s.PathBase(name), "marker.manifest.") {
		if err := SyncDir(s, s.PathDir(name)); err != nil {
			return nil, err
		}
	}
	file, err := s.open("create", name, func() (vfs.File, error) { return s.FS.Create(name, category) })
	if f, ok := file.(*failstopFile); ok && f.table && category == flushing {
		pace := NewPace(s.short.closing, flushRests)
		f.pace = &pace
	}
	return file, err
}

const (
	flushing = "pebble-memtable-flush" // the category of tables that a flush writes
	// flushRests is short enough for flushes of full memory tables to keep up with 40 MB/s.
	flushRests = 300 * time.Millisecond
)

func (s *failstop) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return s.open("open", name, func() (vfs.File, error) { return s.FS.OpenReadWrite(name, category, opts...) })
}

func (s *failstop) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	renamed := false
	return s.open("reuse "+oldname+" as", newname, func() (vfs.File, error) {
		if renamed {
			return s.FS.OpenReadWrite(newname, category)
		}
		file, err := s.FS.ReuseForWrite(oldname, newname, category)
		if err != nil && IsShortage(err) { // it renames before it opens
			_, statErr := s.FS.Stat(newname)
			renamed = statErr == nil
		}
		return file, err
	})
}

// OpenDir returns a directory, whose Sync makes renames and new names durable.
func (s *failstop) OpenDir(name string) (dir vfs.File, err error) {
	err = s.short.patiently("open directory", name, func() (err error) {
		dir, err = s.FS.OpenDir(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &failstopFile{File: dir, stop: s, name: name}, nil
}

func (s *failstop) Link(oldname, newname string) error {
	s.patiently("link "+oldname+" to", newname, func() error { return s.FS.Link(oldname, newname) })
	return nil
}

func (s *failstop) Rename(oldname, newname string) error {
	s.patiently("rename "+oldname+" to", newname, func() error { return s.FS.Rename(oldname, newname) })
	return nil
}

func (s *failstop) MkdirAll(dir string, perm os.FileMode) error {
	s.patiently("make directory", dir, func() error { return s.FS.MkdirAll(dir, perm) })
	return nil
}

// Remove returns its errors, because an extra file does no harm, and Pebble only logs them. It rests after removing a table, because the file system
// delays the journal's next sync while it frees the blocks.
func (s *failstop) Remove(name string) error {
	if s.hasFailed() || strings.HasSuffix(name, ".log") && s.keepLog(name) {
		return nil
	}
	if isTable(name) {
		pace := NewPace(s.short.closing, longest)
		defer pace.Rest()
	}
	return s.FS.Remove(name)
}

func isTable(name string) bool { return strings.HasSuffix(name, ".sst") }

// keepLog reports whether a log must be kept for now. When Pebble opens a database, it removes the old log, whose content is in tables by then,
// before it creates the next one. If the process ended in between, the newest log known to be on disk would be missing: checkTail.
func (s *failstop) keepLog(name string) bool {
	s.oldLogs.Lock()
	defer s.oldLogs.Unlock()
	if !s.oldLogs.opened {
		s.oldLogs.names = append(s.oldLogs.names, name)
	}
	return !s.oldLogs.opened
}

// removeOldLogs is called when the database is open.
func (s *failstop) removeOldLogs() {
	s.oldLogs.Lock()
	s.oldLogs.opened = true
	names := s.oldLogs.names
	s.oldLogs.names = nil
	s.oldLogs.Unlock()
	for _, name := range names {
		_ = s.Remove(name) // the next opening removes what is left
	}
}

func (s *failstop) RemoveAll(name string) error {
	if s.hasFailed() {
		return nil
	}
	return s.FS.RemoveAll(name)
}

func (s *failstop) Unwrap() vfs.FS { return s.FS }

type failstopFile struct {
	vfs.File
	stop  *failstop
	name  string
	table bool  // nothing refers to the file before it is complete and synced
	pace  *Pace // of a flush; nil: none
}

func (f *failstopFile) Write(p []byte) (int, error) {
	rest := p
	write := func() error {
		n, err := f.File.Write(rest)
		rest = rest[min(max(n, 0), len(rest)):]
		return err
	}
	if f.table {
		f.stop.patiently("write", f.name, write)
		if f.pace != nil {
			f.pace.Rest()
		}
	} else {
		f.stop.do("write", f.name, write)
	}
	return len(p), nil
}

func (f *failstopFile) WriteAt(p []byte, offset int64) (int, error) {
	f.stop.do("write", f.name, func() error { _, err := f.File.WriteAt(p, offset); return err })
	return len(p), nil
}

func (f *failstopFile) Sync() error {
	f.stop.do("sync", f.name, f.File.Sync)
	return nil
}

func (f *failstopFile) SyncData() error {
	f.stop.do("sync", f.name, f.File.SyncData)
	return nil
}

func (f *failstopFile) SyncTo(length int64) (fullSync bool, err error) {
	f.stop.do("sync", f.name, func() (err error) {
		fullSync, err = f.File.SyncTo(length)
		return err
	})
	return fullSync, nil
}

// Preallocate only makes later writes faster, so its failure is ignored; that of a later write is not.
func (f *failstopFile) Preallocate(offset, length int64) error {
	if f.stop.hasFailed() {
		return nil
	}
	return f.File.Preallocate(offset, length)
}

func (f *failstopFile) Close() error {
	if err := f.File.Close(); err != nil {
		f.stop.fail("close "+f.name, err)
	}
	return nil
}

// lostFile stands in for a file that was to be created after a failure.
type lostFile struct {
	name string
	size atomic.Int64
}

var errLost = errors.New("the file was never written: the database had failed before")

func (f *lostFile) Close() error                           { return nil }
func (f *lostFile) Read([]byte) (int, error)               { return 0, errLost }
func (f *lostFile) ReadAt([]byte, int64) (int, error)      { return 0, errLost }
func (f *lostFile) Write(p []byte) (int, error)            { f.size.Add(int64(len(p))); return len(p), nil }
func (f *lostFile) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (f *lostFile) Preallocate(int64, int64) error         { return nil }
func (f *lostFile) Sync() error                            { return nil }
func (f *lostFile) SyncTo(int64) (bool, error)             { return false, nil }
func (f *lostFile) SyncData() error                        { return nil }
func (f *lostFile) Prefetch(int64, int64) error            { return nil }
func (f *lostFile) Fd() uintptr                            { return vfs.InvalidFd }
func (f *lostFile) Stat() (vfs.FileInfo, error)            { return lostInfo{f}, nil }

type lostInfo struct{ file *lostFile }

func (i lostInfo) Name() string           { return i.file.name }
func (i lostInfo) Size() int64            { return i.file.size.Load() }
func (i lostInfo) Mode() fs.FileMode      { return 0o600 }
func (i lostInfo) ModTime() time.Time     { return time.Time{} }
func (i lostInfo) IsDir() bool            { return false }
func (i lostInfo) Sys() any               { return nil }
func (i lostInfo) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }

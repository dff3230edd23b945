// Package embeddb opens Pebble databases with the guarantees that Muster needs: one owner whose name a second process can read, an error
// where Pebble would end the process, a damaged log refused instead of truncated, and logs that go to slog.
package embeddb

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Format is the version of Pebble's own files. A newer Pebble can read it. Raise it deliberately, because an older Muster cannot read the
// result.
const Format = pebble.FormatWALSyncChunks

// Config says where and for whom a database is opened.
type Config struct {
	Dir     string
	FS      vfs.FS       // nil: the operating system's
	Logger  *slog.Logger // nil: nothing is logged
	Synced  LogPosition  // up to here, the log is known to be on disk
	CutTail bool         // truncate a log whose end is lost where it becomes unreadable, and keep a copy next to the directory
	// OnDamage is called with damage that a read or a background job found in a table. It must not block. nil: damage fails the database.
	OnDamage func(*Damaged)
	Program  string // identifies the holder of the directory to another process, such as "muster serve"
}

// DB is an open database. After a failure, writes may seem to succeed: only Err tells.
type DB struct {
	engine
	dir   string
	stop  *failstop
	lock  *pebble.Lock
	tail  Tail
	close func() error

	life struct {
		sync.Mutex
		closed bool
		users  sync.WaitGroup // Add only with the mutex held and not closed
	}
}

// ErrClosed is the error of Use after Close.
var ErrClosed = errors.New("database is closed")

// Damaged is the error of a stored file that was once complete and cannot be read any more. It names the location.
type Damaged struct {
	File   string
	Offset int64 // in File; negative if only the file is known
	Tail   bool  // only the newest writes are lost: Config.CutTail opens the rest
	Err    error
}

func (e *Damaged) Error() string {
	return fmt.Sprintf("%s is damaged: %v", e.Place(), e.Err)
}

// Place returns the file and, if known, the position in it.
func (e *Damaged) Place() string {
	if e.Offset < 0 {
		return e.File
	}
	return fmt.Sprintf("%s, byte %d", e.File, e.Offset)
}

func (e *Damaged) Unwrap() error { return e.Err }

// Open opens the database in config.Dir and creates the directory if necessary. tune sets the options for its use (cache, tables,
// levels); this package overrides the options that it sets itself. If another process has the directory open, the error is *InUse; if the
// database is damaged, it is *Damaged.
func Open(config Config, tune func(*pebble.Options)) (*DB, error) {
	files := config.FS
	dir := config.Dir
	if files == nil {
		files = vfs.Default
		// Use one spelling per directory, because locks within a process are distinguished by name.
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		dir = absolute
	}
	log := config.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if err := MakeDir(files, dir); err != nil {
		return nil, err
	}
	if config.FS == nil {
		resolved, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return nil, err
		}
		dir = resolved
	}
	lock, err := hold(files, dir, config.Program)
	if err != nil {
		return nil, err
	}
	db, err := open(files, dir, log, lock, config, tune)
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	return db, nil
}

// MakeDir makes a directory with its missing parents and syncs their names. A synced file is lost in a power cut if the name of a
// directory above it was not synced. Pebble syncs only the names that it creates itself.
func MakeDir(files vfs.FS, dir string) error {
	made := []string{dir}
	for {
		top := made[len(made)-1]
		if _, err := files.Stat(top); err == nil || files.PathDir(top) == top {
			break
		}
		made = append(made, files.PathDir(top))
	}
	if err := files.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range made {
		// A directory that this user may not read cannot be synced; it is left to the file system.
		if err := SyncDir(files, files.PathDir(name)); err != nil && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("make directory %s: %w", dir, err)
		}
	}
	return nil
}

// SyncDir makes the entries of a directory durable.
func SyncDir(files vfs.FS, dir string) error {
	d, err := files.OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Hold prevents other processes from opening the database in dir until the lock is closed. If it is open already, the error is *InUse.
func Hold(files vfs.FS, dir, program string) (io.Closer, error) {
	if files == nil {
		files = vfs.Default
	}
	lock, err := hold(files, dir, program)
	if err != nil {
		return nil, err
	}
	return held(sync.OnceValue(lock.Close)), nil
}

type held func() error

func (h held) Close() error { return h() }

// Exists reports whether there is a database in dir. It changes nothing.
func Exists(files vfs.FS, dir string) (bool, error) {
	if files == nil {
		files = vfs.Default
	}
	found, err := pebble.Peek(dir, files)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil && pebble.IsCorruptionError(err):
		return true, nil // opening it reports the error
	case err != nil:
		return false, err
	}
	return found.Exists, nil
}

func open(files vfs.FS, dir string, log *slog.Logger, lock *pebble.Lock, config Config, tune func(*pebble.Options)) (*DB, error) {
	tail, err := checkTail(files, dir, config.Synced)
	if lost, ok := errors.AsType[*Damaged](err); ok && lost.Tail && config.CutTail {
		err = cutTail(files, dir, tail)
	}
	if err == nil {
		err = checkManifest(files, dir)
	}
	if err != nil {
		return nil, err
	}
	short := &shortages{dir: dir, log: log, closing: make(chan struct{})}
	short.giveUp = sync.OnceFunc(func() { close(short.closing) })
	stop := newFailstop(files, short, func(f *Failure) {
		log.Error("the database failed and accepts no more writes", "directory", dir, "operation", f.Doing, "error", f.Err)
	})
	options := &pebble.Options{}
	tune(options)
	options.FS = stop
	options.Lock = lock
	options.Logger = logger{log: log, stop: stop}
	options.EventListener = events(log, stop, config.OnDamage)
	options.FormatMajorVersion = Format
	options.Experimental.CompactionScheduler = &compactions{crowd: 2 * cmp.Or(options.L0CompactionThreshold, 4), stop: short.closing}
	// A writer that waited for a compaction would wait forever if compactions fail. Flushes only write, and operations that only write
	// always end (failstop).
	options.L0StopWritesThreshold = 1 << 20

	opened, err := openRecovered(dir, options)
	db := &DB{engine: pebbleDB{opened}, dir: dir, stop: stop, lock: lock, tail: tail}
	db.close = sync.OnceValue(db.closeOnce)
	if err == nil && db.Err() != nil {
		err = db.Err()
		if closeErr := opened.Close(); closeErr != nil {
			log.Debug("the database could not be closed after it failed to open", "error", closeErr)
		}
	}
	if err != nil {
		if pebble.IsCorruptionError(err) || errors.Is(err, fs.ErrNotExist) { // a table named in the manifest may be missing
			return nil, &Damaged{File: dir, Offset: -1, Err: err}
		}
		return nil, err
	}
	short.opened.Store(true)
	stop.removeOldLogs()
	return db, nil
}

// openRecovered turns the panics of Pebble's recovery on broken databases into errors.
func openRecovered(dir string, options *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = &Damaged{File: dir, Offset: -1, Err: fmt.Errorf("%v", reason)}
		}
	}()
	return pebble.Open(dir, options)
}

// Err returns the first failure, or nil while all writes are as durable as Pebble claims. A write counts only if Err is nil afterwards.
func (db *DB) Err() error {
	if failure := db.stop.first.Load(); failure != nil {
		return failure
	}
	return nil
}

// Failed is closed with the first failure, which Err then returns.
func (db *DB) Failed() <-chan struct{} { return db.stop.failed }

// Explain returns why a read failed: err itself, unless a write had failed before. In that case Pebble misses data that it believes to
// have written, and reports that as corruption.
func (db *DB) Explain(err error) error {
	if err == nil {
		return nil
	}
	failure := db.Err()
	if _, isDamage := errors.AsType[*Damaged](failure); failure == nil || isDamage {
		return err
	}
	return failure
}

// FreeSpace returns how many bytes may still be written to the database's disk; ok is false if the system does not report it.
func (db *DB) FreeSpace() (bytes uint64, ok bool) {
	usage, err := db.stop.FS.GetDiskUsage(db.dir)
	return usage.AvailBytes, err == nil
}

// FlushAll makes everything that was applied durable. Unlike Flush, it does not wait for a flush that can no longer end.
func (db *DB) FlushAll() error {
	flushed, err := db.AsyncFlush()
	if err == nil {
		select {
		case <-flushed:
		case <-db.stop.failed:
		}
	}
	if failure := db.Err(); failure != nil {
		return failure
	}
	return err
}

// Use keeps the database open until done is called. It fails if the database is closed or has failed. An owner that closes the database
// only after its last use does not need Use.
func (db *DB) Use() (done func(), err error) {
	db.life.Lock()
	defer db.life.Unlock()
	if db.life.closed {
		return nil, ErrClosed
	}
	if err := db.Err(); err != nil {
		return nil, err
	}
	db.life.users.Add(1)
	return db.life.users.Done, nil
}

// Close waits for the users of the database and releases the directory. After a failure it leaves the disk unchanged. Close all iterators
// first.
func (db *DB) Close() error { return db.close() }

func (db *DB) closeOnce() error {
	db.life.Lock()
	db.life.closed = true
	db.life.Unlock()
	db.StopWaiting()
	db.life.users.Wait()
	err := db.engine.Close()
	if lockErr := db.lock.Close(); err == nil {
		err = lockErr
	}
	if failure := db.Err(); failure != nil {
		return failure
	}
	return err
}

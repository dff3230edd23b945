package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/atomicfile"
)

// partialSuffix is the suffix of a file that is still being written. Nothing reads such a file; the next backup to the same path replaces it.
const partialSuffix = ".partial"

// LeaveFree is how many bytes of a disk backups leave free, because it may be the service's disk, and the service needs the space more.
const LeaveFree = 256 << 20

// spaceEvery is how many bytes are written between two checks of the free space.
const spaceEvery = 4 << 20

// WriteFile writes a backup to a new file at a path that must not exist yet. write writes the contents. The file gets its name only once it is
// complete and durable. At least leave bytes of the disk stay free.
func WriteFile(ctx context.Context, path string, leave uint64, write func(io.Writer) (Summary, error)) (s Summary, err error) {
	if !filepath.IsAbs(path) {
		return s, fmt.Errorf("%s: want an absolute path", path)
	}
	if err := mustNotExist(path); err != nil {
		return s, err
	}
	partial := path + partialSuffix
	f, err := create(partial)
	if err != nil {
		return s, err
	}
	defer func() {
		if err != nil {
			if runtime.GOOS == "windows" { // it removes and renames no open file; elsewhere the lock is held until the name is free
				err = errors.Join(err, ignoreClosed(f.Close()))
			}
			err = errors.Join(err, os.Remove(partial), ignoreClosed(f.Close()))
		}
	}()
	if err := mustNotExist(path); err != nil { // another command may have finished meanwhile
		return s, err
	}
	out := &bounded{ctx: ctx, file: f, dir: filepath.Dir(path), leave: leave}
	if s, err = write(out); err != nil {
		return s, err
	}
	if err := f.Sync(); err != nil {
		return s, err
	}
	if runtime.GOOS == "windows" {
		if err := f.Close(); err != nil {
			return s, err
		}
	}
	if err := atomicfile.Rename(partial, path); err != nil {
		return s, err
	}
	_ = f.Close() // it is synced, or closed already
	return s, nil
}

func mustNotExist(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return fmt.Errorf("%s exists already: choose another name", path)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// create creates and locks a partial file. It replaces the file of a command that was killed, and refuses that of a command that still writes it.
func create(partial string) (*os.File, error) {
	busy := fmt.Errorf("another command is writing %s", partial)
	if runtime.GOOS == "windows" { // it does not remove a file that is open
		if err := os.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	} else if old, err := os.OpenFile(partial, os.O_RDWR, 0); err == nil { // to write, because network file systems lock no file that is only read
		defer old.Close()
		if !owns(old, partial) {
			return nil, busy
		}
		if err := os.Remove(partial); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, busy
	}
	if err == nil && !owns(f, partial) {
		f.Close()
		return nil, busy
	}
	return f, err
}

// owns locks a file and reports whether this command may then replace what has its name: only the holder of the lock removes or renames the file, so
// the name is another file's only if that happened before the lock.
func owns(f *os.File, name string) bool {
	if !hold(f) {
		return false
	}
	own, err := f.Stat()
	named, err2 := os.Lstat(name)
	return err == nil && err2 == nil && os.SameFile(own, named)
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// bounded aborts a backup when free space runs short, because the journal may need the rest, or when ctx ends.
type bounded struct {
	ctx   context.Context
	file  *os.File
	dir   string
	leave uint64
	until int // bytes until the next check
}

func (b *bounded) Write(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if b.until -= len(p); b.until <= 0 {
		b.until = spaceEvery
		usage, err := vfs.Default.GetDiskUsage(b.dir)
		if err == nil && usage.AvailBytes < b.leave+spaceEvery {
			return 0, fmt.Errorf("no space left for the backup: %d MiB are free on the disk of %s, and %d MiB must stay free", usage.AvailBytes>>20, b.dir, b.leave>>20)
		}
	}
	return b.file.Write(p)
}

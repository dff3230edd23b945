package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/domain"
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
		return s, domain.Refuse(domain.Invalid, "%s: want an absolute path", path)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = domain.Refuse(domain.Conflict, "%s exists already: choose another name", path)
		}
		return s, err
	}
	partial := path + partialSuffix
	if err := os.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return s, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreClosed(f.Close()), os.Remove(partial))
		}
	}()
	out := &bounded{ctx: ctx, file: f, dir: filepath.Dir(path), leave: leave}
	if s, err = write(out); err != nil {
		return s, err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return s, err
	}
	return s, atomicfile.Rename(partial, path)
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
			return 0, domain.Refuse(domain.Overloaded, "no space left for the backup: %d MiB are free on the disk of %s, and %d MiB must stay free", usage.AvailBytes>>20, b.dir, b.leave>>20)
		}
	}
	return b.file.Write(p)
}

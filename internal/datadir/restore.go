package datadir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
	archivepebble "github.com/musterhq/muster/internal/archive/pebble"
	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/identity"
	journalpebble "github.com/musterhq/muster/internal/journal/pebble"
)

const (
	restoreRecords = 16 << 10 // records stored in the archive at a time
	restoreBytes   = 16 << 20 // or this many bytes
)

// Unfinished is the error for a directory whose restore was interrupted.
type Unfinished struct{ Dir string }

func (e *Unfinished) Error() string {
	return fmt.Sprintf("%s contains only a part of a backup, because `muster restore` was interrupted: run it again, or remove the directory", e.Dir)
}

// CheckFinished returns an Unfinished if a directory contains an interrupted restore.
func CheckFinished(dir string) error {
	_, err := readPending(dir)
	return err
}

// Restore creates the data directory of a single machine from a backup. It opens and reads the backup twice, because it checks all of it before it
// writes anything. The directory must be empty, or contain an interrupted restore. It becomes a new installation with the secret of the one in the
// backup: parts of one do not fit the other.
func Restore(ctx context.Context, o Options, open func() (io.ReadCloser, error)) (s backup.Summary, state *cell.Cell, err error) {
	if _, err := emptyForRestore(o.Dir); err != nil { // before a large backup is read, and before the lock creates its file in an unrelated directory
		return s, nil, err
	}
	first, err := open()
	if err != nil {
		return s, nil, err
	}
	s, state, err = backup.Verify(first, cell.DefaultConfig(), o.Key)
	if err := errors.Join(err, first.Close()); err != nil {
		return s, nil, err
	}
	from, err := open()
	if err != nil {
		return s, nil, err
	}
	defer from.Close()
	r, err := backup.NewReader(from, o.Key)
	if err != nil {
		return s, nil, err
	}
	if err := atomicfile.MakeDir(o.Dir, 0o700); err != nil {
		return s, nil, fmt.Errorf("data directory: %w", err)
	}
	unlock, err := identity.LockDir(o.Dir)
	if err != nil {
		return s, nil, err
	}
	defer unlock()
	if err := clearForRestore(o.Dir); err != nil {
		return s, nil, err
	}
	p := &pending{Format: pendingFormat, ID: uuid.New(), Restores: true}
	if err := p.write(o.Dir); err != nil {
		return s, nil, err
	}
	d := &Dir{options: o, log: o.Log}
	if err := d.restore(ctx, r, p.ID); err != nil {
		return s, nil, fmt.Errorf("restore %s: %w", o.Dir, err)
	}
	return s, state, removePending(o.Dir)
}

// clearForRestore removes the files of an interrupted restore, and refuses any others.
func clearForRestore(dir string) error {
	unfinished, err := emptyForRestore(dir)
	if err != nil || !unfinished {
		return err
	}
	d := &Dir{options: Options{Dir: dir}}
	return errors.Join(os.RemoveAll(d.path(journalDir)), os.RemoveAll(d.path(archiveDir)), os.RemoveAll(d.path(string(Secret))))
}

// emptyForRestore refuses a directory that has anything but the files of an interrupted restore.
func emptyForRestore(dir string) (unfinished bool, err error) {
	_, err = readPending(dir)
	if _, unfinished := errors.AsType[*Unfinished](err); unfinished {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	there, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, x := range there {
		// A restore that was killed while it wrote its first file leaves that under a temporary name.
		if name := x.Name(); name != identity.LockFile && name != "lost+found" && !atomicfile.IsTemp(name, pendingFile) {
			return false, fmt.Errorf("%s is not empty: it contains %s. A backup is restored into an empty directory", dir, name)
		}
	}
	return false, nil
}

func (d *Dir) restore(ctx context.Context, r *backup.Reader, id uuid.UUID) (err error) {
	if d.Journal, err = journalpebble.Create(d.journalOptions(), id, r.Head.Entry, func(w io.Writer) error {
		_, err := io.Copy(w, contextReader{ctx, r.State()})
		return err
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if d.Archive, err = archivepebble.Open(d.archiveOptions()); err != nil {
		return err
	}
	d.Archive.StopWaiting() // a person waits for the command, so a full disk must end it
	if err := d.restoreRecords(ctx, r); err != nil {
		return err
	}
	if _, err := r.End(); err != nil {
		return err
	}
	if err := d.Archive.SetInstallation(id, archive.Mark{Journal: r.Head.Entry, Forgotten: r.Head.Forgotten}); err != nil {
		return err
	}
	return r.Secret.Write(d.options.Dir, id, d.options.Key)
}

func (d *Dir) restoreRecords(ctx context.Context, r *backup.Reader) error {
	var some []archive.Record
	size := 0
	put := func() error {
		err := d.Archive.Put(ctx, some)
		some, size = some[:0], 0
		return err
	}
	for record, err := range r.Records() {
		if err != nil {
			return err
		}
		some = append(some, record)
		if size += len(record.Data); len(some) == restoreRecords || size >= restoreBytes {
			if err := put(); err != nil {
				return err
			}
		}
	}
	return put()
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

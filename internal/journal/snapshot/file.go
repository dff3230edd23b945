package snapshot

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/journal"
)

// syncBytes is how much unsynced data of a snapshot may accumulate. A single sync of hundreds of megabytes would delay the syncs of appends.
const syncBytes = 1 << 20

// WriteFile creates a file with what fill writes, and syncs it. After an error, the caller removes the file.
func WriteFile(files vfs.FS, path string, fill func(io.Writer) error) (err error) {
	file, err := files.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	synced := vfs.NewSyncingFile(file, vfs.SyncingFileOptions{BytesPerSync: syncBytes})
	defer func() {
		if closeErr := synced.Close(); err == nil {
			err = closeErr
		}
	}()
	if err := fill(synced); err != nil {
		return err
	}
	return synced.Sync()
}

// File is the payload of a snapshot file. Its errors name the file; if the bytes are not a complete snapshot, the error is a
// *journal.Damaged.
type File struct {
	path   string
	file   io.ReadCloser
	blocks *Reader
}

// OpenFile reads the header, as NewReader does. It closes the file if that fails.
func OpenFile(path string, file io.ReadCloser, at uint64) (*File, error) {
	f := &File{path: path, file: file}
	var err error
	if f.blocks, err = NewReader(file, at); err != nil {
		_ = file.Close()
		return nil, f.failed(err)
	}
	return f, nil
}

// Installation returns Reader.Installation.
func (f *File) Installation() uuid.UUID { return f.blocks.Installation() }

func (f *File) Read(p []byte) (int, error) {
	n, err := f.blocks.Read(p)
	if err != nil && err != io.EOF {
		err = f.failed(err)
	}
	return n, err
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

func (f *File) failed(err error) error {
	if errors.Is(err, ErrDamaged) {
		return &journal.Damaged{File: f.path, Err: err}
	}
	return fmt.Errorf("read snapshot %s: %w", f.path, err)
}

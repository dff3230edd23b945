package snapshot

import (
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/journal"
)

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

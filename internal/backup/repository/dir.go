package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/backup"
)

// Dir is a Store in a directory.
type Dir struct {
	Path string

	leave uint64 // bytes of the disk to leave free; tests change it
}

// NewDir returns the store of a directory, which need not exist yet.
func NewDir(path string) *Dir { return &Dir{Path: path, leave: backup.LeaveFree} }

// String implements Store.
func (d *Dir) String() string { return d.Path }

func (d *Dir) path(name string) string { return filepath.Join(d.Path, filepath.FromSlash(name)) }

// Put implements Store.
func (d *Dir) Put(ctx context.Context, name string, content []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path := d.path(name)
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		if err := atomicfile.MakeDir(filepath.Dir(path), 0o700); err != nil {
			return err
		}
	}
	if usage, err := vfs.Default.GetDiskUsage(d.Path); err == nil && usage.AvailBytes < d.leave+uint64(len(content)) {
		return fmt.Errorf("no space left for the backup: %d MiB are free on the disk of %s, and %d MiB must stay free", usage.AvailBytes>>20, d.Path, d.leave>>20)
	}
	return atomicfile.Write(path, content, 0o600)
}

// Get implements Store.
func (d *Dir) Get(ctx context.Context, name string, most int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = damaged("%s has more than %d bytes", d.path(name), most)
	}
	return content, err
}

// List implements Store. The list includes files that a killed program was writing.
func (d *Dir) List(ctx context.Context, below string) (all []Object, now time.Time, err error) {
	err = filepath.WalkDir(d.path(below), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile, or nothing was stored yet
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(d.Path, path)
		all = append(all, Object{filepath.ToSlash(name), info.Size(), info.ModTime()})
		return errors.Join(err, ctx.Err())
	})
	return all, time.Now(), err
}

// Delete implements Store.
func (d *Dir) Delete(_ context.Context, name string) error {
	if err := os.Remove(d.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// foreign returns the name of a file in the directory that no repository has; empty: none.
func (d *Dir) foreign() (string, error) {
	there, err := os.ReadDir(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	for _, x := range there {
		switch name := x.Name(); {
		case name == "lost+found", strings.HasPrefix(name, "."+marker), name+"/" == objectsBelow, name+"/" == manifestsBelow:
		default:
			return name, nil
		}
	}
	return "", err
}

package objects

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/musterhq/muster/internal/atomicfile"
)

// stepBytes is how much of an upload is counted at a time; after each step the quota and the disk are checked again.
const stepBytes = 8 << 20

// Stage writes a file of an upload and returns its size. It replaces a file with the same name once all of it is on disk. After an error of
// r, nothing is left. The names must be safe as file names.
func (s *Store) Stage(upload, name string, r io.Reader) (size int64, err error) {
	dir := filepath.Join(s.Dir, uploadsDir, upload)
	if err := atomicfile.MakeDir(dir, 0o700); err != nil {
		return 0, full(err)
	}
	temp, err := os.CreateTemp(dir, temporary)
	if err != nil {
		return 0, full(err)
	}
	taken, named := int64(0), false
	defer func() {
		if !named {
			temp.Close()
			os.Remove(temp.Name())
			s.give(taken)
			err = full(err)
		}
	}()
	for {
		if err := s.take(stepBytes); err != nil {
			return 0, err
		}
		taken += stepBytes
		n, err := io.CopyN(temp, r, stepBytes)
		size += n
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	if err := temp.Sync(); err != nil {
		return 0, err
	}
	if err := temp.Close(); err != nil {
		return 0, err
	}
	replaced, err := s.rename(temp.Name(), filepath.Join(dir, name))
	if err != nil {
		return 0, err
	}
	named = true
	s.give(taken - size + replaced)
	return size, atomicfile.SyncDir(dir)
}

// rename returns the size of the file that was replaced.
func (s *Store) rename(from, to string) (replaced int64, err error) {
	s.names.Lock()
	defer s.names.Unlock()
	if info, err := os.Stat(to); err == nil {
		replaced = info.Size()
	}
	return replaced, os.Rename(from, to)
}

// RenameStaged renames a file of an upload, and replaces a file that has the new name.
func (s *Store) RenameStaged(upload, from, to string) error {
	dir := filepath.Join(s.Dir, uploadsDir, upload)
	replaced, err := s.rename(filepath.Join(dir, from), filepath.Join(dir, to))
	if err != nil {
		return err
	}
	s.give(replaced)
	return atomicfile.SyncDir(dir)
}

// StagedSize returns the size of a file of an upload, in bytes.
func (s *Store) StagedSize(upload, name string) (int64, error) {
	info, err := os.Stat(filepath.Join(s.Dir, uploadsDir, upload, name))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Staged opens a file of an upload.
func (s *Store) Staged(upload, name string) (*os.File, error) {
	return os.Open(filepath.Join(s.Dir, uploadsDir, upload, name))
}

// StagedFiles lists the files of an upload that are complete; none if there is no such upload.
func (s *Store) StagedFiles(upload string) (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(s.Dir, uploadsDir, upload))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), temporary) {
			names = append(names, entry.Name())
		}
	}
	return names, err
}

// Uploads lists the uploads that have files.
func (s *Store) Uploads() (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(s.Dir, uploadsDir))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}

// RemoveStaged removes files of an upload. Missing files are not an error.
func (s *Store) RemoveStaged(upload string, names ...string) (bytes int64, err error) {
	for _, name := range names {
		path := filepath.Join(s.Dir, uploadsDir, upload, name)
		info, statErr := os.Stat(path)
		removeErr := os.Remove(path)
		switch {
		case statErr == nil && removeErr == nil:
			bytes += info.Size()
		case !errors.Is(removeErr, fs.ErrNotExist):
			err = errors.Join(err, removeErr)
		}
	}
	s.give(bytes)
	return bytes, err
}

// RemoveUpload removes an upload with all of its files. A file that a client is writing stays, and the upload's directory with it.
func (s *Store) RemoveUpload(upload string) (bytes int64, err error) {
	names, err := s.StagedFiles(upload)
	if err != nil {
		return 0, err
	}
	bytes, err = s.RemoveStaged(upload, names...)
	if removeErr := os.Remove(filepath.Join(s.Dir, uploadsDir, upload)); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) && err == nil {
		s.Log.Debug("upload keeps its directory", "build", upload, "error", removeErr)
	}
	return bytes, err
}

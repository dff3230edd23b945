package output

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Keep bounds the output of ended processes on a host.
type Keep struct {
	Bytes int64         // of all ended processes together
	Count int           // of ended processes
	Age   time.Duration // since the last byte
}

// DefaultKeep returns a limit of a week, 5 GiB and 1,000 processes.
func DefaultKeep() Keep { return Keep{Bytes: 5 << 30, Count: 1000, Age: 7 * 24 * time.Hour} }

// Prune removes the directories of ended processes below root that exceed the limits, the oldest first. runs reports whether a directory belongs to a
// running process.
func Prune(root string, keep Keep, runs func(dir string) bool, now time.Time) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	type ended struct {
		path  string
		bytes int64
		last  time.Time
	}
	var list []ended
	for _, entry := range entries {
		if !entry.IsDir() || runs(entry.Name()) {
			continue
		}
		e := ended{path: filepath.Join(root, entry.Name())}
		// Only a directory with files of this package belongs to a process; others below root are not touched.
		files, err := filepath.Glob(filepath.Join(e.path, "output*.log"))
		if err != nil || len(files) == 0 {
			continue
		}
		e.bytes, e.last = measure(e.path)
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b ended) int { return b.last.Compare(a.last) }) // the newest first
	var bytes int64
	var errs []error
	for i, e := range list {
		bytes += e.bytes
		if i >= keep.Count || bytes > keep.Bytes || now.Sub(e.last) > keep.Age {
			errs = append(errs, os.RemoveAll(e.path))
		}
	}
	return errors.Join(errs...)
}

// measure returns the size of all files below a directory, and the time of the latest change.
func measure(dir string) (bytes int64, last time.Time) {
	filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err != nil {
			return nil // removed meanwhile
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
			if info.ModTime().After(last) {
				last = info.ModTime()
			}
		}
		return nil
	})
	return bytes, last
}

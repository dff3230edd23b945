package objects

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/internal/buildfiles"
)

// keepFor is how long content that no build needs is kept, because a client may be about to make a build of it.
const keepFor = 24 * time.Hour

// Swept counts what a sweep removed.
type Swept struct {
	Parts   int
	Uploads int
	Bytes   int64
}

// Sweep removes content that no build needs, and abandoned uploads, once they are older than keepFor. manifests returns those of all builds
// in use; it is called while no build can be made. A missing or damaged manifest protects nothing: its build cannot be fetched before it is
// pushed again.
func (s *Store) Sweep(now time.Time, manifests func() ([]buildfiles.Digest, error)) (swept Swept, err error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	roots, err := manifests()
	if err != nil {
		return swept, err
	}
	needed := map[buildfiles.Digest]struct{}{}
	for _, root := range roots {
		needed[root] = struct{}{}
		m, err := s.Manifest(root)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) {
			s.Log.Error("the manifest of a build is missing or damaged: hosts cannot fetch the build before it is pushed again", "manifest", root.String(), "error", err)
			continue
		}
		if err != nil {
			return swept, err // the disk has a problem, and removing content that it cannot show would make that worse
		}
		_ = m.Parts(func(p buildfiles.Part) error {
			needed[p.Digest] = struct{}{}
			return nil // so Parts returns nil, too
		})
	}
	before := now.Add(-keepFor)
	err = s.sweepParts(partsDir, needed, before, &swept)
	err = errors.Join(err, s.sweepParts(damagedDir, nil, before, &swept), s.sweepUploads(before, &swept))
	return swept, err
}

func (s *Store) sweepParts(below string, needed map[buildfiles.Digest]struct{}, before time.Time, swept *Swept) error {
	err := filepath.WalkDir(filepath.Join(s.Dir, below), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		d, err := buildfiles.ParseDigest(entry.Name())
		if err != nil {
			return nil // being written
		}
		if _, ok := needed[d]; ok {
			return nil
		}
		return s.sweepPart(path, d, before, swept)
	})
	if errors.Is(err, fs.ErrNotExist) { // no content was ever damaged
		return nil
	}
	return err
}

func (s *Store) sweepPart(path string, d buildfiles.Digest, before time.Time, swept *Swept) error {
	s.names.Lock()
	defer s.names.Unlock()
	info, err := os.Stat(path)
	if err != nil || info.ModTime().After(before) {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	s.mu.Lock()
	s.used -= info.Size()
	delete(s.verified, d)
	s.mu.Unlock()
	swept.Parts, swept.Bytes = swept.Parts+1, swept.Bytes+info.Size()
	return nil
}

// sweepUploads removes uploads to which nothing was written for keepFor.
func (s *Store) sweepUploads(before time.Time, swept *Swept) error {
	uploads, err := s.Uploads()
	for _, name := range uploads {
		info, statErr := os.Stat(filepath.Join(s.Dir, uploadsDir, name))
		if statErr != nil || info.ModTime().After(before) {
			continue // it is gone, or in use: a new file in it changes its time
		}
		removed, removeErr := s.RemoveUpload(name)
		err = errors.Join(err, removeErr)
		swept.Uploads, swept.Bytes = swept.Uploads+1, swept.Bytes+removed
	}
	return err
}

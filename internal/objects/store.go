// Package objects stores the parts of builds on disk by digest, and uploads until they are builds. Content is durable before it gets its name, is
// checked against its digest when it is read, and stays within a quota. Sweeps remove content that no build needs.
package objects

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/buildfiles"
	"github.com/musterhq/muster/internal/diskfull"
)

const (
	partsDir   = "parts"   // parts/ab/abcd…: content by digest
	uploadsDir = "uploads" // uploads/<build>/…: what clients have sent and is no build yet
	damagedDir = "damaged" // content that did not match its digest

	// temporary is the prefix of files that are being written. They are removed at the start.
	temporary = ".new-"
)

// Options configure a Store.
type Options struct {
	Dir     string
	Quota   int64 // bytes of all content, uploads included
	Reserve int64 // bytes of the disk that others need: while less is free, no more content is accepted
	Log     *slog.Logger
}

// Store is a directory of content. It can be used by any number of goroutines of a single process.
type Store struct {
	Options

	mu       sync.Mutex // also guards Quota and Reserve
	used     int64
	verified map[buildfiles.Digest]struct{} // since the start

	// sweeping is locked for reading while a build is made of parts, and for writing by a sweep.
	sweeping sync.RWMutex
	// names prevents a part from being swept between the time it is found and the time it is touched.
	names sync.Mutex
}

// Open opens the store in a directory, which it creates if necessary, and counts the existing content.
func Open(o Options) (*Store, error) {
	s := &Store{Options: o, verified: map[buildfiles.Digest]struct{}{}}
	for _, dir := range []string{partsDir, uploadsDir} {
		if err := atomicfile.MakeDir(filepath.Join(o.Dir, dir), 0o700); err != nil {
			return nil, fmt.Errorf("object store: %w", err)
		}
	}
	err := filepath.WalkDir(o.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if strings.HasPrefix(entry.Name(), temporary) {
			return os.Remove(path)
		}
		info, err := entry.Info()
		if err == nil {
			s.used += info.Size()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("object store: %w", err)
	}
	return s, nil
}

// FullError is the refusal of content for lack of space.
type FullError struct{ Reason string }

func (e *FullError) Error() string { return e.Reason }

// full wraps an error that means a full disk in a FullError, and returns others unchanged.
func full(err error) error {
	if diskfull.Is(err) {
		return &FullError{"the disk of the object store is full: " + err.Error()} // with the path
	}
	return err
}

// take reserves space for content before it is written.
func (s *Store) take(bytes int64) error {
	free := int64(-1)
	if usage, err := vfs.Default.GetDiskUsage(s.Dir); err == nil {
		free = int64(min(usage.AvailBytes, 1<<62))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.used+bytes > s.Quota:
		return &FullError{fmt.Sprintf("the object store holds %d of %d MiB (--builds-max): delete builds that no fleet uses, or raise the limit", s.used>>20, s.Quota>>20)}
	case free >= 0 && free-bytes < s.Reserve:
		return &FullError{fmt.Sprintf("the disk of the object store %s has %d MiB free; %d MiB of them are reserved", s.Dir, free>>20, s.Reserve>>20)}
	}
	s.used += bytes
	return nil
}

func (s *Store) give(bytes int64) {
	s.mu.Lock()
	s.used -= bytes
	s.mu.Unlock()
}

// SetLimits changes the quota and the reserve. Stored content stays, even beyond the quota.
func (s *Store) SetLimits(quota, reserve int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Quota, s.Reserve = quota, reserve
}

// Used returns how many bytes of content the store has, and its quota.
func (s *Store) Used() (used, quota int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.Quota
}

func (s *Store) pathOf(d buildfiles.Digest) string {
	name := d.String()
	return filepath.Join(s.Dir, partsDir, name[:2], name)
}

// Has reports whether the content of a digest is there. It then stays for keepFor at least, so that the client need not send it again.
func (s *Store) Has(d buildfiles.Digest) bool {
	s.names.Lock()
	defer s.names.Unlock()
	return s.touch(d) == nil
}

// HasPart is Has for a part of a build. Content of another size, such as content that the disk has truncated, counts as missing.
func (s *Store) HasPart(p buildfiles.Part) bool { return s.hasSize(p.Digest, p.Size) }

func (s *Store) hasSize(d buildfiles.Digest, size int64) bool {
	s.names.Lock()
	defer s.names.Unlock()
	info, err := os.Stat(s.pathOf(d))
	return err == nil && info.Size() == size && s.touch(d) == nil
}

// touch makes content count as new for sweeps.
func (s *Store) touch(d buildfiles.Digest) error {
	now := time.Now()
	return os.Chtimes(s.pathOf(d), now, now)
}

// WrongDigestError is the error for content that does not match its digest.
type WrongDigestError struct{ Want, Got buildfiles.Digest }

func (e *WrongDigestError) Error() string {
	return fmt.Sprintf("content has digest %s; want %s", e.Got, e.Want)
}

// Put stores content. The content is durable when Put returns; its name is durable once Commit has returned.
func (s *Store) Put(d buildfiles.Digest, content []byte) error {
	if got := buildfiles.DigestOf(content); got != d {
		return &WrongDigestError{d, got}
	}
	size := int64(len(content))
	if s.hasSize(d, size) {
		return nil
	}
	if err := s.take(size); err != nil {
		return err
	}
	freed, err := s.write(d, content)
	if err != nil {
		freed = size
	}
	s.give(freed)
	return full(err)
}

// write writes content. freed is the size of its duplicate if another caller has written the same content meanwhile, or of damaged content that it
// replaces.
func (s *Store) write(d buildfiles.Digest, content []byte) (freed int64, err error) {
	path := s.pathOf(d)
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return 0, err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), temporary)
	if err != nil {
		return 0, err
	}
	defer os.Remove(temp.Name()) // without effect once it has its name
	_, err = temp.Write(content)
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return 0, err
	}
	s.names.Lock()
	defer s.names.Unlock()
	if info, err := os.Stat(path); err == nil {
		if freed = info.Size(); freed == int64(len(content)) {
			return freed, s.touch(d)
		}
		s.Log.Error("part of a build had a wrong size on the disk: it is replaced", "digest", d.String(), "bytes", freed, "want", len(content))
	}
	return freed, os.Rename(temp.Name(), path)
}

// MissingError lists parts that a build needs and the store does not have.
type MissingError struct{ Digests []buildfiles.Digest }

func (e *MissingError) Error() string {
	return fmt.Sprintf("%d parts of the build are missing, the first is %s", len(e.Digests), e.Digests[0])
}

// Commit makes a build of parts. It calls record once all parts are durable, and no sweep removes any of them before record has returned. If parts
// are missing, it returns a *MissingError and does not call record.
func (s *Store) Commit(m *buildfiles.Manifest, record func(manifest buildfiles.Digest) error) error {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	manifest := buildfiles.DigestOf(text)
	if err := s.Put(manifest, text); err != nil {
		return err
	}
	s.sweeping.RLock()
	defer s.sweeping.RUnlock()
	missing, dirs := &MissingError{}, map[string]struct{}{filepath.Join(s.Dir, partsDir): {}, filepath.Dir(s.pathOf(manifest)): {}}
	if !s.Has(manifest) {
		missing.Digests = append(missing.Digests, manifest)
	}
	_ = m.Parts(func(p buildfiles.Part) error {
		if !s.HasPart(p) {
			missing.Digests = append(missing.Digests, p.Digest)
		}
		dirs[filepath.Dir(s.pathOf(p.Digest))] = struct{}{}
		return nil // so Parts returns nil, too
	})
	if len(missing.Digests) > 0 {
		return missing
	}
	for dir := range dirs {
		if err := atomicfile.SyncDir(dir); err != nil {
			return err
		}
	}
	return record(manifest)
}

// ErrDamaged is the error of content that has changed on the disk. It is moved aside, so it counts as missing from then on.
var ErrDamaged = errors.New("content on the disk does not match its digest")

// Open opens content for reading. The first time since the start, it checks the whole content against the digest. The error wraps fs.ErrNotExist if the
// store does not have it.
func (s *Store) Open(d buildfiles.Digest) (*os.File, error) {
	s.mu.Lock()
	_, verified := s.verified[d]
	s.mu.Unlock()
	if !verified {
		if _, err := s.Read(d); err != nil {
			return nil, err
		}
	}
	return os.Open(s.pathOf(d))
}

// Read returns content, and checks it against its digest.
func (s *Store) Read(d buildfiles.Digest) ([]byte, error) {
	file, err := os.Stat(s.pathOf(d))
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(s.pathOf(d))
	if err != nil {
		return nil, err
	}
	if buildfiles.DigestOf(content) != d {
		s.Log.Error("part of a build is damaged on the disk: it is moved aside; push the build again to replace it", "digest", d.String(), "to", filepath.Join(s.Dir, damagedDir))
		return nil, errors.Join(ErrDamaged, s.putAside(d, file))
	}
	s.mu.Lock()
	s.verified[d] = struct{}{}
	s.mu.Unlock()
	return content, nil
}

// putAside moves damaged content aside, unless it was replaced since it was read.
func (s *Store) putAside(d buildfiles.Digest, damaged fs.FileInfo) error {
	aside := filepath.Join(s.Dir, damagedDir)
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return err
	}
	s.names.Lock()
	defer s.names.Unlock()
	if now, err := os.Stat(s.pathOf(d)); err == nil && !os.SameFile(now, damaged) {
		return nil
	}
	to, earlier := filepath.Join(aside, d.String()), int64(0) // bytes of the same content that was damaged before, which this replaces
	if info, err := os.Stat(to); err == nil {
		earlier = info.Size()
	}
	err := os.Rename(s.pathOf(d), to)
	if errors.Is(err, fs.ErrNotExist) { // another reader was first
		return nil
	}
	if err == nil {
		s.give(earlier)
	}
	return err
}

// Manifest returns the manifest with a digest.
func (s *Store) Manifest(d buildfiles.Digest) (*buildfiles.Manifest, error) {
	text, err := s.Read(d)
	if err != nil {
		return nil, err
	}
	return buildfiles.ParseManifest(text)
}

// Package buildfetch fetches builds to a host. It verifies all content against its digest before a build gets its final name, reuses unchanged content of the host's other
// builds, and continues after an interruption.
package buildfetch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/buildfiles"
)

const (
	buildsDir    = "builds"    // builds/DIGEST: a complete build
	manifestsDir = "manifests" // manifests/DIGEST: the manifest of such a build
	unfinished   = ".new-"     // begins the name of an incomplete build
	leaving      = ".gone-"    // begins the name of a build that is being removed

	partsAtATime = 4
	attemptsMax  = 6 // in a row without a byte, for one request; refusals because of the service's load do not count
	// busyMax is how long a request may be refused because of the service's load, without a byte in between. Then these refusals count as attempts, too.
	busyMax = 10 * time.Minute
)

// Builds are the builds on a host, below one directory. One process at a time uses it.
type Builds struct {
	Dir    string
	Client *http.Client // nil: http.DefaultClient

	fetching sync.Mutex
	pause    func(ctx context.Context, doublings int) error // between attempts; nil: a second, doubled so many times
	remove   func(path string) error                        // nil: os.RemoveAll
}

// ErrTicket means that the service no longer accepts the URL. The service issues another one.
var ErrTicket = errors.New("the service refuses the URL of the build: its ticket has expired")

// Path returns the directory of a build after it was fetched.
func (b *Builds) Path(manifest buildfiles.Digest) string {
	return filepath.Join(b.Dir, buildsDir, manifest.String())
}

// Fetch returns the directory of a build, after fetching the content that the host lacks. from is the URL of its manifest, which the service issues. The next call
// continues an interrupted fetch. Concurrent calls wait for each other.
func (b *Builds) Fetch(ctx context.Context, from string, manifest buildfiles.Digest) (dir string, err error) {
	b.fetching.Lock()
	defer b.fetching.Unlock()
	dir = b.Path(manifest)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := atomicfile.MakeDir(filepath.Join(b.Dir, manifestsDir), 0o755); err != nil {
		return "", err
	}
	staging := filepath.Join(b.Dir, buildsDir, unfinished+manifest.String())
	if err := atomicfile.MakeDir(staging, 0o755); err != nil {
		return "", err
	}
	m, err := b.manifest(ctx, from, manifest)
	if err != nil {
		return "", fmt.Errorf("manifest of build %s: %w", manifest, err)
	}
	f := &fetch{Builds: b, from: from, known: b.known()}
	if f.root, err = os.OpenRoot(staging); err != nil {
		return "", err
	}
	defer f.root.Close()
	for i := range m.Files {
		if err := f.file(ctx, &m.Files[i]); err != nil {
			return "", fmt.Errorf("build %s: file %s: %w", manifest, m.Files[i].Path, err)
		}
	}
	if err := errors.Join(f.root.Close(), syncDirs(staging)); err != nil { // Windows renames no directory that is open
		return "", err
	}
	return dir, atomicfile.Rename(staging, dir)
}

// manifest reads a manifest from the disk or fetches it.
func (b *Builds) manifest(ctx context.Context, from string, digest buildfiles.Digest) (*buildfiles.Manifest, error) {
	at := filepath.Join(b.Dir, manifestsDir, digest.String())
	text, err := os.ReadFile(at)
	if err != nil || buildfiles.DigestOf(text) != digest {
		var got strings.Builder
		if err := b.get(ctx, from, digest, buildfiles.ManifestMax, func(p []byte, _ int64) error { _, err := got.Write(p); return err }); err != nil {
			return nil, err
		}
		text = []byte(got.String())
		if err := atomicfile.Write(at, text, 0o644); err != nil {
			return nil, err
		}
	}
	return buildfiles.ParseManifest(text)
}

// fetch is a build that is being fetched.
type fetch struct {
	*Builds
	from  string
	root  *os.Root // of the new build: nothing is written outside of it
	known known
}

// known locates content on this host.
type known struct {
	files map[fileKey]string
	parts map[buildfiles.Digest]place
}

type fileKey struct {
	digest     buildfiles.Digest
	executable bool
}

type place struct {
	path string
	at   int64
}

// known lists the content of the complete builds. The content is verified when it is used.
func (b *Builds) known() known {
	k := known{map[fileKey]string{}, map[buildfiles.Digest]place{}}
	all, _ := os.ReadDir(filepath.Join(b.Dir, manifestsDir)) // if this fails, everything is fetched
	for _, entry := range all {
		digest, err := buildfiles.ParseDigest(entry.Name())
		if err != nil {
			continue
		}
		dir := b.Path(digest)
		text, err := os.ReadFile(filepath.Join(b.Dir, manifestsDir, entry.Name()))
		if _, statErr := os.Stat(dir); err != nil || statErr != nil || buildfiles.DigestOf(text) != digest {
			continue
		}
		m, err := buildfiles.ParseManifest(text)
		if err != nil {
			continue
		}
		for _, f := range m.Files {
			name, at := filepath.Join(dir, filepath.FromSlash(f.Path)), int64(0)
			k.files[fileKey{f.Digest, f.Executable}] = name
			for _, p := range f.Parts {
				k.parts[p.Digest] = place{name, at}
				at += p.Size
			}
		}
	}
	return k
}

// file makes one file complete.
func (f *fetch) file(ctx context.Context, file *buildfiles.File) error {
	if dir := path.Dir(file.Path); dir != "." {
		if err := f.root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if f.link(file) {
		return nil
	}
	if _, ok := f.known.files[fileKey{file.Digest, file.Executable}]; ok {
		_ = f.root.Remove(file.Path) // an interrupted fetch may have linked it to a file that is now damaged
	}
	mode := fs.FileMode(0o644)
	if file.Executable {
		mode = 0o755
	}
	out, err := f.root.OpenFile(file.Path, os.O_RDWR|os.O_CREATE, mode)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := f.content(ctx, out, file); err != nil {
		return err
	}
	if err := out.Truncate(file.Size); err != nil {
		return err
	}
	if err := out.Chmod(mode); err != nil && filepath.Separator == '/' {
		return err
	}
	if got, err := digestAt(out, 0, file.Size); err != nil || got != file.Digest {
		return errors.Join(err, fmt.Errorf("it has digest %s; want %s", got, file.Digest))
	}
	return out.Sync()
}

// link hard-links the file to an equal one in another build, and reports whether that succeeded.
func (f *fetch) link(file *buildfiles.File) bool {
	old := f.known.files[fileKey{file.Digest, file.Executable}]
	if old == "" {
		return false
	}
	in, err := os.Open(old)
	if err != nil {
		return false
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || info.Size() != file.Size {
		return false
	}
	if got, err := digestAt(in, 0, file.Size); err != nil || got != file.Digest {
		return false
	}
	_ = f.root.Remove(file.Path) // of an interrupted fetch
	return os.Link(old, filepath.Join(f.root.Name(), filepath.FromSlash(file.Path))) == nil
}

// content writes the missing parts of the file, several concurrently.
func (f *fetch) content(ctx context.Context, out *os.File, file *buildfiles.File) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partsAtATime)
	at := int64(0)
	for _, p := range file.Parts {
		begin := at
		at += p.Size
		group.Go(func() error { return f.part(ctx, out, begin, p) })
	}
	return group.Wait()
}

func (f *fetch) part(ctx context.Context, out *os.File, begin int64, p buildfiles.Part) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if got, err := digestAt(out, begin, p.Size); err == nil && got == p.Digest {
		return nil // of an interrupted fetch
	}
	if f.copyKnown(out, begin, p) {
		return nil
	}
	at, err := partURL(f.from, p.Digest)
	if err != nil {
		return err
	}
	return f.get(ctx, at, p.Digest, p.Size, func(content []byte, offset int64) error {
		_, err := out.WriteAt(content, begin+offset)
		return err
	})
}

// copyKnown copies a part from another build, and reports whether its content was correct.
func (f *fetch) copyKnown(out *os.File, begin int64, p buildfiles.Part) bool {
	old, ok := f.known.parts[p.Digest]
	if !ok {
		return false
	}
	in, err := os.Open(old.path)
	if err != nil {
		return false
	}
	defer in.Close()
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(sum, io.NewOffsetWriter(out, begin)), io.NewSectionReader(in, old.at, p.Size))
	return err == nil && buildfiles.Digest(sum.Sum(nil)) == p.Digest
}

// digestAt returns the digest of a section; the error is io.ErrUnexpectedEOF if the file ends earlier.
func digestAt(r io.ReaderAt, at, size int64) (d buildfiles.Digest, err error) {
	sum := sha256.New()
	n, err := io.Copy(sum, io.NewSectionReader(r, at, size))
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	sum.Sum(d[:0])
	return d, err
}

// syncDirs makes the names in a directory and its subdirectories durable.
func syncDirs(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = errors.Join(os.Chmod(path, 0o755), atomicfile.SyncDir(path)) // regardless of the umask: server processes may run as another user
		}
		return err
	})
}

// Prune removes all builds except those that keep returns, including unfinished ones. keep must return each build that a process runs from, or will start from.
// It is called when no fetch is in progress, and none begins before Prune returns: a build that was complete by then, and has processes since, is not removed.
// If ok is false, nothing is removed.
func (b *Builds) Prune(keep func() (builds []buildfiles.Digest, ok bool)) error {
	b.fetching.Lock()
	defer b.fetching.Unlock()
	builds, ok := keep()
	if !ok {
		return nil
	}
	kept := map[string]bool{}
	for _, d := range builds {
		kept[d.String()] = true
	}
	var errs []error
	for _, below := range []string{buildsDir, manifestsDir} {
		entries, err := os.ReadDir(filepath.Join(b.Dir, below))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, entry := range entries {
			if !kept[strings.TrimPrefix(entry.Name(), unfinished)] {
				errs = append(errs, b.drop(filepath.Join(b.Dir, below), entry.Name()))
			}
		}
	}
	return errors.Join(errs...)
}

// drop removes a file or directory. It renames it first: an interruption must not leave a partial build under the name of a complete one.
func (b *Builds) drop(dir, name string) error {
	remove := b.remove
	if remove == nil {
		remove = os.RemoveAll
	}
	away := filepath.Join(dir, leaving+strings.TrimPrefix(name, leaving))
	if away != filepath.Join(dir, name) {
		if err := remove(away); err != nil { // left by an interruption
			return err
		}
		if err := atomicfile.Rename(filepath.Join(dir, name), away); err != nil {
			return err
		}
	}
	return remove(away)
}

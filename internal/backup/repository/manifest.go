package repository

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/backup"
)

const (
	format      = 1
	manifestMax = 256 << 20 // bytes
)

// Manifest lists the objects of a backup.
type Manifest struct {
	Run    string      `json:"run"`    // of the program that made it
	On     string      `json:"on"`     // name of the manifest of the backup that it builds on; empty: none
	Branch string      `json:"branch"` // run of the full backup that it builds on, directly or through others; its own without any
	Head   backup.Head `json:"head"`   // without Since
	Secret []byte      `json:"secret"` // as in a file

	State    []Ref     `json:"state"`             // the state, cut anywhere
	StateSum string    `json:"state_sum"`         // of the state, whatever the order of its parts
	Entries  []Journal `json:"entries,omitempty"` // of the journal, from Head.From to Head.Entry
	Records  []Segment `json:"records,omitempty"` // of the archive; a later one replaces an earlier one with its id
	Damaged  int       `json:"damaged"`           // unreadable places of the archive, since the backup that has everything

	Made int64 `json:"new_bytes"` // bytes of the objects that were stored for it

	name string // name of its object
}

// Ref refers to an object.
type Ref struct {
	Name   string `json:"name"`   // the SHA-256 of its content, a dot, and the run that stored it
	Bytes  int64  `json:"bytes"`  // of its content
	Stored int64  `json:"stored"` // bytes of the object
}

// Journal is a part of the journal.
type Journal struct {
	Ref
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// Segment is a part of the archive. Entries of the audit log are in segments of their own.
type Segment struct {
	Ref
	Audit bool                    `json:"audit,omitempty"`
	First int64                   `json:"first"` // the earliest end of a record, Unix milliseconds; of the audit log, its first entry
	Last  int64                   `json:"last"`  // the latest end
	Count map[archive.Kind]uint64 `json:"count"`
}

// Name returns the name of the backup, for people and for restore.
func (m *Manifest) Name() string { return strings.TrimSuffix(path.Base(m.name), ".json") }

// Summary describes its contents. Records that were stored twice count twice.
func (m *Manifest) Summary() (s backup.Summary) {
	s.Head, s.Damaged, s.Records = m.Head, m.Damaged, map[archive.Kind]uint64{}
	for _, x := range m.Records {
		for kind, n := range x.Count {
			s.Records[kind] += n
		}
	}
	m.each(func(r Ref) { s.Bytes += r.Stored })
	return s
}

// each calls f for every object.
func (m *Manifest) each(f func(Ref)) {
	for _, r := range m.State {
		f(r)
	}
	for _, x := range m.Entries {
		f(x.Ref)
	}
	for _, x := range m.Records {
		f(x.Ref)
	}
}

// file is the form of a manifest's object: the content with its SHA-256.
type file struct {
	Format int             `json:"format"`
	Sum    string          `json:"sum"`
	Backup json.RawMessage `json:"backup"`
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func (m *Manifest) encode() ([]byte, error) {
	content, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return json.Marshal(file{format, sumOf(content), content})
}

var (
	refName      = regexp.MustCompile(`^[0-9a-f]{64}\.[0-9A-Za-z-]{1,64}$`)
	manifestName = regexp.MustCompile(`^backups/[0-9]{20}-[0-9A-Za-z-]{19,64}\.json$`)
)

func nameOf(entry uint64, run string) string {
	return fmt.Sprintf("%s%020d-%s.json", manifestsBelow, entry, run)
}

func decode(name string, content []byte) (*Manifest, error) {
	var f file
	if err := json.Unmarshal(content, &f); err != nil {
		return nil, damaged("manifest %s: %s", name, err)
	}
	if f.Format > format {
		return nil, fmt.Errorf("backup %s has format %d, and this release reads format %d: use a later release", name, f.Format, format)
	}
	if f.Format < 1 || sumOf(f.Backup) != f.Sum {
		return nil, damaged("manifest %s: its checksum does not match", name)
	}
	m := &Manifest{name: name}
	if err := json.Unmarshal(f.Backup, m); err != nil {
		return nil, damaged("manifest %s: %s", name, err)
	}
	if m.Head.Entry == 0 || m.Head.Installation == uuid.Nil || nameOf(m.Head.Entry, m.Run) != name {
		return nil, damaged("manifest %s: it is of entry %d, by run %q", name, m.Head.Entry, m.Run)
	}
	var err error
	m.each(func(r Ref) {
		if !refName.MatchString(r.Name) || r.Bytes < 0 || r.Stored < 0 || r.Bytes > contentMax || r.Stored > contentMax {
			err = damaged("manifest %s: object %+v", name, r)
		}
	})
	return m, err
}

// Repository is a place for backups.
type Repository struct{ store Store }

// New returns the repository of a store, which may still be empty.
func New(s Store) *Repository { return &Repository{s} }

func (r *Repository) String() string { return r.store.String() }

// exists reports whether the store has a repository.
func (r *Repository) exists(ctx context.Context) (bool, error) {
	content, err := r.store.Get(ctx, marker, 4096)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var f file
	if err := json.Unmarshal(content, &f); err != nil || f.Format < 1 {
		return false, damaged("%s in %s: %q", marker, r, content)
	}
	if f.Format > format {
		return false, fmt.Errorf("%s has backups of format %d, and this release reads format %d: use a later release", r, f.Format, format)
	}
	return true, nil
}

// make creates a repository unless one exists.
func (r *Repository) make(ctx context.Context) error {
	there, err := r.exists(ctx)
	if err != nil || there {
		return err
	}
	if d, ok := r.store.(*Dir); ok {
		if name, err := d.foreign(); err != nil || name != "" {
			return errors.Join(err, fmt.Errorf("%s contains %s, which does not belong to a repository of backups: name an empty directory", r, name))
		}
	} else if all, _, err := r.store.List(ctx, ""); err != nil || len(all) > 0 && !ours(all) {
		return errors.Join(err, fmt.Errorf("%s contains objects that do not belong to a repository of backups: name another prefix", r))
	}
	return r.store.Put(ctx, marker, fmt.Appendf(nil, `{"format":%d}`, format))
}

func ours(all []Object) bool {
	return !slices.ContainsFunc(all, func(x Object) bool {
		return !strings.HasPrefix(x.Name, objectsBelow) && !strings.HasPrefix(x.Name, manifestsBelow) && x.Name != marker
	})
}

// Listed is a backup in a list.
type Listed struct {
	*Manifest
	Name string
	Err  error // why it cannot be used; Manifest is nil
}

// NoneError is the error of a directory or bucket without backups. It is fs.ErrNotExist.
type NoneError struct{ Place string }

func (e *NoneError) Error() string { return e.Place + " has no backups" }

func (e *NoneError) Is(target error) bool { return target == fs.ErrNotExist }

// List returns the backups, the earliest first.
func (r *Repository) List(ctx context.Context) (all []Listed, err error) {
	there, err := r.exists(ctx)
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, &NoneError{r.String()}
	}
	names, err := r.names(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		m, err := r.manifest(ctx, name)
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			continue
		}
		if err != nil && !errors.Is(err, backup.ErrDamaged) {
			return nil, err
		}
		all = append(all, Listed{m, strings.TrimSuffix(path.Base(name), ".json"), err})
	}
	return all, nil
}

// names returns the names of the manifests, in the order in which the backups were made.
func (r *Repository) names(ctx context.Context) ([]string, error) {
	objects, _, err := r.store.List(ctx, manifestsBelow)
	return inOrder(objects, func(Object) bool { return true }), err
}

// inOrder returns the names of manifests in the order in which the backups were made. After a restore, that differs from the order of their entries.
func inOrder(objects []Object, wanted func(Object) bool) (names []string) {
	for _, x := range objects {
		if manifestName.MatchString(x.Name) && wanted(x) {
			names = append(names, x.Name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(runTime(a), runTime(b)), cmp.Compare(a, b)) })
	return names
}

// runTime returns the time in the name of a manifest.
func runTime(name string) string {
	const at = len(manifestsBelow) + 20 + 1
	return name[at : at+len("20060102T150405000Z")]
}

func (r *Repository) manifest(ctx context.Context, name string) (*Manifest, error) {
	content, err := r.store.Get(ctx, name, manifestMax)
	if err != nil {
		return nil, err
	}
	return decode(name, content)
}

// latest returns the latest undamaged backup of those with these names, or nil.
func (r *Repository) latest(ctx context.Context, names []string) (*Manifest, error) {
	for _, name := range slices.Backward(names) {
		m, err := r.manifest(ctx, name)
		if err == nil || !errors.Is(err, backup.ErrDamaged) && !errors.Is(err, fs.ErrNotExist) {
			return m, err
		}
	}
	return nil, nil
}

// runName returns a name that is different for each run. Its time is later than that of the runs that have made backups, in case the clock was ahead
// then: by their order, a restore finds the latest state, and Keep what it removes.
func runName(now time.Time, earlier []string) string {
	now = now.Truncate(time.Millisecond)
	if len(earlier) > 0 {
		text := runTime(earlier[len(earlier)-1])
		if last, err := time.Parse("20060102T150405.000Z", text[:15]+"."+text[15:]); err == nil && !now.After(last) {
			now = last.Add(time.Millisecond)
		}
	}
	id := uuid.New()
	return strings.Replace(now.UTC().Format("20060102T150405.000Z"), ".", "", 1) + "-" + hex.EncodeToString(id[:4])
}

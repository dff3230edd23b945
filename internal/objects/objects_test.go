package objects

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/buildfiles"
)

const quota = 64 << 20

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(Options{Dir: dir, Quota: quota, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func must[T any](x T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

// build returns a manifest with a file for each content, which is put into the store.
func build(t *testing.T, s *Store, contents ...string) *buildfiles.Manifest {
	t.Helper()
	m := &buildfiles.Manifest{}
	for i, c := range contents {
		f := must(buildfiles.Split(strings.NewReader(c), 1<<30, s.Put))(t)
		f.Path = string(rune('a' + i))
		m.Files = append(m.Files, f)
	}
	return m
}

func commit(t *testing.T, s *Store, m *buildfiles.Manifest) (d buildfiles.Digest) {
	t.Helper()
	if err := s.Commit(m, func(stored buildfiles.Digest) error { d = stored; return nil }); err != nil {
		t.Fatal(err)
	}
	return d
}

// age makes all content as old as it must be to be swept.
func age(t *testing.T, s *Store) {
	t.Helper()
	old := time.Now().Add(-keepFor - time.Hour)
	err := filepath.WalkDir(s.Dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, old, old))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func sweep(t *testing.T, s *Store, roots ...buildfiles.Digest) Swept {
	t.Helper()
	return must(s.Sweep(time.Now(), func() ([]buildfiles.Digest, error) { return roots, nil }))(t)
}

func TestBuildsShareWhatIsEqual(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	one := commit(t, s, build(t, s, "engine", "level 1"))
	two := commit(t, s, build(t, s, "engine", "level 2"))
	if again := commit(t, s, build(t, s, "engine", "level 1")); again != one {
		t.Errorf("the same files have the manifests %s and %s", one, again)
	}
	used, _ := s.Used()
	if s = open(t, dir); used == 0 || first(s.Used()) != used {
		t.Errorf("%d bytes are used, after a restart %d", used, first(s.Used()))
	}
	m := must(s.Manifest(two))(t)
	if got := must(s.Read(m.Files[1].Parts[0].Digest))(t); string(got) != "level 2" {
		t.Errorf("got %q", got)
	}
	age(t, s)
	if got := sweep(t, s, two); got.Parts != 2 { // level 1 and the manifest
		t.Errorf("swept %+v", got)
	}
	if _, err := s.Open(m.Files[0].Parts[0].Digest); err != nil {
		t.Errorf("a part that the other build shared: %v", err)
	}
	if got := sweep(t, s); got.Parts != 3 || first(s.Used()) != 0 {
		t.Errorf("swept %+v, %d bytes are left", got, first(s.Used()))
	}
}

func first(used, _ int64) int64 { return used }

func TestContentThatIsNotItsDigest(t *testing.T) {
	s := open(t, t.TempDir())
	err := s.Put(buildfiles.DigestOf([]byte("a")), []byte("b"))
	if _, ok := errors.AsType[*WrongDigestError](err); !ok || first(s.Used()) != 0 {
		t.Errorf("got %v", err)
	}
	m := build(t, s, "content")
	d := m.Files[0].Digest
	commit(t, s, m)
	if err := os.WriteFile(s.pathOf(d), []byte("Content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(d); !errors.Is(err, ErrDamaged) {
		t.Errorf("damaged content is read: %v", err)
	}
	if s.Has(d) {
		t.Error("damaged content is not missing")
	}
	if err := s.Put(d, []byte("content")); err != nil { // the same build is pushed again
		t.Fatal(err)
	}
	if got := must(io.ReadAll(must(s.Open(d))(t)))(t); string(got) != "content" {
		t.Errorf("got %q", got)
	}
}

// A part or a manifest that the disk has truncated counts as missing, so that a push replaces it.
func TestTruncatedContent(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	m := build(t, s, "content")
	d := m.Files[0].Digest
	manifest := commit(t, s, m)
	used := first(s.Used())
	for _, broken := range []buildfiles.Digest{d, manifest} {
		if err := os.Truncate(s.pathOf(broken), 3); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir)
		if missing := must(Local{s}.Missing(t.Context(), m))(t); (broken == d) != slices.Contains(missing, d) {
			t.Errorf("missing %v while %s is truncated", missing, broken)
		}
		commit(t, s, build(t, s, "content"))
		if got := must(io.ReadAll(must(s.Open(d))(t)))(t); string(got) != "content" || first(s.Used()) != used {
			t.Errorf("got %q, %d bytes are used, want %d", got, first(s.Used()), used)
		}
		must(s.Manifest(manifest))(t)
	}
}

func TestMissingParts(t *testing.T) {
	s := open(t, t.TempDir())
	m := build(t, s, "here", "gone")
	if err := os.Remove(s.pathOf(m.Files[1].Digest)); err != nil {
		t.Fatal(err)
	}
	err := s.Commit(m, func(buildfiles.Digest) error { t.Error("recorded"); return nil })
	if missing, ok := errors.AsType[*MissingError](err); !ok || len(missing.Digests) != 1 || missing.Digests[0] != m.Files[1].Digest {
		t.Errorf("got %v", err)
	}
}

// Parts from which a client is about to make a build are not swept, however old they are, because the client was told that the service has them.
func TestSweepKeepsWhatWasAskedFor(t *testing.T) {
	s := open(t, t.TempDir())
	m := build(t, s, "old part")
	age(t, s)
	if !s.Has(m.Files[0].Digest) {
		t.Fatal("the part is missing")
	}
	if got := sweep(t, s); got.Parts != 0 {
		t.Fatalf("swept %+v", got)
	}
	commit(t, s, m)
}

// A build that is recorded while a sweep begins keeps its parts: either the sweep was first, and the client is told to send the parts again, or
// it asks for the builds afterwards.
func TestSweepsAndBuildsTogether(t *testing.T) {
	s := open(t, t.TempDir())
	var mu sync.Mutex
	var recorded []buildfiles.Digest
	for i := range 6 {
		m := build(t, s, "shared", strings.Repeat("x", i))
		var both sync.WaitGroup
		both.Go(func() {
			_, err := s.Sweep(time.Now().Add(2*keepFor), func() ([]buildfiles.Digest, error) { // so no part is young
				mu.Lock()
				defer mu.Unlock()
				return slices.Clone(recorded), nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		err := s.Commit(m, func(d buildfiles.Digest) error {
			mu.Lock()
			defer mu.Unlock()
			recorded = append(recorded, d)
			return nil
		})
		both.Wait()
		if _, missing := errors.AsType[*MissingError](err); err != nil && !missing {
			t.Fatal(err)
		}
	}
	for _, d := range recorded {
		for _, f := range must(s.Manifest(d))(t).Files {
			for _, p := range f.Parts {
				if _, err := s.Read(p.Digest); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestQuota(t *testing.T) {
	s := open(t, t.TempDir())
	for i := 0; ; i++ {
		content := bytes.Repeat([]byte{byte(i)}, buildfiles.PartMax)
		err := s.Put(buildfiles.DigestOf(content), content)
		if err == nil {
			continue
		}
		if _, ok := errors.AsType[*FullError](err); !ok || i != quota/buildfiles.PartMax || !strings.Contains(err.Error(), "--builds-max") {
			t.Errorf("after %d parts: %v", i, err)
		}
		break
	}
	if _, err := s.Stage("build-1", "object", strings.NewReader("x")); !isFull(err) {
		t.Errorf("staged: %v", err)
	}
	if got := first(s.Used()); got != quota {
		t.Errorf("%d bytes are used, want %d", got, quota)
	}
	s.Reserve, s.Quota = 1<<62, 1<<62
	if err := s.Put(buildfiles.DigestOf([]byte("x")), []byte("x")); !isFull(err) || !strings.Contains(err.Error(), "reserved") {
		t.Errorf("the reserve of the disk is taken: %v", err)
	}
}

func isFull(err error) bool { _, ok := errors.AsType[*FullError](err); return ok }

func TestStage(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if n := must(s.Stage("build-1", "1", strings.NewReader("first")))(t); n != 5 {
		t.Errorf("%d bytes", n)
	}
	must(s.Stage("build-1", "1", strings.NewReader("another")))(t)
	broken := errors.New("the client has gone")
	if _, err := s.Stage("build-1", "1", io.MultiReader(strings.NewReader("half"), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if got := must(io.ReadAll(must(s.Staged("build-1", "1"))(t)))(t); string(got) != "another" {
		t.Errorf("got %q", got)
	}
	if got := first(s.Used()); got != 7 {
		t.Errorf("%d bytes are used, want 7", got)
	}
	// The remains of a file after a crash are removed at the next start.
	if err := os.WriteFile(filepath.Join(dir, uploadsDir, "build-1", temporary+"1"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if names := must(s.StagedFiles("build-1"))(t); len(names) != 1 || first(s.Used()) != 7 {
		t.Errorf("files %q, %d bytes", names, first(s.Used()))
	}
	if got := sweep(t, s); got.Uploads != 0 {
		t.Errorf("swept %+v", got)
	}
	age(t, s)
	if got := sweep(t, s); got.Uploads != 1 || first(s.Used()) != 0 {
		t.Errorf("swept %+v, %d bytes are left", got, first(s.Used()))
	}
	if names := must(s.Uploads())(t); len(names) != 0 {
		t.Errorf("uploads %q", names)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A reader of damaged content never moves aside the content that replaces it at that moment.
func TestDamageIsReplacedWhileItIsRead(t *testing.T) {
	s := open(t, t.TempDir())
	s.SetLimits(1<<40, 0) // what is moved aside counts
	content := bytes.Repeat([]byte("content "), 1<<17)
	d := buildfiles.DigestOf(content)
	for i := range 100 {
		if err := s.Put(d, content); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(s.pathOf(d), int64(len(content)-1)); err != nil {
			t.Fatal(err)
		}
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() { _, _ = s.Read(d) }) // finds the damage, no content, or the content
		}
		err := s.Put(d, content)
		readers.Wait()
		if whole, readErr := s.Read(d); err != nil || readErr != nil || !bytes.Equal(whole, content) {
			t.Fatalf("round %d: %v; the content is gone: %v", i, err, readErr)
		}
	}
}

// Content that is damaged again takes the place of what was moved aside before, also in the count.
func TestDamagedTwice(t *testing.T) {
	s := open(t, t.TempDir())
	content := bytes.Repeat([]byte("content "), 1<<10)
	d := buildfiles.DigestOf(content)
	for range 3 {
		if err := s.Put(d, content); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.pathOf(d), append([]byte("damaged "), content[8:]...), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(d); !errors.Is(err, ErrDamaged) {
			t.Fatalf("got %v, want ErrDamaged", err)
		}
	}
	used, _ := s.Used()
	if now, _ := open(t, s.Dir).Used(); used != now || now != int64(len(content)) {
		t.Errorf("%d bytes are counted; after a restart %d, want %d", used, now, len(content))
	}
}

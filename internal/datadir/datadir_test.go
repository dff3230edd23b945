package datadir

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
	archivepebble "github.com/musterhq/muster/internal/archive/pebble"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
	journalpebble "github.com/musterhq/muster/internal/journal/pebble"
	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/waittest"
)

// house is a service's share of a data directory.
type house struct {
	*engine.Engine
	t    *testing.T
	data *Dir
	log  *logtest.Log
}

func open(t *testing.T, dir string, accept ...Part) (_ *house, err error) {
	t.Helper()
	h := &house{t: t, log: &logtest.Log{}}
	if h.data, err = Open(Options{Dir: dir, Program: "the test", Log: slog.New(slog.NewTextHandler(h.log, nil)), Accept: accept}); err != nil {
		return nil, err
	}
	h.Engine, err = engine.Open(t.Context(), engine.Config{
		Journal: h.data.Journal, Archive: h.data.Archive, Cell: cell.DefaultConfig(), EndedLinger: time.Nanosecond, Loaded: h.data.CheckState,
	})
	err = h.data.Explain(err)
	if err == nil {
		err = h.data.Record(t.Context(), h.Do)
	}
	if err == nil {
		err = h.data.Commit(t.Context())
	}
	if err != nil {
		if h.Engine != nil {
			h.Engine.Close()
		}
		return nil, errors.Join(err, h.data.Close())
	}
	return h, nil
}

func mustOpen(t *testing.T, dir string, accept ...Part) *house {
	t.Helper()
	h, err := open(t, dir, accept...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) close() {
	h.t.Helper()
	if err := errors.Join(h.Engine.Close(), h.data.Close()); err != nil {
		h.t.Fatal(err)
	}
}

// refuses opens a directory, checks that it is refused because of this part, and returns the error's text.
func refuses(t *testing.T, dir string, part Part) string {
	t.Helper()
	for range 2 { // also the next time
		h, err := open(t, dir)
		if err == nil {
			h.close()
			t.Fatalf("started, want a problem with %s", part)
		}
		problem, ok := errors.AsType[*Problem](err)
		if !ok || problem.Part != part || !strings.Contains(err.Error(), "muster serve --accept-loss "+string(part)) {
			t.Fatalf("got %v, want a problem with %s", err, part)
		}
	}
	_, err := open(t, dir)
	return err.Error()
}

func (h *house) must(cmd kernel.Command) {
	h.t.Helper()
	if err := h.Do(h.t.Context(), cmd); err != nil {
		h.t.Fatal(err)
	}
}

// furnish makes an access key, and placements that end and move to the archive.
func (h *house) furnish(from, to int) {
	h.t.Helper()
	if from == 0 {
		h.must(&access.TakeOverAccessKeys{Secret: h.data.Secret.Check()})
		h.must(&access.CreateAccessKey{Key: access.Key{ID: "MUSTKEY", Role: access.Admin}})
		h.must(&hosting.CreateQueue{Queue: placement.Queue{Name: "cup", Timeout: time.Minute}})
	}
	for n := from; n < to; n++ {
		h.must(&hosting.StartPlacement{Placement: placement.Placement{ID: fmt.Sprint("p", n), Queue: "cup", PlayersMax: 2}})
		h.must(&hosting.StopPlacement{ID: fmt.Sprint("p", n)})
	}
	waittest.Until(h.t, "what ended leaves memory", func() bool { return h.memory() == 0 })
}

func (h *house) memory() (ended int) {
	_ = h.Read(h.t.Context(), func(v *cell.View) error { ended = v.Totals().Ended; return nil })
	return ended
}

func (h *house) finds(id string) bool {
	h.t.Helper()
	_, err := h.Placement(h.t.Context(), id)
	return err == nil
}

func (h *house) losses() (parts []string) {
	h.t.Helper()
	_ = h.Read(h.t.Context(), func(v *cell.View) error {
		for _, l := range v.Losses() {
			parts = append(parts, l.Part)
		}
		return nil
	})
	return parts
}

func (h *house) keyWorks() (works bool) {
	_ = h.Read(h.t.Context(), func(v *cell.View) error {
		for _, k := range v.AccessKeys() {
			works = works || k.Works()
		}
		return nil
	})
	return works
}

// furnished returns a directory that has every part.
func furnished(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	h := mustOpen(t, dir)
	h.furnish(0, 5)
	h.close()
	return dir
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if err == nil && !info.IsDir() {
		var content []byte
		if content, err = os.ReadFile(from); err == nil {
			err = os.WriteFile(to, content, 0o600)
		}
	} else if err == nil {
		err = os.CopyFS(to, os.DirFS(from))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path ...string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(path...)); err != nil {
		t.Fatal(err)
	}
}

func TestEveryPartHasTheSameInstallation(t *testing.T) {
	dir := furnished(t)
	h := mustOpen(t, dir)
	defer h.close()
	_, secret, err := identity.ReadSecretFile(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if id := h.data.Journal.Installation(); id == uuid.Nil || id != h.data.Archive.Installation() || id != secret {
		t.Errorf("journal %s, archive %s, secret %s", id, h.data.Archive.Installation(), secret)
	}
	if _, err := os.Stat(filepath.Join(dir, pendingFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", pendingFile, err)
	}
	if len(h.losses()) > 0 || !h.finds("p0") || !h.keyWorks() {
		t.Errorf("losses %v, placement found: %t, key works: %t", h.losses(), h.finds("p0"), h.keyWorks())
	}
}

func TestAMissingPartStopsTheStart(t *testing.T) {
	for part, keeps := range map[Part]struct{ archive, keys bool }{
		Journal: {true, false}, Archive: {false, true}, Secret: {true, false},
	} {
		t.Run(string(part), func(t *testing.T) {
			dir := furnished(t)
			remove(t, dir, string(part))
			refuses(t, dir, part)
			if _, err := os.Lstat(filepath.Join(dir, string(part))); !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("the refused start has made %s: %v", part, err)
			}
			if h, err := open(t, dir, JournalTail); err == nil {
				h.close()
				t.Fatal("another part's name was taken")
			}

			h := mustOpen(t, dir, part)
			if h.finds("p0") != keeps.archive || h.keyWorks() != keeps.keys {
				t.Errorf("placement found: %t, key works: %t, want %+v", h.finds("p0"), h.keyWorks(), keeps)
			}
			if !strings.Contains(h.log.String(), "a loss in the data directory was accepted") {
				t.Errorf("the log says %s", h.log)
			}
			h.close()
			h = mustOpen(t, dir)
			defer h.close()
			if got := h.losses(); !slices.Equal(got, []string{string(part)}) {
				t.Errorf("the journal has the losses %q", got)
			}
			if keys, _ := takenOver(h); keys.Secret != h.data.Secret.Check() && part != Journal {
				t.Error("the state belongs to another secret")
			}
		})
	}
}

func takenOver(h *house) (keys access.TakenOver, ok bool) {
	_ = h.Read(h.t.Context(), func(v *cell.View) error { keys, ok = v.AccessKeysTakenOver(); return nil })
	return keys, ok
}

func TestAnEmptyFolderIsAMissingPart(t *testing.T) {
	for _, part := range []Part{Journal, Archive} {
		dir := furnished(t)
		remove(t, dir, string(part))
		if err := os.Mkdir(filepath.Join(dir, string(part)), 0o700); err != nil {
			t.Fatal(err)
		}
		refuses(t, dir, part)
		mustOpen(t, dir, part).close()
	}
}

func TestPartsOfAnotherInstallationStopTheStart(t *testing.T) {
	for _, part := range []Part{Journal, Archive, Secret} {
		t.Run(string(part), func(t *testing.T) {
			dir, other := furnished(t), furnished(t)
			remove(t, dir, string(part))
			copyTo(t, filepath.Join(other, string(part)), filepath.Join(dir, string(part)))
			if said := refuses(t, dir, part); !strings.Contains(said, "installation") {
				t.Errorf("said %q", said)
			}
			h := mustOpen(t, dir, part)
			h.close()
			aside, err := filepath.Glob(filepath.Join(dir, string(part)+".lost-*"))
			if err != nil || len(aside) != 1 {
				t.Errorf("set aside: %q, %v", aside, err)
			}
			mustOpen(t, dir).close()
		})
	}
}

// A part of the same installation that is older than the others lacks data that the others rely on.
func TestAnOlderPartStopsTheStart(t *testing.T) {
	for part, want := range map[string]Part{archiveDir: Archive, journalDir: JournalTail} {
		t.Run(part, func(t *testing.T) {
			dir := furnished(t)
			old := filepath.Join(t.TempDir(), part)
			copyTo(t, filepath.Join(dir, part), old)
			h := mustOpen(t, dir)
			h.furnish(5, 10)
			h.close()
			remove(t, dir, part)
			copyTo(t, old, filepath.Join(dir, part))

			refuses(t, dir, want)
			h = mustOpen(t, dir, want)
			if !h.finds("p4") || h.finds("p9") != (want == JournalTail) || !h.keyWorks() {
				t.Errorf("old found: %t, new found: %t, key works: %t", h.finds("p4"), h.finds("p9"), h.keyWorks())
			}
			h.furnish(10, 12)
			h.close()
			h = mustOpen(t, dir)
			defer h.close()
			if got := h.losses(); !slices.Equal(got, []string{string(want)}) || !h.finds("p11") {
				t.Errorf("losses %q", got)
			}
		})
	}
}

func TestADamagedSecretStopsTheStart(t *testing.T) {
	dir := furnished(t)
	path := filepath.Join(dir, "cell.secret")
	intact, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, bit := range []int{0, 8 * 10, 8 * 40, 8*len(intact) - 1} {
		damaged := bytes.Clone(intact)
		damaged[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if said := refuses(t, dir, Secret); !strings.Contains(said, "checksum") {
			t.Errorf("said %q", said)
		}
	}
	if err := os.WriteFile(path, intact, 0o600); err != nil {
		t.Fatal(err)
	}
	h := mustOpen(t, dir)
	defer h.close()
	if !h.keyWorks() || len(h.losses()) > 0 {
		t.Error("the restored secret is not as good as new")
	}
}

// The first start may be interrupted at any moment: the next one completes it.
func TestAnInterruptedFirstStartGoesOn(t *testing.T) {
	for _, parts := range [][]Part{{}, {Journal}, {Journal, Archive}, {Journal, Archive, Secret}, {Secret}} {
		dir := t.TempDir()
		d, err := Open(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil { // without Commit
			t.Fatal(err)
		}
		for _, part := range wholeParts {
			if !slices.Contains(parts, part) {
				remove(t, dir, string(part))
			}
		}
		h := mustOpen(t, dir)
		h.furnish(0, 1)
		h.close()
		mustOpen(t, dir).close()
	}
}

// After a crash between the acceptance of a loss and its record in the journal, the next start records it.
func TestAnInterruptedAcceptanceIsRecorded(t *testing.T) {
	dir := furnished(t)
	remove(t, dir, archiveDir)
	d, err := Open(Options{Dir: dir, Accept: []Part{Archive}})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	h := mustOpen(t, dir)
	defer h.close()
	if got := h.losses(); !slices.Equal(got, []string{"archive"}) {
		t.Errorf("losses %q", got)
	}
}

// oldDirectory returns a directory as a release without installation ids left it.
func oldDirectory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	j, err := journalpebble.Open(journalpebble.Options{Dir: filepath.Join(dir, journalDir)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := archivepebble.Open(archivepebble.Options{Dir: filepath.Join(dir, archiveDir)})
	if err != nil {
		t.Fatal(err)
	}
	secret := bytes.Repeat([]byte{7}, 32)
	if err := os.WriteFile(filepath.Join(dir, "cell.secret"), secret, 0o600); err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, data: &Dir{Journal: j, Archive: a}}
	if h.data.Secret, err = identity.ReadCellSecret(dir, nil); err != nil {
		t.Fatal(err)
	}
	h.Engine, err = engine.Open(t.Context(), engine.Config{Journal: j, Archive: unmarked{a}, Cell: cell.DefaultConfig(), EndedLinger: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	h.furnish(0, 5)
	h.close()
	return dir
}

func TestADirectoryOfAnEarlierReleaseIsTakenOver(t *testing.T) {
	dir := oldDirectory(t)
	for range 2 {
		h := mustOpen(t, dir)
		if !h.finds("p0") || !h.keyWorks() || len(h.losses()) > 0 {
			t.Errorf("placement found: %t, key works: %t, losses %q", h.finds("p0"), h.keyWorks(), h.losses())
		}
		if h.data.Journal.Installation() == uuid.Nil || h.data.Journal.Installation() != h.data.Archive.Installation() {
			t.Errorf("journal %s, archive %s", h.data.Journal.Installation(), h.data.Archive.Installation())
		}
		h.close()
	}
	if secret, id, err := identity.ReadSecretFile(dir, nil); err != nil || id == uuid.Nil || secret.Check() == (identity.CellSecret{}).Check() {
		t.Errorf("secret of installation %s, %v", id, err)
	}
	remove(t, dir, archiveDir)
	refuses(t, dir, Archive)
}

func TestAMissingPartOfAnEarlierReleaseStopsTheStart(t *testing.T) {
	for _, part := range wholeParts {
		t.Run(string(part), func(t *testing.T) {
			dir := oldDirectory(t)
			kept := filepath.Join(t.TempDir(), string(part))
			copyTo(t, filepath.Join(dir, string(part)), kept)
			remove(t, dir, string(part))
			refuses(t, dir, part)
			accepted := t.TempDir()
			copyTo(t, dir, filepath.Join(accepted, "data"))
			h := mustOpen(t, filepath.Join(accepted, "data"), part)
			if got := h.losses(); !slices.Equal(got, []string{string(part)}) {
				t.Errorf("losses %q", got)
			}
			h.close()

			remove(t, dir, string(part)) // restored, it is taken over
			copyTo(t, kept, filepath.Join(dir, string(part)))
			h = mustOpen(t, dir)
			defer h.close()
			if !h.finds("p0") || !h.keyWorks() || len(h.losses()) > 0 {
				t.Errorf("after the restore: placement found: %t, key works: %t, losses %q", h.finds("p0"), h.keyWorks(), h.losses())
			}
		})
	}
}

// A secret from an earlier release's backup is the correct one if the access keys are derived from it.
func TestASecretOfAnOldBackupIsTaken(t *testing.T) {
	dir := oldDirectory(t)
	old := filepath.Join(t.TempDir(), "cell.secret")
	copyTo(t, filepath.Join(dir, "cell.secret"), old)
	mustOpen(t, dir).close()
	copyTo(t, old, filepath.Join(dir, "cell.secret"))
	mustOpen(t, dir).close()
	if _, id, err := identity.ReadSecretFile(dir, nil); err != nil || id == uuid.Nil {
		t.Errorf("secret of installation %s, %v", id, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cell.secret"), bytes.Repeat([]byte{8}, 32), 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(t, dir, Secret)
}

func TestMissingOrForeignSnapshotsStopTheStart(t *testing.T) {
	dir, other := furnished(t), furnished(t)
	for _, d := range []string{dir, other} {
		h := mustOpen(t, d)
		last, err := h.data.Journal.Last(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		frozen := func() (s *kernel.Snapshot) {
			c := cell.New(cell.DefaultConfig())
			at, snapshot, err := h.data.Journal.LatestSnapshot(t.Context()) // there is one once the level has risen
			if err == nil && snapshot != nil {
				err = errors.Join(c.Load(snapshot), snapshot.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
			for entry, err := range h.data.Journal.Read(t.Context(), at+1) {
				if err == nil {
					err = c.Replay(entry.Number, entry.Batch)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			return c.Freeze()
		}()
		if err := errors.Join(h.data.Journal.SaveSnapshot(t.Context(), last, frozen.Write), h.data.Journal.Trim(t.Context(), last+1)); err != nil {
			t.Fatal(err)
		}
		h.close()
	}
	snapshots := filepath.Join(dir, journalDir, "snapshots")
	kept := filepath.Join(t.TempDir(), "snapshots")
	copyTo(t, snapshots, kept)
	remove(t, snapshots)
	if said := refuses(t, dir, Journal); !strings.Contains(said, "snapshot") {
		t.Errorf("said %q", said)
	}
	files, err := os.ReadDir(kept)
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	foreign, err := os.ReadDir(filepath.Join(other, journalDir, "snapshots"))
	if err != nil || len(foreign) != 1 {
		t.Fatal(foreign, err)
	}
	remove(t, snapshots)
	copyTo(t, filepath.Join(other, journalDir, "snapshots"), snapshots)
	if foreign[0].Name() == files[0].Name() {
		if said := refuses(t, dir, Journal); !strings.Contains(said, "belongs to the installation") {
			t.Errorf("said %q", said)
		}
	} else {
		refuses(t, dir, Journal)
	}
	remove(t, snapshots)
	copyTo(t, kept, snapshots)
	h := mustOpen(t, dir)
	if !h.keyWorks() {
		t.Error("the restored snapshot is not as good as new")
	}
	h.close()

	// Damage in the snapshot is met when the state is loaded.
	path := filepath.Join(snapshots, files[0].Name())
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if said := refuses(t, dir, Journal); !strings.Contains(said, path) {
		t.Errorf("said %q", said)
	}
	h = mustOpen(t, dir, Journal)
	defer h.close()
	if h.keyWorks() || !h.finds("p0") || !slices.Equal(h.losses(), []string{"journal"}) {
		t.Errorf("after the journal was set aside: key works: %t, losses %q", h.keyWorks(), h.losses())
	}
}

// unmarked is an archive of a release without marks.
type unmarked struct{ *archivepebble.Archive }

func (unmarked) SetMark(archive.Mark) {}

// After a crash between writing the cluster's secret and recording the node's admission, the node asks to join again.
func TestCrashWhileJoining(t *testing.T) {
	dir := t.TempDir()
	cluster, secret := uuid.New(), identity.NewCellSecret()
	crash := errors.New("power cut")
	_, err := OpenNode(Options{Dir: dir}, func(string) (uuid.UUID, identity.CellSecret, error) {
		return uuid.Nil, secret, errors.Join(crash, secret.Write(dir, cluster, nil))
	})
	if !errors.Is(err, crash) {
		t.Fatal(err)
	}
	n, err := OpenNode(Options{Dir: dir}, func(string) (uuid.UUID, identity.CellSecret, error) { return cluster, secret, nil })
	if err != nil {
		t.Fatal(err)
	}
	if n.Cluster() != cluster || n.Secret.Check() != secret.Check() {
		t.Errorf("the node has the cluster %s, want %s, or another secret", n.Cluster(), cluster)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// A vote that could not be recorded does not count as recorded, so that the node tries again.
func TestVoteThatCannotBeRecorded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	n, err := OpenNode(Options{Dir: dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	file := filepath.Join(dir, memberFile)
	if err := errors.Join(os.Rename(file, file+".away"), os.MkdirAll(filepath.Join(file, "in the way"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := n.SetVoted(); err == nil || n.Voted() {
		t.Errorf("%v, recorded: %v", err, n.Voted())
	}
	if err := errors.Join(os.RemoveAll(file), n.SetVoted()); err != nil || !n.Voted() {
		t.Errorf("later: %v, recorded: %v", err, n.Voted())
	}
}

package repository

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/archive/archivetest"
	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/journal/journaltest"
	"github.com/musterhq/muster/internal/waittest"
)

// house is a small service, of which backups are made.
type house struct {
	*testing.T
	*engine.Engine
	journal      journal.Journal
	archive      archive.Archive
	installation uuid.UUID
	secret       identity.CellSecret
	placements   atomic.Int64
	gap          bool          // the journal is trimmed before each backup
	noted        uint64        // entry of the last backup
	ahead        time.Duration // of the machine's clock
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{T: t, installation: uuid.New(), secret: identity.NewCellSecret()}
	var err error
	h.journal, err = journaltest.NewMemory(1).Open()
	h.must(err)
	h.open()
	h.must(h.Do(t.Context(), &hosting.CreateLocation{Name: "custom-home"}))
	return h
}

// back returns the service as it is after its machine was rolled back to a snapshot.
func (h *house) back(entry, noted uint64) *house {
	h.Helper()
	old := &house{T: h.T, installation: h.installation, secret: h.secret, noted: noted}
	old.placements.Store(h.placements.Load())
	var err error
	old.journal, err = journaltest.NewMemory(1).Open()
	h.must(err)
	at, snapshot, err := h.journal.LatestSnapshot(h.Context())
	h.must(err)
	for n := range at {
		h.must(old.journal.Append(h.Context(), n+1, []byte("trimmed")))
	}
	h.must(old.journal.SaveSnapshot(h.Context(), at, func(w io.Writer) error {
		_, err := io.Copy(w, snapshot)
		return errors.Join(err, snapshot.Close())
	}))
	for e, err := range h.journal.Read(h.Context(), at+1) {
		h.must(err)
		if e.Number <= entry {
			h.must(old.journal.Append(h.Context(), e.Number, e.Batch))
		}
	}
	old.open()
	return old
}

// open opens the engine.
func (h *house) open() {
	h.Helper()
	t := h.T
	var err error
	if h.archive, err = archivetest.NewMemory(1).Open(); err != nil {
		t.Fatal(err)
	}
	if h.Engine, err = engine.Open(t.Context(), engine.Config{Journal: h.journal, Archive: h.archive, Cell: cell.DefaultConfig(), EndedLinger: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// work makes n changes.
func (h *house) work(n int) {
	h.Helper()
	for range n {
		name := fmt.Sprintf("custom-%d", h.placements.Add(1))
		h.must(h.Do(h.Context(), &hosting.CreateLocation{Name: name}))
	}
}

// ended puts records into the archive that ended at a time, as if they had left memory.
func (h *house) ended(at time.Time, names ...string) {
	h.Helper()
	var all []archive.Record
	for _, name := range names {
		all = append(all, archive.Record{Kind: archive.Placement, ID: name, Created: at.UnixMilli() - 1, Ended: at.UnixMilli(), Data: []byte(name)})
	}
	h.must(h.archive.Put(h.Context(), all))
}

// stream returns the service's stream for a backup.
func (h *house) stream(ctx context.Context, since *backup.Since) (io.ReadCloser, error) {
	f, err := h.Backup(ctx)
	if err != nil {
		return nil, err
	}
	c := backup.Content{
		Head: backup.Head{
			Installation: h.installation, Entry: f.Entry, Level: f.Level, State: f.Last.Std(), Forgotten: f.Forgotten, Made: time.Now().Add(h.ahead).UTC(),
			Next: int64(f.Next), Audited: f.Audited, Retention: engine.DefaultRetention.Milliseconds(),
		},
		State: f.Write, Secret: h.secret, Archive: h.archive,
	}
	if c.Head.Continues(since, h.noted) {
		c.Head.Since = since
		if since.Entry < f.Entry && !h.gap {
			c.Head.From = since.Entry + 1
			c.Entries = func(give func(uint64, []byte) error) error {
				return engine.Entries(ctx, h.Engine, since.Entry+1, f.Entry, func(e journal.Entry) error { return give(e.Number, e.Batch) })
			}
		}
	}
	out, in := io.Pipe()
	go func() {
		_, err := backup.Write(ctx, in, c)
		in.CloseWithError(err)
	}()
	return out, nil
}

func (h *house) options() Options {
	return Options{Stream: h.stream, Log: slog.New(slog.DiscardHandler)}
}

// latest returns the latest backup.
func (h *house) latest(r *Repository) *Manifest {
	h.Helper()
	names, err := r.names(h.Context())
	h.must(err)
	m, err := r.latest(h.Context(), names)
	h.must(err)
	return m
}

func (h *house) take(r *Repository) *Manifest {
	h.Helper()
	m, err := r.Take(h.Context(), h.options())
	h.must(err)
	h.noted = m.Head.Entry
	return m
}

// sumAt returns the checksum of the state after an entry, according to the service's own journal.
func (h *house) sumAt(entry uint64) string {
	h.Helper()
	c := cell.New(cell.DefaultConfig())
	at, snapshot, err := h.journal.LatestSnapshot(h.Context())
	h.must(err)
	if snapshot != nil {
		h.must(errors.Join(c.Load(snapshot), snapshot.Close()))
	}
	for e, err := range h.journal.Read(h.Context(), at+1) {
		h.must(err)
		if e.Number > entry {
			break
		}
		h.must(c.Replay(e.Number, e.Batch))
	}
	sum := &stateSum{}
	h.must(c.Freeze().Write(sum))
	return sum.String()
}

// restored reads a state as a restore does.
func restored(t *testing.T, r *Repository, w Wanted) (s backup.Summary, sum string, records []string) {
	t.Helper()
	p, err := r.Find(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	in, err := p.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, c, err := backup.Verify(in, cell.DefaultConfig(), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := &stateSum{}
	if err := c.Freeze().Write(all); err != nil {
		t.Fatal(err)
	}
	if in, err = p.Open(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	reader, err := backup.NewReader(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, reader.State()); err != nil {
		t.Fatal(err)
	}
	for x, err := range reader.Records() {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, x.ID)
	}
	slices.Sort(records)
	return s, all.String(), slices.Compact(records)
}

func newDir(t *testing.T) (*Repository, string) {
	path := filepath.Join(t.TempDir(), "backups")
	return New(&Dir{Path: path}), path
}

// Each backup has the whole state as of its entry. Each entry between two backups can be restored by its number and by its time.
func TestBackupsAndWhatIsBetween(t *testing.T) {
	h := newHouse(t)
	r, _ := newDir(t)
	past := time.Now().Add(-time.Hour)
	h.ended(past, "one", "two")
	first := h.take(r)
	h.work(20)
	h.ended(time.UnixMilli(first.Head.Next), "three")
	h.work(1)
	second := h.take(r)
	third := h.take(r) // nothing has happened
	if first.On != "" || second.On != first.name || len(second.Entries) == 0 || len(third.Entries) != 0 {
		t.Fatalf("they build on %q, %q, %q", first.On, second.On, third.On)
	}
	if second.Made >= second.Summary().Bytes {
		t.Errorf("%d of %d bytes are new: nothing was shared", second.Made, second.Summary().Bytes)
	}
	for entry := first.Head.Entry; entry <= second.Head.Entry; entry++ {
		s, sum, records := restored(t, r, Wanted{Entry: entry})
		if s.Head.Entry != entry || sum != h.sumAt(entry) {
			t.Errorf("entry %d: another state, %+v", entry, s.Head)
		}
		if want := []string{"one", "two"}; entry < second.Head.Entry && !slices.Equal(records, want) {
			t.Errorf("entry %d: records %q, want %q", entry, records, want)
		}
		if by, bySum, _ := restored(t, r, Wanted{Time: s.Head.State}); by.Head.State != s.Head.State || by.Head.Entry == entry && bySum != sum {
			t.Errorf("of %s: %+v", s.Head.State, by.Head)
		}
	}
	if _, _, records := restored(t, r, Wanted{}); !slices.Equal(records, []string{"one", "three", "two"}) {
		t.Errorf("records %q", records)
	}
	if p, err := r.Find(t.Context(), Wanted{Time: third.Head.Made}); err != nil || p.Entry != third.Head.Entry { // it is known that nothing has happened until then
		t.Errorf("when the latest backup was made: %+v, %v", p, err)
	}
	v, err := r.Verify(t.Context(), Wanted{}, nil)
	if err != nil || v.Replayed != second.Head.Entry-first.Head.Entry || v.From != first.Head.Entry || v.Objects == 0 {
		t.Errorf("verified %+v, %v", v, err)
	}
	for _, w := range []Wanted{{Entry: first.Head.Entry - 1}, {Entry: third.Head.Entry + 1}, {Time: past}, {Time: time.Now().Add(time.Second)}, {Backup: "none"}} {
		if p, err := r.Find(t.Context(), w); err == nil {
			t.Errorf("%+v: found %+v", w, p)
		}
	}
}

// A record that leaves memory between two backups is in the archive of a state between them.
func TestRecordsThatLeaveMemoryBetween(t *testing.T) {
	h := newHouse(t)
	r, _ := newDir(t)
	h.must(h.Do(t.Context(), &hosting.CreateQueue{Queue: placement.Queue{Name: "cup", Timeout: time.Minute}}))
	h.take(r)
	for i := range 5 {
		id := fmt.Sprint("placement-", i)
		h.must(h.Do(t.Context(), &hosting.StartPlacement{Placement: placement.Placement{ID: id, Queue: "cup", PlayersMax: 2}}))
		h.must(h.Do(t.Context(), &hosting.StopPlacement{ID: id}))
	}
	waittest.Until(t, "what ended leaves memory", func() bool {
		forgotten := uint64(0)
		h.must(h.Read(t.Context(), func(v *cell.View) error { forgotten = v.Forgotten(); return nil }))
		return forgotten == 5
	})
	before := h.Applied()
	h.work(3)
	h.take(r)
	s, sum, records := restored(t, r, Wanted{Entry: before})
	if sum != h.sumAt(before) || s.Head.Forgotten != 5 || len(records) != 5 {
		t.Errorf("restored %+v with records %q", s.Head, records)
	}
}

// If the journal was trimmed between two backups, there is a gap, which is reported.
func TestGap(t *testing.T) {
	h := newHouse(t)
	r, _ := newDir(t)
	first := h.take(r)
	h.work(3)
	h.gap = true
	second := h.take(r)
	_, err := r.Find(t.Context(), Wanted{Entry: first.Head.Entry + 1})
	if want := fmt.Sprintf("%d, %d", first.Head.Entry, second.Head.Entry); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("an entry that no backup has: %v, want it to name %s", err, want)
	}
	if _, err := r.Find(t.Context(), Wanted{Time: first.Head.State.Add(time.Millisecond)}); err == nil && second.Head.State.Sub(first.Head.State) > 2*time.Millisecond {
		t.Error("a time that no backup has was found")
	}
	if _, sum, _ := restored(t, r, Wanted{Entry: second.Head.Entry}); sum != h.sumAt(second.Head.Entry) {
		t.Error("another state")
	}
	if v, err := r.Verify(t.Context(), Wanted{}, nil); err != nil || v.Replayed != 0 {
		t.Errorf("verified %+v, %v", v, err)
	}
}

// A machine is rolled back to a snapshot, and goes on. Its backups do not mix what happened before and after, whether its next backup has fewer
// entries than the last one from before, or more.
func TestHistoryThatBranches(t *testing.T) {
	for _, more := range []int{5, 40} {
		h := newHouse(t)
		r, _ := newDir(t)
		all := []*Manifest{h.take(r)}
		h.work(19)
		time.Sleep(2 * time.Millisecond) // so that the times before are between the states of two backups, and because the names of runs have milliseconds
		h.work(1)
		all = append(all, h.take(r))
		back := h.back(all[0].Head.Entry+5, all[0].Head.Entry)
		back.ended(time.UnixMilli(all[1].Head.Next-1), "ended")
		time.Sleep(2 * time.Millisecond)
		back.work(more)
		all = append(all, back.take(r))
		back.work(20)
		time.Sleep(2 * time.Millisecond)
		all = append(all, back.take(r))
		if all[1].On != all[0].name || all[2].On != "" || all[3].On != all[2].name || all[3].Head.Entry <= all[1].Head.Entry {
			t.Fatalf("they build on %q, %q, %q", all[1].On, all[2].On, all[3].On)
		}
		if got, want := Reachable(all), fmt.Sprintf("%d to %d, %d to %d", all[0].Head.Entry, all[1].Head.Entry, all[2].Head.Entry, all[3].Head.Entry); got != want {
			t.Errorf("listed as %q, want %q", got, want)
		}
		for entry := all[0].Head.Entry; entry <= all[3].Head.Entry; entry++ {
			of := h
			if entry >= all[2].Head.Entry {
				of = back
			} else if entry > all[1].Head.Entry { // no backup has it
				if p, err := r.Find(t.Context(), Wanted{Entry: entry}); err == nil {
					t.Errorf("entry %d: found %+v", entry, p)
				}
				continue
			}
			s, sum, records := restored(t, r, Wanted{Entry: entry})
			if sum != of.sumAt(entry) || len(records) > 0 != (of == back) {
				t.Errorf("entry %d: a mixed state, with records %q", entry, records)
			}
			if entry == all[1].Head.Entry {
				continue // at its time, more may have happened
			}
			if by, bySum, _ := restored(t, r, Wanted{Time: s.Head.State}); by.Head.State != s.Head.State || by.Head.Entry == entry && bySum != sum {
				t.Errorf("of %s: %+v", s.Head.State, by.Head)
			}
		}
		if v, err := r.Verify(t.Context(), Wanted{}, nil); err != nil || v.From != all[2].Head.Entry || v.Replayed == 0 {
			t.Errorf("verified %+v, %v", v, err)
		}
	}
}

// failing fails from its n-th write on.
type failing struct {
	Store
	left atomic.Int64
}

var errCut = errors.New("the network is gone")

func (f *failing) Put(ctx context.Context, name string, content []byte) error {
	if f.left.Add(-1) < 0 {
		return errCut
	}
	return f.Store.Put(ctx, name, content)
}

// Wherever a backup is interrupted, it does not exist, earlier backups stay whole, and the next one uses the stored objects.
func TestBackupsThatBreakOff(t *testing.T) {
	h := newHouse(t)
	_, path := newDir(t)
	store := &failing{Store: &Dir{Path: path}}
	r := New(store)
	store.left.Store(1 << 40)
	h.ended(time.Now().Add(-time.Hour), "one")
	h.take(r)
	h.work(10)
	for n := int64(0); ; n++ {
		store.left.Store(n)
		m, err := r.Take(t.Context(), h.options())
		if err == nil {
			if n < 2 || m.Made > 2048 {
				t.Errorf("made with %d writes and %d new bytes: nothing of those that broke off was used", n, m.Made)
			}
			break
		}
		if !errors.Is(err, errCut) {
			t.Fatalf("after %d writes: %v", n, err)
		}
		all, err := r.List(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("after %d writes there are %d backups, %v", n, len(all), err)
		}
		if _, err := r.Verify(t.Context(), Wanted{}, nil); err != nil {
			t.Errorf("after %d writes: %v", n, err)
		}
	}
	if _, err := r.Verify(t.Context(), Wanted{}, nil); err != nil {
		t.Error(err)
	}
}

// deaf stores manifests and does not get the answer.
type deaf struct{ Store }

func (d deaf) Put(ctx context.Context, name string, content []byte) error {
	err := d.Store.Put(ctx, name, content)
	if strings.HasPrefix(name, manifestsBelow) {
		err = errors.Join(err, errCut)
	}
	return err
}

// A backup whose command failed does not exist, even if the manifest was stored and only the answer was lost.
func TestLostAnswerToTheManifest(t *testing.T) {
	h := newHouse(t)
	r, path := newDir(t)
	first := h.take(r)
	h.work(1)
	if m, err := New(deaf{&Dir{Path: path}}).Take(t.Context(), h.options()); !errors.Is(err, errCut) {
		t.Errorf("made %+v, %v", m, err)
	}
	if all, err := r.List(t.Context()); err != nil || len(all) != 1 || all[0].Name != first.Name() {
		t.Errorf("backups %+v, %v", all, err)
	}
}

// A stream that is truncated anywhere makes no backup.
func TestStreamsThatAreCut(t *testing.T) {
	h := newHouse(t)
	r, _ := newDir(t)
	h.take(r)
	h.work(5)
	in, err := h.stream(t.Context(), nil)
	h.must(err)
	whole, err := io.ReadAll(in)
	h.must(err)
	for cut := range whole {
		if cut%37 != 0 && cut < len(whole)-20 {
			continue
		}
		o := h.options()
		o.Stream = func(context.Context, *backup.Since) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(whole[:cut])), nil
		}
		if _, err := r.Take(t.Context(), o); !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("cut after %d bytes: %v", cut, err)
		}
	}
	if all, err := r.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%d backups, %v", len(all), err)
	}
}

// Damage of any object is detected, and no new backup builds on one that lacks objects.
func TestDamageOfObjects(t *testing.T) {
	h := newHouse(t)
	r, path := newDir(t)
	h.ended(time.Now().Add(-time.Hour), "one")
	h.take(r)
	h.work(5)
	h.take(r)
	objects := 0
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == marker {
			return err
		}
		objects++
		whole, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for what, content := range map[string][]byte{"changed": flipped(whole), "cut": whole[:len(whole)-1], "missing": nil} {
			if content == nil {
				err = os.Remove(name)
			} else {
				err = os.WriteFile(name, content, 0o600)
			}
			if err != nil {
				return err
			}
			_, err := r.Verify(t.Context(), Wanted{}, nil)
			if manifest := strings.HasSuffix(name, ".json"); what == "missing" && manifest { // the backup does not exist
				if err != nil {
					t.Errorf("%s %s: %v", name, what, err)
				}
			} else if !errors.Is(err, backup.ErrDamaged) {
				t.Errorf("%s %s: %v", name, what, err)
			}
		}
		return os.WriteFile(name, whole, 0o600)
	})
	if err != nil || objects < 5 {
		t.Fatalf("%d objects, %v", objects, err)
	}
	latest := h.latest(r)
	h.must(os.Remove(filepath.Join(path, objectName(latest.State[0].Name))))
	time.Sleep(2 * time.Millisecond) // the names of runs have milliseconds
	if m := h.take(r); m.On != "" {
		t.Errorf("it builds on %s, which is damaged", m.On)
	}
	s, sum, records := restored(t, r, Wanted{})
	if sum != h.sumAt(s.Head.Entry) || len(records) != 1 {
		t.Errorf("restored %+v, %q", s, records)
	}
}

// A recent object is damaged while the service still has its content: the next backup stores it again if it notices the damage or is full.
func TestDamagedObjectsAreStoredAgain(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(content []byte) []byte
		full   bool
	}{
		"cut, which the next backup notices": {func(content []byte) []byte { return content[:len(content)-1] }, false},
		"changed, and a full backup":         {flipped, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			r, path := newDir(t)
			h.ended(time.Now().Add(-time.Hour), "one")
			first := h.take(r)
			first.each(func(x Ref) {
				file := filepath.Join(path, filepath.FromSlash(objectName(x.Name)))
				content, err := os.ReadFile(file)
				h.must(err)
				h.must(os.WriteFile(file, c.damage(content), 0o600))
			})
			time.Sleep(2 * time.Millisecond) // the names of runs have milliseconds
			options := h.options()
			options.Full = c.full
			m, err := r.Take(t.Context(), options)
			h.must(err)
			if s, sum, records := restored(t, r, Wanted{}); s.Head.Entry != m.Head.Entry || sum != h.sumAt(m.Head.Entry) || len(records) != 1 {
				t.Errorf("restored %+v, %q", s, records)
			}
		})
	}
}

// The error for a damaged backup names the latest earlier backup that is whole.
func TestDamageNamesTheBackupThatIsWhole(t *testing.T) {
	h := newHouse(t)
	r, path := newDir(t)
	var made []*Manifest
	for range 3 {
		h.work(3)
		made = append(made, h.take(r))
		time.Sleep(2 * time.Millisecond) // the names of runs have milliseconds
	}
	damage := func(m *Manifest) {
		h.must(os.WriteFile(filepath.Join(path, filepath.FromSlash(objectName(m.State[0].Name))), nil, 0o600))
	}
	fails := func(w Wanted, want string) {
		t.Helper()
		p, err := r.Find(t.Context(), w)
		h.must(err)
		in, err := p.Open(t.Context(), nil)
		h.must(err)
		defer in.Close()
		_, _, err = backup.Verify(in, cell.DefaultConfig(), nil)
		if err = p.Advise(t.Context(), err); !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want %q", w, err, want)
		}
	}
	damage(made[2])
	fails(Wanted{}, "--backup "+made[1].Name())
	damage(made[1])
	fails(Wanted{}, "--backup "+made[0].Name())
	fails(Wanted{Backup: made[1].Name()}, "--backup "+made[0].Name())
	if _, err := r.Verify(t.Context(), Wanted{}, nil); !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), "1 of 3 backups is intact, the latest of them "+made[0].Name()) || !strings.Contains(err.Error(), "--full") {
		t.Error(err)
	}
	damage(made[0])
	fails(Wanted{}, "no earlier backup is intact")
	if _, err := r.Verify(t.Context(), Wanted{}, nil); !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), "no backup is intact") {
		t.Error(err)
	}
}

// If the manifest of the latest backup is damaged, an earlier state is never silently taken for the latest one.
func TestDamageOfTheLatestManifest(t *testing.T) {
	h := newHouse(t)
	r, path := newDir(t)
	h.work(3)
	first := h.take(r)
	h.work(3)
	time.Sleep(2 * time.Millisecond) // the names of runs have milliseconds
	second := h.take(r)
	h.must(os.WriteFile(filepath.Join(path, filepath.FromSlash(second.name)), []byte("{}"), 0o600))
	for _, w := range []Wanted{{}, {Time: time.Now()}} {
		_, err := r.Find(t.Context(), w)
		if !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), second.Name()+", is damaged") || !strings.Contains(err.Error(), "--backup "+first.Name()) {
			t.Errorf("%+v: %v", w, err)
		}
	}
	for _, w := range []Wanted{{Backup: first.Name()}, {Entry: first.Head.Entry}, {Time: first.Head.State}} {
		if s, _, _ := restored(t, r, w); s.Head.Entry != first.Head.Entry {
			t.Errorf("%+v: entry %d, want %d", w, s.Head.Entry, first.Head.Entry)
		}
	}
	third := h.take(r)
	if s, _, _ := restored(t, r, Wanted{}); s.Head.Entry != third.Head.Entry {
		t.Errorf("behind a later backup: entry %d, want %d", s.Head.Entry, third.Head.Entry)
	}
}

// A restore begins a new installation. A search for an earlier state then names the backup that has it.
func TestStatesOfAFormerInstallation(t *testing.T) {
	before := newHouse(t)
	r, _ := newDir(t)
	before.work(5)
	former := before.take(r)
	time.Sleep(2 * time.Millisecond) // the names of runs have milliseconds
	after := newHouse(t)
	after.work(50)
	latest := after.take(r)
	for _, w := range []Wanted{{Entry: former.Head.Entry}, {Time: time.Now().Add(-time.Hour)}} {
		if _, err := r.Find(t.Context(), w); err == nil || !strings.Contains(err.Error(), former.Name()) || !strings.Contains(err.Error(), "--backup") {
			t.Errorf("%+v: %v", w, err)
		}
	}
	if s, _, _ := restored(t, r, Wanted{}); s.Head.Entry != latest.Head.Entry {
		t.Errorf("restored entry %d, want %d", s.Head.Entry, latest.Head.Entry)
	}
}

// Two installations that alternately make backups in one place do not remove each other's states: all listed states can be restored.
func TestInstallationsThatAlternate(t *testing.T) {
	one, other := newHouse(t), newHouse(t)
	r, _ := newDir(t)
	var all []*Manifest
	for _, h := range []*house{one, other, one, other, one} {
		h.work(5)
		all = append(all, h.take(r))
		time.Sleep(2 * time.Millisecond) // the names of runs have milliseconds
	}
	if got, want := Reachable(all), Reachable([]*Manifest{all[0], all[2], all[4]}); got != want || !strings.HasPrefix(got, fmt.Sprint(all[0].Head.Entry)) {
		t.Errorf("listed as %q, want %q", got, want)
	}
	for _, m := range []*Manifest{all[0], all[2], all[4]} {
		if _, err := r.Find(t.Context(), Wanted{Entry: m.Head.Entry}); err != nil {
			t.Errorf("entry %d: %v", m.Head.Entry, err)
		}
	}
}

func flipped(content []byte) []byte {
	changed := bytes.Clone(content)
	changed[len(changed)/2] ^= 4
	return changed
}

// Old backups are removed together with the objects that only they need, once these are old.
func TestKeep(t *testing.T) {
	h := newHouse(t)
	r, path := newDir(t)
	for range 4 {
		h.work(3)
		h.take(r)
		time.Sleep(2 * time.Millisecond) // the names of runs have milliseconds
	}
	count := func() (n int) {
		t.Helper()
		all, _, err := r.store.List(t.Context(), objectsBelow)
		h.must(err)
		return len(all)
	}
	before := count()
	age := func(dir string) {
		t.Helper()
		old := time.Now().Add(-oldAfter - time.Hour)
		h.must(filepath.WalkDir(filepath.Join(path, dir), func(name string, entry fs.DirEntry, err error) error {
			return cmp.Or(err, os.Chtimes(name, old, old))
		}))
	}
	if removed, err := r.Keep(t.Context(), 2); err != nil || removed != 0 || count() != before {
		t.Errorf("removed %d young backups, %v; %d of %d objects are left", removed, err, count(), before)
	}
	age("backups")
	if removed, err := r.Keep(t.Context(), 2); err != nil || removed != 2 || count() != before {
		t.Errorf("removed %d, %v; %d of %d young objects are left", removed, err, count(), before)
	}
	left := filepath.Join(path, "backups", "."+strings.TrimPrefix(nameOf(1, runName(time.Now(), nil)), manifestsBelow)+".123") // by a command that was killed while it wrote a manifest
	h.must(os.WriteFile(left, []byte("{"), 0o600))
	age("objects")
	if removed, err := r.Keep(t.Context(), 2); err != nil || removed != 0 || count() >= before {
		t.Errorf("removed %d, %v; %d of %d objects are left", removed, err, count(), before)
	}
	if _, err := os.Stat(left); err != nil {
		t.Errorf("a manifest that may be being written: %v", err)
	}
	age("backups")
	if removed, err := r.Keep(t.Context(), 2); err != nil || removed != 0 {
		t.Errorf("removed %d, %v", removed, err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a manifest that was never complete: %v", err)
	}
	if _, err := r.Verify(t.Context(), Wanted{}, nil); err != nil {
		t.Error(err)
	}
	latest := h.latest(r)
	h.must(os.WriteFile(filepath.Join(path, filepath.FromSlash(latest.name)), []byte("{}"), 0o600))
	age("backups")
	if _, err := r.Keep(t.Context(), 2); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("beside a damaged backup: %v", err)
	}
}

// The clock was ahead when a backup was made. Later backups count as later all the same: each builds on the one before it, a restore takes the last one,
// and Keep keeps it.
func TestClockThatWasAhead(t *testing.T) {
	h := newHouse(t)
	r, path := newDir(t)
	latest := h.take(r)
	h.must(os.Remove(filepath.Join(path, filepath.FromSlash(latest.name))))
	latest.Run = "20990101T235959999Z-00000000"
	latest.name = nameOf(latest.Head.Entry, latest.Run)
	content, err := latest.encode()
	h.must(err)
	h.must(r.store.Put(t.Context(), latest.name, content))
	for range 2 {
		h.work(1)
		next := h.take(r)
		if next.On != latest.name {
			t.Errorf("%s builds on %q, want %q", next.Name(), next.On, latest.name)
		}
		latest = next
	}
	if p, err := r.Find(t.Context(), Wanted{}); err != nil || p.Entry != latest.Head.Entry {
		t.Errorf("found %+v, %v", p, err)
	}
	names, err := r.names(t.Context())
	h.must(err)
	for _, name := range names {
		old := time.Now().Add(-time.Hour)
		h.must(os.Chtimes(filepath.Join(path, filepath.FromSlash(name)), old, old))
	}
	if removed, err := r.Keep(t.Context(), 1); err != nil || removed != 2 {
		t.Errorf("removed %d, %v", removed, err)
	}
	if all, err := r.List(t.Context()); err != nil || len(all) != 1 || all[0].Name != latest.Name() {
		t.Errorf("kept %+v, %v", all, err)
	}
}

// A backup by a machine whose clock is far ahead has the records that the service still has, although they have expired by that clock.
func TestRecordsThatOnlyAClockExpires(t *testing.T) {
	h := newHouse(t)
	r, _ := newDir(t)
	h.ended(time.Now().Add(-time.Hour), "one")
	h.take(r)
	h.work(1)
	h.ahead = 2 * engine.DefaultRetention
	h.take(r)
	if _, _, records := restored(t, r, Wanted{}); !slices.Equal(records, []string{"one"}) {
		t.Errorf("records %q", records)
	}
}

// Several programs make and remove backups of one repository at the same time: every existing backup is whole.
func TestManyAtOnce(t *testing.T) {
	h := newHouse(t)
	r, path := newDir(t)
	h.take(r)
	old := time.Now().Add(-oldAfter - time.Hour)
	age := func() error { // all that has not been used for long looks old to the others
		return filepath.WalkDir(filepath.Join(path, "objects"), func(name string, _ fs.DirEntry, err error) error {
			if err == nil {
				err = os.Chtimes(name, old, old)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
	}
	h.must(age())
	var made atomic.Int64
	var programs sync.WaitGroup
	for range 4 {
		programs.Go(func() {
			for range 5 {
				h.work(2)
				if m, err := New(&Dir{Path: path}).Take(t.Context(), h.options()); err == nil {
					made.Add(1)
					if err := os.Chtimes(filepath.Join(path, filepath.FromSlash(m.name)), old, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
						t.Error(err)
					}
				} else if !strings.Contains(err.Error(), "was removed while") {
					t.Error(err)
				}
				if _, err := New(&Dir{Path: path}).Keep(t.Context(), 2); err != nil {
					t.Error(err)
				}
			}
		})
	}
	programs.Wait()
	if all, err := r.List(t.Context()); err != nil || len(all) == 0 || made.Load() == 0 {
		t.Fatalf("%d backups, %d made, %v", len(all), made.Load(), err)
	}
	if _, err := r.Verify(t.Context(), Wanted{}, nil); err != nil {
		t.Error(err)
	}
}

// Many small segments are merged into few.
func TestSmallSegments(t *testing.T) {
	h := newHouse(t)
	r, _ := newDir(t)
	var want []string
	most := 0
	var m *Manifest
	for i := range 2 * smallMost {
		name := fmt.Sprintf("record-%03d", i)
		want = append(want, name)
		next := time.Now().Add(-time.Hour).UnixMilli()
		if m != nil {
			next = m.Head.Next
		}
		h.ended(time.UnixMilli(next), name)
		time.Sleep(2 * time.Millisecond) // the state is later than the record
		h.work(1)
		m = h.take(r)
		most = max(most, len(m.Records))
	}
	if most > smallMost+1 || len(m.Records) > smallMost+1 {
		t.Errorf("a backup has %d segments", most)
	}
	if _, _, records := restored(t, r, Wanted{}); !slices.Equal(records, want) {
		t.Errorf("records %q", records)
	}
}

// This tests places with other files, without disk space, and with backups of another installation.
func TestPlaces(t *testing.T) {
	h := newHouse(t)
	dir := t.TempDir()
	h.must(os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600))
	if _, err := New(NewDir(dir)).Take(t.Context(), h.options()); err == nil || !strings.Contains(err.Error(), "mine") {
		t.Errorf("a directory with something else: %v", err)
	}
	if _, err := New(NewDir(dir)).List(t.Context()); !errors.Is(err, fs.ErrNotExist) || err.Error() != dir+" has no backups" {
		t.Errorf("a directory without backups: %v", err)
	}
	full := New(&Dir{Path: filepath.Join(t.TempDir(), "full"), leave: 1 << 62})
	if _, err := full.Take(t.Context(), h.options()); err == nil || !strings.Contains(err.Error(), "must stay free") {
		t.Errorf("a full disk: %v", err)
	}
	r, _ := newDir(t)
	h.take(r)
	time.Sleep(2 * time.Millisecond) // the names of runs have milliseconds
	other := newHouse(t)
	other.work(3)
	m := other.take(r)
	if m.On != "" {
		t.Errorf("a backup of another installation builds on %s", m.On)
	}
	if s, sum, _ := restored(t, r, Wanted{}); s.Head.Installation != other.installation || sum != other.sumAt(s.Head.Entry) {
		t.Errorf("restored %+v", s.Head)
	}
}

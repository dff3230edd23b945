package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
)

const smallRecords = 60

// smallRecord returns a record of a small archive: three puts, each with two lists.
func smallRecord(n int) archive.Record {
	return archive.Record{
		Kind: archive.GameSession, ID: fmt.Sprintf("game-%d", n), Created: int64(1000 + n), Ended: int64(n/7) * 3_600_000,
		Fleet: fmt.Sprintf("fleet-%d", n%2), Data: bytes.Repeat([]byte(fmt.Sprintf("%d.", n)), 80),
	}
}

// smallArchive returns a disk with three tables, one of them merged, and a block in which a record was replaced.
func smallArchive(t testing.TB) *embeddbtest.Disk {
	t.Helper()
	disk := embeddbtest.NewDisk()
	a, err := Open(onFaultyDisk(disk))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.SetInstallation(uuid.UUID{9}, archive.Mark{}); err != nil {
		t.Fatal(err)
	}
	for part := range 3 {
		var records []archive.Record
		for n := part * smallRecords / 3; n < (part+1)*smallRecords/3; n++ {
			records = append(records, smallRecord(n))
		}
		a.SetMark(archive.Mark{Journal: uint64(part + 1), Forgotten: uint64(len(records) * (part + 1))})
		if err := a.Put(t.Context(), append(records, smallRecord(0))); err != nil {
			t.Fatal(err)
		}
		if part == 1 {
			if err := a.db.Compact(context.Background(), []byte{0}, []byte{0xff}, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	return disk
}

func isDamaged(err error) bool {
	_, ok := errors.AsType[*archive.Damaged](err)
	return ok && !errors.Is(err, archive.ErrFailed)
}

// checkReads checks that every read returns the right answer or *Damaged. It returns the missing records.
func checkReads(t *testing.T, what string, a *Archive) (missing []int) {
	t.Helper()
	for n := range smallRecords {
		want := smallRecord(n)
		got, found, err := a.Get(t.Context(), want.Kind, want.ID)
		switch {
		case isDamaged(err):
			missing = append(missing, n)
		case err != nil:
			t.Fatalf("%s: get %s: %v", what, want.ID, err)
		case !found || got.Created != want.Created || !bytes.Equal(got.Data, want.Data):
			t.Fatalf("%s: get %s: found %t, created %d: neither right nor *Damaged", what, want.ID, found, got.Created)
		}
	}
	if _, found, err := a.Get(t.Context(), archive.GameSession, "another"); found || err != nil && !isDamaged(err) {
		t.Fatalf("%s: get what was never put: found %t, %v", what, found, err)
	}
	for fleet := range 2 {
		listed, err := a.List(t.Context(), archive.GameSession, archive.ByFleet, fmt.Sprintf("fleet-%d", fleet), archive.Cursor{}, 1000)
		if err != nil && !isDamaged(err) {
			t.Fatalf("%s: list: %v", what, err)
		}
		at := 0
		for n := fleet; n < smallRecords; n += 2 {
			switch {
			case at < len(listed) && listed[at].ID == smallRecord(n).ID && bytes.Equal(listed[at].Data, smallRecord(n).Data):
				at++
			case err == nil:
				t.Fatalf("%s: list of fleet %d: record %d is not there, and no damage is told", what, fleet, n)
			}
		}
		if at != len(listed) {
			t.Fatalf("%s: list of fleet %d: %d records, of which %d are right and in order", what, fleet, len(listed), at)
		}
	}
	checkPages(t, what, a)
	return missing
}

// checkPages checks that a copy gets every record or an error about damage, and no wrong record.
func checkPages(t *testing.T, what string, a *Archive) {
	t.Helper()
	got, damaged := map[string]archive.Record{}, 0
	for place, more := (archive.Place{}), true; more; {
		page, err := a.Page(t.Context(), place, 4000)
		if err != nil {
			t.Fatalf("%s: a page behind %+v: %v", what, place, err)
		}
		for _, r := range page.Records {
			got[r.ID] = r
		}
		damaged += page.Damaged
		place, more = page.Next, page.More
	}
	for n := range smallRecords {
		want := smallRecord(n)
		switch r, came := got[want.ID]; {
		case !came && damaged == 0:
			t.Fatalf("%s: record %d is not in the pages, and no damage is told", what, n)
		case came && (r.Created != want.Created || !bytes.Equal(r.Data, want.Data)):
			t.Fatalf("%s: record %d is wrong in a page", what, n)
		}
	}
}

// TestAFlippedBitIsToldAndRepaired flips bits in every file of a small archive. Every read returns the correct answer or *Damaged, new
// records can be stored, and the repair loses only the records of the damaged block or table.
func TestAFlippedBitIsToldAndRepaired(t *testing.T) {
	whole := smallArchive(t)
	names, err := whole.List("data")
	if err != nil {
		t.Fatal(err)
	}
	inFile := 8 // flips; the places move with each file
	if testing.Short() {
		inFile = 2
	}
	flips, refused, lostTables := 0, 0, map[string]bool{}
	for i, name := range names {
		if name == "LOCK" || name == "LOCK.holder" || strings.HasPrefix(name, "OPTIONS") {
			continue
		}
		file := whole.PathJoin("data", name)
		content := embeddbtest.ReadFile(t, whole.Mem(), file)
		if len(content) == 0 {
			continue
		}
		stride := max(1, len(content)/inFile)
		for at := (i * 31) % stride; at < len(content); at += stride {
			flips++
			disk := whole.Crash()
			damaged := bytes.Clone(content)
			damaged[at] ^= 1 << (at % 8)
			embeddbtest.WriteFile(t, disk.Mem(), file, damaged)
			what := fmt.Sprintf("%s, bit %d of byte %d of %d flipped", name, at%8, at, len(content))

			a, err := Open(onFaultyDisk(disk))
			older := false // the manifest's last record is gone, and the mark tells
			if err == nil {
				m, ok, markErr := a.Mark()
				older = strings.HasPrefix(name, "MANIFEST") && (markErr != nil || !ok || m.Journal < 3)
			}
			if older {
				if err := a.Close(); err != nil {
					t.Fatalf("%s: close: %v", what, err)
				}
			} else if err == nil {
				missing := checkReads(t, what, a)
				if len(missing) > 0 && len(a.Damage()) == 0 {
					t.Fatalf("%s: %d records cannot be read, and Damage says nothing", what, len(missing))
				}
				another := smallRecord(1000)
				if err := a.Put(t.Context(), []archive.Record{another}); err != nil {
					t.Fatalf("%s: put: %v", what, err)
				}
				if _, found, err := a.Get(t.Context(), another.Kind, another.ID); !found && !isDamaged(err) {
					t.Fatalf("%s: what was put is not there: %v", what, err)
				}
				if _, err := a.Expire(t.Context(), 1, 100); err != nil {
					t.Fatalf("%s: expire: %v", what, err)
				}
				if err := a.Close(); err != nil {
					t.Fatalf("%s: close: %v", what, err)
				}
			} else {
				refused++
				if !isDamaged(err) && !strings.Contains(err.Error(), "format") {
					t.Fatalf("%s: open: %v", what, err)
				}
			}

			// The repair is tried on the archive as it was damaged.
			disk = whole.Crash()
			embeddbtest.WriteFile(t, disk.Mem(), file, damaged)
			s, err := look(t.Context(), disk, "data")
			if err != nil {
				t.Fatalf("%s: look: %v", what, err)
			}
			if err := s.write(t.Context(), "repaired"); err != nil {
				t.Fatalf("%s: repair: %v", what, err)
			}
			o := onFaultyDisk(disk)
			o.Dir = "repaired"
			a, err = Open(o)
			if err != nil {
				t.Fatalf("%s: open the repaired archive: %v", what, err)
			}
			lost := map[uint64]bool{}
			for _, b := range s.report.Lost {
				lost[b.Number] = true
			}
			for n := range smallRecords {
				if _, found, err := a.Get(t.Context(), archive.GameSession, smallRecord(n).ID); err != nil {
					t.Fatalf("%s: get from the repaired archive: %v", what, err)
				} else if !found {
					if strings.HasSuffix(name, ".sst") && len(s.report.Damage) > 0 {
						lostTables[name] = true
						continue
					}
					t.Fatalf("%s: record %d is lost, and nothing was damaged", what, n)
				}
			}
			if len(s.report.Damage) == 0 && strings.HasSuffix(name, ".sst") && !bytes.Equal(content, damaged) && !s.report.Whole() {
				t.Fatalf("%s: blocks %v are lost without damage", what, s.report.Lost)
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if flips < 5 || refused == 0 || len(lostTables) == 0 {
		t.Errorf("%d flips, %d stopped the start, records were lost in tables %v: the test damages too little", flips, refused, lostTables)
	}
}

// A block that was found damaged is not read again: Pebble would search it for the flipped bit each time.
func TestDamageIsReadOnce(t *testing.T) {
	whole := smallArchive(t)
	names, err := whole.List("data")
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		file := whole.PathJoin("data", name)
		content := embeddbtest.ReadFile(t, whole.Mem(), file)
		content[10] ^= 1 // records come first
		embeddbtest.WriteFile(t, whole.Mem(), file, content)
		table, err := openTable(t.Context(), whole, file)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := table.from(nil, func(entry) bool { return true }); err == nil {
				t.Errorf("%s: a damaged block was read", name)
			}
		}
		damaged += len(table.file.damaged)
		for at := range table.file.damaged {
			if _, err := table.file.ReadAt(make([]byte, at.length), at.offset); err == nil {
				t.Errorf("%s: the damaged block was read again", name)
			}
		}
		table.close()
	}
	if damaged == 0 {
		t.Error("no table has a damaged block: the test damages too little")
	}
}

// A damaged block of keys loses no records, because the repair rebuilds the keys. A damaged block of records loses these, and the report
// describes them.
func TestARepairLosesOnlyTheDamagedBlock(t *testing.T) {
	const all = 400
	random := rand.New(rand.NewPCG(1, 2))
	record := func(n int) archive.Record {
		r := smallRecord(n)
		r.Data = make([]byte, 300)
		for i := range r.Data {
			r.Data[i] = byte(random.Uint32())
		}
		return r
	}
	disk := embeddbtest.NewDisk()
	whole, err := Open(onFaultyDisk(disk))
	if err != nil {
		t.Fatal(err)
	}
	if err := whole.SetInstallation(uuid.UUID{9}, archive.Mark{}); err != nil {
		t.Fatal(err)
	}
	whole.SetMark(archive.Mark{Journal: 3})
	covers := archive.Coverage{Entry: 3, Next: 4, Lacks: true, From: 2}
	if err := whole.SetCoverage(t.Context(), covers); err != nil {
		t.Fatal(err)
	}
	var records []archive.Record
	for n := range all {
		records = append(records, record(n))
	}
	if err := errors.Join(whole.Put(t.Context(), records), whole.Close()); err != nil {
		t.Fatal(err)
	}
	names, err := disk.List("data")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	var table string
	for _, name := range names {
		path := disk.PathJoin("data", name)
		if strings.HasSuffix(name, ".sst") && len(embeddbtest.ReadFile(t, disk.Mem(), path)) > 50_000 {
			table = path
		}
	}
	content := embeddbtest.ReadFile(t, disk.Mem(), table)
	content[100] ^= 1 // records come first
	embeddbtest.WriteFile(t, disk.Mem(), table, content)
	s, err := look(t.Context(), disk, "data")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.report.Damage) != 1 || len(s.report.Lost) == 0 || s.report.Installation != (uuid.UUID{9}) || s.report.Mark == nil {
		t.Fatalf("report %+v", s.report)
	}
	counted := 0
	for _, b := range s.report.Lost {
		counted += b.Records[archive.GameSession]
		if b.First < 1000 || b.Last < b.First {
			t.Errorf("lost block %+v", b)
		}
	}
	if err := s.write(t.Context(), "repaired"); err != nil {
		t.Fatal(err)
	}
	o := onFaultyDisk(disk)
	o.Dir = "repaired"
	a, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	missing := 0
	for n := range all {
		if _, found, err := a.Get(t.Context(), archive.GameSession, smallRecord(n).ID); err != nil {
			t.Fatal(err)
		} else if !found {
			missing++
		}
	}
	if missing == 0 || missing != counted || missing > all/2 {
		t.Errorf("%d records are missing, the report says %d", missing, counted)
	}
	again, err := look(t.Context(), disk, "repaired")
	if err != nil || !again.report.Whole() || again.report.Records == 0 {
		t.Errorf("the repaired archive: %+v, %v", again.report, err)
	}
	if c, ok, err := a.Coverage(); err != nil || !ok || c != covers {
		t.Errorf("after the repair the coverage is %+v, %t, %v, want %+v", c, ok, err, covers)
	}
	if m, ok, err := a.Mark(); err != nil || !ok || m.Journal != 3 || a.Installation() != (uuid.UUID{9}) {
		t.Errorf("mark %+v, %t, %v, installation %s", m, ok, err, a.Installation())
	}
}

func unrecorded(*Report, string) error { return nil }

func TestRepairReplacesTheFolder(t *testing.T) {
	dir := path.Join(t.TempDir(), "archive")
	a, err := Open(Options{Dir: dir, MemTable: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	for n := range smallRecords {
		if err := a.Put(t.Context(), []archive.Record{smallRecord(n)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := Repair(t.Context(), dir, uuid.Nil, unrecorded); !errors.Is(err, archive.ErrInUse) {
		t.Fatalf("repair of an archive in use: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	report, kept, err := Repair(t.Context(), dir, uuid.Nil, unrecorded)
	if err != nil || kept != "" || !report.Whole() || report.Records != smallRecords {
		t.Fatalf("repair of a whole archive: %+v, kept %q, %v", report, kept, err)
	}
	tables, err := vfs.Default.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	tables = slices.DeleteFunc(tables, func(name string) bool { return !strings.HasSuffix(name, ".sst") })
	damaged := path.Join(dir, slices.Min(tables))
	content := embeddbtest.ReadFile(t, vfs.Default, damaged)
	content[100] ^= 1
	embeddbtest.WriteFile(t, vfs.Default, damaged, content)
	report, kept, err = Repair(t.Context(), dir, uuid.UUID{5}, unrecorded)
	if err != nil || kept == "" || report.Whole() {
		t.Fatalf("repair: %+v, kept %q, %v", report, kept, err)
	}
	// All is lost when a compaction had merged everything into one table.
	if report, err := Check(t.Context(), dir); err != nil || !report.Whole() || report.Records == 0 && len(tables) > 1 {
		t.Errorf("check after the repair: %+v, %v", report, err)
	}
	if report, err := Check(t.Context(), kept); err != nil || report.Whole() {
		t.Errorf("check of what was kept: %+v, %v", report, err)
	}
	if a, err = Open(Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if a.Installation() != (uuid.UUID{5}) {
		t.Errorf("installation %s", a.Installation())
	}
}

// An archive in use may be writing a table that has no end yet. That is not damage.
func TestCheckWaitsForATableThatIsBeingWritten(t *testing.T) {
	dir := t.TempDir()
	table := filepath.Join(dir, "000011.sst")
	if err := os.WriteFile(table, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if report, err := Check(t.Context(), dir); err != nil || report.Whole() {
		t.Errorf("a table that stays empty: %+v, %v, want it damaged", report, err)
	}
	synctest.Test(t, func(t *testing.T) { // the second reading comes behind the removal, however slow this machine is
		removed := make(chan error, 1)
		go func() {
			time.Sleep(lookAgainAfter / 5)
			removed <- os.Remove(table)
		}()
		if report, err := Check(t.Context(), dir); err != nil || !report.Whole() {
			t.Errorf("a table that was there for a moment: %+v, %v, want nothing damaged", report, err)
		}
		if err := <-removed; err != nil {
			t.Fatal(err)
		}
	})
}

// A full disk ends a repair, because no other work frees space while an operator waits for the command.
func TestRepairOnAFullDisk(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	disk := embeddbtest.NewDisk()
	a, err := Open(onFaultyDisk(disk))
	if err != nil {
		t.Fatal(err)
	}
	var records []archive.Record
	for n := range 1000 {
		r := smallRecord(n)
		r.Data = make([]byte, 300)
		for i := range r.Data {
			r.Data[i] = byte(random.Uint32())
		}
		records = append(records, r)
	}
	if err := errors.Join(a.Put(t.Context(), records), a.Close()); err != nil {
		t.Fatal(err)
	}
	s, err := look(t.Context(), disk, "data")
	if err != nil {
		t.Fatal(err)
	}
	disk.Fill(100 << 10)
	ended := make(chan error, 1)
	go func() { ended <- s.write(t.Context(), "repaired") }()
	select {
	case err := <-ended:
		if !errors.Is(err, syscall.ENOSPC) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the repair hangs")
	}
}

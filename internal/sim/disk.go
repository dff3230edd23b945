package sim

import (
	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/archive/archivetest"
	archivepebble "github.com/musterhq/muster/internal/archive/pebble"
	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/journal/journaltest"
	journalpebble "github.com/musterhq/muster/internal/journal/pebble"
)

// disk is the storage of a world, which outlives its services.
type disk interface {
	// open opens journal and archive, and fences those that an earlier service left open, unless it has crashed.
	open() (journal.Journal, archive.Archive, error)
	// crash is the sudden end of the machine.
	crash()
	// stopped is the end of the process of a service that cannot continue.
	stopped()
	// heal ends all faults.
	heal()
	// off reports whether the power was cut, after which nothing works until the next open.
	off() bool
}

// memory is a disk without files: journal and archive in memory, whose outcomes depend only on the seed.
type memory struct {
	journal *journaltest.Memory
	archive *archivetest.Memory
}

func newMemory(seed uint64) *memory {
	return &memory{journal: journaltest.NewMemory(seed), archive: archivetest.NewMemory(seed)}
}

func (m *memory) open() (journal.Journal, archive.Archive, error) {
	j, err := m.journal.Open()
	if err != nil {
		return nil, nil, err
	}
	a, err := m.archive.Open()
	return j, a, err
}

func (m *memory) crash() {
	m.journal.Crash()
	m.archive.Crash()
}

func (m *memory) stopped() { m.archive.Crash() } // whatever its state

func (m *memory) heal() {
	m.journal.SetFaults(journaltest.Faults{})
	m.archive.SetFaults(archivetest.Faults{})
}

func (m *memory) off() bool { return false }

// files is a disk with the real engines' files and power cuts: between two moves of the world, or at any change that an engine makes,
// also while it opens. The engines' own goroutines run concurrently with the world, so a seed reproduces its finding only most of the
// time.
type files struct {
	power   *embeddbtest.Power
	chance  func(n int) int
	within  int // a cut comes within this number of changes after an opening; 0: never by itself
	journal journal.Journal
	archive archive.Archive
	cuts    int
}

func newFiles(seed uint64, chance func(n int) int) *files {
	return &files{power: embeddbtest.NewPower(seed), chance: chance, within: 1000}
}

// small tables let a world of some thousand steps use as many logs and tables as a real service in days.
const (
	journalTable = 16 << 10
	archiveTable = 16 << 10
)

func (f *files) open() (j journal.Journal, a archive.Archive, err error) {
	f.close()
	if f.within > 0 && f.chance(3) > 0 {
		f.power.CutAfter(1 + f.chance(1+f.chance(f.within)))
	}
	if j, err = journalpebble.Open(journalpebble.Options{Dir: "data/journal", FS: f.power, MemTable: journalTable}); err != nil {
		return nil, nil, err
	}
	f.journal = j
	if a, err = archivepebble.Open(archivepebble.Options{Dir: "data/archive", FS: f.power, MemTable: archiveTable}); err != nil {
		return nil, nil, err
	}
	f.archive = a
	return j, a, nil
}

// close closes the engines and continues with the present content of the disk.
func (f *files) close() {
	if f.journal != nil {
		_ = f.journal.Close()
		f.journal = nil
	}
	if f.archive != nil {
		_ = f.archive.Close()
		f.archive = nil
	}
	if f.power.Off() {
		f.cuts++
		f.power = f.power.Survivor()
	}
}

func (f *files) crash() {
	f.power.Cut()
	f.close()
}

func (f *files) stopped() { f.close() }

func (f *files) heal() {
	f.within = 0
	f.power.CutAfter(0)
}

func (f *files) off() bool { return f.power.Off() }

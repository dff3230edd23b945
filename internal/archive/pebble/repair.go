package pebble

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/embeddb"
)

const (
	repairingSuffix = ".repairing" // a repaired archive that is being written
	repairedSuffix  = ".repaired"  // a complete one that has not been renamed yet
	damagedSuffix   = ".damaged-"  // followed by a time: the archive that was replaced
	openTables      = 64           // most tables that a repair keeps open, each with a descriptor
)

// Repair copies the readable records of the archive in dir to a new archive in its place. It returns what it found and where the damaged one is kept.
// It does not change an undamaged archive. The archive must not be in use. owner is its installation, in case the archive does not contain it. record
// makes the same result durable elsewhere. It is called before the new archive gets its name, and again if an interruption at that moment makes the next
// call complete the repair.
func Repair(ctx context.Context, dir string, owner uuid.UUID, record func(report *Report, kept string) error) (report *Report, kept string, err error) {
	report, kept, err = repair(ctx, dir, owner, record)
	if err != nil {
		return nil, "", fmt.Errorf("repair archive %s: %w", dir, err)
	}
	return report, kept, nil
}

// Interrupted reports whether a repair of the archive in dir was interrupted after the damaged archive was renamed. The next Repair completes it; until then
// there is no archive.
func Interrupted(dir string) (bool, error) {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	return Exists(dir + repairedSuffix)
}

func repair(ctx context.Context, dir string, owner uuid.UUID, record func(*Report, string) error) (*Report, string, error) {
	if interrupted, err := Interrupted(dir); err != nil {
		return nil, "", err
	} else if interrupted {
		return complete(ctx, dir, owner, record)
	}
	if _, err := os.Stat(dir); err != nil { // Open would create it
		return nil, "", err
	}
	// Opening a database drops the tables that are no longer used.
	a, openErr := Open(Options{Dir: dir})
	if openErr == nil {
		if err := a.Close(); err != nil {
			return nil, "", err
		}
	} else if _, damaged := errors.AsType[*archive.Damaged](openErr); !damaged {
		return nil, "", openErr
	}
	lock, err := embeddb.Hold(nil, dir, "muster archive repair")
	if err != nil {
		return nil, "", err
	}
	defer lock.Close()
	s, err := look(ctx, vfs.Default, dir)
	if err != nil || openErr == nil && s.report.Whole() {
		return &s.report, "", err
	}
	if openErr != nil {
		s.report.Damage = append(s.report.Damage, openErr.Error())
	}
	for _, suffix := range []string{repairingSuffix, repairedSuffix} {
		if err := os.RemoveAll(dir + suffix); err != nil {
			return nil, "", err
		}
	}
	if s.report.Installation == uuid.Nil {
		s.report.Installation = owner
	}
	if err := s.write(ctx, dir+repairingSuffix); err != nil {
		return nil, "", err
	}
	kept := dir + damagedSuffix + strings.ReplaceAll(time.Now().UTC().Format("20060102T150405.000000Z"), ".", "")
	_ = lock.Close() // Windows cannot rename a folder that contains an open file
	for _, step := range [][2]string{{dir + repairingSuffix, dir + repairedSuffix}, {dir, kept}} {
		if err := atomicfile.Rename(step[0], step[1]); err != nil {
			return nil, "", err
		}
	}
	return finish(dir, &s.report, kept, record)
}

// complete finishes a repair that was interrupted after the damaged archive was renamed.
func complete(ctx context.Context, dir string, owner uuid.UUID, record func(*Report, string) error) (*Report, string, error) {
	all, err := os.ReadDir(filepath.Dir(dir)) // sorted, and the names end with the time
	if err != nil {
		return nil, "", err
	}
	kept := ""
	for _, entry := range all {
		if strings.HasPrefix(entry.Name(), filepath.Base(dir)+damagedSuffix) {
			kept = filepath.Join(filepath.Dir(dir), entry.Name())
		}
	}
	if kept == "" {
		return nil, "", fmt.Errorf("a repair was interrupted, and the damaged archive is no longer there: rename %s to use the repaired one", dir+repairedSuffix)
	}
	s, err := look(ctx, vfs.Default, kept)
	if err != nil {
		return nil, "", err
	}
	if s.report.Installation == uuid.Nil {
		s.report.Installation = owner
	}
	return finish(dir, &s.report, kept, record)
}

// finish makes the repaired archive the current one, once the loss is recorded.
func finish(dir string, report *Report, kept string, record func(*Report, string) error) (*Report, string, error) {
	if err := record(report, kept); err != nil {
		return nil, "", err
	}
	if err := atomicfile.Rename(dir+repairedSuffix, dir); err != nil {
		return nil, "", err
	}
	return report, kept, nil
}

// write writes the readable blocks to a new archive, under their old numbers.
func (s *salvage) write(ctx context.Context, dir string) (err error) {
	o := Options{Dir: dir}
	if s.files != vfs.Default {
		o.FS = s.files
	}
	a, err := Open(o)
	if err != nil {
		return err
	}
	a.StopWaiting() // a person waits for the command: fail on a full disk
	defer func() { err = errors.Join(err, a.Close()) }()
	tables := map[string]*table{}
	closeTables := func() {
		for name, t := range tables {
			t.close()
			delete(tables, name)
		}
	}
	defer closeTables()
	write := a.db.NewBatch()
	for _, number := range slices.Sorted(maps.Keys(s.blocks)) {
		b := s.blocks[number]
		if b.deleted {
			continue
		}
		t := tables[b.table]
		if t == nil {
			if len(tables) >= openTables {
				closeTables()
			}
			if t, err = openTable(ctx, s.files, s.files.PathJoin(s.dir, b.table)); err != nil {
				return err
			}
			tables[b.table] = t
		}
		records, err := t.block(number, b.seq)
		if err != nil {
			return err
		}
		if err := a.buffer.add(write, number, records); err != nil {
			return err
		}
		if write.Len() >= batchBytes {
			if err := a.apply(write); err != nil {
				return err
			}
			write = a.db.NewBatch()
		}
	}
	if err := a.apply(write); err != nil {
		return err
	}
	if s.report.Installation != uuid.Nil {
		if err := a.setOwner(s.report.Installation, s.report.Mark); err != nil {
			return err
		}
	}
	if s.report.Coverage != nil {
		return a.put(nil, s.report.Coverage)
	}
	return a.checked(a.db.FlushAll())
}

// block returns the records of a block.
func (t *table) block(number, seq uint64) (records []archive.Record, err error) {
	key := string(appendBlockKey(nil, number))
	err = fmt.Errorf("block %d is missing", number)
	_, readErr := t.from([]byte(key), func(e entry) bool {
		if string(e.key) != key {
			return false
		}
		if e.seq == seq {
			records, err = decodeBlock(e.value, number)
		}
		return e.seq != seq
	})
	if err != nil && readErr != nil {
		err = readErr
	}
	return records, err
}

func decodeBlock(value []byte, number uint64) (records []archive.Record, err error) {
	rest, err := openBlock(value, number)
	for err == nil && len(rest) > 0 {
		var r encodedRecord
		if r, rest, err = nextRecord(rest); err == nil {
			records = append(records, r.record())
		}
	}
	return records, err
}

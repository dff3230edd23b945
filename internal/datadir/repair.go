package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	archivepebble "github.com/musterhq/muster/internal/archive/pebble"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/secretkey"
)

// CheckArchive reads the whole archive of a data directory and changes nothing. The service may run meanwhile.
func CheckArchive(ctx context.Context, dir string) (*archivepebble.Report, error) {
	return archivepebble.Check(ctx, filepath.Join(dir, archiveDir))
}

// RepairArchive drops the unreadable records of the archive of a stopped service's data directory. The next start records in the log and in the
// journal what was dropped. kept is the path to which the damaged archive was moved; empty if nothing was damaged. note records the repair elsewhere: it
// is called before the repaired archive gets its name, and again by the call that completes an interrupted repair.
func RepairArchive(ctx context.Context, dir string, key *secretkey.Key, note func(kept string) error) (report *archivepebble.Report, kept string, err error) {
	unlock, err := identity.LockDir(dir)
	if err != nil {
		return nil, "", err
	}
	defer unlock()
	_, owner, err := identity.ReadSecretFile(dir, key)
	if _, damaged := errors.AsType[*identity.DamagedSecret](err); err != nil && !damaged && !errors.Is(err, fs.ErrNotExist) { // the start reports those
		return nil, "", err
	}
	return archivepebble.Repair(ctx, filepath.Join(dir, archiveDir), owner, func(report *archivepebble.Report, kept string) error {
		if err := notePending(dir, report, kept); err != nil {
			return err
		}
		return note(kept)
	})
}

// notePending makes the next start record the loss, unless an interrupted repair has already done so.
func notePending(dir string, report *archivepebble.Report, kept string) error {
	p, err := readPending(dir)
	if err != nil {
		return err
	}
	if p == nil {
		id := report.Installation
		if id == uuid.Nil { // of an earlier release, which the next start converts
			return nil
		}
		p = &pending{Format: pendingFormat, ID: id, Had: wholeParts}
	}
	keptAs := "the damaged archive is kept as " + filepath.Base(kept)
	if slices.ContainsFunc(p.Accepted, func(l loss) bool { return strings.HasSuffix(l.What, keptAs) }) {
		return nil
	}
	p.Accepted = append(p.Accepted, loss{Archive, fmt.Sprintf("a repair dropped %d unreadable places and with them at least %d blocks; %d records are left, and %s",
		len(report.Damage), len(report.Lost), report.Records, keptAs)})
	return p.write(dir)
}

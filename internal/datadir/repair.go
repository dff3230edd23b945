package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

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
// journal what was dropped. kept is the path to which the damaged archive was moved; empty if nothing was damaged.
func RepairArchive(ctx context.Context, dir string, key *secretkey.Key) (report *archivepebble.Report, kept string, err error) {
	unlock, err := identity.LockDir(dir)
	if err != nil {
		return nil, "", err
	}
	defer unlock()
	_, owner, err := identity.ReadSecretFile(dir, key)
	if _, damaged := errors.AsType[*identity.DamagedSecret](err); err != nil && !damaged && !errors.Is(err, fs.ErrNotExist) { // the start reports those
		return nil, "", err
	}
	report, kept, err = archivepebble.Repair(ctx, filepath.Join(dir, archiveDir), owner)
	if err != nil || kept == "" {
		return report, kept, err
	}
	p, err := readPending(dir)
	if err != nil {
		return report, kept, err
	}
	if p == nil {
		id := report.Installation
		if id == uuid.Nil { // of an earlier release, which the next start converts
			return report, kept, nil
		}
		p = &pending{Format: pendingFormat, ID: id, Had: wholeParts}
	}
	p.Accepted = append(p.Accepted, loss{Archive, fmt.Sprintf("a repair dropped %d unreadable places and with them at least %d blocks; %d records are left, and the damaged archive is kept as %s",
		len(report.Damage), len(report.Lost), report.Records, filepath.Base(kept))})
	return report, kept, p.write(dir)
}

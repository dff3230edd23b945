package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/diskfull"
	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/keyring"
)

// keysPatience is how long a start waits for `muster keys`, which opens the directory only briefly.
const keysPatience = 10 * time.Second

// openData opens the data directory of a single machine, and waits while `muster keys` has it open.
func (x *Service) openData(ctx context.Context, accept []datadir.Part) (err error) {
	files := connlimit.ReserveOf(x.descriptors)
	o := datadir.Options{
		Dir: x.settings.Data, Program: "muster serve", Log: x.log, Accept: accept, Key: x.key,
		JournalTables: files.JournalFiles, ArchiveTables: files.ArchiveFiles,
	}
	for began := time.Now(); ; {
		x.data, err = datadir.Open(o)
		used, ok := errors.AsType[*embeddb.InUse](err)
		if !ok || used.Holder.Program != keyring.OfflineProgram || time.Since(began) > keysPatience {
			break
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err != nil {
		return err
	}
	x.secret, x.archive = x.data.Secret, x.data.Archive
	x.room = watchRoom(x.settings.Data, uint64(x.settings.DiskReserve), x.log, x.data.Journal, x.archive)
	return nil
}

// dataError adds the remedy to an error of opening the data directory.
func dataError(err error, dir string) error {
	if used, ok := errors.AsType[*embeddb.InUse](err); ok {
		return fmt.Errorf("open data directory: %w: end that process first, or choose another directory with --data", used)
	}
	if diskfull.Is(err) {
		return fmt.Errorf("%w: make room on the disk of %s, at least --disk-reserve, and start again", err, dir)
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(at, fs.ErrPermission) && runtime.GOOS != "windows" {
		own := strconv.Itoa(os.Geteuid())
		if u, err := user.Current(); err == nil {
			own = u.Username
		}
		return fmt.Errorf("%w: the data directory and everything in it must belong to the user %s, who runs this service: as root, mkdir -p %s && chown -R %[2]s %[3]s; or run it as the owner", err, own, dir)
	}
	return err
}

// openEngine loads the state of a single machine and completes the data directory.
func (x *Service) openEngine(ctx context.Context, c engine.Config, accept []datadir.Part) (err error) {
	c.Journal, c.Loaded = x.data.Journal, x.data.CheckState
	if x.engine, err = engine.Open(ctx, c); err != nil {
		return x.data.Explain(err)
	}
	return x.commitData(ctx, accept)
}

// commitData records the accepted losses in the journal and completes the data directory.
func (x *Service) commitData(ctx context.Context, accept []datadir.Part) error {
	if err := x.data.Record(ctx, x.engine.Do); err != nil {
		return err
	}
	for _, part := range accept {
		if !slices.Contains(x.data.Lost(), part) {
			x.log.Warn("this part of the data directory is complete: remove it from --accept-loss, or the next loss is accepted as well", "part", string(part))
		}
	}
	return x.data.Commit(ctx)
}

// noteLoss records in the audit log that the operator accepts the loss of parts of the data directory.
func (x *Service) noteLoss(accepted []datadir.Part) error {
	for _, part := range accepted {
		by := audit.Origin{Principal: "command line", Door: audit.DoorOffline, Operation: "serve --accept-loss"}
		if err := audit.Later(x.settings.Data, by, "data directory", string(part)); err != nil {
			return err
		}
	}
	return nil
}

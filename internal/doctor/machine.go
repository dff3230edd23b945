package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/heap"
	"github.com/musterhq/muster/internal/identity"
)

// dataDirectory checks that the data directory exists and belongs to the user that runs the service.
func (x *examination) dataDirectory(context.Context) {
	const check = "data directory"
	dir := x.Settings.Data
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.add(check, Skipped, "", "%s does not exist; the first start creates it", dir)
		return
	case err != nil:
		x.add(check, Failure, "run the command as the user of the service, or as root", "%v", err)
		return
	case !info.IsDir():
		x.add(check, Failure, "name a directory with --data", "%s is not a directory", dir)
		return
	}
	if err := datadir.CheckFinished(dir); err != nil {
		do := "run the command as the user of the service, or as root"
		if _, ok := errors.AsType[*datadir.Unfinished](err); ok {
			do = "run muster restore again with the same backup: the service does not start on this directory"
		}
		x.add(check, Failure, do, "%v", err)
		return
	}
	warnings, err := identity.CheckPermissions(dir)
	for _, w := range warnings {
		x.add(check, Warning, "change the mode as described", "%s", w)
	}
	switch {
	case err != nil:
		x.add(check, Failure, "change the owner or the mode as described", "%v", err)
	case runtime.GOOS == "windows":
		x.add(check, Skipped, "let only the service's user and administrators read "+dir, "access rights are not examined on Windows")
	case len(warnings) == 0:
		x.add(check, OK, "", "only its owner can read and replace the contents of %s", dir)
	}
}

// The limits for the disk.
const (
	syncs      = 100
	syncsMax   = 5 * time.Second       // for all of them
	syncSlow   = 10 * time.Millisecond // median: a commit waits for one or two
	syncUnreal = 15 * time.Microsecond // faster than any disk with a flush makes 4 KiB durable
)

// disk checks the disk with the data directory, which may not exist yet.
func (x *examination) disk(context.Context) {
	dir := x.Settings.Data
	for {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		above := filepath.Dir(dir)
		if above == dir {
			break
		}
		dir = above
	}
	if kind, lost := volatileDisk(dir); lost {
		x.add("disk", Failure, "put the data directory on a local disk", "%s is on %s: all data is gone after a restart of the machine", dir, kind)
	} else if kind != "" {
		x.add("disk", Warning, "put the data directory on a local disk whose sync is reliable", "%s is on %s, which may confirm writes that are not durable, and stops the service if the network fails", dir, kind)
	}
	free, total, ok := diskSpace(dir)
	reserve := uint64(x.Settings.DiskReserve)
	switch {
	case !ok:
		x.add("disk space", Skipped, "", "this system does not report it")
	case free < reserve:
		x.add("disk space", Failure, "free some space, or move the data directory to a larger disk; the service continues by itself", "%s of %s are free in %s, less than --disk-reserve (%s): the service refuses changes",
			size(free), size(total), dir, size(reserve))
	case free < 4*reserve || free < total/20:
		x.add("disk space", Warning, "free some space, or move the data directory to a larger disk", "%s of %s are free in %s; below %s the service refuses changes", size(free), size(total), dir, size(reserve))
	default:
		x.add("disk space", OK, "", "%s of %s are free in %s", size(free), size(total), dir)
	}

	middle, longest, err := syncTimes(dir)
	switch {
	case err != nil:
		x.add("disk sync", Failure, "the user of the service must be able to write there", "%v", err)
	case middle > syncSlow:
		x.add("disk sync", Warning, "use a disk with a durable write cache, such as an SSD for servers", "syncing 4 KiB takes a median of %v and at most %v: every change waits for a sync", round(middle), round(longest))
	case middle < syncUnreal:
		x.add("disk sync", Warning, "make sure that the disk, its controller and the hypervisor do not ignore flushes", "syncing 4 KiB seems to take a median of %v, which is faster than a disk can be: a power cut may lose acknowledged changes", round(middle))
	default:
		x.add("disk sync", OK, "", "syncing 4 KiB takes a median of %v and at most %v", round(middle), round(longest))
	}
}

// syncTimes measures durable writes of 4 KiB in a directory.
func syncTimes(dir string) (middle, longest time.Duration, err error) {
	f, err := os.CreateTemp(dir, ".muster-doctor-")
	if err != nil {
		return 0, 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 4<<10)
	took := make([]time.Duration, syncs)
	first := time.Now()
	for i := range took {
		began := time.Now()
		if began.Sub(first) > syncsMax {
			took = took[:i]
			break
		}
		if _, err := f.Write(block); err != nil {
			return 0, 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, 0, err
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)-1], nil
}

// descriptorsEnough is the number that the default limit of connections needs.
const descriptorsEnough = 65_536

func (x *examination) descriptors(context.Context) {
	const check = "file descriptors"
	n := connlimit.Descriptors()
	s := &x.Settings
	limits, err := connlimit.Derive(n, connlimit.Limits{Total: s.LimitConnections})
	switch {
	case err != nil:
		x.add(check, Failure, "raise the limit: LimitNOFILE=1048576 in the systemd unit, or ulimit -n", "%d for a process: %v", n, err)
	case n < descriptorsEnough:
		x.add(check, Warning, "for more connections, LimitNOFILE=1048576 in the systemd unit, or ulimit -n", "%d for a process of this user, which allows %d connections of clients, game servers and players", n, limits.Total)
	default:
		x.add(check, OK, "", "%d for a process of this user, which allows %d connections", n, limits.Total)
	}
}

func (x *examination) memory(context.Context) {
	const check = "memory"
	total, limit, ok := heap.Memory()
	switch floor := uint64(x.Settings.HeapFloor); {
	case !ok:
		x.add(check, Skipped, "", "this system does not report it")
	case limit != 0 && limit < 2*floor:
		x.add(check, Warning, "raise the limit, or lower --heap-floor to a quarter of it", "the control group of this process has %s, and the service does not collect garbage below a heap of %s", size(limit), size(floor))
	case limit != 0:
		x.add(check, OK, "", "%s, and %s for the control group of this process; the service has its own", size(total), size(limit))
	case total < 1<<30:
		x.add(check, Warning, "plan 1 GiB and 2 GB for each 100,000 connections: docs/scale.md", "the machine has %s", size(total))
	default:
		x.add(check, OK, "", "the machine has %s", size(total))
	}
}

func (x *examination) clock(context.Context) {
	const check = "clock"
	synchronized, errorMax, ok := clockState()
	switch {
	case !ok:
		x.add(check, Skipped, "", "this system does not tell whether its clock is synchronized")
	case !synchronized:
		x.add(check, Warning, "run chrony or systemd-timesyncd; clients whose clocks differ by five minutes are refused", "the kernel says that no time service synchronizes the clock of this machine")
	default:
		x.add(check, OK, "", "synchronized, off by at most %v", round(errorMax))
	}
}

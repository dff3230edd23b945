// Package embeddbtest has disks that fail on demand, to test the users of embeddb. It is for tests only.
package embeddbtest

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disk is a file system in memory with a configurable failing write or a limited size. It counts every operation that
// changes or syncs the disk.
type Disk struct {
	vfs.FS
	mem *vfs.MemFS

	mu      sync.Mutex
	count   int   // operations so far
	failAt  int   // the operation that fails, counted from 1; 0: none
	healing bool  // only that one fails
	err     error // what it fails with
	room    int64 // bytes that still fit; negative: no limit
	noFiles bool  // no file can be created or opened
	met     bool  // something has failed
}

// NewDisk returns an empty disk without failures.
func NewDisk() *Disk { return onDisk(vfs.NewCrashableMem()) }

func onDisk(mem *vfs.MemFS) *Disk { return &Disk{FS: mem, mem: mem, room: -1} }

// FailAt makes the nth operation from now fail with err, and every later one unless healing is set.
func (d *Disk) FailAt(n int, err error, healing bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failAt, d.err, d.healing = d.count+n, err, healing
}

// Fill leaves room for n bytes; what does not fit fails with ENOSPC.
func (d *Disk) Fill(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = n
}

// NoDescriptors makes every creation and opening of a file fail with EMFILE while none is true.
func (d *Disk) NoDescriptors(none bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noFiles = none
}

func (d *Disk) descriptor(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.noFiles {
		d.met = true
		return &os.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
	}
	return nil
}

func (d *Disk) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := d.descriptor(name); err != nil {
		return nil, err
	}
	return d.FS.Open(name, opts...)
}

// Operations returns the number of operations so far.
func (d *Disk) Operations() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count
}

// Met reports whether an operation has failed.
func (d *Disk) Met() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.met
}

// Crash returns the disk as a power cut leaves it now: only what was synced. It has no failures and no locks.
func (d *Disk) Crash() *Disk { return onDisk(d.mem.CrashClone(vfs.CrashCloneCfg{})) }

// Mem returns the bare disk, to look at or to damage files.
func (d *Disk) Mem() *vfs.MemFS { return d.mem }

func (d *Disk) operation(name string, bytes int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count++
	if d.failAt > 0 && (d.count == d.failAt || d.count > d.failAt && !d.healing) {
		d.met = true
		return &os.PathError{Op: "operation", Path: name, Err: d.err}
	}
	if d.room >= 0 {
		if int64(bytes) > d.room {
			d.met = true
			d.room = 0
			return &os.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
		}
		d.room -= int64(bytes)
	}
	return nil
}

func (d *Disk) file(name string, open func() (vfs.File, error)) (vfs.File, error) {
	if err := d.descriptor(name); err != nil {
		return nil, err
	}
	if err := d.operation(name, 0); err != nil {
		return nil, err
	}
	file, err := open()
	if err != nil {
		return nil, err
	}
	return &diskFile{File: file, disk: d, name: name}, nil
}

func (d *Disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(name, func() (vfs.File, error) { return d.FS.Create(name, category) })
}

func (d *Disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return d.file(name, func() (vfs.File, error) { return d.FS.OpenReadWrite(name, category, opts...) })
}

func (d *Disk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(newname, func() (vfs.File, error) { return d.FS.ReuseForWrite(oldname, newname, category) })
}

func (d *Disk) OpenDir(name string) (vfs.File, error) {
	dir, err := d.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &diskFile{File: dir, disk: d, name: name}, nil
}

func (d *Disk) Link(oldname, newname string) error {
	if err := d.operation(newname, 0); err != nil {
		return err
	}
	return d.FS.Link(oldname, newname)
}

func (d *Disk) Rename(oldname, newname string) error {
	if err := d.operation(newname, 0); err != nil {
		return err
	}
	return d.FS.Rename(oldname, newname)
}

func (d *Disk) Remove(name string) error {
	if err := d.operation(name, 0); err != nil {
		return err
	}
	return d.FS.Remove(name)
}

func (d *Disk) Unwrap() vfs.FS { return d.FS }

type diskFile struct {
	vfs.File
	disk *Disk
	name string
}

// Write writes half of p when it fails, as real disks may.
func (f *diskFile) Write(p []byte) (int, error) {
	if err := f.disk.operation(f.name, len(p)); err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, err
	}
	return f.File.Write(p)
}

func (f *diskFile) WriteAt(p []byte, offset int64) (int, error) {
	if err := f.disk.operation(f.name, len(p)); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, offset)
}

func (f *diskFile) Sync() error {
	if err := f.disk.operation(f.name, 0); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return f.File.Sync()
}

func (f *diskFile) SyncData() error {
	if err := f.disk.operation(f.name, 0); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return f.File.SyncData()
}

func (f *diskFile) SyncTo(length int64) (bool, error) {
	if err := f.disk.operation(f.name, 0); err != nil {
		return false, fmt.Errorf("sync: %w", err)
	}
	return f.File.SyncTo(length)
}

// Package powertest mounts a disk in memory whose power can be cut below a running program: what was synced survives, and of the
// rest any subset does, in any order, directory entries too. It is for tests only.
package powertest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
)

// Disk is mounted on a directory.
type Disk struct {
	*embeddbtest.Power
	dir    string
	server *fuse.Server
	full   atomic.Bool
	slow   atomic.Int64 // nanoseconds
}

// Fill makes the disk full, or empty again.
func (d *Disk) Fill(full bool) { d.full.Store(full) }

// Slow makes each sync of a file take longer.
func (d *Disk) Slow(by time.Duration) { d.slow.Store(int64(by)) }

// Mount mounts an empty disk on a new directory, until the test is over. On a machine without FUSE the test is skipped, except in CI.
func Mount(t testing.TB, seed uint64) *Disk {
	t.Helper()
	d := &Disk{Power: embeddbtest.NewPower(seed), dir: t.TempDir()}
	if err := d.mount(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("no FUSE on this machine, so the power of a mounted disk cannot be cut: %v", err)
	}
	t.Cleanup(func() {
		if err := d.unmount(); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return d
}

// Dir is where the disk is mounted.
func (d *Disk) Dir() string { return d.dir }

// Restore gives the disk its power back, with what survived. No program may have a file of it open.
func (d *Disk) Restore() error {
	if err := d.unmount(); err != nil {
		return err
	}
	d.Power = d.Survivor()
	return d.mount()
}

func (d *Disk) mount() error {
	options := &fusefs.Options{MountOptions: fuse.MountOptions{DirectMount: true, FsName: "powertest", Name: "powertest"}}
	server, err := fusefs.Mount(d.dir, &node{disk: d.Power, mount: d}, options)
	if err != nil {
		return err
	}
	d.server = server
	return closeOnExec()
}

// closeOnExec keeps programs that a test starts from inheriting the connection to the kernel: while one has it, a program that touches
// the mount of a test that was killed waits for ever.
func closeOnExec() error {
	const open = "/proc/self/fd"
	entries, err := os.ReadDir(open)
	if err != nil {
		return err
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if target, _ := os.Readlink(path.Join(open, e.Name())); err == nil && target == "/dev/fuse" {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}

func (d *Disk) unmount() error {
	if d.server == nil {
		return nil
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := d.server.Unmount()
		if err == nil {
			d.server = nil
			return nil
		}
		if time.Now().After(end) { // until then, a program that has just ended, or one that another test starts, may still have a file of the disk
			return err
		}
	}
}

// node is a file or a directory by its path.
type node struct {
	fusefs.Inode
	disk  *embeddbtest.Power
	mount *Disk
}

// file is an open file. Directories are opened for their sync only.
type file struct {
	vfs.File
	mount *Disk
}

const space = 64 << 30 // bytes that the disk says it has

func (n *node) path(names ...string) string {
	return path.Join(append([]string{"/", n.Path(nil)}, names...)...)
}

func errno(err error) syscall.Errno {
	var number syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.Is(err, embeddbtest.ErrPowerCut):
		return syscall.EIO
	case errors.As(err, &number):
		return number
	case errors.Is(err, fs.ErrNotExist):
		return syscall.ENOENT
	case errors.Is(err, fs.ErrExist):
		return syscall.EEXIST
	}
	return syscall.EIO
}

func setAttr(out *fuse.Attr, info vfs.FileInfo) {
	out.Mode, out.Nlink = fuse.S_IFREG|0o600, 1
	if info.IsDir() {
		out.Mode = fuse.S_IFDIR | 0o700
	}
	out.Size, out.Blksize = uint64(info.Size()), 4096
	out.Blocks = (out.Size + 511) / 512
	at := info.ModTime()
	out.SetTimes(&at, &at, &at)
}

// child is the node of a name. There is one for each, so that its open files stay together.
func (n *node) child(ctx context.Context, name string, info vfs.FileInfo) *fusefs.Inode {
	mode := uint32(fuse.S_IFREG)
	if info.IsDir() {
		mode = fuse.S_IFDIR
	}
	if known := n.GetChild(name); known != nil && known.Mode() == mode {
		return known
	}
	return n.NewInode(ctx, &node{disk: n.disk, mount: n.mount}, fusefs.StableAttr{Mode: mode})
}

func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	info, err := n.disk.Stat(n.path(name))
	if err != nil {
		return nil, errno(err)
	}
	setAttr(&out.Attr, info)
	return n.child(ctx, name, info), 0
}

func (n *node) Getattr(_ context.Context, f fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	if open, ok := f.(*file); ok {
		info, err := open.Stat()
		if err != nil {
			return errno(err)
		}
		setAttr(&out.Attr, info)
		return 0
	}
	info, err := n.disk.Stat(n.path())
	if err != nil {
		return errno(err)
	}
	setAttr(&out.Attr, info)
	return 0
}

// Setattr empties files and knows no other size. Modes and times are taken and not kept.
func (n *node) Setattr(ctx context.Context, f fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, ok := in.GetSize(); ok {
		if size != 0 {
			return syscall.ENOTSUP
		}
		emptied, err := n.disk.Create(n.path(), vfs.WriteCategoryUnspecified)
		if err != nil {
			return errno(err)
		}
		_ = emptied.Close()
	}
	return n.Getattr(ctx, f, out)
}

func (n *node) Create(ctx context.Context, name string, flags, _ uint32, out *fuse.EntryOut) (*fusefs.Inode, fusefs.FileHandle, uint32, syscall.Errno) {
	made, err := n.disk.Create(n.path(name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, nil, 0, errno(err)
	}
	info, err := made.Stat()
	if err != nil {
		return nil, nil, 0, errno(err)
	}
	setAttr(&out.Attr, info)
	return n.child(ctx, name, info), &file{made, n.mount}, 0, 0
}

func (n *node) Open(_ context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	var opened vfs.File
	var err error
	switch {
	case flags&syscall.O_TRUNC != 0:
		opened, err = n.disk.Create(n.path(), vfs.WriteCategoryUnspecified)
	case flags&syscall.O_ACCMODE == syscall.O_RDONLY:
		opened, err = n.disk.Open(n.path())
	default:
		opened, err = n.disk.OpenReadWrite(n.path(), vfs.WriteCategoryUnspecified)
	}
	if err != nil {
		return nil, 0, errno(err)
	}
	return &file{opened, n.mount}, 0, 0
}

func (n *node) Mkdir(ctx context.Context, name string, _ uint32, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if err := n.disk.MkdirAll(n.path(name), 0o700); err != nil {
		return nil, errno(err)
	}
	return n.Lookup(ctx, name, out)
}

func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	return errno(n.disk.Remove(n.path(name)))
}

func (n *node) Rmdir(_ context.Context, name string) syscall.Errno {
	return errno(n.disk.Remove(n.path(name)))
}

func (n *node) Rename(_ context.Context, name string, to fusefs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	if flags != 0 {
		return syscall.ENOTSUP
	}
	return errno(n.disk.Rename(n.path(name), to.(*node).path(newName)))
}

func (n *node) Link(ctx context.Context, target fusefs.InodeEmbedder, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if err := n.disk.Link(target.(*node).path(), n.path(name)); err != nil {
		return nil, errno(err)
	}
	return n.Lookup(ctx, name, out)
}

func (n *node) Readdir(context.Context) (fusefs.DirStream, syscall.Errno) {
	names, err := n.disk.List(n.path())
	if err != nil {
		return nil, errno(err)
	}
	var entries []fuse.DirEntry
	for _, name := range names {
		if info, err := n.disk.Stat(n.path(name)); err == nil {
			mode := uint32(fuse.S_IFREG)
			if info.IsDir() {
				mode = fuse.S_IFDIR
			}
			entries = append(entries, fuse.DirEntry{Name: name, Mode: mode})
		}
	}
	return fusefs.NewListDirStream(entries), 0
}

func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	out.Bsize, out.Frsize = 4096, 4096
	out.Blocks, out.Bfree, out.Bavail = space/4096, space/4096, space/4096
	if n.mount.full.Load() {
		out.Bfree, out.Bavail = 0, 0
	}
	out.NameLen = 255
	return 0
}

// Fsync syncs a file, or the names in a directory, which comes without an open file.
func (n *node) Fsync(_ context.Context, f fusefs.FileHandle, _ uint32) syscall.Errno {
	if open, ok := f.(*file); ok {
		return errno(open.Sync())
	}
	dir, err := n.disk.OpenDir(n.path())
	if err != nil {
		return errno(err)
	}
	defer dir.Close()
	return errno(dir.Sync())
}

func (f *file) Read(_ context.Context, dest []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	n, err := f.ReadAt(dest, at)
	if err != nil && err != io.EOF {
		return nil, errno(err)
	}
	return fuse.ReadResultData(dest[:n]), 0
}

func (f *file) Write(_ context.Context, data []byte, at int64) (uint32, syscall.Errno) {
	if f.mount.full.Load() {
		return 0, syscall.ENOSPC
	}
	n, err := f.WriteAt(data, at)
	return uint32(n), errno(err)
}

func (f *file) Fsync(context.Context, uint32) syscall.Errno {
	time.Sleep(time.Duration(f.mount.slow.Load()))
	return errno(f.Sync())
}

// Release closes the file. Writes of nothing are not waited for: each has reached the disk by its end.
func (f *file) Release(context.Context) syscall.Errno { return errno(f.Close()) }

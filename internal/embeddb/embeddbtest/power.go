package embeddbtest

import (
	"errors"
	"math/rand/v2"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Power is a file system in memory whose power can be cut. What was synced survives; of the rest any subset survives, block by block and
// name by name, in any order. After the cut every change fails, so that nothing is acknowledged any more.
type Power struct {
	vfs.FS
	mem *vfs.MemFS

	gate   sync.RWMutex // held for reading during each change; a cut comes between two
	chance *rand.Rand   // under the gate
	left   int          // changes until the cut; 0: none is planned
	count  sync.Mutex   // guards left
	after  *vfs.MemFS   // what survived; nil while there is power
}

// ErrPowerCut is the error of every change after the cut.
var ErrPowerCut = errors.New("the power was cut")

// NewPower returns an empty disk. All randomness comes from the seed, except the order of the goroutines above the disk.
func NewPower(seed uint64) *Power {
	return onPower(vfs.NewCrashableMem(), rand.New(rand.NewPCG(seed, 0xc07)))
}

func onPower(mem *vfs.MemFS, chance *rand.Rand) *Power {
	return &Power{FS: mem, mem: mem, chance: chance}
}

// CutAfter cuts the power at the nth change or sync from now, 1 for the next one; 0 cancels the plan.
func (p *Power) CutAfter(n int) {
	p.count.Lock()
	defer p.count.Unlock()
	p.left = n
}

// Cut cuts the power now, unless it is off already.
func (p *Power) Cut() {
	p.gate.Lock()
	defer p.gate.Unlock()
	p.cutLocked()
}

// Off reports whether the power was cut.
func (p *Power) Off() bool {
	p.gate.RLock()
	defer p.gate.RUnlock()
	return p.after != nil
}

// Survivor returns the disk after the power is back. Cut must have been called before.
func (p *Power) Survivor() *Power {
	p.gate.Lock()
	defer p.gate.Unlock()
	return onPower(p.after, p.chance)
}

// Whole returns the disk as a new process finds it after the previous one was killed: with everything that was written. The killed
// process can change nothing any more.
func (p *Power) Whole() *Power {
	p.gate.Lock()
	defer p.gate.Unlock()
	if p.after == nil {
		p.after = p.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: p.chance})
	}
	return onPower(p.after, p.chance)
}

func (p *Power) cutLocked() {
	if p.after == nil {
		percent := []int{0, 0, 20, 50, 80, 100}[p.chance.IntN(6)]
		p.after = p.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: p.chance})
	}
}

// change makes a change, or fails it when the power is off.
func (p *Power) change(name string, do func() error) error {
	p.count.Lock()
	now := p.left == 1
	p.left = max(p.left-1, 0)
	p.count.Unlock()
	off := &os.PathError{Op: "change", Path: name, Err: ErrPowerCut}
	if now {
		p.gate.Lock()
		defer p.gate.Unlock()
		if p.after == nil && p.chance.IntN(2) == 0 {
			_ = do() // the cut comes between the change and its acknowledgement
		}
		p.cutLocked()
		return off
	}
	p.gate.RLock()
	defer p.gate.RUnlock()
	if p.after != nil {
		return off
	}
	return do()
}

func (p *Power) file(name string, open func() (vfs.File, error)) (file vfs.File, err error) {
	err = p.change(name, func() (err error) { file, err = open(); return err })
	if err != nil {
		return nil, err
	}
	return &powerFile{File: file, power: p, name: name}, nil
}

func (p *Power) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return p.file(name, func() (vfs.File, error) { return p.FS.Create(name, category) })
}

func (p *Power) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return p.file(name, func() (vfs.File, error) { return p.FS.OpenReadWrite(name, category, opts...) })
}

func (p *Power) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return p.file(newname, func() (vfs.File, error) { return p.FS.ReuseForWrite(oldname, newname, category) })
}

func (p *Power) OpenDir(name string) (vfs.File, error) {
	dir, err := p.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &powerFile{File: dir, power: p, name: name}, nil
}

func (p *Power) Link(oldname, newname string) error {
	return p.change(newname, func() error { return p.FS.Link(oldname, newname) })
}

func (p *Power) Rename(oldname, newname string) error {
	return p.change(newname, func() error { return p.FS.Rename(oldname, newname) })
}

func (p *Power) Remove(name string) error {
	return p.change(name, func() error { return p.FS.Remove(name) })
}

func (p *Power) RemoveAll(name string) error {
	return p.change(name, func() error { return p.FS.RemoveAll(name) })
}

func (p *Power) MkdirAll(name string, perm os.FileMode) error {
	return p.change(name, func() error { return p.FS.MkdirAll(name, perm) })
}

func (p *Power) Unwrap() vfs.FS { return p.FS }

type powerFile struct {
	vfs.File
	power *Power
	name  string
}

func (f *powerFile) Write(b []byte) (n int, err error) {
	err = f.power.change(f.name, func() (err error) { n, err = f.File.Write(b); return err })
	return n, err
}

func (f *powerFile) WriteAt(b []byte, offset int64) (n int, err error) {
	err = f.power.change(f.name, func() (err error) { n, err = f.File.WriteAt(b, offset); return err })
	return n, err
}

func (f *powerFile) Sync() error     { return f.power.change(f.name, f.File.Sync) }
func (f *powerFile) SyncData() error { return f.power.change(f.name, f.File.SyncData) }

func (f *powerFile) SyncTo(length int64) (full bool, err error) {
	err = f.power.change(f.name, func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, err
}

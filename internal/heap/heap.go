// Package heap is for how often garbage is collected. Go lets the heap grow by a percentage between collections, so a
// small one is collected all the time: a service that has just started would spend on it what it needs for requests.
package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// Floor keeps a heap from being collected before it has a size. It does so with a block of memory that counts as live
// and is never touched, so it takes address space and no memory. A heap that is large enough by itself does without the
// block: it would only let more garbage gather.
type Floor struct {
	size int64 // of the block

	mu        sync.Mutex
	untouched []byte // the block; nil while the heap is large, and after Release
	released  bool
}

// Tune sets growth in percent between collections, and the floor in bytes. The floor holds until Release.
func Tune(percent int, floor int64) *Floor {
	debug.SetGCPercent(percent)
	// The next collection comes at live × (100+percent)/100, so this much has to be live for it to come at the floor.
	f := &Floor{size: floor * 100 / int64(100+percent)}
	f.untouched = make([]byte, f.size)
	f.afterNext()
	return f
}

// Fill runs f, which fills an empty process with data that stays, such as the state from a snapshot. Nothing is collected meanwhile, unless a
// memory limit (GOMEMLIMIT) is near: there is hardly any garbage, and each collection would walk through all that is there already.
func Fill(f func() error) error {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	return f()
}

// Release gives the floor up.
func (f *Floor) Release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	runtime.KeepAlive(f.untouched)
	f.untouched, f.released = nil, true
}

// collected is garbage at once: its finalizer tells that a collection has ended.
type collected struct{ _ [16]byte }

func (f *Floor) afterNext() {
	runtime.SetFinalizer(&collected{}, func(*collected) {
		if f.adjust() {
			f.afterNext()
		}
	})
}

// adjust looks at what the last collection has left, and reports whether the floor still holds.
func (f *Floor) adjust() bool {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.released {
		return false
	}
	live := int64(sample[0].Value.Uint64()) - int64(len(f.untouched))
	switch {
	case live > f.size:
		f.untouched = nil
	case live < f.size/2 && f.untouched == nil:
		f.untouched = make([]byte, f.size)
	}
	return true
}

// Package heap is for how often garbage is collected. Go lets the heap grow by a percentage between collections, so a
// small one is collected all the time: a service that has just started would spend on it what it needs for requests.
package heap

import (
	"runtime"
	"runtime/debug"
)

// Floor keeps a heap from being collected before it has a size. It does so with a block of memory that counts as live
// and is never touched, so it takes address space and no memory.
type Floor struct {
	untouched []byte
}

// Tune sets growth in percent between collections, and the floor in bytes. The floor holds until Release.
func Tune(percent int, floor int64) *Floor {
	debug.SetGCPercent(percent)
	// The next collection comes at live × (100+percent)/100, so this much has to be live for it to come at the floor.
	return &Floor{make([]byte, floor*100/int64(100+percent))}
}

// Release gives the floor up.
func (f *Floor) Release() {
	runtime.KeepAlive(f.untouched)
	f.untouched = nil
}

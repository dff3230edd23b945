// Package heap is for how often garbage is collected. Go lets the heap grow by a percentage between collections, so a
// small one is collected all the time: a service that has just started would spend on it what it needs for requests.
package heap

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// Floor keeps a heap from being collected before it has a size. After each collection it sets by how much the heap may grow until the next one.
//
// Each collection delays requests by some ten milliseconds. So the floor rises, up to riseMost times its size, while collections follow each other
// fast for a while. A burst, such as the connections that come back after a start, does not raise it. It falls when collections are rare.
type Floor struct {
	percent     int
	least, most int64

	mu        sync.Mutex
	at        int64
	collected time.Time // the last time
	fast      time.Time // since then collections follow each other fast; zero: they do not
	released  bool

	done chan struct{} // Release closes it
}

const (
	riseMost  = 8
	riseShare = 8 // of the machine's memory, or what its control group leaves to the process, the risen floor is at most one part in so many

	fastWithin = 6 * time.Second
	fastFor    = 10 * time.Second
	rareAfter  = 20 * time.Second
)

// Tune sets growth in percent between collections, and the floor in bytes, and gives memory back while the process is calm. All of it holds until Release.
// The process also stays below the limit of its control group, for good.
func Tune(percent int, floor int64) *Floor {
	if _, limit, ok := Memory(); ok {
		stayBelow(limit, os.Getenv("GOMEMLIMIT"))
	}
	f := &Floor{percent: percent, least: floor, most: highest(floor), at: floor, collected: time.Now(), done: make(chan struct{})}
	debug.SetGCPercent(growth(percent, floor, scanned{}))
	f.afterNext()
	go f.givesBack()
	return f
}

// highest is to where a floor rises.
func highest(floor int64) int64 {
	total, limit, ok := Memory()
	if !ok {
		return floor
	}
	if limit != 0 {
		total = min(total, limit)
	}
	return max(floor, min(riseMost*floor, int64(total/riseShare)))
}

// stayBelow has garbage collected earlier near a limit of the control group, which would end the process, also when little of its memory is live. own is GOMEMLIMIT,
// which Go has set already. A tenth is for what the collector does not count, such as pages of the program.
func stayBelow(limit uint64, own string) {
	if limit != 0 && own == "" {
		debug.SetMemoryLimit(int64(min(limit-limit/10, math.MaxInt64)))
	}
}

// Fill runs f, which fills an empty process with data that stays, such as the state from a snapshot. Nothing is collected meanwhile, unless a
// memory limit is near: there is hardly any garbage, and each collection would walk through all that is there already.
func Fill(f func() error) error {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	return f()
}

// Release gives the floor up. It is called once.
func (f *Floor) Release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.done)
	f.released = true
	debug.SetGCPercent(f.percent)
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
	left := lastScanned()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.released {
		return false
	}
	f.move(time.Now())
	debug.SetGCPercent(growth(f.percent, f.at, left))
	return true
}

// move raises or lowers the floor after a collection.
func (f *Floor) move(now time.Time) {
	since := now.Sub(f.collected)
	f.collected = now
	switch {
	case since > rareAfter:
		f.at, f.fast = max(f.at/2, f.least), time.Time{}
	case since > fastWithin:
		f.fast = time.Time{}
	case f.fast.IsZero():
		f.fast = now
	case now.Sub(f.fast) >= fastFor:
		f.at, f.fast = min(2*f.at, f.most), now
	}
}

// scanned is what a collection has walked through, in bytes.
type scanned struct{ live, roots int64 }

func lastScanned() scanned {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(sample)
	return scanned{int64(sample[0].Value.Uint64()), int64(sample[1].Value.Uint64() + sample[2].Value.Uint64())}
}

// growth is the percentage with which the next collection comes at the floor, but not less than percent. The heap grows by this share of all that the
// last collection has walked through, and in any case to this share of 4 MiB.
func growth(percent int, floor int64, last scanned) int {
	const least = 4 << 20
	if last.live+last.roots < least {
		return max(percent, int(floor*100/least))
	}
	return max(percent, int((floor-last.live)*100/(last.live+last.roots))+1)
}

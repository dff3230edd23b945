package heap

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A process that has become calm keeps what its last burst took: garbage up to the floor or the percentage, and free pages that the next burst
// would use. Go gives a part of that back after minutes. givesBack collects and gives back all of it as soon as the process is calm, and does so again when a
// good part has gathered.
const (
	lookEvery  = 5 * time.Second
	calmAlloc  = 1 << 20 // bytes a second; a process that allocates less is calm
	calmFor    = 3       // looks in a row
	worthLeast = 16 << 20
	worthShare = 8 // of what is live: giving back collects once, which walks through all of it
)

// usage is what the runtime counts, in bytes.
type usage struct {
	allocated uint64 // since the process began
	live      uint64 // found by the last collection
	held      uint64 // live objects, garbage and free pages
}

func (f *Floor) givesBack() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var w calmWatch
	for {
		select {
		case <-f.done:
			return
		case <-tick.C:
		}
		if w.worth(used()) {
			debug.FreeOSMemory()
		}
	}
}

// calmWatch decides when memory is given back.
type calmWatch struct {
	allocated uint64 // at the last look
	calm      int    // looks
}

// worth takes one look, and reports whether the process is calm and holds enough that is not live.
func (w *calmWatch) worth(u usage) bool {
	if u.allocated-w.allocated > calmAlloc*uint64(lookEvery/time.Second) {
		w.calm = 0
	} else {
		w.calm++
	}
	w.allocated = u.allocated
	return w.calm >= calmFor && u.held >= u.live+max(worthLeast, u.live/worthShare)
}

func used() usage {
	s := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(s)
	return usage{allocated: s[0].Value.Uint64(), live: s[1].Value.Uint64(), held: s[2].Value.Uint64() + s[3].Value.Uint64() + s[4].Value.Uint64()}
}

package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func TestTheNextCollectionComesAtTheFloor(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	const floor = 256 << 20
	for _, percent := range []int{50, 100, 300} {
		f := Tune(percent, floor)
		runtime.GC() // the goal of a cycle is set at its end
		if goal := goal(); goal < floor || goal > floor*5/4 {
			t.Errorf("with %d%%: the next collection comes at %d bytes, want %d and not much more", percent, goal, floor)
		}
		f.Release()
		runtime.GC()
		if goal := goal(); goal > floor/2 {
			t.Errorf("with %d%%: after Release the next collection comes at %d bytes", percent, goal)
		}
	}
}

func goal() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

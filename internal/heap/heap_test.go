package heap

import (
	"errors"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
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

// A heap that is larger than the floor has no more room for garbage than without a floor. When the heap is small again, the floor applies again.
func TestALargeHeapDoesWithoutTheFloor(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	const floor = 64 << 20
	f := Tune(100, floor)
	defer f.Release()
	large := make([]byte, floor)
	collectUntil(t, "the floor is gone", func(goal uint64) bool { return goal < 2*floor+floor/2 })
	runtime.KeepAlive(large)
	collectUntil(t, "the floor is back", func(goal uint64) bool { return goal >= floor && goal < floor*3/2 })
}

func TestTheFloorRisesWhileCollectionsFollowEachOtherFast(t *testing.T) {
	now := time.Unix(1, 0)
	f := &Floor{least: 64, most: 256, at: 64, collected: now}
	collect := func(times int, every time.Duration, want int64) {
		t.Helper()
		for range times {
			now = now.Add(every)
			f.move(now)
		}
		if f.at != want {
			t.Errorf("after %d collections, one each %s: the floor is at %d, want %d", times, every, f.at, want)
		}
	}
	collect(10, time.Second, 64) // a burst
	collect(1, 7*time.Second, 64)
	collect(10, time.Second, 64)
	collect(1, time.Second, 128) // the eleventh: for ten seconds
	collect(10, time.Second, 256)
	collect(100, time.Second, 256) // not above most
	collect(10, 10*time.Second, 256)
	collect(1, time.Minute, 128)
	collect(5, time.Minute, 64)
}

// collectUntil collects garbage until the size of the next collection satisfies ok, because finalizers run some time after a collection.
func collectUntil(t *testing.T, what string, ok func(goal uint64) bool) {
	t.Helper()
	for range 10_000 {
		runtime.GC()
		if ok(goal()) {
			return
		}
		runtime.Gosched()
	}
	t.Fatalf("%s: not after many collections; the next one comes at %d bytes", what, goal())
}

func goal() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func TestNothingIsCollectedWhileDataFillsTheHeap(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	var before, after runtime.MemStats
	failed := errors.New("a damaged snapshot")
	err := Fill(func() error {
		runtime.GC()
		runtime.ReadMemStats(&before)
		var kept [][]byte
		for range 64 {
			kept = append(kept, make([]byte, 1<<20))
		}
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(kept)
		return failed
	})
	if err != failed {
		t.Errorf("Fill answers %v, want the error of its function", err)
	}
	if n := after.NumGC - before.NumGC; n != 0 {
		t.Errorf("%d collections, want none", n)
	}
	if percent := debug.SetGCPercent(50); percent != 50 {
		t.Errorf("afterwards the heap grows by %d%% between collections, want 50%%", percent)
	}
}

func TestHeapStaysBelowTheLimitOfTheControlGroup(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	stayBelow(0, "")
	stayBelow(2<<30, "1GiB")
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("without a limit, or with one of its own: %d, want %d", got, before)
	}
	stayBelow(2<<30, "")
	if got := debug.SetMemoryLimit(-1); got >= 2<<30 || got < 7<<28 {
		t.Errorf("with a limit of 2 GiB: %d", got)
	}
}

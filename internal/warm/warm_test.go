package warm

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Each task runs once, also those that begin others and wait for them.
func TestGo(t *testing.T) {
	var g Group
	var ran atomic.Int32
	for range 500 {
		g.Go(func() {
			done := make(chan struct{})
			g.Go(func() { ran.Add(1); close(done) })
			<-done
			ran.Add(1)
		})
	}
	g.Wait()
	g.Go(func() { ran.Add(1) })
	g.Wait()
	if got := ran.Load(); got != 1001 {
		t.Errorf("%d tasks ran, want 1001", got)
	}
}

// Tasks may begin while Wait returns. The race detector, or a panic, reports it otherwise.
func TestGoDuringWait(t *testing.T) {
	for range 1000 {
		var g Group
		var ran atomic.Int32
		g.Go(func() {})
		begun := make(chan struct{})
		go func() {
			defer close(begun)
			for range 10 {
				g.Go(func() { ran.Add(1) })
				g.GoNew(func() { ran.Add(1) })
			}
		}()
		g.Wait()
		<-begun
		g.Wait()
		if n := ran.Load(); n != 20 {
			t.Fatalf("%d tasks ran, want 20", n)
		}
	}
}

// A burst leaves some goroutines behind, which the following tasks use. None is left after Wait; synctest.Test would not return.
func TestIdleGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group
		hold := make(chan struct{})
		for range 2 * idleMost {
			g.Go(func() { <-hold })
		}
		close(hold)
		synctest.Wait()
		if n := len(g.idle); n != idleMost {
			t.Errorf("%d goroutines wait for tasks after a burst, want %d", n, idleMost)
		}
		hold = make(chan struct{})
		for range idleMost {
			g.Go(func() { <-hold })
		}
		if n := len(g.idle); n != 0 {
			t.Errorf("%d goroutines wait beside %d tasks, want 0", n, idleMost)
		}
		close(hold)
		g.Wait()
	})
}

// deep needs as much stack as a message.
func deep(n int) byte {
	var room [512]byte
	if n > 0 {
		room[n] = deep(n - 1)
	}
	return room[n]
}

func BenchmarkGo(b *testing.B) {
	type group interface {
		Go(task func())
		Wait()
	}
	var running sync.WaitGroup
	for name, g := range map[string]group{"warm": &Group{}, "new": &running} {
		b.Run(name, func(b *testing.B) {
			done := make(chan struct{})
			for b.Loop() {
				g.Go(func() { deep(12); done <- struct{}{} })
				<-done
			}
		})
		g.Wait()
	}
}

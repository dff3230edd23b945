package support

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"time"
)

// CPUMax is the maximum length of a CPU profile.
const CPUMax = 15 * time.Second

// Profile adds the profiles of this process. processor is the length of the CPU profile; 0: none.
func (p *Parts) Profile(ctx context.Context, processor time.Duration) {
	for _, x := range []struct {
		name, about string
		debug       int
	}{
		{"heap", "what memory is used for, for go tool pprof", 0},
		{"allocs", "where memory was allocated since the start, likewise", 0},
		{"mutex", "where goroutines waited for locks, likewise", 0},
		{"block", "where goroutines waited, likewise", 0},
		{"goroutine", "all goroutines and where they are, as text", 1},
	} {
		var b bytes.Buffer
		name := x.name + ".pprof"
		if x.debug > 0 {
			name = x.name + ".txt"
		}
		if err := pprof.Lookup(x.name).WriteTo(&b, x.debug); err != nil {
			p.Fail(name, err)
			continue
		}
		p.Add(name, x.about, b.Bytes())
	}
	if processor <= 0 {
		return
	}
	processor = min(processor, CPUMax)
	var b bytes.Buffer
	if err := pprof.StartCPUProfile(&b); err != nil { // another one is running
		p.Fail("cpu.pprof", err)
		return
	}
	select {
	case <-time.After(processor):
	case <-ctx.Done():
	}
	pprof.StopCPUProfile()
	p.Add("cpu.pprof", fmt.Sprintf("what the processor did during %s, for go tool pprof", processor), b.Bytes())
}

// runtimeFacts returns facts about this process.
func runtimeFacts() map[string]any {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return map[string]any{
		"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "processors": runtime.NumCPU(), "gomaxprocs": runtime.GOMAXPROCS(0), "goroutines": runtime.NumGoroutine(),
		"heapBytes": m.HeapAlloc, "heapFromSystemBytes": m.HeapSys, "allFromSystemBytes": m.Sys, "collections": m.NumGC, "collectorFraction": m.GCCPUFraction,
	}
}

//go:build unix

package pebble

import (
	"fmt"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"
)

// BenchmarkAppend appends groups as the engine does, one at a time, with a snapshot and a trim every 64 MiB. The figures are meaningful
// only on a real disk; TMPDIR chooses it.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			j, err := Open(Options{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			batch := make([]byte, size)
			for i := range batch {
				batch[i] = byte(i * i >> 3)
			}
			snapshotEvery := uint64(64<<20) / uint64(size)
			latencies := make([]time.Duration, 0, b.N)
			b.SetBytes(int64(size))
			before := cpuTime(b)
			for n := uint64(1); b.Loop(); n++ {
				began := time.Now()
				if err := j.Append(b.Context(), n, batch); err != nil {
					b.Fatal(err)
				}
				latencies = append(latencies, time.Since(began))
				if n%snapshotEvery == 0 {
					if err := j.SaveSnapshot(b.Context(), n, func(w io.Writer) error { return nil }); err != nil {
						b.Fatal(err)
					}
					if err := j.Trim(b.Context(), n); err != nil {
						b.Fatal(err)
					}
				}
			}
			spent := cpuTime(b) - before
			slices.Sort(latencies)
			b.ReportMetric(float64(spent.Microseconds())/float64(len(latencies)), "cpu-µs/op")
			b.ReportMetric(float64(latencies[len(latencies)*50/100].Microseconds()), "p50-µs")
			b.ReportMetric(float64(latencies[len(latencies)*99/100].Microseconds()), "p99-µs")
		})
	}
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

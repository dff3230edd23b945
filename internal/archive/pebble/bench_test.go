//go:build unix

package pebble

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/archive"
)

// endedPlayerSessions makes the ended records of one second of a busy cell: games of ten that end together.
func endedPlayerSessions(random *rand.Rand, from, n int) []archive.Record {
	records := make([]archive.Record, n)
	group := ""
	for i := range records {
		if i%10 == 0 {
			group = newID(random, "gsess-")
		}
		ended := int64(1_700_000_000_000) + int64(from+i)/30
		data := make([]byte, 160)
		for j := range data {
			data[j] = "0123456789abcdefghijklmnopqrstuvwxyz-\x00\x01\x02"[random.IntN(40)]
		}
		records[i] = archive.Record{
			Kind: archive.PlayerSession, ID: newID(random, "psess-"), Created: ended - 1_200_000 - int64(random.IntN(60_000)), Ended: ended,
			Group: group, Player: fmt.Sprintf("player-%d", random.IntN(5_000_000)), Data: data,
		}
	}
	return records
}

func newID(random *rand.Rand, prefix string) string {
	a, b := random.Uint64(), random.Uint64()
	return fmt.Sprintf("%s%08x-%04x-%04x-%04x-%012x", prefix, a>>32, a>>16&0xffff, a&0xffff, b>>48, b&0xffffffffffff)
}

// BenchmarkPut puts the batches of half a second at 30,000 records a second. CPU is the processor time of the whole process with
// compactions, without making the records. TMPDIR chooses the disk.
func BenchmarkPut(b *testing.B) {
	for _, size := range []int{1000, 15_000} {
		b.Run(fmt.Sprintf("%d", size), func(b *testing.B) {
			a, err := Open(Options{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer a.Close()
			random := rand.New(rand.NewPCG(1, 2))
			batches := make([][]archive.Record, 40)
			records, wall, cpu := 0, time.Duration(0), time.Duration(0)
			for b.Loop() {
				b.StopTimer()
				for i := range batches {
					batches[i] = endedPlayerSessions(random, records+i*size, size)
				}
				began, before := time.Now(), cpuTime(b)
				b.StartTimer()
				for _, batch := range batches {
					if err := a.Put(b.Context(), batch); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				records += size * len(batches)
				wall += time.Since(began)
				cpu += cpuTime(b) - before
				b.StartTimer()
			}
			b.ReportMetric(float64(records)/wall.Seconds(), "records/s")
			b.ReportMetric(float64(cpu.Nanoseconds())/1000/float64(records), "cpu-µs/record")
			b.ReportMetric(float64(a.db.DiskUsed())/float64(records), "stored-B/record")
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

// BenchmarkCopy copies an archive in pages of 1 MiB. At a busy service a block has 64 records, at a quiet one a few.
func BenchmarkCopy(b *testing.B) {
	const all = 200_000
	for _, apart := range []int64{1, 20_000} { // milliseconds between two ends
		b.Run(fmt.Sprintf("%d ms apart", apart), func(b *testing.B) {
			from, err := Open(Options{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer from.Close()
			random := rand.New(rand.NewPCG(1, 2))
			for n := 0; n < all; n += 20_000 {
				some := endedPlayerSessions(random, n, 20_000)
				for i := range some {
					some[i].Ended = int64(n+i) * apart
				}
				if err := from.Put(b.Context(), some); err != nil {
					b.Fatal(err)
				}
			}
			read, wrote, pages, cpu := time.Duration(0), time.Duration(0), 0, cpuTime(b)
			for b.Loop() {
				to, err := Open(Options{Dir: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
				for place, more := (archive.Place{}), true; more; pages++ {
					began := time.Now()
					page, err := from.Page(b.Context(), place, 1<<20)
					if err != nil {
						b.Fatal(err)
					}
					middle := time.Now()
					if _, err := to.Add(b.Context(), page.Records, archive.Coverage{From: page.Next.Ended}); err != nil {
						b.Fatal(err)
					}
					read, wrote = read+middle.Sub(began), wrote+time.Since(middle)
					place, more = page.Next, page.More
				}
				to.Close()
			}
			b.ReportMetric(float64(read.Microseconds())/1000/float64(pages), "ms/page-read")
			b.ReportMetric(float64(wrote.Microseconds())/1000/float64(pages), "ms/page-added")
			b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/1000/float64(b.N*all), "cpu-µs/record")
		})
	}
}

//go:build unix

package raft

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/journal"
	journalpebble "github.com/musterhq/muster/internal/journal/pebble"
)

// BenchmarkChanges runs callers in a closed loop, each of which waits for its change of 150 bytes, as the engine groups them: one append is in flight and
// the next group grows meanwhile. All nodes share the machine and its disk, which must be a real one for the figures to mean anything: TMPDIR
// says where. Nodes speak TCP over loopback without TLS.
func BenchmarkChanges(b *testing.B) {
	for _, callers := range []int{64, 512} {
		for _, nodes := range []int{0, 1, 3} {
			name := fmt.Sprintf("raft-%d-nodes/%d-callers", nodes, callers)
			if nodes == 0 {
				name = fmt.Sprintf("pebble/%d-callers", callers)
			}
			b.Run(name, func(b *testing.B) { benchmarkChanges(b, openForBench(b, nodes), callers) })
		}
	}
}

func openForBench(b *testing.B, nodes int) journal.Journal {
	dir := b.TempDir()
	if nodes == 0 {
		j, err := journalpebble.Open(journalpebble.Options{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = j.Close() })
		return j
	}
	var leader *Node
	for i := range nodes {
		id := fmt.Sprint("n", i)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		transport := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{Stream: plainTCP{listener}, MaxPool: 3, MaxRPCsInFlight: 1, Timeout: 10 * time.Second, Logger: Logger(newCluster(b, nil).quiet())})
		n, err := Open(Options{Dir: filepath.Join(dir, id), ID: id, Transport: transport, Bootstrap: i == 0})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = n.Close() })
		if i == 0 {
			leader = n
			if _, err := n.Lead(b.Context()); err != nil {
				b.Fatal(err)
			}
			continue
		}
		if err := leader.AddObserver(b.Context(), id, listener.Addr().String()); err != nil {
			b.Fatal(err)
		}
		if err := leader.Promote(b.Context(), id); err != nil {
			b.Fatal(err)
		}
	}
	j, err := leader.Lead(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return j
}

type plainTCP struct{ net.Listener }

func (t plainTCP) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", string(address), timeout)
}

func benchmarkChanges(b *testing.B, j journal.Journal, callers int) {
	const changeBytes = 150
	last, err := j.Last(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	type call struct{ done chan struct{} }
	var mu sync.Mutex
	var waiting []call
	woken := make(chan struct{}, 1)
	stop, committed := make(chan struct{}), make(chan struct{})
	groups := 0
	go func() {
		defer close(committed)
		var batch []byte
		for {
			select {
			case <-woken:
			case <-stop:
				return
			}
			mu.Lock()
			group := waiting
			waiting = nil
			mu.Unlock()
			if len(group) == 0 {
				continue
			}
			batch = slices.Grow(batch[:0], len(group)*changeBytes)[:len(group)*changeBytes]
			last++
			groups++
			if err := j.Append(b.Context(), last, batch); err != nil {
				b.Error(err)
			}
			if last%2000 == 0 {
				if err := j.SaveSnapshot(b.Context(), last, func(io.Writer) error { return nil }); err == nil {
					_ = j.Trim(b.Context(), last)
				}
			}
			for _, c := range group {
				close(c.done)
			}
		}
	}()
	var latencies []time.Duration
	var all sync.WaitGroup
	began, cpu := time.Now(), processorTime(b)
	each := max(1, b.N/callers)
	for range callers {
		all.Go(func() {
			took := make([]time.Duration, 0, each)
			for range each {
				c := call{make(chan struct{})}
				at := time.Now()
				mu.Lock()
				waiting = append(waiting, c)
				mu.Unlock()
				select {
				case woken <- struct{}{}:
				default:
				}
				<-c.done
				took = append(took, time.Since(at))
			}
			mu.Lock()
			latencies = append(latencies, took...)
			mu.Unlock()
		})
	}
	all.Wait()
	elapsed, spent := time.Since(began), processorTime(b)-cpu
	close(stop)
	<-committed
	slices.Sort(latencies)
	b.ReportMetric(float64(len(latencies))/elapsed.Seconds(), "changes/s")
	b.ReportMetric(float64(len(latencies))/float64(groups), "changes/group")
	b.ReportMetric(float64(latencies[len(latencies)*50/100].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(latencies[len(latencies)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(spent.Microseconds())/float64(len(latencies)), "cpu-µs/change")
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

package bench

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// load describes how workers perform units of work.
type load struct {
	workers int     // concurrent workers; each has its own connection
	rate    float64 // units per second; 0: each worker begins the next unit when the previous one has ended
	warm    time.Duration
	measure time.Duration
}

// measured is the result of a load.
type measured struct {
	load
	units   uint64
	took    time.Duration
	latency histogram
	used    time.Duration // processor time of the server
	own     time.Duration // of this process
	others  time.Duration // of all other processes on the machine, which distort the numbers
	peak    int64
}

// collectRarely makes this process collect garbage only after a few hundred MB: a collection occupies both processors for 10 to 20 milliseconds, which
// would count as slow answers of the service.
func collectRarely() (restore func()) {
	runtime.GC()
	before := debug.SetGCPercent(2000)
	return func() { debug.SetGCPercent(before) }
}

func (m *measured) perSecond() float64 { return float64(m.units) / m.took.Seconds() }

// run runs a load. A failed worker ends the whole run. Without a server, the load is on this process, and only the time is measured.
func (l load) run(ctx context.Context, s *server, unit func(worker int) error) (*measured, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s != nil {
		defer collectRarely()()
	}
	const warming, measuring, over = 0, 1, 2
	var phase atomic.Int32
	var workers sync.WaitGroup
	each := make([]histogram, l.workers)
	failed := make(chan error, l.workers)
	begin := time.Now()
	for w := range l.workers {
		workers.Go(func() {
			pace := newPace(l, begin, w)
			for phase.Load() != over && ctx.Err() == nil {
				began := pace.next()
				if err := unit(w); err != nil {
					failed <- err
					cancel()
					return
				}
				if phase.Load() == measuring {
					each[w].add(time.Since(began))
				}
			}
		})
	}
	wait(ctx, l.warm)
	before, used, own, from := machineTime(), processorTime(s), processorTime(nil), time.Now()
	phase.Store(measuring)
	wait(ctx, l.measure)
	phase.Store(over)
	m := &measured{load: l, took: time.Since(from), used: processorTime(s) - used, own: processorTime(nil) - own}
	m.others = machineTime() - before - m.own
	if s != nil {
		m.others -= m.used
		m.peak = s.peak()
	}
	workers.Wait()
	select {
	case err := <-failed:
		return nil, err
	default:
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	for w := range each {
		m.latency.merge(&each[w])
	}
	m.units = m.latency.total
	return m, nil
}

// pace schedules the units of one worker.
type pace struct {
	interval time.Duration
	planned  time.Time
}

func newPace(l load, begin time.Time, worker int) pace {
	if l.rate == 0 {
		return pace{}
	}
	interval := time.Duration(float64(l.workers) / l.rate * float64(time.Second))
	return pace{interval, begin.Add(interval * time.Duration(worker) / time.Duration(l.workers))}
}

// next waits until the next unit is due and returns the time from which it counts: the planned one if the last unit ended after it,
// because the client has waited since then; otherwise now, because the load itself causes a late wake-up.
func (p *pace) next() time.Time {
	now := time.Now()
	if p.interval == 0 {
		return now
	}
	due := p.planned
	p.planned = due.Add(p.interval)
	if wait := due.Sub(now); wait > 0 {
		time.Sleep(wait)
		return time.Now()
	}
	return due
}

// processorTime returns the processor time of the server so far, or of this process.
func processorTime(s *server) time.Duration {
	if s == nil {
		return processorTimeOf("self")
	}
	return processorTimeOf(strconv.Itoa(s.process.Pid))
}

// String returns a line of progress for users who wait for the table.
func (m *measured) String() string {
	return fmt.Sprintf("%.0f a second, p50 %s, p99 %s; processors: service %.2f, load %.2f, others %.2f", m.perSecond(), milliseconds(m.latency.quantile(0.5)),
		milliseconds(m.latency.quantile(0.99)), m.used.Seconds()/m.took.Seconds(), m.own.Seconds()/m.took.Seconds(),
		max(0, m.others.Seconds()/m.took.Seconds()))
}

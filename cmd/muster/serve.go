package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/devclock"
	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/heap"
	"github.com/musterhq/muster/internal/logsink"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/settings"
	"github.com/musterhq/muster/internal/support"
)

type serveCommand struct {
	settings.Settings
	Unkept     bool     `name:"bench-unkept" hidden:"" help:"Count and keep no metrics, and record no audit log: for muster bench, which measures what both cost."`
	AcceptLoss []string `name:"accept-loss" placeholder:"journal|journal-tail|archive|cell.secret" help:"For one start: continue without a lost part of the data directory, and record the loss in the log and the journal. The remains of the part are renamed, not deleted."`
}

// Run serves until ctx ends or the port is lost. A failed journal does not end it: the service answers requests with an error,
// and /healthz reports the failure. If the cause was a shortage, the service continues once the shortage is over.
func (c *serveCommand) Run(ctx context.Context, sources *sources, env environment) error {
	if err := c.Check(); err != nil {
		return err
	}
	var accept []datadir.Part
	for _, name := range c.AcceptLoss {
		part, err := datadir.ParsePart(name)
		if err != nil {
			return fmt.Errorf("accept-loss: %w", err)
		}
		accept = append(accept, part)
	}
	began := time.Now()
	floor := heap.Tune(c.GCPercent, int64(c.HeapFloor))
	defer floor.Release()
	level, format := new(slog.LevelVar), new(atomic.Bool)
	recent := support.NewRing(support.RingBytes)
	sink := openLog(env)
	defer sink.Close()
	log := newLoggerAt(io.MultiWriter(recent, sink), c.Settings, level, format)
	tellOfLostLines(sink, log)
	hangups := make(chan os.Signal, 1) // keeps a signal that arrives while the service starts
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	if c.Dev {
		log.Warn("development mode: the service accepts any credentials; use it on one machine only")
	}
	if c.VirtualClock {
		log.Warn("virtual clock: time stands still until a test advances it through " + devclock.Prefix)
	}
	stopProfiler, err := startProfiler(c.Pprof, log)
	if err != nil {
		return err
	}
	defer stopProfiler()
	supervised, err := supervise(env, log)
	if err != nil {
		return err
	}
	defer supervised.end()
	x := &serving{
		Loaded: settings.Loaded{Settings: c.Settings, File: sources.fileName, From: sources.of}, unkept: c.Unkept,
		level: level, json: format, recent: recent, sink: sink, log: log, load: sources.again, hangups: hangups, supervised: supervised,
	}
	return runAsService(ctx, func(ctx context.Context) error { return x.run(ctx, began, accept) })
}

// reopenWait is the time between two attempts to begin a run after a shortage.
const reopenWait = time.Second

// serving is the service over all its runs.
type serving struct {
	settings.Loaded // the current settings, including those of the last reload
	unkept          bool
	level           *slog.LevelVar
	json            *atomic.Bool  // the format of the log
	recent          *support.Ring // the end of the log
	sink            *logsink.Sink // its output
	log             *slog.Logger
	load            func() (settings.Loaded, error)
	hangups         chan os.Signal
	supervised      *supervision
}

// run runs the service until ctx ends or it fails, and runs it again after a shortage.
func (x *serving) run(ctx context.Context, began time.Time, accept []datadir.Part) error {
	again, err := x.runOnce(ctx, began, accept, heap.Fill)
	for again {
		again, err = x.runOnce(ctx, time.Now(), nil, nil)
		if err != nil && embeddb.IsShortage(err) { // there is too little free space again
			x.log.Error("the service cannot open its data yet; it tries again", "error", err, "retry_in", reopenWait)
			x.supervised.between("waits for disk space to open its data")
			again = true
			select {
			case <-time.After(reopenWait):
			case <-ctx.Done():
				return nil
			}
		}
	}
	return err
}

// runOnce runs the service until ctx ends, the port is lost, the node of a cluster fails, or a shortage of space or descriptors that made the store fail
// is over. It returns again if another run can continue from the journal. In the first run, fill wraps the loading of the state, because the process has
// none yet.
func (x *serving) runOnce(ctx context.Context, began time.Time, accept []datadir.Part, fill func(func() error) error) (again bool, err error) {
	log := x.log
	options := service.NewOptions(x.Settings, log, accept)
	options.Version, options.Getenv, options.SourceOf = version, os.Getenv, x.From
	options.Unkept, options.Fill, options.Load, options.Level, options.JSON = x.unkept, fill, x.load, x.level, x.json
	options.Recent, options.LogTrouble = x.recent, x.sink.Trouble
	s, err := service.StartWith(ctx, options)
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		log.Info("stopped before the service was ready", "while", err)
		return false, nil
	case err != nil:
		return false, err
	}
	log.Info("listening", "address", s.Addr().String(), "public_url", s.PublicURL(), "data", x.Data, "version", versionText(),
		"took", time.Since(began).Round(time.Millisecond), "heap_bytes", liveHeap())
	x.supervised.runs(s)
	run, end := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { x.reloadOnHangup(run, s) })
	recovered := make(chan bool, 1)
	go func() { recovered <- s.Recoverable(run) }()
	nodeFailed := make(chan bool, 1)
	if s.Node() != nil {
		go func() {
			if failed, mends := s.NodeFailed(run); failed {
				nodeFailed <- mends
			}
		}()
	}
	defer func() {
		end()
		<-recovered
		beside.Wait()
		x.Loaded = s.Settings()
		if strings.HasSuffix(x.Listen, ":0") {
			x.Listen = s.Addr().String() // the next run uses the same port
		}
	}()
	select {
	case <-ctx.Done():
		log.Info("stopping")
		x.supervised.stops()
	case again = <-recovered:
		recovered <- again // for the deferred receive
		if again {
			log.Warn("the shortage is over: the service restarts from its journal", "failure", s.Err())
			x.supervised.between("restarts after a shortage")
			if err := s.Stop(context.WithoutCancel(ctx)); err != nil {
				log.Info("the failed run has stopped", "error", err)
			}
			return true, nil
		}
	case again = <-nodeFailed:
		cause := s.Err()
		x.supervised.between("restarts the node")
		if err := s.Stop(context.WithoutCancel(ctx)); err != nil {
			log.Info("the failed node has stopped", "error", err)
		}
		if again {
			log.Warn("the node starts again with what it received", "failure", cause)
			return true, nil
		}
		return false, fmt.Errorf("the node of the cluster has failed: %w", cause)
	case err := <-s.Served():
		_ = s.Stop(context.WithoutCancel(ctx)) // the error below is the cause
		return false, fmt.Errorf("the port has failed: %w", err)
	}
	if err := s.Stop(context.WithoutCancel(ctx)); err != nil {
		return false, fmt.Errorf("stop: %w", err)
	}
	log.Info("stopped")
	return false, nil
}

// reloadOnHangup makes the service read its settings again on each SIGHUP until ctx ends. The service logs the outcome.
func (x *serving) reloadOnHangup(ctx context.Context, s *service.Service) {
	for {
		select {
		case <-x.hangups:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return // also if both have come: the service is stopping
		}
		x.supervised.reloading()
		done, err := s.ReloadBySignal(ctx)
		switch {
		case err != nil:
			x.supervised.reloaded("ready; settings were not reloaded, the log says why")
		case len(done.NeedsRestart) > 0:
			x.supervised.reloaded("ready; some new settings need a restart, the log has them")
		default:
			x.supervised.reloaded("ready")
		}
	}
}

// liveHeap returns the bytes of allocated heap objects.
func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

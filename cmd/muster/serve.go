package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/musterhq/muster/internal/devclock"
	"github.com/musterhq/muster/internal/heap"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/settings"
)

type serveCommand struct {
	settings.Settings
}

// Run serves until ctx ends or the port is lost. A journal that fails does not end it: reads go on, writes say why, and
// so does /healthz.
func (c *serveCommand) Run(ctx context.Context) error {
	if err := c.Check(); err != nil {
		return err
	}
	began := time.Now()
	floor := heap.Tune(c.GCPercent, int64(c.HeapFloor))
	defer floor.Release()
	log := newLogger(os.Stderr, c.Settings)
	if c.Dev {
		log.Warn("development mode: any credentials are accepted; this is for one machine only")
	}
	if c.VirtualClock {
		log.Warn("virtual clock: deadlines stand still until a test moves the time over " + devclock.Prefix)
	}
	stopProfiler, err := startProfiler(c.Pprof, log)
	if err != nil {
		return err
	}
	defer stopProfiler()
	s, err := service.Start(ctx, c.Settings, log)
	if err != nil {
		return err
	}
	log.Info("listening", "address", s.Addr().String(), "publicUrl", s.PublicURL(), "data", c.Data, "version", versionText(),
		"took", time.Since(began).Round(time.Millisecond), "heapBytes", liveHeap(int64(c.HeapFloor), c.GCPercent))
	select {
	case <-ctx.Done():
		log.Info("stopping")
	case err := <-s.Served():
		_ = s.Stop(context.WithoutCancel(ctx)) // the reason below is the one that matters
		return fmt.Errorf("the port is lost: %w", err)
	}
	if err := s.Stop(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	log.Info("stopped")
	return nil
}

// liveHeap is the heap in use without the floor's block.
func liveHeap(floor int64, percent int) int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) - floor*100/int64(100+percent)
}

// newLogger makes the log that the settings ask for. Check has seen to it that they make sense.
func newLogger(w io.Writer, s settings.Settings) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(s.LogLevel))
	options := &slog.HandlerOptions{Level: level}
	if s.LogFormat == "json" {
		options.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindDuration { // as in the text, not in nanoseconds
				a.Value = slog.StringValue(a.Value.Duration().String())
			}
			return a
		}
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/sdnotify"
)

// openMax is how long the service may take between two runs to open its data again. Afterwards it stops feeding systemd's watchdog, which replaces the process.
// It is several times what the largest installation takes.
const openMax = 15 * time.Minute

// supervised is a part of the program that reports whether it works.
type supervised interface {
	Alive(ctx context.Context) (status string, err error)
}

// supervision reports the state of the program to systemd, if systemd started it.
type supervision struct {
	manager  *sdnotify.Manager // nil: none
	stop     context.CancelFunc
	watching sync.WaitGroup

	mu      sync.Mutex
	running supervised // nil between two runs
	status  string     // between two runs
	since   time.Time
	ready   bool // set by the first run
}

func supervise(env environment, log *slog.Logger) (*supervision, error) {
	manager, err := sdnotify.Connect(func(name string) string { return env[name] }, os.Getpid(), log)
	return &supervision{manager: manager}, err
}

// runs reports that the program is ready, and starts feeding the watchdog.
func (v *supervision) runs(what supervised) {
	v.mu.Lock()
	first := !v.ready
	v.running, v.ready = what, true
	v.mu.Unlock()
	v.manager.Ready("ready")
	if first && v.manager != nil {
		var ctx context.Context
		ctx, v.stop = context.WithCancel(context.Background())
		v.watching.Go(func() { v.manager.Watch(ctx, v.alive) })
	}
}

// between reports that the program is opening its data again.
func (v *supervision) between(status string) {
	v.mu.Lock()
	if v.running != nil {
		v.since = time.Now()
	}
	v.running, v.status = nil, status
	v.mu.Unlock()
	v.manager.Reloading(status)
}

// reloading reports that the program is reading its settings again; reloaded reports that it has.
func (v *supervision) reloading()             { v.manager.Reloading("reloads its settings") }
func (v *supervision) reloaded(status string) { v.manager.Ready(status) }

// stops reports that the program is stopping.
func (v *supervision) stops() { v.manager.Stopping() }

// end stops feeding the watchdog and waits for that.
func (v *supervision) end() {
	if v.stop != nil {
		v.stop()
	}
	v.watching.Wait()
	v.manager.Close()
}

func (v *supervision) alive(ctx context.Context) (string, error) {
	v.mu.Lock()
	running, status, since := v.running, v.status, v.since
	v.mu.Unlock()
	if running != nil {
		return running.Alive(ctx)
	}
	if time.Since(since) > openMax {
		return "", errors.New("the data cannot be reopened")
	}
	return status, nil
}

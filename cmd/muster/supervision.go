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

// openMax is how long the service may take between two runs to open its data again, before systemd is to replace the process. It is several times what the largest installation
// takes.
const openMax = 15 * time.Minute

// supervised is a part of the program that can tell whether it works.
type supervised interface {
	Alive(ctx context.Context) (status string, err error)
}

// supervision tells systemd, if that started the program, how it is.
type supervision struct {
	manager  *sdnotify.Manager // nil: none
	stop     context.CancelFunc
	watching sync.WaitGroup

	mu      sync.Mutex
	running supervised // nil between two runs
	status  string     // between two runs
	since   time.Time
	ready   bool // once
}

func supervise(env environment, log *slog.Logger) (*supervision, error) {
	manager, err := sdnotify.Connect(func(name string) string { return env[name] }, os.Getpid(), log)
	return &supervision{manager: manager}, err
}

// runs says that the program is ready, and has the watchdog fed from now on.
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

// between says that the program opens its data again.
func (v *supervision) between(status string) {
	v.mu.Lock()
	if v.running != nil {
		v.since = time.Now()
	}
	v.running, v.status = nil, status
	v.mu.Unlock()
	v.manager.Reloading(status)
}

// reloading says that the program reads its settings again, and reloaded that it has.
func (v *supervision) reloading()             { v.manager.Reloading("reads its settings again") }
func (v *supervision) reloaded(status string) { v.manager.Ready(status) }

// stops says that the program ends.
func (v *supervision) stops() { v.manager.Stopping() }

// end waits for the end of the watch.
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
		return "", errors.New("the data cannot be opened again")
	}
	return status, nil
}

package service

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/embeddb"
)

// store is a store that a room watches.
type store interface {
	Shortage() error
	FreeSpace() (bytes uint64, ok bool)
	StopWaiting()
}

// room watches whether the stores have space and descriptors. While space is short, changes are refused before they are
// decided: running changes, and background work of the databases, need the rest.
type room struct {
	dir     string // of the data
	stores  []store
	reserve atomic.Uint64 // bytes
	log     *slog.Logger
	short   atomic.Pointer[error]
	done    chan struct{}
	stop    context.CancelFunc
}

// roomEvery is how often a room checks. Even a disk that takes a gigabyte a second is not full before the next check, if the
// reserve has its default.
const roomEvery = 50 * time.Millisecond

func watchRoom(dir string, reserve uint64, log *slog.Logger, stores ...store) *room {
	ctx, stop := context.WithCancel(context.Background())
	r := &room{dir: dir, stores: stores, log: log, done: make(chan struct{}), stop: stop}
	r.reserve.Store(reserve)
	r.look()
	go func() {
		defer close(r.done)
		again := time.NewTicker(roomEvery)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				r.look()
			case <-ctx.Done():
				return
			}
		}
	}()
	return r
}

func (r *room) close() {
	r.stop()
	<-r.done
}

// stopWaiting lets the service end in spite of a shortage.
func (r *room) stopWaiting() {
	for _, s := range r.stores {
		s.StopWaiting()
	}
}

// Short returns the shortage for which changes are refused, or nil.
func (r *room) Short() error {
	if err := r.short.Load(); err != nil {
		return *err
	}
	return nil
}

func (r *room) look() {
	was, now := r.Short(), r.reason()
	switch {
	case now == nil && was != nil:
		r.short.Store(nil)
		r.log.Info("the shortage is over: the service accepts changes again")
	case now != nil:
		r.short.Store(&now)
		if was == nil {
			r.log.Error("the service refuses changes until a shortage is over", "error", now)
		}
	}
}

func (r *room) reason() error {
	want := r.reserve.Load()
	if r.Short() != nil {
		want += want / 4 // so that it does not alternate at the limit
	}
	for _, s := range r.stores {
		if err := s.Shortage(); err != nil {
			return fmt.Errorf("a store waits: %w", err)
		}
		if free, ok := s.FreeSpace(); ok && free < want {
			return fmt.Errorf("no space left on the disk of the data directory %s: %d MiB are free, want %d MiB (--disk-reserve)", r.dir, free>>20, want>>20)
		}
	}
	return nil
}

// openBytes is the smallest free space with which stores are opened again: they write when they open.
const openBytes = 16 << 20

// roomToOpen reports whether stores can be opened again.
func (r *room) roomToOpen() bool {
	for _, s := range r.stores {
		if free, ok := s.FreeSpace(); ok && free < openBytes {
			return false
		}
	}
	return true
}

// Recoverable returns once the service has failed for a shortage, of space or descriptors, that is over: its memory is void,
// but a new service on the same directory continues from the journal. It returns false when ctx ends before.
func (x *Service) Recoverable(ctx context.Context) bool {
	select {
	case <-x.engine.Stopped():
	case <-ctx.Done():
		return false
	}
	if !embeddb.IsShortage(x.engine.Err()) {
		<-ctx.Done()
		return false
	}
	again := time.NewTicker(roomEvery)
	defer again.Stop()
	for x.room.Short() != nil || !x.room.roomToOpen() {
		select {
		case <-again.C:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

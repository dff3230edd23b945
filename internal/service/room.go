package service

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/embeddb"
)

// store is a store whose space a room watches.
type store interface {
	Shortage() error
	FreeSpace() (bytes uint64, ok bool)
	StopWaiting()
}

// room monitors whether the stores have enough disk space and descriptors. While they are short, it refuses changes before
// they are decided, because changes in progress and the databases' background work need the rest.
type room struct {
	dir     string // the data directory
	stores  []store
	reserve atomic.Uint64 // bytes
	log     *slog.Logger
	short   atomic.Pointer[error]
	done    chan struct{}
	stop    context.CancelFunc
}

// roomEvery is how often a room checks. With the default reserve, even a disk to which a gigabyte a second is written is not
// full before the next check.
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

// stopWaiting lets the service stop despite a shortage.
func (r *room) stopWaiting() {
	for _, s := range r.stores {
		s.StopWaiting()
	}
}

// Short returns the shortage because of which changes are refused, or nil.
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
		want += want / 4 // hysteresis: so that it does not alternate at the limit
	}
	for _, s := range r.stores {
		if err := s.Shortage(); err != nil {
			return fmt.Errorf("a store cannot write at the moment: %w", err)
		}
		if free, ok := s.FreeSpace(); ok && free < want {
			return fmt.Errorf("no space left on the disk of the data directory %s: %d MiB are free, and %d MiB must be free (--disk-reserve)", r.dir, free>>20, want>>20)
		}
	}
	return nil
}

// openBytes is the free space below which stores are not opened again, because opening them writes.
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

// Recoverable returns true once a shortage of space or descriptors that made the service fail is over. The memory of such a
// service is invalid, but a new service on the same directory continues from the journal. It returns false when ctx ends
// first.
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

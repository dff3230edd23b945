package embeddb

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/musterhq/muster/internal/diskfull"
)

// IsShortage reports whether an error means a shortage that may end: of disk space or of descriptors.
func IsShortage(err error) bool {
	return diskfull.Is(err) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// shortages retries operations that failed because of a shortage. A retry is safe because the failed operation changed nothing
// that is in use: a file was not created, or a file to which nothing refers yet did not grow.
type shortages struct {
	dir string
	log *slog.Logger

	opened  atomic.Bool   // an open database waits; opening fails instead, and the caller may retry
	closing chan struct{} // ends all waits; closed by giveUp
	giveUp  func()
	failed  chan struct{} // also ends all waits

	mu      sync.Mutex
	waiting int
	first   error // the reason of the longest wait; nil if nothing waits
}

// The pause doubles up to the maximum.
const (
	shortageWait    = 5 * time.Millisecond
	shortageWaitMax = 500 * time.Millisecond
)

// patiently retries an operation while it fails because of a shortage, and returns its final error.
func (s *shortages) patiently(doing, name string, try func() error) error {
	err := try()
	if err == nil || !IsShortage(err) || !s.opened.Load() {
		return err
	}
	s.begin(doing, name, err)
	defer s.end()
	for wait := shortageWait; ; wait = min(2*wait, shortageWaitMax) {
		select {
		case <-time.After(wait):
		case <-s.closing:
			return err
		case <-s.failed:
			return err
		}
		if err = try(); err == nil || !IsShortage(err) {
			return err
		}
	}
}

func (s *shortages) begin(doing, name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting++
	if s.first == nil {
		s.first = &Failure{Doing: doing + " " + name, Err: err}
		s.log.Error("the database waits for free disk space or file descriptors", "directory", s.dir, "operation", doing, "file", name, "error", err)
	}
}

func (s *shortages) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting--; s.waiting == 0 {
		s.first = nil
		s.log.Info("the database continues after a shortage", "directory", s.dir)
	}
}

func (s *shortages) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// StopWaiting fails operations that wait, or would wait, for a shortage to end. Call it before Close if other goroutines have to
// end first.
func (db *DB) StopWaiting() { db.stop.short.giveUp() }

// Shortage returns the shortage for whose end the database waits, or nil. Meanwhile writes block, and nothing is lost.
func (db *DB) Shortage() error { return db.stop.short.err() }

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

// IsShortage reports whether an error means a shortage that may end: of space on
// the disk, or descriptors.
func IsShortage(err error) bool {
	return diskfull.Is(err) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// shortages repeats operations that a shortage has stopped. They may be repeated because they left nothing behind
// that is in use: a file was not created, or a file that nothing refers to yet did not grow.
type shortages struct {
	dir string
	log *slog.Logger

	opened  atomic.Bool   // an open database waits; one that is being opened fails, and its caller may try again
	closing chan struct{} // ends all waits; closed by giveUp
	giveUp  func()
	failed  chan struct{} // so does a failure

	mu      sync.Mutex
	waiting int
	first   error // the reason of the longest wait; nil when nothing waits
}

// A wait doubles up to the longest.
const (
	shortageWait    = 5 * time.Millisecond
	shortageWaitMax = 500 * time.Millisecond
)

// patiently repeats an operation while a shortage stops it, and returns the error that ends it.
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

// StopWaiting fails the operations that wait, or would wait, for a shortage to end. It comes before Close where other goroutines
// have to end first.
func (db *DB) StopWaiting() { db.stop.short.giveUp() }

// Shortage is the shortage that the database waits for, or nil. Writes hang meanwhile and nothing is lost.
func (db *DB) Shortage() error { return db.stop.short.err() }

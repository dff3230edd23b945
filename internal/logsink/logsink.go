// Package logsink writes the lines of a log to an output that may be slow, full or gone, such as a pipe whose reader hangs. The program goes on meanwhile: a write waits
// a second at most, lines that find no room are lost, and how many is counted.
package logsink

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// patience is how long a line waits for the output. After that the output counts as stuck, and no line waits until it takes one again.
	patience = time.Second

	queueMax = 1 << 20 // bytes of lines that wait
)

// errStuck is why lines wait or are lost when the output takes none.
var errStuck = errors.New("the process that reads it has stopped reading")

// Sink writes lines, one after the other. Its methods may be called from any number of goroutines.
type Sink struct {
	out      io.Writer
	patience time.Duration
	wake     chan struct{}
	ended    chan struct{} // the writer has ended
	closing  chan struct{}

	mu      sync.Mutex
	queue   []*line
	queued  int // bytes in queue, and of the line that is being written
	trouble error
	lost    uint64
	why     error  // the last of lost was lost
	told    uint64 // of lost
	tell    func(lines uint64, why error)
}

type line struct {
	text []byte
	done chan struct{} // it is written, or lost
}

// New returns a Sink that writes to out until it is closed.
func New(out io.Writer) *Sink { return newSink(out, patience) }

func newSink(out io.Writer, patience time.Duration) *Sink {
	s := &Sink{out: out, patience: patience, wake: make(chan struct{}, 1), ended: make(chan struct{}), closing: make(chan struct{})}
	go s.run()
	return s
}

// OnRecovery has tell called, on a goroutine of its own, when the output takes lines again after some were lost: how many, and why the last one.
func (s *Sink) OnRecovery(tell func(lines uint64, why error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell = tell
}

// Write returns once the line is written or lost, or when the output is stuck. It never fails.
func (s *Sink) Write(p []byte) (int, error) {
	l := &line{bytes.Clone(p), make(chan struct{})}
	s.mu.Lock()
	if s.queued+len(p) > queueMax {
		s.lose(errStuck)
		s.mu.Unlock()
		return len(p), nil
	}
	s.queue, s.queued = append(s.queue, l), s.queued+len(p)
	stuck := s.trouble == errStuck
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	if !stuck {
		s.await(l)
	}
	return len(p), nil
}

func (s *Sink) await(l *line) {
	timeout := time.NewTimer(s.patience)
	defer timeout.Stop()
	select {
	case <-l.done:
	case <-timeout.C:
		s.mu.Lock()
		defer s.mu.Unlock()
		select {
		case <-l.done: // just now
		default:
			s.trouble = errStuck
		}
	}
}

// Trouble returns why the output takes no lines; nil: it took the last one. lost counts the lines that were lost since the beginning.
func (s *Sink) Trouble() (lost uint64, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost, s.trouble
}

// Close waits for the lines that wait, a second at most. Lines behind it are lost.
func (s *Sink) Close() {
	close(s.closing)
	select {
	case <-s.ended:
	case <-time.After(s.patience):
	}
}

func (s *Sink) run() {
	defer close(s.ended)
	for {
		if l := s.next(); l != nil {
			_, err := s.out.Write(l.text)
			s.wrote(l, err)
			continue
		}
		select {
		case <-s.wake:
		case <-s.closing:
			if s.empty() {
				return
			}
		}
	}
}

func (s *Sink) next() *line {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil
	}
	l := s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:]
	return l
}

func (s *Sink) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) == 0
}

func (s *Sink) wrote(l *line, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(l.done)
	s.queued -= len(l.text)
	s.trouble = err
	switch {
	case err != nil:
		s.lose(err)
	case s.lost > s.told && len(s.queue) == 0 && s.tell != nil:
		go s.tell(s.lost-s.told, s.why)
		s.told = s.lost
	}
}

// lose counts a line. The caller holds mu.
func (s *Sink) lose(why error) {
	s.lost++
	s.why = why
}

package playerhooks

import (
	"sync"
	"time"
)

// How patient a circuit is.
const (
	failuresMax  = 5 // in a row
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// circuit keeps questions away from a receiver that is down: after some failures in a row nobody is asked for a while, then
// one question tries whether it is back.
type circuit struct {
	now func() time.Time

	mu       sync.Mutex
	failures int
	pauses   int       // in a row
	until    time.Time // nobody is asked
	trying   bool      // one question is on its way to find out
}

// closed reports whether a question may be sent. Who is told so must say how it went.
func (c *circuit) closed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.pauses == 0:
		return true
	case c.trying || c.now().Before(c.until):
		return false
	}
	c.trying = true
	return true
}

// succeeded notes an answer, and reports whether it is the first after a pause.
func (c *circuit) succeeded() (back bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	back = c.pauses > 0
	c.failures, c.pauses, c.trying = 0, 0, false
	return back
}

// failed notes that there was no answer, and reports whether a pause begins with it.
func (c *circuit) failed() (pause time.Duration, opened bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	if c.failures < failuresMax || c.now().Before(c.until) { // of those that were under way when the pause began
		return 0, false
	}
	opened = c.pauses == 0
	pause = min(firstPause<<min(c.pauses, 10), longestPause)
	c.pauses++
	c.until, c.trying = c.now().Add(pause), false
	return pause, opened
}

// gaveUp notes a question that says nothing about the receiver.
func (c *circuit) gaveUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trying = false
}

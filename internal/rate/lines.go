package rate

import (
	"sync"
	"time"
)

// Lines bounds the lines that a log gets of one kind, of which clients may cause as many as they like.
type Lines struct {
	Most   int           // lines within a period
	Period time.Duration // of it; the first line after one begins the next

	mu      sync.Mutex
	until   time.Time // the end of the period
	written int
	left    int // out, since the last line
}

// Note counts a cause. It says whether to write a line, and for how many causes before this one there was none.
func (l *Lines) Note(now time.Time) (write bool, leftOut int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !now.Before(l.until) {
		l.until, l.written = now.Add(l.Period), 0
	}
	if l.written == l.Most {
		l.left++
		return false, 0
	}
	l.written++
	leftOut, l.left = l.left, 0
	return true, leftOut
}

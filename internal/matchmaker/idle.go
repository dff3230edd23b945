package matchmaker

import (
	"sync"
	"time"
)

// idleShare bounds the time that all configurations together spend on searches that used up their budget and continue while
// the matchers are idle: one part in so many of one processor.
const idleShare = 10

// idleTurns allots that time.
type idleTurns struct {
	mu   sync.Mutex
	free time.Time // when the next turn may begin
}

// reserve returns when a turn may begin that is requested for a time and takes about so long.
func (t *idleTurns) reserve(wanted time.Time, takes time.Duration) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if wanted.Before(t.free) {
		wanted = t.free
	}
	t.free = wanted.Add(idleShare * takes)
	return wanted
}

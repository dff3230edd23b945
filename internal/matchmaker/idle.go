package matchmaker

import (
	"sync"
	"time"
)

// idleShare bounds the time that all configurations together spend on continuing searches that have exhausted their budget
// while the matchers are idle: one part in idleShare of one processor.
const idleShare = 10

// idleTurns allots that time.
type idleTurns struct {
	mu   sync.Mutex
	free time.Time // when the next turn may begin
}

// reserve returns when a turn may start that is wanted at a time and takes about this long.
func (t *idleTurns) reserve(wanted time.Time, takes time.Duration) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if wanted.Before(t.free) {
		wanted = t.free
	}
	t.free = wanted.Add(idleShare * takes)
	return wanted
}

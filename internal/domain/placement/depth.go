package placement

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
)

// Depth counts waiting placements.
type Depth struct {
	Placements int
	starts     int64 // sum of the times at which they started, in milliseconds
}

// AverageWait returns how long the placements have waited on average; 0 if there are none.
func (d Depth) AverageWait(now domain.Time) time.Duration {
	if d.Placements == 0 {
		return 0
	}
	return max(0, time.Duration(int64(now)-d.starts/int64(d.Placements))*time.Millisecond)
}

// Waits returns the first choice of a placement that waits for a server process; false if it does not wait.
func (p *Placement) Waits() (first Place, ok bool) {
	if len(p.waiting) == 0 {
		return first, false
	}
	return p.waiting[0], true
}

func deepen(depths map[string]Depth, key string, start domain.Time, by int) {
	d := depths[key]
	d.Placements += by
	d.starts += int64(by) * int64(start)
	if d.Placements == 0 {
		delete(depths, key)
		return
	}
	depths[key] = d
}

// QueueDepth counts the pending placements of a queue.
func (s *State) QueueDepth(queue string) Depth { return s.queueDepths[queue] }

// LocationDepths yields, in no particular order, the locations that waiting placements prefer.
func (s *State) LocationDepths(yield func(location string, d Depth) bool) {
	for location, d := range s.locationDepths {
		if !yield(location, d) {
			return
		}
	}
}

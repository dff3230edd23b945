package matchmaking

import (
	"time"

	"github.com/musterhq/muster/internal/domain"
)

// Recent holds the waits of a configuration's latest matched tickets, from which the wait time is estimated. Source of the numbers:
// B112.
type Recent struct {
	Configuration string

	ring [recentMost]sample
	next int32 // index to write next
	used int32
}

type sample struct {
	at   domain.Time
	wait int64 // milliseconds
}

const (
	recentMost  = 100
	recentLeast = 5
	recentFor   = 10 * time.Minute
)

// note adds the wait of a matched ticket.
func (r *Recent) note(at domain.Time, wait time.Duration) {
	r.ring[r.next] = sample{at, wait.Milliseconds()}
	r.next = (r.next + 1) % recentMost
	r.used = min(r.used+1, recentMost)
}

// samples returns the samples, oldest first.
func (r *Recent) samples() []sample {
	if r.used == 0 {
		return nil
	}
	all := make([]sample, r.used)
	for i := range all {
		all[i] = r.ring[(int(r.next)-int(r.used)+i+recentMost)%recentMost]
	}
	return all
}

func (r *Recent) restore(all []sample) {
	r.ring, r.next, r.used = [recentMost]sample{}, 0, 0
	for _, s := range all {
		r.note(s.at, time.Duration(s.wait)*time.Millisecond)
	}
}

// estimate returns the mean in whole seconds.
func (r *Recent) estimate(now domain.Time) (seconds int32, ok bool) {
	sum, n := int64(0), int64(0)
	for _, s := range r.ring[:r.used] {
		if now.Sub(s.at) <= recentFor {
			sum += s.wait
			n++
		}
	}
	if n < recentLeast {
		return 0, false
	}
	return int32((sum/n + 500) / 1000), true
}

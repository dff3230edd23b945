package console

import (
	"sync"
	"time"
)

const (
	// refreshShare bounds the refreshes of all open pages of a node to 1/refreshShare of one processor.
	refreshShare = 16
	// refreshBurst is how much processor time refreshes may take at once after a pause.
	refreshBurst = 20 * time.Millisecond
	// refreshLatest bounds how long an event waits, whatever refreshes have cost.
	refreshLatest = livePing
	// refreshLeast is the minimum cost of a refresh, even if the page has already been built.
	refreshLeast = 50 * time.Microsecond
)

// pace spreads the events that make open pages fetch themselves again. Each event reserves the recent cost of a refresh, so the refreshes of any
// number of pages, however costly, take a fixed share of one processor and never come all at once. With few pages nothing is delayed, because they
// use less than that share.
type pace struct {
	mu   sync.Mutex
	free time.Time     // when the next event may be sent; in the past while the share is not used up
	cost time.Duration // of a refresh, averaged over the last few
}

// reserve returns how long after now the next event has to wait.
func (p *pace) reserve(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if earliest := now.Add(-refreshBurst * refreshShare); p.free.Before(earliest) {
		p.free = earliest
	}
	if latest := now.Add(refreshLatest); p.free.After(latest) {
		p.free = latest
	}
	wait := p.free.Sub(now)
	p.free = p.free.Add(max(p.cost, refreshLeast) * refreshShare)
	return max(wait, 0)
}

// spent records the actual cost of a refresh, which may differ from its reservation.
func (p *pace) spent(cost time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = p.free.Add((cost - max(p.cost, refreshLeast)) * refreshShare)
	p.cost += (cost - p.cost) / 8
}

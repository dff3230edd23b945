package console

import (
	"sync"
	"time"
)

const (
	// refreshShare is how much of one processor the refreshes of all open pages of a node may take, as one part of so many.
	refreshShare = 16
	// refreshBurst is how much refreshes may take at once after a while without any.
	refreshBurst = 20 * time.Millisecond
	// refreshLatest bounds how long a sign waits, whatever refreshes have cost.
	refreshLatest = livePing
	// refreshLeast is what a refresh costs at least, also one that is built already.
	refreshLeast = 50 * time.Microsecond
)

// pace spreads the signs that make open pages fetch themselves again. Each sign reserves what a refresh has cost lately, so the refreshes of any number of pages, however
// costly they are, take a fixed share of one processor, and never come all at once. Few pages do not notice: they use less than that.
type pace struct {
	mu   sync.Mutex
	free time.Time     // when the next sign may be sent; it lies in the past when the share is not used up
	cost time.Duration // of a refresh, an average over the last few
}

// reserve returns how long the next sign has to wait from now on.
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

// spent notes what a refresh has cost. The reservation may have been for less or more.
func (p *pace) spent(cost time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = p.free.Add((cost - max(p.cost, refreshLeast)) * refreshShare)
	p.cost += (cost - p.cost) / 8
}

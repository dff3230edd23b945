package engine

import (
	"sync"
	"time"
)

// clusterTime is one node's view of the cluster's time. The cluster has a clock of its own, which every node keeps running, because the machines'
// clocks may be far apart. The leader stamps transactions with it. If the leader used its machine's clock instead, a takeover by a node whose clock
// is an hour behind would stop time for an hour, because the core never goes back, and no deadline would pass. With a clock an hour ahead, all
// deadlines of that hour would pass at once.
//
// # How a replica learns the time
//
// A replica starts with the time of the last transaction that it has. That time, and the time of each entry that it applies, is only a lower bound,
// because an entry does not show how long ago it was decided. A replica that catches up applies an hour of entries in a second, and in an idle
// cluster the newest entry may be a day old. So entries only raise the time. The leader announces the time (Heard). Between two announcements, the
// time advances with this node's monotonic clock, which cannot be set.
//
// # A takeover is not a restart
//
// A node that has heard the time since its process began, or has led, keeps that time when it takes over. It does not matter whether it last heard
// the time seconds or hours ago, because its monotonic clock has measured the interval. A node that has not heard the time, because the whole cluster
// was down, takes its machine's clock as the time, and the difference to the last transaction as the downtime. If the machine's clock is behind the
// last transaction, the time continues from that transaction. A node that is elected right after its start has not heard the time either, although
// others know it: it asks them before it decides (KnownTime).
//
// # Back to real time
//
// On the leader, the time is adjusted gradually to the machine's clock, at a rate of at most one part in drawnBy. Meanwhile a wait of a minute takes
// 57 to 63 seconds. Clients do not notice, because a message may be late by as much. A difference of an hour is gone within a day. The time does not
// step when an operator sets the machine's clock: correcting a clock by an hour must not end deadlines. The drawback: after all machines have slept,
// the time is late until the adjustment has caught up or all nodes were restarted together.
type clusterTime struct {
	own func() time.Time // the machine's clock, which an operator may set

	lock    sync.Mutex
	at      time.Time     // when time was last updated, with the monotonic reading
	time    time.Time     // the cluster's time at that moment
	excess  time.Duration // how far a replica's time is known to be ahead
	decides bool
	known   bool // this process has heard the time or has led
}

const (
	drawnBy = 20 // the leader adjusts the time to its machine's clock by at most 1 s in drawnBy s

	// excessMax is the greatest excess that a replica works off, by running at half speed; beyond it, the time steps back. While the leader slows the
	// time down, messages a second apart leave an excess of 50 ms. Only a node that was elected in vain, or has not heard the time for long, exceeds
	// excessMax.
	excessMax = time.Second
)

func newClusterTime(own func() time.Time, last time.Time) *clusterTime {
	return &clusterTime{own: own, at: time.Now(), time: last}
}

// advance brings the time up to date. The caller holds the lock.
func (c *clusterTime) advance() {
	at := time.Now()
	passed := at.Sub(c.at)
	c.at, c.time = at, c.time.Add(passed)
	if c.decides {
		most := passed / drawnBy
		c.time = c.time.Add(min(max(c.ahead(), -most), most))
		return
	}
	back := min(c.excess, passed/2)
	c.time, c.excess = c.time.Add(-back), c.excess-back
}

// ahead returns how far the machine's clock is ahead of the cluster's time.
func (c *clusterTime) ahead() time.Duration { return c.own().Round(0).Sub(c.time) }

// now returns the time. It never goes back, except on a replica that hears that its time was wrong.
func (c *clusterTime) now() time.Time {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.advance()
	return c.time
}

// ownAhead is ahead for callers that do not hold the lock.
func (c *clusterTime) ownAhead() time.Duration {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.advance()
	return c.ahead()
}

// until returns a lower bound, on this node's clock, of the wait until the time is t.
func (c *clusterTime) until(t time.Time) time.Duration {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.advance()
	wait := t.Sub(c.time)
	if c.decides && wait > 0 && c.ahead() > 0 { // the time runs faster than the clock
		wait -= wait / (drawnBy + 1)
	}
	return wait
}

// heard takes over the leader's time: it was t at some moment within the last `ago`.
func (c *clusterTime) heard(t time.Time, ago time.Duration) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.advance()
	if c.decides {
		return
	}
	c.known = true
	c.atLeast(t)
	latest := t.Add(ago)
	if c.excess = max(c.time.Sub(latest), 0); c.excess > excessMax {
		c.time, c.excess = latest, 0
	}
}

func (c *clusterTime) atLeast(t time.Time) {
	if c.time.Before(t) {
		c.time, c.excess = t, 0
	}
}

// applied raises the time to that of an applied transaction.
func (c *clusterTime) applied(t time.Time) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.advance()
	c.atLeast(t)
}

// decide makes this node the leader: the time is adjusted to its machine's clock from now on.
func (c *clusterTime) decide() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.advance()
	if !c.known {
		c.time = c.time.Add(max(c.ahead(), 0))
	}
	c.decides, c.known, c.excess = true, true, 0
}

// follow reverts decide.
func (c *clusterTime) follow() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.advance()
	c.decides = false
}

// Heard sets the time of a replica: the leader has announced t, its Now, at most `ago` before this call. Call it about once a second on every
// replica, also in an idle cluster, because a node that takes over continues with the time that it has.
func (e *Engine) Heard(t time.Time, ago time.Duration) {
	if e.time != nil {
		e.time.heard(t.Round(0), ago)
	}
}

// KnownTime returns Now, and whether it is certainly the cluster's time because this process has heard it or has led.
func (e *Engine) KnownTime() (now time.Time, known bool) {
	e.time.lock.Lock()
	defer e.time.lock.Unlock()
	e.time.advance()
	return e.time.time, e.time.known
}

// Now returns the time: the cluster's, this machine's, or that of Config.Clock.
func (e *Engine) Now() time.Time {
	switch {
	case e.time != nil:
		return e.time.now()
	case e.wall != nil:
		return e.wall.now()
	}
	return e.config.Now()
}

// untilTime returns how long to wait until Now may be t.
func (e *Engine) untilTime(t time.Time) time.Duration {
	if e.time != nil {
		return e.time.until(t)
	}
	return t.Sub(e.Now())
}

package engine

import (
	"sync"
	"time"
)

// clusterTime is the time of a cluster as one node has it: a clock of the cluster's own, which every node keeps going, because the clocks of the nodes may
// be far apart. The node that decides stamps transactions with it. If it stamped them with its own clock, then after a takeover by a node whose clock is an hour
// behind, time would stand still for an hour, since the core never goes back, and no deadline would end; an hour ahead, all deadlines of that hour would end at once.
//
// # Where a replica has it from
//
// A replica begins with the time of the last transaction that it has. That is a lower bound, and so is the time of every entry that it applies, because an entry does not
// show how long ago it was decided: a replica that catches up applies an hour of entries in a second, and in an idle cluster the newest entry may be of yesterday. So
// entries only raise the time. The node that decides says what time it is (Heard), and between two such messages the time goes on at the speed of this node's
// monotonic clock, which cannot be set.
//
// # A takeover is no restart
//
// A node that has heard the time since its process began, or has decided, keeps it when it takes over: whether it has last heard of the time seconds or hours ago, its
// monotonic clock has measured them. A node that has not, because the whole cluster was down, cannot tell how long that was. Its own clock does: the time is
// that, and the difference to the last transaction is the downtime. If its own clock is behind the last transaction, the time goes on from there. A node that
// is elected right after its start has not heard the time either, although others know it: it asks them before it decides (KnownTime).
//
// # Back to real time
//
// At the node that decides, the time is drawn to that node's own clock, by at most one part in drawnBy. Meanwhile a wait of a minute takes 57 to 63 seconds. Clients
// notice no such difference, because a message may be late by as much; and a difference of an hour is gone within a day. The time does not step when
// an operator sets the node's clock: a clock that is corrected by an hour must end no deadlines. The price is that after a sleep of all machines the time is
// late until it has been drawn up, or all nodes were restarted together.
type clusterTime struct {
	own func() time.Time // this node's clock, which an operator may set

	lock    sync.Mutex
	at      time.Time     // when the time was brought up to date, with the monotonic reading
	time    time.Time     // of the cluster, then
	excess  time.Duration // by which a replica's time is too far, as it has heard
	decides bool
	known   bool // this process has heard the time, or has decided
}

const (
	drawnBy = 20 // the time is drawn to the clock of the node that decides by 1 s in drawnBy s

	// excessMax is how far a replica's time may be ahead of what it hears before it steps back; up to there it goes at half the speed. Messages that are a second apart
	// leave an excess of 50 ms while the time is drawn back. Only a node that was elected in vain, or has heard nothing for long, exceeds this.
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

// ahead is how far this node's clock is ahead of the time.
func (c *clusterTime) ahead() time.Duration { return c.own().Round(0).Sub(c.time) }

// now returns the time. It never goes back, except at a replica that hears that its time was wrong.
func (c *clusterTime) now() time.Time {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.advance()
	return c.time
}

// ownAhead returns how far this node's clock is ahead of the time of the cluster.
func (c *clusterTime) ownAhead() time.Duration {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.advance()
	return c.ahead()
}

// until returns how long this node's clock goes until the time may be t.
func (c *clusterTime) until(t time.Time) time.Duration {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.advance()
	wait := t.Sub(c.time)
	if c.decides && wait > 0 && c.ahead() > 0 { // it goes faster
		wait -= wait / (drawnBy + 1)
	}
	return wait
}

// heard takes the time from the node that decides: it was t within the last `ago`.
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

// applied raises the time to that of a transaction.
func (c *clusterTime) applied(t time.Time) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.advance()
	c.atLeast(t)
}

// decide makes this node's clock the one to which the time is drawn.
func (c *clusterTime) decide() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.advance()
	if !c.known {
		c.time = c.time.Add(max(c.ahead(), 0))
	}
	c.decides, c.known, c.excess = true, true, 0
}

// follow ends decide.
func (c *clusterTime) follow() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.advance()
	c.decides = false
}

// Heard sets the time of a replica: the node that decides has said that it was t (its Now), at most `ago` before this call. Each node has to hear that about once
// a second, also in an idle cluster, because a node that takes over continues the time that it has.
func (e *Engine) Heard(t time.Time, ago time.Duration) {
	if e.time != nil {
		e.time.heard(t.Round(0), ago)
	}
}

// KnownTime returns Now, and whether that is the time of the cluster for certain: this process has heard it, or has decided.
func (e *Engine) KnownTime() (now time.Time, known bool) {
	e.time.lock.Lock()
	defer e.time.lock.Unlock()
	e.time.advance()
	return e.time.time, e.time.known
}

// Now returns the time: that of the cluster, of this machine, or of the engine's clock.
func (e *Engine) Now() time.Time {
	switch {
	case e.time != nil:
		return e.time.now()
	case e.wall != nil:
		return e.wall.now()
	}
	return e.config.Now()
}

// untilTime returns how long it takes until Now may be t.
func (e *Engine) untilTime(t time.Time) time.Duration {
	if e.time != nil {
		return e.time.until(t)
	}
	return t.Sub(e.Now())
}

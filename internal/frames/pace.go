package frames

import "time"

// Pace bounds how fast a connection's frames are taken: Burst at once, then PerSecond. A frame counts one, and one more for each
// whole KiB of it. What comes faster is not read yet and fills the buffers of the client's own network, so a client that floods slows
// down itself alone. The zero value is no bound.
type Pace struct {
	Burst     int
	PerSecond int
}

// paceUnit is how many bytes of a frame count as much as a frame.
const paceUnit = 1 << 10

// bucket is the time at which a connection may send its whole burst again, in Unix nanoseconds.
type bucket int64

// wait counts a frame, and waits until it may be taken.
func (b *bucket) wait(p Pace, bytes int) {
	if p.PerSecond == 0 {
		return
	}
	if d := b.count(p, bytes, time.Now().UnixNano()); d > 0 {
		time.Sleep(d)
	}
}

// count counts a frame, and says how long it has to wait.
func (b *bucket) count(p Pace, bytes int, now int64) time.Duration {
	each := int64(time.Second) / int64(p.PerSecond)
	*b = bucket(max(int64(*b), now) + each*int64(1+bytes/paceUnit))
	return time.Duration(int64(*b) - now - each*int64(p.Burst))
}

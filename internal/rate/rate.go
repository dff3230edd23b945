// Package rate bounds how often something happens: calls, frames and failures (Limit, Bucket), and lines in a log (Lines).
//
// A token bucket is one number here: the instant at which it is full again (the generic cell rate algorithm). A full bucket is
// one in the past, so unused buckets can be forgotten, and a bucket of 8 bytes can stand wherever its owner keeps
// names: in an array of fixed size (fair), in sets whose least useful entry makes room (signin), in a map that is swept
// (playerapi), beside an access key (gamelift), a server process (serverlink) or a connection (frames).
//
// Other bounds are none of this. fair.Pool, connlimit and the slots of playerhooks count what is held at a time and given back.
// The login queue of playerapi promises each player an instant. The circuit of playerhooks reacts to failures, however rare.
// sessionwatch writes the lines beyond its bound at level debug, and sums them up by reason.
package rate

import (
	"sync/atomic"
	"time"
)

// Limit lets Burst through at once, and one more each Every. The zero Limit lets all through.
type Limit struct {
	Every time.Duration
	Burst int
}

// Every is the Limit of one each d.
func Every(d time.Duration, burst int) Limit { return Limit{d, burst} }

// PerSecond is the Limit of n a second.
func PerSecond(n float64, burst int) Limit {
	if n <= 0 {
		return Limit{}
	}
	return Limit{time.Duration(float64(time.Second) / n), burst}
}

// Next is when a bucket will be full that is full at an instant, once n more tokens are taken. All instants are nanoseconds since
// any origin, on a clock that cannot be set (package steady); a bucket that is full at 0 is full. A positive early says that the bucket does not have the tokens yet, and has
// them in so long.
func (l Limit) Next(full, now int64, n int) (next int64, early time.Duration) {
	next = max(full, now) + int64(l.Every)*int64(n)
	return next, time.Duration(next-now) - l.Every*time.Duration(l.Burst)
}

// Refilled is when a bucket will be full that is empty now. A bucket that would be full later was emptied under a limit that took longer
// to fill it, and becomes an empty one of this limit.
func (l Limit) Refilled(now int64) int64 { return now + int64(l.Every)*int64(l.Burst) }

// Bucket is a token bucket for any number of goroutines. The zero Bucket is full.
type Bucket struct{ full atomic.Int64 }

// Take takes a token and reports whether there was one.
func (b *Bucket) Take(l Limit, now int64) bool {
	for l.Every > 0 {
		full := b.full.Load()
		if most := l.Refilled(now); full > most {
			b.full.CompareAndSwap(full, most)
			continue
		}
		next, early := l.Next(full, now, 1)
		if early > 0 {
			return false
		}
		if b.full.CompareAndSwap(full, next) {
			break
		}
	}
	return true
}

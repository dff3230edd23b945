// Package steady writes instants as numbers that no change of the machine's clock moves. An operator, or a time service, may set the clock by an hour while the
// service runs. What lasts, such as the silence of a connection or the time until a token bucket is full, must not become an hour longer or shorter by it.
// A time.Time has a monotonic reading for that, which time.Time.UnixNano and time.Unix lose.
package steady

import "time"

var (
	start = time.Now()
	shift = start.UnixNano()
)

// Nanos returns an instant in nanoseconds. The differences are those of the monotonic readings; for instants without one, those of the time of day. Numbers of another
// process mean nothing here.
func Nanos(t time.Time) int64 { return shift + int64(t.Sub(start)) }

// Now is Nanos of the present.
func Now() int64 { return Nanos(time.Now()) }

// Time is the instant of a number from Nanos, with a monotonic reading.
func Time(nanos int64) time.Time { return start.Add(time.Duration(nanos - shift)) }

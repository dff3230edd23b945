package serverlink

import (
	"math"
	"time"

	"github.com/musterhq/muster/internal/frames"
)

// Rate bounds one kind of call of one process: burst at once, then so many each second.
type Rate struct {
	Burst     int
	PerSecond float64
}

// Rates guard the service against broken game code. They are far above docs/spec/gamelift-api.md#server-sdk-rates (AWS gives a process 3 calls
// at once and 1 a second for most), because on own hardware a process may serve one game session after another, or a
// host of players at once; what is over them is answered with 429, never with a closed connection.
type Rates struct {
	Heartbeats Rate
	Lifecycle  Rate // ready, activation, policy, backfill, end
	Players    Rate // accept and remove; documented for each player, guarded here for the whole process
	Reads      Rate // describe, certificate, credentials
}

// rateClass is a member of Rates.
type rateClass uint8

const (
	heartbeatRate rateClass = iota
	lifecycleRate
	playerRate
	readRate
	rateClasses
)

func (r *Rates) of(c rateClass) Rate {
	return [...]Rate{r.Heartbeats, r.Lifecycle, r.Players, r.Reads}[c]
}

// DefaultRates are at least ten times the documented ones.
func DefaultRates() Rates {
	return Rates{
		Heartbeats: Rate{100, 10},
		Lifecycle:  Rate{1000, 500},
		Players:    Rate{10_000, 5_000},
		Reads:      Rate{500, 250},
	}
}

// pace bounds all that one connection sends: twice as many frames as it may make requests, because C# sends a ping before each,
// and large ones count for more. It lets everything through that is answered; a flood is read no faster.
func (r *Rates) pace() frames.Pace {
	var p frames.Pace
	for c := range rateClasses {
		p.Burst += 2 * r.of(c).Burst
		p.PerSecond += 2 * int(math.Ceil(r.of(c).PerSecond))
	}
	p.Burst += messageMax >> 10 // the largest message at once, whatever the rates are
	return p
}

// bucket is the state of one Rate for one process: the time at which it will be full again, in nanoseconds. Zero is full.
type bucket int64

// take reports whether one more call fits in.
func (b *bucket) take(r Rate, now time.Time) bool {
	each := int64(float64(time.Second) / r.PerSecond)
	t := now.UnixNano()
	full := max(int64(*b), t)
	if full+each-t > each*int64(r.Burst) {
		return false
	}
	*b = bucket(full + each)
	return true
}

package serverlink

import (
	"math"
	"time"

	"github.com/musterhq/muster/internal/rate"
)

// Rates guard the service against broken game code. They are far above docs/spec/gamelift-api.md#server-sdk-rates (AWS gives a process 3 calls
// at once and 1 a second for most), because on one's own hardware a process may serve one game session after another, or a
// host of players at once; requests beyond them are answered with 429, never with a closed connection.
type Rates struct {
	Heartbeats rate.Limit
	Lifecycle  rate.Limit // ready, activation, policy, backfill, end
	Players    rate.Limit // accept and remove; documented for each player, guarded here for the whole process
	Reads      rate.Limit // describe, certificate, credentials
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

func (r *Rates) of(c rateClass) rate.Limit {
	return [...]rate.Limit{r.Heartbeats, r.Lifecycle, r.Players, r.Reads}[c]
}

// DefaultRates are at least ten times the documented ones.
func DefaultRates() Rates {
	return Rates{
		Heartbeats: rate.PerSecond(10, 100),
		Lifecycle:  rate.PerSecond(500, 1000),
		Players:    rate.PerSecond(5_000, 10_000),
		Reads:      rate.PerSecond(250, 500),
	}
}

// pace bounds all frames of one connection: twice as many frames as it may make requests, because C# sends a ping before each,
// and large ones count for more. It admits every message that would be answered; a flood is read no faster.
func (r *Rates) pace() rate.Limit {
	burst, perSecond := messageMax>>10, 0.0 // the largest message at once, for any rates
	for c := range rateClasses {
		burst += 2 * r.of(c).Burst
		perSecond += 2 * math.Ceil(float64(time.Second)/float64(r.of(c).Every))
	}
	return rate.PerSecond(perSecond, burst)
}

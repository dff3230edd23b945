package serverlink

import (
	"math"
	"time"

	"github.com/musterhq/muster/internal/rate"
)

// Rates protect the service against faulty game code. They are far above docs/spec/gamelift-api.md#server-sdk-rates (AWS allows a process a
// burst of 3 calls and 1 per second for most), because on one's own hardware a process may host one game session after another, or many
// players at once. Requests above the rates are answered with 429; the connection stays open.
type Rates struct {
	Heartbeats rate.Limit
	Lifecycle  rate.Limit // ready, activation, policy, backfill, end
	Players    rate.Limit // accept and remove; documented per player, limited here per process
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

// DefaultRates returns rates of at least ten times the documented ones.
func DefaultRates() Rates {
	return Rates{
		Heartbeats: rate.PerSecond(10, 100),
		Lifecycle:  rate.PerSecond(500, 1000),
		Players:    rate.PerSecond(5_000, 10_000),
		Reads:      rate.PerSecond(250, 500),
	}
}

// pace bounds all frames of one connection: twice as many frames as requests are allowed, because C# sends a ping before each request, and
// large frames count more. It admits every message that would be answered; the service reads a flood no faster.
func (r *Rates) pace() rate.Limit {
	burst, perSecond := messageMax>>10, 0.0 // the largest message must always pass
	for c := range rateClasses {
		burst += 2 * r.of(c).Burst
		perSecond += 2 * math.Ceil(float64(time.Second)/float64(r.of(c).Every))
	}
	return rate.PerSecond(perSecond, burst)
}

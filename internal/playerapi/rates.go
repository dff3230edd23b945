package playerapi

import (
	"sync"
	"time"
)

// class is a group of calls that share a bucket: docs/spec/fair-play.md#rate-limits. What lets a player get out has a bucket of its own.
type class uint8

const (
	classOther class = iota
	classLogin
	classLoginAddress
	classAttach
	classGetFlow
	classParty
	classInvite
	classInvitePair
	classCode
	classCodeAddress // failures only
	classEnter
	classLeaveMatchmaking
	classAcceptMatch
	classDetails
	classLeaveParty
	classLeaveGame
	classDecline
	classLogout
	classFrames // what a client sends on its stream
	classPartner
	classes
)

// rate lets one call through each Every, and Burst at once.
type rate struct {
	Every time.Duration
	Burst int
}

var rates = [classes]rate{
	classOther:            {time.Second / 5, 20},
	classLogin:            {10 * time.Second, 5},
	classLoginAddress:     {2 * time.Second, 5},
	classAttach:           {6 * time.Second, 5},
	classGetFlow:          {time.Second, 5},
	classParty:            {time.Second / 2, 10},
	classInvite:           {6 * time.Second, 5},
	classInvitePair:       {20 * time.Second, 3},
	classCode:             {6 * time.Second, 5},
	classCodeAddress:      {3 * time.Second, 20},
	classEnter:            {10 * time.Second, 3},
	classLeaveMatchmaking: {time.Second, 5},
	classAcceptMatch:      {time.Second, 5},
	classDetails:          {2 * time.Second, 3},
	classLeaveParty:       {time.Second / 5, 20},
	classLeaveGame:        {time.Second / 5, 20},
	classDecline:          {time.Second / 5, 20},
	classLogout:           {time.Second / 5, 20},
	classFrames:           {time.Second / 20, 100},
	classPartner:          {time.Second / 200, 400},
}

// buckets limits rates. A bucket is one instant: when it is full again; so one that is full needs no memory.
type buckets struct {
	now   func() time.Time
	rates [classes]rate

	mu     sync.Mutex
	fullAt map[bucketKey]int64 // Unix nanoseconds
	swept  int64
}

type bucketKey struct {
	class class
	who   string
}

func newBuckets(now func() time.Time) *buckets {
	return &buckets{now: now, rates: rates, fullAt: map[bucketKey]int64{}}
}

// sweepEvery bounds memory: buckets that are full are forgotten.
const sweepEvery = 10 * time.Second

// take lets one call through, or says how long to wait.
func (b *buckets) take(c class, who string) (wait time.Duration, ok bool) {
	return b.look(c, who, true)
}

// open reports whether a call would be let through.
func (b *buckets) open(c class, who string) (wait time.Duration, ok bool) {
	return b.look(c, who, false)
}

// count is the number of buckets that are remembered.
func (b *buckets) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.fullAt)
}

func (b *buckets) look(c class, who string, take bool) (wait time.Duration, ok bool) {
	limit := b.rates[c]
	if limit.Every <= 0 {
		return 0, true
	}
	now := b.now().UnixNano()
	b.mu.Lock()
	defer b.mu.Unlock()
	if now-b.swept > int64(sweepEvery) {
		b.swept = now
		for key, at := range b.fullAt {
			if at <= now {
				delete(b.fullAt, key)
			}
		}
	}
	key := bucketKey{c, who}
	next := max(b.fullAt[key], now) + int64(limit.Every)
	if over := next - now - int64(limit.Every)*int64(limit.Burst); over > 0 {
		return time.Duration(over), false
	}
	if take {
		b.fullAt[key] = next
	}
	return 0, true
}

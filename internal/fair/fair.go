// Package fair divides what is bounded, so that no access key and no address takes all of it.
//
// All counters live in arrays of a fixed size, in places that a keyed hash gives: whoever invents keys and addresses takes
// no memory, and cannot aim at the place of somebody else. Two names share a place with a chance of one in 4,096; then they
// share what one of them may have.
package fair

import (
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/rate"
)

const places = 4096

var seed = maphash.MakeSeed()

func place(name string) int { return int(maphash.String(seed, name) % places) }

// Pool is an amount of something, such as bytes or requests at work, of which each name may have a share.
type Pool struct {
	most, share int64
	taken       atomic.Int64
	refused     atomic.Uint64
	by          [places]atomic.Int64
}

// NewPool makes a pool of most, of which one name may have share.
func NewPool(most, share int64) *Pool { return &Pool{most: most, share: share} }

// Take takes n for a name and reports whether there was as much, both in the pool and in the share. What was taken must be
// given back with Give.
func (p *Pool) Take(name string, n int64) bool {
	mine := &p.by[place(name)]
	if mine.Add(n) > p.share {
		mine.Add(-n)
		p.refused.Add(1)
		return false
	}
	if p.taken.Add(n) > p.most {
		p.taken.Add(-n)
		mine.Add(-n)
		p.refused.Add(1)
		return false
	}
	return true
}

// Give gives back n that was taken for a name.
func (p *Pool) Give(name string, n int64) {
	p.taken.Add(-n)
	p.by[place(name)].Add(-n)
}

// Taken is how much is taken now.
func (p *Pool) Taken() int64 { return p.taken.Load() }

// Refused counts the calls of Take that got nothing.
func (p *Pool) Refused() uint64 { return p.refused.Load() }

// Most is the size of the pool.
func (p *Pool) Most() int64 { return p.most }

// Rate is a token bucket for each name.
type Rate struct {
	limit   rate.Limit
	now     func() time.Time
	started time.Time
	refused atomic.Uint64
	buckets [places]rate.Bucket
}

// NewRate makes a Rate. Without a limit it is nil, which lets all through.
func NewRate(limit rate.Limit, now func() time.Time) *Rate {
	if limit.Every <= 0 {
		return nil
	}
	return &Rate{limit: limit, now: now, started: now()}
}

// Allow takes a token of a name and reports whether there was one.
func (r *Rate) Allow(name string) bool {
	if r == nil || r.buckets[place(name)].Take(r.limit, r.now().Sub(r.started).Nanoseconds()) {
		return true
	}
	r.refused.Add(1)
	return false
}

// Refused counts the calls that were not let through.
func (r *Rate) Refused() uint64 {
	if r == nil {
		return 0
	}
	return r.refused.Load()
}

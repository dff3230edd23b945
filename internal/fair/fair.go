// Package fair divides bounded resources, so that no access key and no address can use up all of them.
//
// All counters are in arrays of a fixed size, at places that a keyed hash determines: a client that invents keys and addresses uses
// no memory, and cannot aim at the place of another name. Two names share a place with a probability of 1 in 4,096; then they
// share the amount of one.
package fair

import (
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/live"
	"github.com/musterhq/muster/internal/rate"
)

const places = 4096

var seed = maphash.MakeSeed()

func place(name string) int { return int(maphash.String(seed, name) % places) }

// Pool is an amount of a resource, such as bytes or requests in progress, of which each name may have a share.
type Pool struct {
	most, share atomic.Int64
	taken       atomic.Int64
	refused     atomic.Uint64
	by          [places]atomic.Int64
}

// NewPool makes a pool of most, of which one name may have share.
func NewPool(most, share int64) *Pool {
	p := &Pool{}
	p.resize(most, share)
	return p
}

// resize changes the pool. What is taken stays taken, also beyond the new size.
func (p *Pool) resize(most, share int64) {
	p.most.Store(most)
	p.share.Store(share)
}

// Take takes n for a name and reports whether both the pool and the name's share had that much left. It must be
// returned with Give.
func (p *Pool) Take(name string, n int64) bool {
	mine := &p.by[place(name)]
	if mine.Add(n) > p.share.Load() {
		mine.Add(-n)
		p.refused.Add(1)
		return false
	}
	if p.taken.Add(n) > p.most.Load() {
		p.taken.Add(-n)
		mine.Add(-n)
		p.refused.Add(1)
		return false
	}
	return true
}

// Give returns n that was taken for a name.
func (p *Pool) Give(name string, n int64) {
	p.taken.Add(-n)
	p.by[place(name)].Add(-n)
}

// Taken is the amount that is taken now.
func (p *Pool) Taken() int64 { return p.taken.Load() }

// Refused counts the calls of Take that failed.
func (p *Pool) Refused() uint64 { return p.refused.Load() }

// Most is the size of the pool.
func (p *Pool) Most() int64 { return p.most.Load() }

// Shares are a Pool by access key, with which all temporary credentials count that were issued to it, and within it one by address for access keys of the role client, which every player of a game may
// have: whatever is done with them, others find room.
type Shares struct{ Keys, Clients *Pool }

// NewShares makes Shares of most. One access key may have key of it, all keys of the role client together clients, and one address
// with such a key address.
func NewShares(most, key, clients, address int64) Shares {
	s := Shares{&Pool{}, &Pool{}}
	s.Resize(most, key, clients, address)
	return s
}

// Resize changes the amounts while they are used. What is taken stays taken, also beyond the new amounts.
func (s *Shares) Resize(most, key, clients, address int64) {
	s.Keys.resize(most, max(1, key))
	s.Clients.resize(max(1, clients), max(1, address))
}

// Take takes n for a principal and reports whether there was as much. What was taken must be given back with Give.
func (s *Shares) Take(p *identity.Principal, n int64) bool {
	if !s.Keys.Take(p.Holder(), n) {
		return false
	}
	if p.Role == identity.Client && !s.Clients.Take(p.Address, n) {
		s.Keys.Give(p.Holder(), n)
		return false
	}
	return true
}

// Give gives back n that was taken for a principal.
func (s *Shares) Give(p *identity.Principal, n int64) {
	s.Keys.Give(p.Holder(), n)
	if p.Role == identity.Client {
		s.Clients.Give(p.Address, n)
	}
}

// Rate is a token bucket for each name.
type Rate struct {
	limit   live.Value[rate.Limit]
	now     func() time.Time
	started time.Time
	refused atomic.Uint64
	buckets [places]rate.Bucket
}

// NewRate makes a Rate. Without a limit it allows everything.
func NewRate(limit rate.Limit, now func() time.Time) *Rate {
	r := &Rate{now: now, started: now()}
	r.Set(limit)
	return r
}

// Set changes the limit while it is used. A bucket is full again after the time that it had left, or that an empty one takes under the new
// limit, whichever is shorter.
func (r *Rate) Set(limit rate.Limit) { r.limit.Set(limit) }

// Allow takes a token of a name and reports whether there was one.
func (r *Rate) Allow(name string) bool {
	limit := r.limit.Get()
	if limit.Every <= 0 || r.buckets[place(name)].Take(limit, r.now().Sub(r.started).Nanoseconds()) {
		return true
	}
	r.refused.Add(1)
	return false
}

// Refused counts the calls that were not allowed.
func (r *Rate) Refused() uint64 { return r.refused.Load() }

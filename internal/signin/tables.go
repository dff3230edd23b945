package signin

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/rate"
)

// Sizes of the tables: budgets take 16 bytes an entry, trusts 8, so all four tables together have 1.5 MiB.
const (
	setBits = 12
	sets    = 1 << setBits
	ways    = 8
)

// setOf is the set of a name. The other bits of its hash distinguish it within the set.
func setOf(name uint64) int { return int(name >> (64 - setBits)) }

// budgets count failures by name. A budget that has recovered needs no memory.
type budgets struct {
	name  string
	limit rate.Limit
	used  atomic.Bool // something was charged, ever

	mu      sync.Mutex
	evicted uint64
	table   [sets][ways]budget
}

type budget struct {
	name   uint64 // 0: free
	fullAt int64  // nanoseconds since the start
}

func newBudgets(name string, limit rate.Limit) *budgets {
	return &budgets{name: name, limit: limit}
}

// look reports whether the budget of a name has not recovered yet, and how much too early another failure would be.
func (b *budgets) look(name uint64, now int64) (failed bool, early time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.table[setOf(name)] {
		if x := &b.table[setOf(name)][i]; x.name == name|1 && x.fullAt > now {
			_, early = b.limit.Next(x.fullAt, now, failureCosts)
			return true, early
		}
	}
	return false, 0
}

// charge takes n from the budget of a name. If the budget is too small it stays unchanged, and early is positive: the time until it suffices.
func (b *budgets) charge(name uint64, now int64, n int) (early time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used.Store(true)
	x := b.entry(name|1, now)
	next, early := b.limit.Next(x.fullAt, now, n)
	if early <= 0 {
		x.fullAt = next
	}
	return early
}

// entry finds the entry of a name, or makes one that replaces the entry in its set that recovers first.
func (b *budgets) entry(name uint64, now int64) *budget {
	set := &b.table[setOf(name)]
	first := &set[0]
	for i := range set {
		switch x := &set[i]; {
		case x.name == name:
			return x
		case x.fullAt < first.fullAt:
			first = x
		}
	}
	if first.fullAt > now {
		b.evicted++
	}
	*first = budget{name: name}
	return first
}

func (b *budgets) evictions() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.evicted
}

// Trust lasts for trustedFor after the last sign-in, give or take a trustUnit.
const (
	trustedFor = 30 * 24 * time.Hour
	trustUnit  = time.Minute

	stampBits = 20 // of trustUnits: the count wraps around after two years
	stampMask = 1<<stampBits - 1
)

// trusts are names that have signed in, each with the minute of the last time: a word has 44 bits of the name, beside the 12 that
// its set stands for, and the minute, counted from 1. A set is one line of the processor's cache.
type trusts struct {
	table [sets][ways]atomic.Uint64
}

func trustWord(name uint64) uint64 { return name << setBits &^ stampMask }

func stampOf(now int64) uint64 { return uint64(now/int64(trustUnit)+1) & stampMask }

// ageOf is how long ago a word was written, in trustUnits.
func ageOf(word, stamp uint64) uint64 { return (stamp - word) & stampMask }

func (t *trusts) has(name uint64, now int64) bool {
	word, stamp := trustWord(name), stampOf(now)
	set := &t.table[setOf(name)]
	for i := range set {
		if x := set[i].Load(); x != 0 && x&^stampMask == word {
			return ageOf(x, stamp) <= uint64(trustedFor/trustUnit)
		}
	}
	return false
}

// add writes at most once a minute for a name. In a full set it takes the place of the name that signed in the longest ago.
func (t *trusts) add(name uint64, now int64) {
	word, stamp := trustWord(name), stampOf(now)
	set := &t.table[setOf(name)]
	place, placed, oldest := &set[0], uint64(0), uint64(0)
	for i := range set {
		x := set[i].Load()
		if x != 0 && x&^stampMask == word {
			if ageOf(x, stamp) > 0 {
				set[i].CompareAndSwap(x, word|stamp)
			}
			return
		}
		age := uint64(stampMask) + 1 // of a free place
		if x != 0 {
			age = ageOf(x, stamp)
		}
		if i == 0 || age > oldest {
			place, placed, oldest = &set[i], x, age
		}
	}
	place.CompareAndSwap(placed, word|stamp) // the loser of a race is added with its next sign-in
}

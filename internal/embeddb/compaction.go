package embeddb

import (
	"runtime"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// compactions runs one compaction of a database at a time, at a limited pace. It is the database's pebble.CompactionScheduler.
type compactions struct {
	crowd int             // number of layers from which on level 0 is crowded: a read looks into a table of each
	stop  <-chan struct{} // ends all rests
	db    database

	mu       sync.Mutex
	running  bool
	refused  bool // one was refused because another was running
	closed   bool
	granting sync.WaitGroup // Add only with mu held and not closed
}

type database interface {
	pebble.DBForCompaction
	Metrics() *pebble.Metrics
}

// Register is called once, before all others.
func (c *compactions) Register(_ int, db pebble.DBForCompaction) { c.db = db.(database) }

// Unregister returns once no more calls to the database will be made.
func (c *compactions) Unregister() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.granting.Wait()
}

// TrySchedule is called with the database's lock held.
func (c *compactions) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.running {
		c.refused = true
		return false, nil
	}
	c.running = true
	return true, &compaction{all: c}
}

// UpdateGetAllowedWithoutPermission does nothing, because one compaction is always allowed.
func (c *compactions) UpdateGetAllowedWithoutPermission() {}

// next is called when a compaction has ended, and starts the waiting one, if any. The database does not ask again after a refusal. So if a compaction
// was refused while next asked the database in vain, next asks once more.
func (c *compactions) next() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed {
		c.refused = false
		c.granting.Add(1)
		c.mu.Unlock()
		begun := c.db.Schedule(&compaction{all: c})
		c.granting.Done()
		c.mu.Lock()
		if begun {
			return
		}
		if !c.refused {
			break
		}
	}
	c.running = false
}

// debtMost is how many bytes may wait to be merged before compactions count as behind.
const debtMost = 256 << 20

// lag is how far compactions have fallen behind.
type lag int

const (
	inTime    lag = iota
	behind        // they rest for as long as they work
	farBehind     // they do not rest
)

func (c *compactions) lag() lag {
	m := c.db.Metrics()
	layers, debt := int(m.Levels[0].Sublevels), m.Compact.EstimatedDebt
	switch {
	case layers >= 2*c.crowd || debt > 2*debtMost:
		return farBehind
	case layers >= c.crowd || debt > debtMost:
		return behind
	}
	return inTime
}

// Within these times a compaction notices that it is behind, and may rest.
const (
	lookEvery = 100 * time.Millisecond
	restMost  = time.Minute
)

// compaction is one compaction. The compacting goroutine calls its methods, except for MeasureCPU.
type compaction struct {
	all    *compactions
	pace   Pace
	looked time.Time
	lag    lag
}

// Started is called once, before the others.
func (c *compaction) Started() { c.pace = NewPace(c.all.stop, restMost) }

// MeasureCPU measures nothing.
func (c *compaction) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats is called after every 128 keys, and may block.
func (c *compaction) CumulativeStats(pebble.CompactionGrantHandleStats) {
	if time.Since(c.looked) > lookEvery {
		c.looked, c.lag = time.Now(), c.all.lag()
	}
	switch c.lag {
	case inTime:
		c.pace.Rest()
	case behind:
		c.pace.rest(1)
	case farBehind:
		runtime.Gosched() // let runnable goroutines go first; otherwise they would wait for the end of its time slice of ten milliseconds
	}
}

// Done is called when the compaction has ended.
func (c *compaction) Done() { c.all.next() }

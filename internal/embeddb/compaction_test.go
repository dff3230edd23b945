package embeddb

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// waitingDB has a number of waiting compactions. While it answers that there is none, another may arrive.
type waitingDB struct {
	pebble.DBForCompaction
	all     *compactions
	waiting int
	late    int // that arrive while it answers that there is none
	begun   []pebble.CompactionGrantHandle
	metrics pebble.Metrics
}

func (d *waitingDB) Metrics() *pebble.Metrics { return &d.metrics }

func (d *waitingDB) Schedule(h pebble.CompactionGrantHandle) bool {
	if d.waiting == 0 {
		if d.late > 0 {
			d.late--
			if ok, _ := d.all.TrySchedule(); ok {
				panic("two compactions at a time")
			}
			d.waiting++ // the database does not ask again
		}
		return false
	}
	d.waiting--
	d.begun = append(d.begun, h)
	return true
}

func TestOneCompactionAtATime(t *testing.T) {
	c := &compactions{crowd: 8, stop: make(chan struct{})}
	db := &waitingDB{all: c, late: 1}
	c.Register(2, db)
	first, h := c.TrySchedule()
	if second, _ := c.TrySchedule(); !first || second {
		t.Fatalf("the first one was granted: %v, a second one beside it: %v", first, second)
	}
	db.waiting = 1
	h.Started()
	h.CumulativeStats(pebble.CompactionGrantHandleStats{})
	h.Done()
	if len(db.begun) != 1 {
		t.Fatalf("%d compactions began after the first one, want the one that was refused", len(db.begun))
	}
	db.begun[0].Done() // nothing waits, but one comes in between
	if len(db.begun) != 2 {
		t.Fatalf("%d compactions began, want the one that came while none waited", len(db.begun))
	}
	db.begun[1].Done()
	third, h := c.TrySchedule()
	if !third {
		t.Fatal("no compaction is granted although none runs")
	}
	c.Unregister()
	db.waiting = 1
	h.Done()
	if granted, _ := c.TrySchedule(); granted || len(db.begun) != 2 {
		t.Error("a compaction began after the database closed")
	}
}

// The more compactions lag, the less they pause.
func TestCompactionsThatAreBehindHurry(t *testing.T) {
	for _, test := range []struct {
		name   string
		layers int32
		debt   uint64
		want   time.Duration // of ten stints of two milliseconds
	}{
		{"in time", 7, debtMost, 100 * time.Millisecond},
		{"level 0 is crowded", 8, 0, 40 * time.Millisecond},
		{"much waits to be merged", 0, debtMost + 1, 40 * time.Millisecond},
		{"level 0 is twice as crowded", 16, 0, 20 * time.Millisecond},
		{"twice as much waits", 0, 2*debtMost + 1, 20 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			db := &waitingDB{}
			db.metrics.Levels[0].Sublevels, db.metrics.Compact.EstimatedDebt = test.layers, test.debt
			c := &compactions{crowd: 8, stop: make(chan struct{})}
			c.Register(1, db)
			h := &compaction{all: c}
			h.Started()
			began := time.Now()
			for range 10 {
				time.Sleep(2 * time.Millisecond)
				h.CumulativeStats(pebble.CompactionGrantHandleStats{})
			}
			if got := time.Since(began); got != test.want {
				t.Errorf("%s: the work took %s, want %s", test.name, got, test.want)
			}
		})
	}
}

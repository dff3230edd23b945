package fair

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/rate"
)

func TestOneNameTakesNoMoreThanItsShare(t *testing.T) {
	p := NewPool(10, 6)
	if !p.Take("a", 6) || p.Take("a", 1) {
		t.Error("a name takes more or less than its share")
	}
	if !p.Take("b", 4) {
		t.Error("what a share leaves is not there for others")
	}
	if p.Take("c", 1) || p.Taken() != 10 {
		t.Errorf("%d of 10 are taken", p.Taken())
	}
	p.Give("a", 6)
	if !p.Take("c", 6) || p.Refused() != 2 {
		t.Errorf("after giving back: %d taken, %d refused", p.Taken(), p.Refused())
	}
}

func TestPoolAmongManyCallers(t *testing.T) {
	p := NewPool(100, 100)
	var done sync.WaitGroup
	for i := range 8 {
		done.Go(func() {
			name := fmt.Sprint("name ", i)
			for range 10_000 {
				if p.Take(name, 30) {
					if got := p.Taken(); got > 100+8*30 {
						t.Errorf("%d taken", got)
					}
					p.Give(name, 30)
				}
			}
		})
	}
	done.Wait()
	if p.Taken() != 0 {
		t.Errorf("%d were not given back", p.Taken())
	}
}

func TestRate(t *testing.T) {
	now := time.Now()
	r := NewRate(rate.PerSecond(10, 3), func() time.Time { return now })
	taken := func(name string) (n int) {
		for r.Allow(name) {
			n++
		}
		return n
	}
	if got := taken("a"); got != 3 {
		t.Errorf("a burst of %d, want 3", got)
	}
	now = now.Add(200 * time.Millisecond)
	if got := taken("a"); got != 2 {
		t.Errorf("%d after 200 ms, want 2", got)
	}
	if got := taken("b"); got != 3 {
		t.Errorf("another name: %d, want 3", got)
	}
	if none := NewRate(rate.PerSecond(0, 1), time.Now); !none.Allow("a") || none.Refused() != 0 {
		t.Error("a rate of 0 limits")
	}
}

func BenchmarkPool(b *testing.B) {
	p := NewPool(1<<40, 1<<40)
	b.RunParallel(func(each *testing.PB) {
		for each.Next() {
			if p.Take("MUSTAAAAAAAAAAAAAAAA", 1) {
				p.Give("MUSTAAAAAAAAAAAAAAAA", 1)
			}
		}
	})
}

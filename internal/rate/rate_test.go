package rate

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestBucket(t *testing.T) {
	limit, b := PerSecond(1, 3), Bucket{}
	start := time.Unix(1_700_000_000, 0)
	for i, x := range []struct {
		at   time.Duration
		want bool
	}{
		{0, true}, {0, true}, {0, true}, {0, false}, {500 * time.Millisecond, false}, {time.Second, true}, {time.Second, false},
		{time.Hour, true}, {time.Hour, true}, {time.Hour, true}, {time.Hour, false},
	} {
		if got := b.Take(limit, start.Add(x.at).UnixNano()); got != x.want {
			t.Errorf("call %d, at %s: %t, want %t", i, x.at, got, x.want)
		}
	}
	for range 1000 {
		if !b.Take(Limit{}, 0) || !b.Take(PerSecond(0, 5), 0) {
			t.Fatal("the zero Limit limits")
		}
	}
}

// A raised limit applies at once: what the former one has left to refill does not outlast it.
func TestRaisedLimit(t *testing.T) {
	var b Bucket
	low, high := Every(time.Minute, 10), PerSecond(10, 20)
	for b.Take(low, 0) {
	}
	if b.Take(high, 0) {
		t.Error("a token before one of the new limit was filled in")
	}
	if !b.Take(high, int64(100*time.Millisecond)) {
		t.Error("no token when one of the new limit was filled in")
	}
}

func TestABucketAmongManyCallers(t *testing.T) {
	var b Bucket
	var callers sync.WaitGroup
	var through atomic.Int64
	for range 8 {
		callers.Go(func() {
			for range 1000 {
				if b.Take(PerSecond(1, 100), 0) {
					through.Add(1)
				}
			}
		})
	}
	callers.Wait()
	if through.Load() != 100 {
		t.Errorf("%d calls were let through at once, want 100", through.Load())
	}
}

// Next says how long to wait for any number of tokens, and leaves it to its caller whether they are taken.
func TestNext(t *testing.T) {
	limit := Every(time.Second, 3)
	next, early := limit.Next(0, 0, 2)
	if next != int64(2*time.Second) || early != -time.Second {
		t.Errorf("2 of 3 tokens: full at %d, early by %s", next, early)
	}
	if _, early = limit.Next(next, 0, 2); early != time.Second {
		t.Errorf("2 tokens where 1 is left: early by %s, want 1s", early)
	}
	if _, early = limit.Next(next, int64(time.Second), 2); early != 0 {
		t.Errorf("a second later: early by %s, want 0s", early)
	}
}

func TestLines(t *testing.T) {
	l := Lines{Most: 2, Period: 10 * time.Second}
	start := time.Unix(1_700_000_000, 0)
	for i, x := range []struct {
		at      time.Duration
		write   bool
		leftOut int
	}{
		{0, true, 0}, {time.Second, true, 0}, {2 * time.Second, false, 0}, {9 * time.Second, false, 0},
		{10 * time.Second, true, 2}, {10 * time.Second, true, 0}, {19 * time.Second, false, 0}, {time.Minute, true, 1},
	} {
		if write, leftOut := l.Note(start.Add(x.at)); write != x.write || leftOut != x.leftOut {
			t.Errorf("cause %d, at %s: %t with %d left out, want %t with %d", i, x.at, write, leftOut, x.write, x.leftOut)
		}
	}
}

func BenchmarkBucket(b *testing.B) {
	var bucket Bucket
	limit := PerSecond(1e6, 1000)
	b.RunParallel(func(each *testing.PB) {
		for each.Next() {
			bucket.Take(limit, time.Now().UnixNano())
		}
	})
}

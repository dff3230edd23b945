package serverlink

import (
	"testing"
	"time"
)

func TestBucket(t *testing.T) {
	rate := Rate{Burst: 3, PerSecond: 1}
	start := time.Unix(1_700_000_000, 0)
	var b bucket
	var got []bool
	for _, at := range []time.Duration{0, 0, 0, 0, 500 * time.Millisecond, time.Second, time.Second, time.Hour, time.Hour, time.Hour, time.Hour} {
		got = append(got, b.take(rate, start.Add(at)))
	}
	want := []bool{true, true, true, false, false, true, false, true, true, true, false}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

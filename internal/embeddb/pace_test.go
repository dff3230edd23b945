package embeddb

import (
	"testing"
	"testing/synctest"
	"time"
)

// Work pauses four times as long as it takes, up to its budget, and no longer once the database closes.
func TestWorkInTheBackgroundRests(t *testing.T) {
	work := func(p *Pace, stints int) time.Duration {
		began := time.Now()
		for range stints {
			time.Sleep(2 * time.Millisecond)
			p.Rest()
		}
		return time.Since(began)
	}
	for _, test := range []struct {
		name   string
		most   time.Duration
		closes bool
		want   time.Duration // of ten stints of two milliseconds
	}{
		{"all rests", time.Hour, false, 100 * time.Millisecond},
		{"as long as it may", 30 * time.Millisecond, false, 50 * time.Millisecond},
		{"closing", time.Hour, true, 20 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			stop := make(chan struct{})
			if test.closes {
				close(stop)
			}
			p := NewPace(stop, test.most)
			if got := work(&p, 10); got != test.want {
				t.Errorf("%s: the work took %s, want %s", test.name, got, test.want)
			}
		})
	}
}

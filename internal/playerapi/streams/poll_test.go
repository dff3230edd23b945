package streams

import (
	"testing"
	"time"
)

// A poll waits, but ends while there is time for the next one, however short the patience is.
func TestPollEndsBeforeTheEndOfPatience(t *testing.T) {
	for deadAfter, want := range map[time.Duration]time.Duration{
		25 * time.Second: 20 * time.Second, 10 * time.Second: 5 * time.Second, 4 * time.Second: 2 * time.Second, 2 * time.Second: time.Second,
	} {
		if got := pollMost(deadAfter); got != want {
			t.Errorf("deadAfter %s: a poll waits %s, want %s", deadAfter, got, want)
		}
	}
}

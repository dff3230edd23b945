// Package waittest waits in tests for what another goroutine or process does.
package waittest

import (
	"testing"
	"time"
)

const (
	patience  = 2 * time.Minute // far longer than any wait takes, so that it only ends a test that hangs
	longPause = 20 * time.Millisecond
)

// Until waits until a condition, which what describes, is true. After two minutes it ends the test.
func Until(t testing.TB, what string, is func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	for pause := time.Millisecond; !is(); pause = min(2*pause, longPause) {
		if time.Now().After(end) {
			t.Fatalf("waited %s in vain: %s", patience, what)
		}
		time.Sleep(pause)
	}
}

package mustertest

import (
	"testing"
	"time"
)

// ShortenSessionWait makes GameSession give up at once.
func ShortenSessionWait(t *testing.T) {
	was := sessionWait
	sessionWait = time.Nanosecond
	t.Cleanup(func() { sessionWait = was })
}

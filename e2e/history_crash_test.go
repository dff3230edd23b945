package e2e

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// crashFor is how long the tests of this file crash the service: CRASH_MINUTES=n, or some seconds.
func crashFor(t *testing.T) time.Duration {
	t.Helper()
	minutes, err := strconv.ParseFloat(os.Getenv("CRASH_MINUTES"), 64)
	switch {
	case err == nil:
		return time.Duration(minutes * float64(time.Minute))
	case testing.Short():
		return 12 * time.Second
	}
	return 30 * time.Second
}

// Repeated kill -9 under load. Seats that are accepted late, after several restarts, keep their time; lists of a fleet show
// every acknowledged game session while sessions move to the archive.
func TestHistoryThroughKills(t *testing.T) {
	t.Parallel()
	const reservation = 12 * time.Second
	p := startService(t, "--reservation", reservation.String(), "--ended-linger", "300ms").prepare()
	p.queue("queue")
	h := newHistory(p, reservation)
	ctx, stop := context.WithCancel(t.Context())
	work := h.start(ctx, 3, 6, 12)
	for end := time.Now().Add(crashFor(t)); time.Now().Before(end); {
		time.Sleep(500*time.Millisecond + rand.N(2500*time.Millisecond))
		h.crash(p.kill, p.start)
	}
	time.Sleep(time.Second)
	stop()
	work.Wait()
	h.check(t)
}

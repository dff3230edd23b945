package bench

import (
	"context"
	"fmt"
	"time"
)

// patience limits each wait for a state of the service or its cluster.
const patience = 3 * time.Minute

// wait returns after d, or when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// waitUntil waits for a condition; what describes the progress, for the error of a wait that takes too long.
func waitUntil(ctx context.Context, what func() string, is func() (bool, error)) error {
	for limit := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		ok, err := is()
		switch {
		case ok || err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(limit):
			return fmt.Errorf("after %s: %s", patience, what())
		}
	}
}

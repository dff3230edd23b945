package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// patience repeats requests while the service does not answer: it may be restarting, or the cluster may be electing a leader. Any successful request resets
// the limit for all of them.
type patience struct {
	limit time.Duration                      // on the time without a success
	pause func(attempt int) <-chan time.Time // between two attempts
	tell  func(text string)                  // informs the user once when requests begin to fail, and once when they succeed again

	mu     sync.Mutex
	silent time.Time // when requests began to fail; zero: the latest succeeded
}

// pauseOfPush waits a second, then twice as long, up to 15 seconds.
func pauseOfPush(attempt int) <-chan time.Time {
	return time.After(min(time.Second<<min(attempt, 10), 15*time.Second))
}

// mayPass reports whether a request that was answered with the status may succeed later without changes.
func mayPass(status int) bool {
	return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests
}

// apiMayPass is mayPass for the error of a client of the API; a request without an answer may succeed later, too.
func apiMayPass(err error) bool {
	refused, answered := errors.AsType[*awshttp.ResponseError](err)
	return !answered || mayPass(refused.HTTPStatusCode())
}

// persist calls do until it succeeds, fails permanently, or the limit is reached.
func (p *patience) persist(ctx context.Context, do func() (again bool, err error)) error {
	for attempt := 0; ; attempt++ {
		again, err := do()
		switch {
		case err == nil:
			p.succeeded()
			return nil
		case !again || ctx.Err() != nil:
			return err
		case p.failed(err):
			return fmt.Errorf("gave up after %v without the service: %w", p.limit, err)
		}
		select {
		case <-p.pause(attempt):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *patience) succeeded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.silent.IsZero() {
		p.tell("the service answers again")
	}
	p.silent = time.Time{}
}

// failed reports whether the limit is reached.
func (p *patience) failed(err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent.IsZero() {
		p.silent = time.Now()
		p.tell(fmt.Sprintf("the service does not answer or cannot do it now, trying again for up to %v: %v", p.limit, err))
	}
	return time.Since(p.silent) >= p.limit
}

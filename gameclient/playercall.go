package gameclient

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	callTries = 4                      // attempts of one call without an answer
	minPause  = 50 * time.Millisecond  // between two attempts
	callPause = 200 * time.Millisecond // before the second attempt, at most; doubles each time

	answerWithin = 30 * time.Second // of one attempt, since a connection may have been lost silently; more than a long poll takes
	answerBytes  = 8 << 20          // the largest answer
)

// call makes a call of the player. It repeats a call without an answer with the same request id, so that the service executes it
// once and repeats its first answer.
func (p *Player) call(ctx context.Context, name string, body, answer any) error {
	request := rand.Text()
	for try := 1; ; try++ {
		err := p.callOnce(ctx, name, request, body, answer)
		failed, ok := errors.AsType[*FlowError](err)
		if !ok || try == callTries || ctx.Err() != nil || !failed.passing() {
			return err
		}
		if sleep(ctx, max(failed.RetryAfter, jitter(callPause<<(try-1)))) != nil {
			return err
		}
	}
}

func (p *Player) callOnce(ctx context.Context, name, request string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		return &InvalidRequestError{Call: name, Field: "body", Value: err.Error(), Want: "values that JSON can represent"}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.address(name).String(), bytes.NewReader(text))
	if err != nil {
		return noAnswer(name, err)
	}
	r.Header.Set("Content-Type", "application/json")
	if request != "" {
		r.Header.Set("X-Request-Id", request)
	}
	if token := p.accessToken(); token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if rev, ok := ctx.Value(revKey{}).(uint64); ok {
		r.Header.Set("X-If-Rev", strconv.FormatUint(rev, 10))
	}
	response, err := p.options.HTTPClient.Do(r)
	if err != nil {
		return noAnswer(name, err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(io.LimitReader(response.Body, answerBytes))
	if err != nil {
		return noAnswer(name, err)
	}
	var said struct {
		Flow *Flow `json:"flow"`
	}
	// An answer of another program, such as a proxy, has no flow; refusedCall handles it.
	if json.Unmarshal(got, &said) == nil && said.Flow != nil {
		p.noteFlow(*said.Flow)
	}
	if response.StatusCode != http.StatusOK {
		return refusedCall(name, response.StatusCode, got)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(got, answer); err != nil {
		return noAnswer(name, fmt.Errorf("read the answer: %w", err))
	}
	return nil
}

// jitter returns a random time up to d, so that clients that lost the service at the same moment do not all return at once.
func jitter(d time.Duration) time.Duration { return time.Duration(mathrand.Int64N(int64(d) + 1)) }

// sleep waits, or ends with ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

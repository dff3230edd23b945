package gameserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	flowTries   = 4                      // attempts of one call without an answer
	flowPause   = 200 * time.Millisecond // before the second attempt; doubles each time
	flowPatient = 30 * time.Second       // for one answer
	answerBytes = 8 << 20                // the largest answer
)

// FlowError is a refusal of player flow.
type FlowError struct {
	Status     int           // of HTTP
	Code       string        // for programs, such as GAME_ENDED; empty if another program has answered
	Message    string        // for people
	RetryAfter time.Duration // how long to wait before another attempt; 0: unknown
}

func (e *FlowError) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("status %d: %s", e.Status, e.Message)
	}
	return e.Code + ": " + e.Message
}

// ask makes a call and returns its answer.
func ask[T any](ctx context.Context, g *GameInstance, name string, body any) (answer T, err error) {
	err = g.call(ctx, name, body, &answer)
	return answer, err
}

// call makes a call. It repeats a call without an answer with the same request id, so that the service executes it once and
// repeats its first answer.
func (g *GameInstance) call(ctx context.Context, name string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return &Error{name, ErrRefused, err}
	}
	request := rand.Text()
	for try := range flowTries {
		if err = g.callOnce(ctx, name, request, text, answer); !errors.Is(err, ErrUnavailable) || try == flowTries-1 {
			break
		}
		pause := flowPause << try
		if said, ok := errors.AsType[*FlowError](err); ok {
			pause = max(pause, said.RetryAfter)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
	return err
}

func (g *GameInstance) callOnce(ctx context.Context, name, request string, body []byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, flowPatient)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.address(name).String(), bytes.NewReader(body))
	if err != nil {
		return &Error{name, ErrRefused, err}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", request)
	if g.token != "" {
		r.Header.Set("Authorization", "Bearer "+g.token)
	}
	response, err := g.client.Do(r)
	if err != nil {
		return &Error{name, ErrUnavailable, err}
	}
	defer response.Body.Close()
	got, err := io.ReadAll(io.LimitReader(response.Body, answerBytes))
	switch {
	case err != nil:
		return &Error{name, ErrUnavailable, err}
	case response.StatusCode != http.StatusOK:
		return refusedFlow(name, response.StatusCode, got)
	case answer == nil:
		return nil
	}
	if err := json.Unmarshal(got, answer); err != nil {
		return &Error{name, ErrUnavailable, fmt.Errorf("read the answer: %w", err)}
	}
	return nil
}

// refusedFlow returns the error for an answer that is a refusal.
func refusedFlow(call string, status int, body []byte) error {
	var said struct {
		Code       string `json:"code"`
		Message    string `json:"message"`
		RetryAfter int64  `json:"retry_after_ms"`
	}
	if json.Unmarshal(body, &said) != nil || said.Code == "" { // the answer of a proxy or another program
		said.Message = fmt.Sprintf("%.200s", body)
	}
	kind := ErrRefused
	switch {
	case said.Code == "GAME_INSTANCE_NOT_FOUND":
		kind = ErrNoFlow
	case status >= http.StatusInternalServerError, status == http.StatusTooManyRequests:
		kind = ErrUnavailable
	case said.Code == "UNAUTHENTICATED", status == http.StatusForbidden:
		kind = ErrUnauthorized
	}
	return &Error{call, kind, &FlowError{status, said.Code, said.Message, time.Duration(said.RetryAfter) * time.Millisecond}}
}

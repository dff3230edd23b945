package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// A request is repeated while the service is away; the user is told once when it goes and once when it is back. Nothing is repeated that was refused for good, and
// nothing beyond the limit.
func TestPatience(t *testing.T) {
	away := errors.New("connection refused")
	var told []string
	now := make(chan time.Time)
	close(now)
	p := patience{limit: time.Hour, pause: func(int) <-chan time.Time { return now }, tell: func(text string) { told = append(told, text) }}
	tries := 0
	err := p.persist(t.Context(), func() (bool, error) {
		if tries++; tries < 5 {
			return true, away
		}
		return false, nil
	})
	if err != nil || tries != 5 || len(told) != 2 || !strings.Contains(told[0], "for up to 1h0m0s: connection refused") || !strings.Contains(told[1], "again") {
		t.Errorf("%v after %d tries: %q", err, tries, told)
	}
	tries = 0
	if err := p.persist(t.Context(), func() (bool, error) { tries++; return false, away }); err != away || tries != 1 || len(told) != 2 {
		t.Errorf("refused for good: %v after %d tries", err, tries)
	}
	p.limit = 0
	if err := p.persist(t.Context(), func() (bool, error) { return true, away }); !errors.Is(err, away) || !strings.Contains(err.Error(), "gave up after 0s") {
		t.Errorf("beyond the limit: %v", err)
	}
	for status, want := range map[int]bool{500: true, 502: true, 503: true, 429: true, 400: false, 403: false, 404: false, 409: false, 413: false} {
		if mayPass(status) != want {
			t.Errorf("status %d: %v", status, !want)
		}
	}
}

package sessionwatch

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/logtest"
)

// A message is written a number of times within a period. The rest is one line with a count and the reasons, at its end.
func TestLinesAreBounded(t *testing.T) {
	var log logtest.Log
	l := newLines(slog.New(slog.NewTextHandler(&log, nil)), 3, time.Hour)
	for range 5 {
		l.write(slog.LevelInfo, "game session ended", "SERVER_ENDED", "game_session", "a")
	}
	for range 1000 {
		l.write(slog.LevelInfo, "game session ended", "SERVER_CRASHED", "game_session", "b")
	}
	l.write(slog.LevelInfo, "server process ready", "", "process", "p")
	if n := strings.Count(log.String(), "game_session="); n != 3 {
		t.Errorf("%d lines of the first message, want 3:\n%s", n, log.String())
	}
	if !strings.Contains(log.String(), "process=p") {
		t.Errorf("another message has a bound of its own:\n%s", log.String())
	}
	log.Reset()
	l.sum()
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "more=1002") || !strings.Contains(got, `reasons="SERVER_CRASHED 1000, SERVER_ENDED 2"`) {
		t.Errorf("the sum is\n%s", got)
	}
	log.Reset()
	l.write(slog.LevelInfo, "game session ended", "SERVER_ENDED", "game_session", "c")
	l.sum()
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "game_session=c") {
		t.Errorf("the next period has\n%s", got)
	}
}

// The reasons of a sum are bounded, too, and level debug has every line.
func TestLinesAtDebug(t *testing.T) {
	var log logtest.Log
	l := newLines(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), 0, time.Hour)
	for i := range 100 {
		l.write(slog.LevelWarn, "server process ended", strings.Repeat("r", i+1), "process", "p")
	}
	if n := strings.Count(log.String(), "level=DEBUG"); n != 100 {
		t.Errorf("%d lines at level debug, want 100", n)
	}
	log.Reset()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.sumUp(ctx)
	if got := log.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, "more=100") || strings.Count(got, ",") > reasonsShown {
		t.Errorf("the sum is\n%s", got)
	}
}

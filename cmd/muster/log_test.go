package main

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/settings"
)

// Each line is one event of its level, without control characters, of a size that Windows accepts.
func TestEventsOfAWindowsService(t *testing.T) {
	type event struct {
		level slog.Level
		text  string
	}
	var got []event
	out := &events{func(level slog.Level, text string) error { got = append(got, event{level, text}); return nil }}
	for _, format := range []string{"text", "json"} {
		log := newLogger(out, settings.Settings{LogLevel: "debug", LogFormat: format})
		log.Debug("a")
		log.Info("b")
		log.Warn("c level=ERROR", "of", "\x1b[31m\x00")
		log.Error("d")
	}
	report(out, errors.New("first\nsecond"))
	want := []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError, slog.LevelError}
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d: %+v", len(got), len(want), got)
	}
	for i, e := range got {
		if e.level != want[i] || strings.HasSuffix(e.text, "\n") || strings.ContainsAny(e.text, "\x00\x1b") {
			t.Errorf("%+v, want %s", e, want[i])
		}
	}
	if last := got[len(got)-1].text; last != "muster: first\nsecond" {
		t.Errorf("the reason for a failure is %q", last)
	}

	long := strings.Repeat("ä", eventMax) + "\n"
	if _, err := io.WriteString(out, "x"+long); err != nil {
		t.Fatal(err)
	}
	if text := got[len(got)-1].text; len(text) > eventMax+40 || !utf8.ValidString(text) || !strings.HasSuffix(text, "ä… (30002 bytes more)") {
		t.Errorf("%d bytes of a long line, which end with %q", len(text), text[len(text)-40:])
	}
	out.record = func(slog.Level, string) error { return errors.New("the log is full") }
	if _, err := io.WriteString(out, long); err == nil {
		t.Error("an event that was not recorded is no error")
	}
}

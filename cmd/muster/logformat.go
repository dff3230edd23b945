package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/terminal"
)

// inForce writes log lines in the current format. Loggers that were derived from it before a change also use the new format.
type inForce struct {
	json   *atomic.Bool
	asText slog.Handler
	asJSON slog.Handler
}

func newInForce(w io.Writer, json *atomic.Bool, level slog.Leveler) *inForce {
	return &inForce{json, slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}), slog.NewJSONHandler(&escaped{w}, &slog.HandlerOptions{Level: level, ReplaceAttr: durationsAsText})}
}

// escaped writes characters that control a terminal or reverse its text direction as JSON escapes: the encoder does not escape those outside ASCII, and names from
// outside may contain them. The text format quotes them.
type escaped struct{ to io.Writer }

// Write implements io.Writer. Such characters occur only in JSON strings, where escapes mean the same.
func (e *escaped) Write(line []byte) (int, error) {
	steers := func(r rune) bool { return r != '\n' && terminal.Steers(r) }
	if bytes.IndexFunc(line, steers) < 0 {
		return e.to.Write(line)
	}
	safe := make([]byte, 0, len(line)+64)
	for _, r := range string(line) { // the encoder has replaced invalid UTF-8
		if steers(r) {
			safe = fmt.Appendf(safe, `\u%04x`, r)
		} else {
			safe = utf8.AppendRune(safe, r)
		}
	}
	if _, err := e.to.Write(safe); err != nil {
		return 0, err
	}
	return len(line), nil
}

// durationsAsText writes durations as the text format does, not in nanoseconds.
func durationsAsText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

func (h *inForce) now() slog.Handler {
	if h.json.Load() {
		return h.asJSON
	}
	return h.asText
}

// Enabled implements slog.Handler.
func (h *inForce) Enabled(ctx context.Context, level slog.Level) bool {
	return h.asText.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *inForce) Handle(ctx context.Context, r slog.Record) error { return h.now().Handle(ctx, r) }

// WithAttrs implements slog.Handler.
func (h *inForce) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &inForce{h.json, h.asText.WithAttrs(attrs), h.asJSON.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h *inForce) WithGroup(name string) slog.Handler {
	return &inForce{h.json, h.asText.WithGroup(name), h.asJSON.WithGroup(name)}
}

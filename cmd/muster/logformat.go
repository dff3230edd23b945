package main

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
)

// inForce writes log lines in the format that is in force. Loggers that were derived from it before a change have the new format, too.
type inForce struct {
	json   *atomic.Bool
	asText slog.Handler
	asJSON slog.Handler
}

func newInForce(w io.Writer, json *atomic.Bool, level slog.Leveler) *inForce {
	return &inForce{json, slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}), slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: durationsAsText})}
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

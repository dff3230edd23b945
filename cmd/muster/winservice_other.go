//go:build !windows

package main

import (
	"context"
	"log/slog"
)

// runAsService runs f: only services on Windows need a protocol with their manager.
func runAsService(ctx context.Context, f func(context.Context) error) error { return f(ctx) }

// eventLog returns nil: there is no Windows Event Log.
func eventLog() func(level slog.Level, text string) error { return nil }

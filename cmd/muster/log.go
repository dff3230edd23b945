package main

import (
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/musterhq/muster/internal/logsink"
	"github.com/musterhq/muster/internal/sdnotify"
	"github.com/musterhq/muster/internal/settings"
)

// openLog returns the log output for the lifetime of the program. The program survives the reader of its standard error: without the channel for SIGPIPE, a write
// to a closed pipe would end it, and systemd would consider that a clean exit and not restart it.
func openLog(env environment) *logsink.Sink {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return logsink.New(sdnotify.Journal(os.Stderr, env["JOURNAL_STREAM"]))
}

// tellOfLostLines logs how many lines were lost once the output accepts lines again.
func tellOfLostLines(sink *logsink.Sink, log *slog.Logger) {
	sink.OnRecovery(func(lines uint64, why error) { log.Warn("lines of the log were lost", "lines", lines, "error", why) })
}

// newLogger makes the log according to the settings, which Check has validated.
func newLogger(w io.Writer, s settings.Settings) *slog.Logger {
	return newLoggerAt(w, s, new(slog.LevelVar), new(atomic.Bool))
}

// newLoggerAt is newLogger with a level and a format that can be changed.
func newLoggerAt(w io.Writer, s settings.Settings, level *slog.LevelVar, json *atomic.Bool) *slog.Logger {
	_ = level.UnmarshalText([]byte(s.LogLevel))
	json.Store(s.LogFormat == "json")
	return slog.New(newInForce(w, json, level))
}

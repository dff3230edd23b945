package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/logsink"
	"github.com/musterhq/muster/internal/sdnotify"
	"github.com/musterhq/muster/internal/settings"
)

// openLog returns the log output for the lifetime of the program. The program survives the reader of its standard error: without the channel for SIGPIPE, a write
// to a closed pipe would end it, and systemd would consider that a clean exit and not restart it.
func openLog(env environment) *logsink.Sink {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return logsink.New(logOutput(env["JOURNAL_STREAM"]))
}

// logOutput returns where log lines and the reason for a failure go: the Windows Event Log for a service of Windows, which discards its standard error,
// and otherwise standard error.
func logOutput(stream string) io.Writer {
	if record := eventLog(); record != nil {
		return &events{record}
	}
	return sdnotify.Journal(os.Stderr, stream)
}

// events writes each line as an event of the Windows Event Log.
type events struct {
	record func(level slog.Level, text string) error
}

// eventMax limits the bytes of an event. Windows takes 31,839 UTF-16 code units, which are never more than the bytes of the same text.
const eventMax = 30_000

// Write implements io.Writer. p has one line, or several that belong together.
func (e *events) Write(p []byte) (int, error) {
	text := strings.ToValidUTF8(strings.TrimSuffix(string(p), "\n"), "\uFFFD")
	if begin := excerpt.Begin(text, eventMax); begin != text {
		text = fmt.Sprintf("%s… (%d bytes more)", begin, len(text)-len(begin))
	}
	if err := e.record(logsink.Level(p), text); err != nil {
		return 0, err
	}
	return len(p), nil
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

package raft

import (
	"context"
	"io"
	"log"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// raftLog passes the library's lines to slog. The lines about its internals are for developers. Its warnings and errors, mostly about nodes
// that do not answer, come many times a second while a node is away, so each is logged once in half a minute.
type raftLog struct {
	hclog.Logger // discards everything that is not passed on below
	out          *slog.Logger
	quiet        *quiet
}

const quietFor = 30 * time.Second

type quiet struct {
	sync.Mutex
	until map[string]time.Time
}

// Logger returns a logger for parts of the library, such as a transport, that writes like the node's own.
func Logger(out *slog.Logger) hclog.Logger {
	return &raftLog{hclog.NewNullLogger(), out, &quiet{until: map[string]time.Time{}}}
}

func (l *raftLog) write(level slog.Level, message string, args []any) {
	if !l.out.Enabled(context.Background(), level) {
		return
	}
	if level > slog.LevelDebug && !l.quiet.passes(message, time.Now()) {
		return
	}
	l.out.Log(context.Background(), level, "raft: "+message, args...)
}

func (q *quiet) passes(message string, now time.Time) bool {
	q.Lock()
	defer q.Unlock()
	if now.Before(q.until[message]) {
		return false
	}
	q.until[message] = now.Add(quietFor)
	return true
}

func (l *raftLog) Log(level hclog.Level, message string, args ...any) {
	if level >= hclog.Warn {
		l.Warn(message, args...)
		return
	}
	l.Debug(message, args...)
}

func (l *raftLog) Trace(message string, args ...any) {}
func (l *raftLog) Debug(message string, args ...any) { l.write(slog.LevelDebug, message, args) }
func (l *raftLog) Info(message string, args ...any)  { l.write(slog.LevelDebug, message, args) }
func (l *raftLog) Warn(message string, args ...any)  { l.write(slog.LevelWarn, message, args) }
func (l *raftLog) Error(message string, args ...any) { l.write(slog.LevelWarn, message, args) }

func (l *raftLog) IsDebug() bool { return l.out.Enabled(context.Background(), slog.LevelDebug) }
func (l *raftLog) IsInfo() bool  { return l.IsDebug() }
func (l *raftLog) IsWarn() bool  { return true }
func (l *raftLog) IsError() bool { return true }

func (l *raftLog) With(args ...any) hclog.Logger {
	return &raftLog{l.Logger, l.out.With(args...), l.quiet}
}
func (l *raftLog) Named(string) hclog.Logger      { return l }
func (l *raftLog) ResetNamed(string) hclog.Logger { return l }

func (l *raftLog) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(l.out.Handler(), slog.LevelDebug)
}
func (l *raftLog) StandardWriter(o *hclog.StandardLoggerOptions) io.Writer {
	return l.StandardLogger(o).Writer()
}

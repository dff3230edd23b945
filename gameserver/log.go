package gameserver

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
)

// sdkLog is a logger for the SDK. Without one, the SDK creates a folder "logs" in the working directory, and ends
// the program if that fails.
type sdkLog struct {
	log        *slog.Logger
	connecting atomic.Bool
	reason     atomic.Pointer[string] // the service's last reason for a refused connection
}

// Debugf also receives the errors of connection attempts, which the SDK repeats for minutes and reports only here. The SDK passes
// errors, and the body of an HTTP answer as bytes.
func (l *sdkLog) Debugf(format string, args ...any) {
	text := sdkText(format, args)
	if !l.connecting.Load() {
		l.log.Debug(text)
		return
	}
	failed := slices.ContainsFunc(args, func(a any) bool { _, is := a.(error); return is })
	for _, a := range args {
		if body, is := a.([]byte); is && len(body) > 0 {
			reason := shortened(string(body))
			l.reason.Store(&reason)
			failed = true
		}
	}
	if failed {
		l.log.Warn("attempt to connect to the game session service failed", "sdk", text)
		return
	}
	l.log.Debug(text)
}

func (l *sdkLog) Warnf(format string, args ...any)  { l.log.Warn(sdkText(format, args)) }
func (l *sdkLog) Errorf(format string, args ...any) { l.log.Error(sdkText(format, args)) }

func sdkText(format string, args []any) string {
	return strings.TrimSpace(fmt.Sprintf(format, args...))
}

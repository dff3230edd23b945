package gameserver

import (
	"fmt"
	"log/slog"
	"strings"
)

// sdkLog gives the SDK a logger. Without one it creates a folder "logs" where the program was started, and fails
// the program when it cannot.
type sdkLog struct{ log *slog.Logger }

func (l sdkLog) Debugf(format string, args ...any) { l.log.Debug(sdkText(format, args)) }
func (l sdkLog) Warnf(format string, args ...any)  { l.log.Warn(sdkText(format, args)) }
func (l sdkLog) Errorf(format string, args ...any) { l.log.Error(sdkText(format, args)) }

func sdkText(format string, args []any) string {
	return strings.TrimSpace(fmt.Sprintf(format, args...))
}

package sdnotify

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"

	"github.com/musterhq/muster/internal/logsink"
)

// Journal returns a writer of log lines to f. If stream, which is JOURNAL_STREAM, says that f leads to systemd's journal, each line begins with its priority, which the journal takes
// off again: see sd-daemon(3). Otherwise the writer is f.
func Journal(f *os.File, stream string) io.Writer {
	info, err := f.Stat()
	if stream == "" || err != nil {
		return f
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || stream != fmt.Sprintf("%d:%d", s.Dev, s.Ino) { // it is inherited by programs whose output goes elsewhere
		return f
	}
	return &journal{f}
}

// journal puts priorities before lines of package log/slog, as text or JSON, and before others, which say why a program ends.
type journal struct{ to io.Writer }

// Write implements io.Writer. p has one line, or several.
func (j *journal) Write(p []byte) (int, error) {
	var out []byte
	for line := range bytes.Lines(p) {
		out = append(append(out, priority(line)...), line...)
	}
	if _, err := j.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// priority returns the prefix of a line.
func priority(line []byte) string {
	switch logsink.Level(line) {
	case slog.LevelDebug:
		return "<7>"
	case slog.LevelInfo:
		return "<6>"
	case slog.LevelWarn:
		return "<4>"
	}
	return "<3>"
}

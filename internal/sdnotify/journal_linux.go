package sdnotify

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"syscall"
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

// levels are the levels of log lines with the prefixes of their priorities. The first key after the time is the level, whatever the message says.
var levels = []struct{ text, json, prefix []byte }{
	{[]byte("level=DEBUG"), []byte(`"level":"DEBUG"`), []byte("<7>")},
	{[]byte("level=INFO"), []byte(`"level":"INFO"`), []byte("<6>")},
	{[]byte("level=WARN"), []byte(`"level":"WARN"`), []byte("<4>")},
	{[]byte("level=ERROR"), []byte(`"level":"ERROR"`), []byte("<3>")},
}

// priority returns the prefix of a line: that of its level, or of an error if it has none.
func priority(line []byte) []byte {
	key := 1 + bytes.IndexAny(line, " ,") // behind the time
	for _, l := range levels {
		if bytes.HasPrefix(line[key:], l.text) || bytes.HasPrefix(line[key:], l.json) {
			return l.prefix
		}
	}
	return []byte("<3>")
}

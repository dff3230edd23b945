package logsink

import (
	"bytes"
	"log/slog"
)

// levels are the levels of lines of package log/slog, as text and as JSON.
var levels = []struct {
	level      slog.Level
	text, json []byte
}{
	{slog.LevelDebug, []byte("level=DEBUG"), []byte(`"level":"DEBUG"`)},
	{slog.LevelInfo, []byte("level=INFO"), []byte(`"level":"INFO"`)},
	{slog.LevelWarn, []byte("level=WARN"), []byte(`"level":"WARN"`)},
}

// Level returns the level of a line, for outputs that treat levels differently: the first key after the time, whatever the message says. A line without
// a level is an error, which says why a program ends.
func Level(line []byte) slog.Level {
	key := 1 + bytes.IndexAny(line, " ,") // behind the time
	for _, l := range levels {
		if bytes.HasPrefix(line[key:], l.text) || bytes.HasPrefix(line[key:], l.json) {
			return l.level
		}
	}
	return slog.LevelError
}

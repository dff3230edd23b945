package sdnotify

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// prefixes returns what each line that write logs begins with, up to its time.
func prefixes(t *testing.T, stream func(*syscall.Stat_t) string, write func(io.Writer)) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	write(Journal(f, stream(info.Sys().(*syscall.Stat_t))))
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range bytes.Lines(text) {
		prefix, rest, _ := strings.Cut(string(line), "time")
		if !strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, `":`) {
			prefix = string(line) // a line without a time
		}
		found = append(found, prefix)
	}
	return strings.Join(found, " ")
}

func TestPrioritiesForTheJournal(t *testing.T) {
	own := func(s *syscall.Stat_t) string { return fmt.Sprintf("%d:%d", s.Dev, s.Ino) }
	text := func(w io.Writer) slog.Handler {
		return slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
	}
	json := func(w io.Writer) slog.Handler {
		return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
	}
	logged := func(handler func(io.Writer) slog.Handler) func(io.Writer) {
		return func(w io.Writer) {
			log := slog.New(handler(w))
			for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
				log.Log(context.Background(), level, "a line,\nlevel=ERROR", "level", "ERROR")
			}
		}
	}
	if got := prefixes(t, own, logged(text)); got != "<7> <6> <4> <3>" {
		t.Errorf("text: %s", got)
	}
	if got := prefixes(t, own, logged(json)); got != `<7>{" <6>{" <4>{" <3>{"` {
		t.Errorf("JSON: %s", got)
	}
	two := func(w io.Writer) {
		_, _ = io.WriteString(w, "time=1 level=WARN\n\ntime=2 level=INFO\nmuster: no start\n")
	}
	if got := prefixes(t, own, two); got != "<4> <3>\n <6> <3>muster: no start\n" {
		t.Errorf("four lines at once: %q", got)
	}
	for what, stream := range map[string]func(*syscall.Stat_t) string{
		"no journal":        func(*syscall.Stat_t) string { return "" },
		"another stream":    func(s *syscall.Stat_t) string { return fmt.Sprintf("%d:%d", s.Dev, s.Ino+1) },
		"something strange": func(*syscall.Stat_t) string { return "8:" },
	} {
		if got := prefixes(t, stream, logged(text)); got != "   " {
			t.Errorf("%s: %q", what, got)
		}
	}
}

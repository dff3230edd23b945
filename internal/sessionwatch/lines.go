package sessionwatch

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// reasonsShown limits the reasons in a summary line.
const reasonsShown = 8

// lines writes a limited number of lines for each message and period to a log. It writes the others at level debug, and summarizes
// them in one line at the end of the period.
type lines struct {
	log    *slog.Logger
	period time.Duration

	mu    sync.Mutex
	each  int
	kinds map[string]*kind // by message, of which there are few
}

// kind counts the lines of one message in this period.
type kind struct {
	level   slog.Level
	written int
	more    int            // lines that were not written
	reasons map[string]int // of those lines
}

func newLines(log *slog.Logger, each int, period time.Duration) *lines {
	return &lines{log: log, each: each, period: period, kinds: map[string]*kind{}}
}

// set changes how many lines of each message are written.
func (l *lines) set(each int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.each = each
}

// write writes a line, or counts it for the summary under a reason, which may be "".
func (l *lines) write(level slog.Level, message, reason string, attributes ...any) {
	l.writeMore(level, message, reason, func() []any { return attributes })
}

// writeMore is write for attributes that are expensive to compute.
func (l *lines) writeMore(level slog.Level, message, reason string, attributes func() []any) {
	ctx := context.Background()
	if !l.take(level, message, reason) {
		level = slog.LevelDebug
	}
	if l.log.Enabled(ctx, level) {
		l.log.Log(ctx, level, message, attributes()...)
	}
}

// take reports whether another line of a message may be written in this period.
func (l *lines) take(level slog.Level, message, reason string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kinds[message]
	if k == nil {
		k = &kind{level: level, reasons: map[string]int{}}
		l.kinds[message] = k
	}
	if k.written < l.each {
		k.written++
		return true
	}
	k.more++
	if _, known := k.reasons[reason]; known || len(k.reasons) < reasonsShown {
		k.reasons[reason]++
	} else {
		k.reasons["others"]++
	}
	return false
}

// sumUp writes the summaries at the end of each period, and once more when ctx ends.
func (l *lines) sumUp(ctx context.Context) {
	again := time.NewTicker(l.period)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			l.sum()
		case <-ctx.Done():
			l.sum()
			return
		}
	}
}

// sum ends the period and writes its summaries.
func (l *lines) sum() {
	l.mu.Lock()
	ended := l.kinds
	l.kinds = map[string]*kind{}
	l.mu.Unlock()
	for _, message := range slices.Sorted(maps.Keys(ended)) {
		if k := ended[message]; k.more > 0 {
			attributes := []any{"more", k.more, "within", l.period}
			if reasons := k.inWords(); reasons != "" {
				attributes = append(attributes, "reasons", reasons)
			}
			l.log.Log(context.Background(), k.level, message+": further events are summed (--log-events)", attributes...)
		}
	}
}

// inWords returns the reasons with their counts, the most frequent first.
func (k *kind) inWords() string {
	reasons := slices.SortedFunc(maps.Keys(k.reasons), func(a, b string) int {
		return cmp.Or(k.reasons[b]-k.reasons[a], strings.Compare(a, b))
	})
	var words []string
	for _, reason := range reasons {
		if reason != "" {
			words = append(words, fmt.Sprintf("%s %d", reason, k.reasons[reason]))
		}
	}
	return strings.Join(words, ", ")
}

package steady

import (
	"testing"
	"time"
)

func TestNanosAndTime(t *testing.T) {
	now := time.Now()
	for _, at := range []time.Time{now, now.Add(time.Hour), now.Add(-time.Hour), time.Date(2024, 2, 29, 12, 0, 0, 5, time.UTC)} {
		if got := Time(Nanos(at)); !got.Equal(at) {
			t.Errorf("%s became %s", at, got)
		}
	}
	if d := Nanos(now.Add(time.Minute)) - Nanos(now); d != int64(time.Minute) {
		t.Errorf("a minute lasts %s", time.Duration(d))
	}
}

// A test cannot set the machine's clock. But an instant whose time of day and monotonic reading disagree shows which of the two counts: time.Now has a monotonic reading
// that started with the process, and Round(0) takes it away.
func TestMonotonicReadingsCount(t *testing.T) {
	set := start
	defer func() { start = set }()
	start = time.Now().Add(-time.Second) // as if the process had begun then; its number stays
	if d := time.Duration(Now() - shift); d < time.Second {
		t.Errorf("%s have passed, want at least 1s", d)
	}
	if text := Time(Now()).String(); !hasReading(text) {
		t.Errorf("%s has no monotonic reading", text)
	}
}

func hasReading(text string) bool {
	for i := range text {
		if text[i:min(i+3, len(text))] == " m=" {
			return true
		}
	}
	return false
}

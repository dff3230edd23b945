package plural

import (
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0 seconds", 1500 * time.Millisecond: "1 second", 119 * time.Second: "119 seconds", 150 * time.Second: "2 minutes", 90 * time.Minute: "90 minutes",
		47 * time.Hour: "47 hours", 48 * time.Hour: "2 days", 960 * time.Hour: "40 days",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

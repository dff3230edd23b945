package sdnotify

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// monotonic is the time of CLOCK_MONOTONIC in microseconds.
func monotonic() string {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return ""
	}
	return strconv.FormatInt(t.Nano()/1000, 10)
}

package plural

import "time"

// Duration writes a time for people, in the largest unit of which it has two or more. The rest is left out.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return Of(int64(d/day), "day", "days")
	case d >= 2*time.Hour:
		return Of(int64(d/time.Hour), "hour", "hours")
	case d >= 2*time.Minute:
		return Of(int64(d/time.Minute), "minute", "minutes")
	}
	return Of(int64(max(0, d)/time.Second), "second", "seconds")
}

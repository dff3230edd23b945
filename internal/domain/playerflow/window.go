package playerflow

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
)

// slide returns the times in `at` that are still within the window, followed by now: oldest first, and only the latest if there are more
// than most. It does not change `at`. Release 0.1 stored only their count and the first of them (since); both apply if `at` is empty.
func slide(at []domain.Time, count int32, since, now domain.Time, window time.Duration, most int) []domain.Time {
	at = slices.Clone(at)
	if len(at) == 0 {
		at = slices.Repeat([]domain.Time{since}, min(int(count), most))
	}
	at = append(slices.DeleteFunc(at, func(x domain.Time) bool { return x.Add(window) <= now }), now)
	return at[max(0, len(at)-most):]
}

package fleet

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
)

func TestNextAttempt(t *testing.T) {
	lost := domain.TimeOf(time.UnixMilli(1_700_000_000_000))
	for _, c := range []struct {
		sdk    string
		passed time.Duration
		want   time.Duration
		how    Return
	}{
		{"Go 5.5.0", 0, 0, ReturnExpected},
		{"Go 5.5.0", time.Millisecond, 8 * time.Second, ReturnExpected},
		{"Go 5.2.1", 57 * time.Second, 88 * time.Second, ReturnExpected},
		{"Go 5.6.0", 89 * time.Second, 120 * time.Second, ReturnExpected},
		{"Go 5.6.0", 120 * time.Second, 120 * time.Second, ReturnExpected},
		{"Go 5.6.0", 121 * time.Second, 152 * time.Second, ReturnExpected},
		{"Cpp 5.4.0", 61 * time.Second, 92 * time.Second, ReturnExpected},
		{"Cpp 5.4.0", 125 * time.Second, 0, ReturnOver},
		{"CSharp 5.4.0", 125 * time.Second, 156 * time.Second, ReturnExpected},
		{"CSharp 5.1.1", 0, 0, ReturnNever},
		{"Go 5.0.0", 0, 0, ReturnNever},
		{"Cpp 5.0.0", 0, 0, ReturnUnknown},
		{"Go 6.0.0", 0, 0, ReturnUnknown},
		{"Rust 5.5.0", 0, 0, ReturnUnknown},
		{"", 0, 0, ReturnUnknown},
	} {
		at, how := NextAttempt(c.sdk, lost, lost.Add(c.passed))
		if how != c.how || how == ReturnExpected && at.Sub(lost) != c.want {
			t.Errorf("%q after %v: %v, %d; want %v, %d", c.sdk, c.passed, at.Sub(lost), how, c.want, c.how)
		}
	}
}

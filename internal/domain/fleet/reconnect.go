package fleet

import (
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
)

// Return is the behaviour of a server SDK after a lost connection.
type Return uint8

const (
	ReturnUnknown  Return = iota // an SDK or release whose behaviour was not measured
	ReturnNever                  // it does not reconnect
	ReturnExpected               // it will try again
	ReturnOver                   // it has made its last attempt
)

// sdkRetries lists an SDK's reconnection attempts after a loss. Sources: Go 5.0.0 and 5.2.1 to 5.6.0, C++ 5.4.0 and C# 5.1.1 were
// measured; C# 5.0 has the same code as 5.1; C# 5.4 was read from its source. docs/spec/server-sdk.md#reconnection.
type sdkRetries struct {
	after []time.Duration // since the loss
	every time.Duration   // interval after the last of them; 0: no more attempts
}

const seconds = time.Second

var (
	goRetries  = sdkRetries{[]time.Duration{0, 8 * seconds, 24 * seconds, 56 * seconds, 88 * seconds}, 32 * seconds}
	cppRetries = sdkRetries{[]time.Duration{0, 4 * seconds, 12 * seconds, 28 * seconds, 60 * seconds, 92 * seconds, 124 * seconds}, 0}
	csRetries  = sdkRetries{[]time.Duration{0, 4 * seconds, 12 * seconds, 28 * seconds, 60 * seconds, 92 * seconds, 124 * seconds, 156 * seconds}, 0}
)

// retriesOf returns the attempts of an SDK, given the text of Process.SDK, such as "Go 5.5.0".
func retriesOf(sdk string) (r sdkRetries, how Return) {
	language, version, _ := strings.Cut(sdk, " ")
	switch release := SDKRelease(version); {
	case language == "Go" && release == "5.0", language == "CSharp" && (release == "5.0" || release == "5.1"):
		return r, ReturnNever
	case language == "Go" && strings.HasPrefix(release, "5."):
		return goRetries, ReturnExpected
	case language == "Cpp" && strings.HasPrefix(release, "5.") && release != "5.0":
		return cppRetries, ReturnExpected
	case language == "CSharp" && strings.HasPrefix(release, "5."):
		return csRetries, ReturnExpected
	}
	return r, ReturnUnknown
}

// SDKRelease returns the major and minor number of a version.
func SDKRelease(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	return major + "." + minor
}

// CannotReconnect reports whether an SDK never opens another connection by itself after losing one.
func CannotReconnect(sdk string) bool {
	_, how := retriesOf(sdk)
	return how == ReturnNever
}

// NextAttempt estimates when a process that lost its connection will try again; the time is valid only with ReturnExpected.
func NextAttempt(sdk string, lost, now domain.Time) (domain.Time, Return) {
	r, how := retriesOf(sdk)
	if how != ReturnExpected {
		return 0, how
	}
	passed := now.Sub(lost)
	for _, after := range r.after {
		if after >= passed {
			return lost.Add(after), ReturnExpected
		}
	}
	if r.every == 0 {
		return 0, ReturnOver
	}
	last := r.after[len(r.after)-1]
	return lost.Add(last + (passed-last+r.every-1)/r.every*r.every), ReturnExpected
}

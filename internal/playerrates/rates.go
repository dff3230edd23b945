// Package playerrates has the rate limits for calls of players and trusted servers: the kinds of calls with their rates, and the syntax in which
// operators change them.
package playerrates

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/rate"
)

// Kind is a kind of call with its own bucket and rate.
type Kind struct {
	Name string
	Rate rate.Limit
}

// Defaults returns the kinds of calls. The rates apply per player unless a comment says otherwise. docs/spec/fair-play.md#rate-limits.
func Defaults() []Kind {
	return []Kind{
		{"other", rate.Every(time.Second/5, 20)},
		{"login", rate.Every(10*time.Second, 5)},
		{"attach", rate.Every(6*time.Second, 5)},
		{"get-flow", rate.Every(time.Second, 5)},
		{"party", rate.Every(time.Second/2, 10)},
		{"invite", rate.Every(6*time.Second, 5)},
		{"invite-pair", rate.Every(20*time.Second, 3)}, // invites from one player to another
		{"code", rate.Every(6*time.Second, 5)},
		{"code-address", rate.Every(3*time.Second, 20)}, // wrong codes from one address
		{"enter", rate.Every(10*time.Second, 3)},
		{"leave-matchmaking", rate.Every(time.Second, 5)},
		{"accept-match", rate.Every(time.Second, 5)},
		{"details", rate.Every(2*time.Second, 3)},
		{"leave-party", rate.Every(time.Second/5, 20)},
		{"leave-game", rate.Every(time.Second/5, 20)},
		{"decline", rate.Every(time.Second/5, 20)},
		{"logout", rate.Every(time.Second/5, 20)},
		{frames, rate.Every(time.Second/20, 100)},     // of a client on its stream
		{"partner", rate.Every(time.Second/200, 400)}, // of one credential of a trusted server, or of an operator
	}
}

// Limits of the rates that operators may set.
const (
	countMax = 100_000
	burstMax = 100_000
)

const frames = "frames"

// FramesMost is the rate at which the service reads a player's stream, pings and fragments included. A higher rate of frames would have no effect.
var FramesMost = rate.PerSecond(40, 200)

var units = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}

// Parse returns the Defaults with the changes in a text such as "party=5/s:20 enter=12/m details=off", separated by spaces. A rate is
// a number of calls per second (s), minute (m) or hour (h). The optional number after the colon is the burst, by default that of
// Defaults. Parse reports every wrong entry.
func Parse(text string) ([]Kind, error) {
	all := Defaults()
	var errs []error
	said := map[string]bool{}
	for _, entry := range strings.Fields(text) {
		name, value, _ := strings.Cut(entry, "=")
		at := -1
		for i := range all {
			if all[i].Name == name {
				at = i
			}
		}
		if at < 0 {
			errs = append(errs, fmt.Errorf("%.60q: want KIND=CALLS/UNIT or KIND=CALLS/UNIT:BURST, and a KIND of %s", entry, names(all)))
			continue
		}
		if said[name] {
			errs = append(errs, fmt.Errorf("%.60q: %s is given twice", entry, name))
			continue
		}
		said[name] = true
		limit, err := parse(value, all[at].Rate.Burst)
		if err == nil && name == frames && limit != (rate.Limit{}) && (limit.Every < FramesMost.Every || limit.Burst > FramesMost.Burst) {
			err = fmt.Errorf("want at most %d/s:%d, at which the service reads a stream, or off", time.Second/FramesMost.Every, FramesMost.Burst)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%.60q: %w", entry, err))
			continue
		}
		all[at].Rate = limit
	}
	return all, errors.Join(errs...)
}

func parse(value string, burst int) (rate.Limit, error) {
	if value == "off" {
		return rate.Limit{}, nil
	}
	calls, most, bursts := strings.Cut(value, ":")
	count, unit, _ := strings.Cut(calls, "/")
	n, err := strconv.Atoi(count)
	per, known := units[unit]
	switch {
	case err != nil || n < 1 || n > countMax || !known:
		return rate.Limit{}, fmt.Errorf("want off, or 1 to %d calls in a unit of s, m or h, such as 5/s or 6/m:3", countMax)
	case bursts:
		if burst, err = strconv.Atoi(most); err != nil || burst < 1 || burst > burstMax {
			return rate.Limit{}, fmt.Errorf("after the colon: want 1 to %d calls at once", burstMax)
		}
	}
	return rate.Every(per/time.Duration(n), burst), nil
}

func names(all []Kind) string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return strings.Join(names, ", ")
}

package signin

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/rate"
)

// Reason is why a sign-in failed.
type Reason uint8

// The reasons.
const (
	Missing     Reason = iota // no credentials
	Malformed                 // credentials that cannot be read
	Clock                     // a signature whose time is too far from now
	Expired                   // a token that was valid once
	UnknownKey                // no valid access key has this id
	WrongSecret               // a valid access key with a wrong secret or signature
	WrongToken                // an invalid token, ticket or login
	Certificate               // a certificate for an access key that is not valid
	Elsewhere                 // a valid access key, from an address where it does not work

	reasons
)

var reasonNames = [reasons]string{"missing", "malformed", "clock", "expired", "unknown_key", "wrong_secret", "wrong_token", "certificate", "elsewhere"}

func (r Reason) String() string { return reasonNames[r] }

// charged reports whether a failure counts against the budgets. Other failures reveal nothing about a secret, and happen to honest
// clients again and again: one that tries without credentials first, or whose clock is wrong.
func (r Reason) charged() bool { return r >= UnknownKey }

type counter = atomic.Uint64

// Bound of the log lines for one reason at one door. Further failures are only counted.
const (
	linesMax    = 5
	linesWithin = time.Minute
)

// reasonCount counts the failures of one reason at one door.
type reasonCount struct {
	n    counter
	told rate.Lines
}

func (d *Door) count(f *Failure, now time.Time) {
	failed := &d.failed[f.Reason]
	failed.n.Add(1)
	write, silent := failed.told.Note(now)
	if !write {
		return
	}
	attrs := []any{"door", d.name, "reason", f.Reason.String(), "address", f.From}
	if f.KeyID != "" {
		attrs = append(attrs, "key", loggedKey(f.KeyID))
	}
	if f.Cause != nil {
		attrs = append(attrs, "error", f.Cause)
	}
	if silent > 0 {
		attrs = append(attrs, "unlogged", silent)
	}
	level := slog.LevelInfo
	if f.Reason.charged() {
		level = slog.LevelWarn
	}
	d.watch.config.Log.Log(context.Background(), level, "sign-in failed", attrs...)
}

// keyIDMax is the length of the longest access key id that the log shows, in bytes.
const keyIDMax = 32

// loggedKey is a key id for the log. A text that cannot be an id of ours or AWS's may be a secret in the wrong place.
func loggedKey(id string) string {
	if len(id) > keyIDMax {
		return "(not an id)"
	}
	for i := range len(id) {
		if c := id[i]; (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return "(not an id)"
		}
	}
	return id
}

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
	Clock                     // a signature of another time than now
	Expired                   // a token that was good once
	UnknownKey                // no access key of this id works
	WrongSecret               // an access key that works, with a wrong secret or signature
	WrongToken                // a token, ticket or login that is not good
	Certificate               // a certificate for an access key that does not work

	reasons
)

var reasonNames = [reasons]string{"missing", "malformed", "clock", "expired", "unknown_key", "wrong_secret", "wrong_token", "certificate"}

func (r Reason) String() string { return reasonNames[r] }

// charged reports whether a failure counts against the budgets. Others tell nothing about a secret, and happen to honest
// clients again and again: one that asks without credentials first, or whose clock is wrong.
func (r Reason) charged() bool { return r >= UnknownKey }

type counter = atomic.Uint64

// Lines of the log for one reason at one door. The rest is counted only.
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

// loggedKey is a key id as the log has it. What cannot be one of ours or AWS's may be a secret in the wrong place.
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

// Package domain has what all rooms of the core share: instants, refusals and identifiers.
//
// The core is pure. Time, randomness and new identifiers come in with a command. The same commands therefore always give the same events,
// and the simulator runs years of service in seconds.
package domain

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Time is an instant on the wall clock, in Unix milliseconds. Zero means "not yet" or "never".
type Time int64

// TimeOf truncates t to milliseconds.
func TimeOf(t time.Time) Time { return Time(t.UnixMilli()) }

// Add returns t plus d, truncated to milliseconds.
func (t Time) Add(d time.Duration) Time { return t + Time(d/time.Millisecond) }

// Sub returns the duration t-u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Millisecond }

// Std returns t as a time.Time in UTC.
func (t Time) Std() time.Time { return time.UnixMilli(int64(t)).UTC() }

// ContactTime is an instant on a clock that stands still while the service is down. Deadlines for clients that cannot reach the service
// during downtime (a reservation, an activation, a lost connection) use it, so that a restart postpones all of them at once without
// rewriting any. Zero means "no deadline".
type ContactTime int64

// Add returns t plus d, truncated to milliseconds.
func (t ContactTime) Add(d time.Duration) ContactTime { return t + ContactTime(d/time.Millisecond) }

// Refusal is the one error type of the core: the command was understood and the answer is no. Nothing has changed.
type Refusal struct {
	Reason Reason
	Detail string // for people; never parsed
	Quota  string // the caller's quota that would be exceeded; see package quota. Empty for most refusals
	Cause  error  // a more specific reason, for doors that can report it; nil for most
}

func (r *Refusal) Error() string { return r.Reason.String() + ": " + r.Detail }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Cause }

// Refuse returns a Refusal; format and args make its detail.
func Refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// IsRefused reports whether an error is, or wraps, a Refusal with one of the reasons.
func IsRefused(err error, reasons ...Reason) bool {
	r, ok := errors.AsType[*Refusal](err)
	return ok && slices.Contains(reasons, r.Reason)
}

// Reason tells why a command was refused. The set is closed: every front door has an entry for each.
type Reason uint8

const (
	Invalid          Reason = iota + 1 // a value is invalid in any state
	NotFound                           // the command names something that does not exist
	Conflict                           // it exists already, or its state contradicts the command
	WrongFleetStatus                   // the fleet's status does not allow it
	WrongGameStatus                    // the game session's status does not allow it
	NotReady                           // not yet; try again
	Full                               // no seat is free
	NoCapacity                         // no server process is free
	LimitExceeded                      // a quota of the installation or a fleet's creation policy
	TokenMismatch                      // an id that the caller chose was used before, with other parameters
	WrongPlayerState                   // the player session's status does not allow it
	NotYours                           // it belongs to another server process
	Overloaded                         // too much is waiting; try again
	TerminalRoute                      // the alias has no fleet; the detail is its message, word for word
	NodeLost                           // the cluster has given up the node that gave the command, with its connections
	Stale                              // the command is based on an outdated state and must be made again. Never leaves the engine
)

// Reasons lists all reasons, for tests of the doors' tables.
func Reasons() []Reason {
	var all []Reason
	for r := Invalid; r <= Stale; r++ {
		all = append(all, r)
	}
	return all
}

var reasonNames = [...]string{
	Invalid: "Invalid", NotFound: "NotFound", Conflict: "Conflict", WrongFleetStatus: "WrongFleetStatus",
	WrongGameStatus: "WrongGameStatus", NotReady: "NotReady", Full: "Full", NoCapacity: "NoCapacity",
	LimitExceeded: "LimitExceeded", TokenMismatch: "TokenMismatch", WrongPlayerState: "WrongPlayerState",
	NotYours: "NotYours", Overloaded: "Overloaded", TerminalRoute: "TerminalRoute", NodeLost: "NodeLost", Stale: "Stale",
}

func (r Reason) String() string {
	if int(r) < len(reasonNames) && reasonNames[r] != "" {
		return reasonNames[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

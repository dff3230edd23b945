package cell

import (
	"slices"

	"github.com/musterhq/muster/internal/domain/flow"
)

// What an event changed, for followers who count. Apply notes it in the event; the journal does not hold it, so it is not
// there when the event is read back.

// Transition is a step of a membership that somebody counts.
type Transition uint8

// The steps.
const (
	NoTransition        Transition = iota
	ConnectionLost                 // of somebody who played
	ReconnectBegun                 // somebody who was away has a new reservation
	ReconnectDone                  // and came back by it
	ReservationsExpired            // nobody came by the reservation
	TakenOver                      // another device plays on
)

// Transition is what the change of a membership was.
func (e *MembershipChanged) Transition() Transition {
	was, is := &e.was, &e.Membership
	switch {
	case was.Status == flow.MemberActive && is.Status == flow.MemberDisconnected:
		return ConnectionLost
	case (was.Status == flow.MemberDisconnected || was.Status == flow.MemberNoShow) && is.Status == flow.MemberReserved:
		return ReconnectBegun
	case was.Status == flow.MemberReserved && was.WasActive && is.Status == flow.MemberActive:
		return ReconnectDone
	case was.Status == flow.MemberReserved && (is.Status == flow.MemberDisconnected || is.Status == flow.MemberNoShow):
		return ReservationsExpired
	case was.Status == flow.MemberActive && is.Status == flow.MemberActive && !was.Next.IsZero() && is.Session == was.Next:
		return TakenOver
	}
	return NoTransition
}

// Was is the status of the game instance before the change; 0: there was none.
func (e *GameInstanceChanged) Was() flow.InstanceStatus { return e.was }

// Penalised are the scales on which the change moved the player up.
func (e *PlayerChanged) Penalised() []flow.PenaltyKind { return e.penalised }

// newPenalties are the kinds of those that were not there before, or not since then.
func newPenalties(before, after []flow.Penalty) (kinds []flow.PenaltyKind) {
	for _, x := range after {
		i := slices.IndexFunc(before, func(y flow.Penalty) bool { return y.Kind == x.Kind })
		if i < 0 || before[i].Since != x.Since {
			kinds = append(kinds, x.Kind)
		}
	}
	return kinds
}

package gameclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// How it ended, when no event comes any more.
var (
	// ErrReplaced: another device has logged in as this player and controls it now.
	ErrReplaced = errors.New("another device has logged in as this player")

	// ErrLoggedOut: the login has ended, by Logout, by time or by an operator. Login again.
	ErrLoggedOut = errors.New("the login has ended")

	// ErrClosed: Close was called.
	ErrClosed = errors.New("the player was closed")
)

// Action is what the service advises after a refusal.
type Action string

// The actions.
const (
	ActionLogin Action = "LOGIN" // log in again
	ActionRetry Action = "RETRY" // try again after RetryAfter
	ActionSync  Action = "SYNC"  // the client's picture is old: Snapshot shows how things are
	ActionNone  Action = "NONE"  // nothing: it is so
)

// FlowError is a call of a Player that was not carried out. Code is what programs act upon, such as PLAYER_IN_GAME; one that a
// game does not know it treats by the Action. Without an answer Code is empty and Cause says why.
//
// errors.Is knows the kinds: ErrUnauthorized, ErrNotFound, ErrFull (PARTY_FULL, GAME_FULL), ErrWrongStatus (what the player is
// in does not allow it), ErrUnavailable (no answer, too many calls, maintenance), ErrRefused, and ErrReplaced when another
// device has taken over.
type FlowError struct {
	Call       string // "Party.CreateParty"
	Status     int    // of HTTP; 0 without an answer
	Code       string
	Message    string // for people
	Action     Action
	RetryAfter time.Duration // when it is worth another try; 0: unknown
	Details    ErrorDetails
	Flow       *Flow // how the player stands, if the service said so
	Cause      error // without an answer
}

// ErrorDetails says more about a refusal.
type ErrorDetails struct {
	Players        []string `json:"players"`          // whom the code speaks of
	CanDecline     bool     `json:"can_decline"`      // of PLAYER_IN_GAME: DeclineReconnect would be allowed
	GameInstanceID string   `json:"game_instance_id"` // of PLAYER_IN_GAME and others
	Lock           *Lock    `json:"lock"`             // of MATCHMAKING_LOCKED
	Position       int      `json:"position"`         // of LOGIN_QUEUED
}

func (e *FlowError) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("gameclient: %s: %v: %v", e.Call, e.kind(), e.Cause)
	}
	return fmt.Sprintf("gameclient: %s: %s: %s", e.Call, e.Code, e.Message)
}

// Unwrap makes errors.Is find the kind, and the context's error.
func (e *FlowError) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.kind()}
	}
	return []error{e.kind(), e.Cause}
}

func (e *FlowError) kind() error {
	switch {
	case e.Code == "SESSION_REPLACED":
		return ErrReplaced
	case strings.HasSuffix(e.Code, "_FULL"):
		return ErrFull
	}
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return ErrUnauthorized
	case http.StatusNotFound:
		return ErrNotFound
	case http.StatusConflict, http.StatusGone, http.StatusLocked:
		return ErrWrongStatus
	case 0, http.StatusTooManyRequests:
		return ErrUnavailable
	}
	if e.Status >= http.StatusInternalServerError {
		return ErrUnavailable
	}
	return ErrRefused
}

func noAnswer(call string, cause error) error {
	return &FlowError{Call: call, Action: ActionRetry, Cause: cause}
}

// refusedCall reads an answer that is a refusal.
func refusedCall(call string, status int, body []byte) error {
	var said struct {
		Code       string       `json:"code"`
		Message    string       `json:"message"`
		Details    ErrorDetails `json:"details"`
		RetryAfter int64        `json:"retry_after_ms"`
		Action     Action       `json:"action"`
		Flow       *Flow        `json:"flow"`
	}
	if err := json.Unmarshal(body, &said); err != nil || said.Code == "" { // a proxy, or no Muster at all
		e := &FlowError{Call: call, Status: status, Action: ActionNone, Cause: fmt.Errorf("status %d: %.200s", status, body)}
		if status >= http.StatusInternalServerError {
			e.Action = ActionRetry
		}
		return e
	}
	return &FlowError{
		Call: call, Status: status, Code: said.Code, Message: said.Message, Action: said.Action,
		RetryAfter: time.Duration(said.RetryAfter) * time.Millisecond, Details: said.Details, Flow: said.Flow,
	}
}

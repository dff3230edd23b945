package gameclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The errors after which no more events can come.
var (
	// ErrReplaced: another device has logged in as this player and controls it now.
	ErrReplaced = errors.New("another device has logged in as this player")

	// ErrLoggedOut: the login has expired, or Logout or an operator has ended it. Log in again.
	ErrLoggedOut = errors.New("the login has ended")

	// ErrClosed: Close was called.
	ErrClosed = errors.New("the player was closed")
)

// Action is the service's advice after a refusal.
type Action string

// The actions.
const (
	ActionLogin Action = "LOGIN" // log in again
	ActionRetry Action = "RETRY" // try again after RetryAfter
	ActionSync  Action = "SYNC"  // the client's state is out of date: call Snapshot
	ActionNone  Action = "NONE"  // nothing helps now
)

// FlowError is a call of a Player that was refused or got no answer. Programs decide by the Code, such as PLAYER_IN_GAME, and for
// codes that they do not know by the Action. Without an answer Code is empty, and Cause says why.
//
// errors.Is finds the kinds: ErrUnauthorized, ErrNotFound, ErrFull (PARTY_FULL, GAME_FULL), ErrWrongStatus (the player's party,
// search or game does not allow the call), ErrUnavailable (no answer, too many calls, maintenance), ErrRefused, and ErrReplaced
// if another device has logged in.
type FlowError struct {
	Call       string        // "Party.CreateParty"
	Status     int           // of HTTP; 0 without an answer
	Code       string        // for programs; empty without an answer
	Message    string        // for people
	Action     Action        // advice; a service may know more of them
	RetryAfter time.Duration // how long to wait before another attempt; 0: unknown
	Details    ErrorDetails  // more about some codes
	Flow       *Flow         // the player's state; nil if the answer has none
	Cause      error         // why there was no answer; otherwise nil
}

// ErrorDetails contains more about a refusal. Fields that do not belong to its code are zero.
type ErrorDetails struct {
	Players        []string `json:"players"`          // the ids of the players that caused the refusal
	CanDecline     bool     `json:"can_decline"`      // of PLAYER_IN_GAME: DeclineReconnect is allowed
	GameInstanceID string   `json:"game_instance_id"` // of PLAYER_IN_GAME and others
	Lock           *Lock    `json:"lock"`             // of MATCHMAKING_LOCKED
	Position       int      `json:"position"`         // of LOGIN_QUEUED, from 1
}

func (e *FlowError) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("gameclient: %s: %v: %v", e.Call, e.kind(), e.Cause)
	}
	return fmt.Sprintf("gameclient: %s: %s: %s", e.Call, e.Code, e.Message)
}

// Unwrap lets errors.Is find the kind, and the context's error.
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

// passing reports whether the service did not answer, or cannot at the moment. A proxy says so for it while it is being restarted.
func (e *FlowError) passing() bool {
	switch e.Status {
	case 0:
		return true
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return e.Code == "" || e.Code == "UNAVAILABLE"
	}
	return false
}

func noAnswer(call string, cause error) error {
	return &FlowError{Call: call, Action: ActionRetry, Cause: cause}
}

// refusedCall returns the error for an answer that is a refusal.
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

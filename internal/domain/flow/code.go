package flow

import (
	"errors"

	"github.com/musterhq/muster/internal/domain"
)

// Code is the player API's name for a refusal.
type Code string

// The codes that the core answers with.
const (
	InvalidArgument          Code = "INVALID_ARGUMENT"
	CannotTargetSelf         Code = "CANNOT_TARGET_SELF"
	Unauthenticated          Code = "UNAUTHENTICATED"
	SessionNotFound          Code = "SESSION_NOT_FOUND"
	TokenExpired             Code = "TOKEN_EXPIRED"
	NotLeader                Code = "NOT_LEADER"
	KickedNeedsInvite        Code = "KICKED_NEEDS_INVITE"
	JoinNotAllowed           Code = "JOIN_NOT_ALLOWED"
	PermissionDenied         Code = "PERMISSION_DENIED"
	PlayerBanned             Code = "PLAYER_BANNED"
	PartyNotFound            Code = "PARTY_NOT_FOUND"
	InviteNotFound           Code = "INVITE_NOT_FOUND"
	TargetNotInParty         Code = "TARGET_NOT_IN_PARTY"
	QueueNotFound            Code = "QUEUE_NOT_FOUND"
	GameInstanceNotFound     Code = "GAME_INSTANCE_NOT_FOUND"
	PlayerNotFound           Code = "PLAYER_NOT_FOUND"
	SessionReplaced          Code = "SESSION_REPLACED"
	AlreadyLoggedIn          Code = "ALREADY_LOGGED_IN"
	RevConflict              Code = "REV_CONFLICT"
	NotInParty               Code = "NOT_IN_PARTY"
	AlreadyInParty           Code = "ALREADY_IN_PARTY"
	PartyFull                Code = "PARTY_FULL"
	PartyClosed              Code = "PARTY_CLOSED"
	PartyInMatchmaking       Code = "PARTY_IN_MATCHMAKING"
	PartyChangeLocked        Code = "PARTY_CHANGE_LOCKED"
	PartyVersionMismatch     Code = "PARTY_VERSION_MISMATCH"
	ClientVersionUnsupported Code = "CLIENT_VERSION_UNSUPPORTED"
	PlayersNotReady          Code = "PLAYERS_NOT_READY"
	MembersOffline           Code = "MEMBER_OFFLINE"
	PartyTooLarge            Code = "PARTY_TOO_LARGE"
	InMatchmaking            Code = "IN_MATCHMAKING"
	NotInMatchmaking         Code = "NOT_IN_MATCHMAKING"
	AlreadyMatched           Code = "ALREADY_MATCHED"
	AcceptanceNotOpen        Code = "ACCEPTANCE_NOT_OPEN"
	PlayerInGame             Code = "PLAYER_IN_GAME"
	NotInGame                Code = "NOT_IN_GAME"
	HostNotReady             Code = "HOST_NOT_READY"
	NotDisconnected          Code = "NOT_DISCONNECTED"
	CannotDeclineReconnect   Code = "CANNOT_DECLINE_RECONNECT"
	LeaveNotAllowed          Code = "LEAVE_NOT_ALLOWED"
	GameIsEnding             Code = "GAME_ENDING"
	GameFull                 Code = "GAME_FULL"
	InviteExpired            Code = "INVITE_EXPIRED"
	GameHasEnded             Code = "GAME_ENDED"
	MatchmakingLocked        Code = "MATCHMAKING_LOCKED"
	RateLimited              Code = "RATE_LIMITED"
	LoginFlapping            Code = "LOGIN_FLAPPING"
	QueueIsClosed            Code = "QUEUE_CLOSED"
	Unavailable              Code = "UNAVAILABLE"
	InvalidToken             Code = "INVALID_TOKEN" // of a connection token, to game servers
	WrongGame                Code = "WRONG_GAME"
	Superseded               Code = "SUPERSEDED"
)

// Refusal describes in the terms of the player API why a player's call was refused. It is the cause of a
// domain.Refusal.
type Refusal struct {
	Code      Code
	Players   []string // the players that the code refers to
	Decliners []string // PLAYER_IN_GAME: those of Players who may decline to return to their game
	Instance  InstanceID
	Lock      *Penalty    // MATCHMAKING_LOCKED
	Until     domain.Time // when to try again; 0: unknown
	Faults    Faults      // INVALID_ARGUMENT of a document: all mistakes in it
}

func (r *Refusal) Error() string { return string(r.Code) }

// reasons maps each code to the closest domain.Reason, for callers that do not know the codes.
var reasons = map[Code]domain.Reason{
	InvalidArgument: domain.Invalid, CannotTargetSelf: domain.Invalid,
	PartyNotFound: domain.NotFound, InviteNotFound: domain.NotFound, TargetNotInParty: domain.NotFound, QueueNotFound: domain.NotFound,
	GameInstanceNotFound: domain.NotFound, PlayerNotFound: domain.NotFound, SessionNotFound: domain.NotFound,
	PartyFull: domain.Full, GameFull: domain.Full, HostNotReady: domain.NotReady, RateLimited: domain.LimitExceeded,
	LoginFlapping: domain.LimitExceeded,
}

// Refuse returns a refusal with a code of the player API. format and args make its detail, which is for people.
func Refuse(r Refusal, format string, args ...any) *domain.Refusal {
	reason, ok := reasons[r.Code]
	if !ok {
		reason = domain.Conflict
	}
	refusal := domain.Refuse(reason, format, args...)
	refusal.Cause = &r
	return refusal
}

// CodeOf returns the code of an error of the core; Unavailable if it has none.
func CodeOf(err error) Code {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Code
	}
	return Unavailable
}

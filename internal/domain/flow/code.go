package flow

import (
	"errors"

	"github.com/musterhq/muster/internal/domain"
)

// Code is how the player API names a refusal.
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

// Refusal is why a player's wish was refused, in the words of the player API. It is the cause of a domain.Refusal.
type Refusal struct {
	Code      Code
	Players   []string // whom the code speaks of
	Decliners []string // PLAYER_IN_GAME: those of them who may decline to come back
	Instance  InstanceID
	Lock      *Penalty    // MATCHMAKING_LOCKED
	Until     domain.Time // when it is worth another try; 0: not known
	Faults    Faults      // INVALID_ARGUMENT of a document: all that is wrong with it
}

func (r *Refusal) Error() string { return string(r.Code) }

// reasons are the nearest of the core's reasons, for those who do not know the codes.
var reasons = map[Code]domain.Reason{
	InvalidArgument: domain.Invalid, CannotTargetSelf: domain.Invalid,
	PartyNotFound: domain.NotFound, InviteNotFound: domain.NotFound, TargetNotInParty: domain.NotFound, QueueNotFound: domain.NotFound,
	GameInstanceNotFound: domain.NotFound, PlayerNotFound: domain.NotFound, SessionNotFound: domain.NotFound,
	PartyFull: domain.Full, GameFull: domain.Full, HostNotReady: domain.NotReady, RateLimited: domain.LimitExceeded,
	LoginFlapping: domain.LimitExceeded,
}

// Refuse makes a refusal with a code of the player API; what remains of it is for people.
func Refuse(r Refusal, format string, args ...any) *domain.Refusal {
	reason, ok := reasons[r.Code]
	if !ok {
		reason = domain.Conflict
	}
	refusal := domain.Refuse(reason, format, args...)
	refusal.Cause = &r
	return refusal
}

// CodeOf is the code of an error of the core; Unavailable when it has none.
func CodeOf(err error) Code {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Code
	}
	return Unavailable
}

package problem

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// Problem is the body of every answer that is a refusal.
type Problem struct {
	status  int
	headers http.Header // besides those that follow from the fields

	Code         Code           `json:"code"`
	Message      string         `json:"message" doc:"For people; never parsed."`
	Details      Details        `json:"details" doc:"Which fields it has depends on the code; often none."`
	RetryAfterMS *int64         `json:"retry_after_ms,omitempty" doc:"When it is worth another try."`
	Action       string         `json:"action" enum:"LOGIN,RETRY,SYNC,NONE" doc:"What the client should do: log in again, try again later, read the flow, or nothing."`
	Flow         *objects.Stand `json:"flow,omitempty" doc:"The player's flow, if the player is known."`
}

// Details has more information about a refusal.
type Details struct {
	Players        []string      `json:"players,omitempty" doc:"The players whom the code is about."`
	CanDecline     *bool         `json:"can_decline,omitempty" doc:"With PLAYER_IN_GAME: whether all named players may decline their game."`
	InGame         []InGame      `json:"in_game,omitempty" doc:"With PLAYER_IN_GAME: each of these players."`
	GameInstanceID string        `json:"game_instance_id,omitempty"`
	Lock           *objects.Lock `json:"lock,omitempty" doc:"With MATCHMAKING_LOCKED."`
	Position       int           `json:"position,omitempty" doc:"With LOGIN_QUEUED: the place in the login queue."`
	Fields         []Field       `json:"fields,omitempty" doc:"With INVALID_ARGUMENT: the errors of the request."`
	Hook           string        `json:"hook,omitempty" doc:"The hook, if the studio's backend refused the call or did not answer."`
	HookMessage    string        `json:"hook_message,omitempty" doc:"The message of the studio's backend to the player."`
}

// InGame is one of the players who are in a game.
type InGame struct {
	PlayerID   string `json:"player_id"`
	CanDecline bool   `json:"can_decline" doc:"Whether this player may decline to come back to the game."`
}

// Field is an error in a request.
type Field struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func (p *Problem) Error() string { return string(p.Code) + ": " + p.Message }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.status }

// challenge is in every answer with status 401, as RFC 9110, 15.5.2 requires: all realms take bearer tokens. Basic, which partners may use as well, is
// not offered, because browsers would ask for a password.
const challenge = `Bearer realm="muster"`

// GetHeaders returns the headers of the answer. Retry-After is for proxies and libraries, in whole seconds.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	maps.Copy(h, p.headers)
	if p.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", challenge)
	}
	if p.RetryAfterMS != nil {
		h.Set("Retry-After", strconv.FormatInt((*p.RetryAfterMS+999)/1000, 10))
	}
	return h
}

// The actions that an answer asks of the client.
const (
	actionLogin = "LOGIN"
	actionRetry = "RETRY"
	actionSync  = "SYNC"
	actionNone  = "NONE"
)

// Only this door returns these codes.
const (
	LoginQueued = flow.Code("LOGIN_QUEUED")
	Maintenance = flow.Code("MAINTENANCE")
	Lapsed      = flow.Code("SUBSCRIPTION_LAPSED")
)

type spelling struct {
	status  int
	action  string
	meaning string // a sentence for the documents
}

// spellings is the table of docs/spec/player-api.md#errors. SYNC is for calls that only a client with outdated state makes.
var spellings = map[flow.Code]spelling{
	flow.InvalidArgument:          {400, actionNone, "A field, a header or the body is invalid; the message says which, and what is expected. If the call as such is wrong, details.fields names each field."},
	flow.CannotTargetSelf:         {400, actionNone, "The call is about another player, and names the caller."},
	flow.Unauthenticated:          {401, actionLogin, "The token, or what was shown at the login, is not valid."},
	flow.SessionNotFound:          {401, actionLogin, "The login session has ended."},
	flow.TokenExpired:             {401, actionLogin, "The access token was replaced by a newer one."},
	flow.PermissionDenied:         {403, actionNone, "The credential is valid, and not for this call."},
	flow.NotLeader:                {403, actionSync, "Only a leader of the party may do that."},
	flow.KickedNeedsInvite:        {403, actionNone, "The player was kicked from this party and needs a new invite."},
	flow.JoinNotAllowed:           {403, actionNone, "The rules of the service or the studio do not let the player in."},
	flow.PlayerBanned:             {403, actionNone, "The player is banned."},
	flow.PartyNotFound:            {404, actionNone, "There is no such party, or no party with this code."},
	flow.InviteNotFound:           {404, actionSync, "There is no such invite, or not for this player."},
	flow.TargetNotInParty:         {404, actionSync, "The player who is named is not in the party."},
	flow.QueueNotFound:            {404, actionNone, "There is no such queue, or players may not enter it."},
	flow.GameInstanceNotFound:     {404, actionNone, "There is no such game instance, or it ended long ago."},
	flow.PlayerNotFound:           {404, actionNone, "The player is unknown."},
	flow.SessionReplaced:          {409, actionNone, "The player has logged in again, and this login session no longer controls the player."},
	flow.AlreadyLoggedIn:          {409, actionNone, "The player is online on another device, and a second login is not allowed."},
	flow.RevConflict:              {409, actionSync, "The flow record has another revision than X-If-Rev."},
	flow.NotInParty:               {409, actionSync, "The player is in no party."},
	flow.AlreadyInParty:           {409, actionSync, "The player is already in a party, and on_existing is FAIL, or it is this party."},
	flow.PartyFull:                {409, actionNone, "The party is full."},
	flow.PartyClosed:              {409, actionNone, "The party takes no members this way."},
	flow.PartyInMatchmaking:       {409, actionNone, "The party searches, and takes no members meanwhile."},
	flow.PartyChangeLocked:        {409, actionNone, "Parties do not change while their members are in a game."},
	flow.PartyVersionMismatch:     {409, actionNone, "The clients of the members have different versions."},
	flow.ClientVersionUnsupported: {409, actionNone, "The queue does not take this version of the client."},
	flow.PlayersNotReady:          {409, actionNone, "The members in details.players are not ready."},
	flow.MembersOffline:           {409, actionNone, "The members in details.players are offline."},
	flow.PartyTooLarge:            {409, actionNone, "The queue takes no party of this size."},
	flow.InMatchmaking:            {409, actionSync, "The player searches; the search has to end first."},
	flow.NotInMatchmaking:         {409, actionSync, "The player does not search."},
	flow.AlreadyMatched:           {409, actionSync, "A match was found before: the search can no longer be ended."},
	flow.AcceptanceNotOpen:        {409, actionSync, "There is no match to accept or decline."},
	flow.PlayerInGame:             {409, actionSync, "The players in details.players are in a game."},
	flow.NotInGame:                {409, actionSync, "The player is not in this game, or in none."},
	flow.HostNotReady:             {409, actionRetry, "The game has no host yet."},
	flow.NotDisconnected:          {409, actionSync, "The player has not lost the connection to the game."},
	flow.CannotDeclineReconnect:   {409, actionNone, "The rules of the game do not let the player decline to come back."},
	flow.LeaveNotAllowed:          {409, actionNone, "The rules of the game do not let the player leave."},
	flow.GameIsEnding:             {409, actionNone, "The host of the game is about to end."},
	flow.GameFull:                 {409, actionSync, "The game has no free seat."},
	flow.InvalidToken:             {409, actionNone, "The connection token, or the player session, is not valid. To game servers."},
	flow.WrongGame:                {409, actionNone, "The connection token is for another game. To game servers."},
	flow.Superseded:               {409, actionNone, "The player has asked for newer connection details. To game servers."},
	flow.InviteExpired:            {410, actionSync, "The invite is too old."},
	flow.GameHasEnded:             {410, actionSync, "The game is over."},
	Lapsed:                        {410, actionSync, "The subscription has lapsed; Events.Subscribe with the same X-Request-Id resumes it."},
	flow.MatchmakingLocked:        {423, actionRetry, "A lock keeps a member from searching until its end; see details.lock."},
	flow.RateLimited:              {429, actionRetry, "Too many calls of this kind, or the limit of records is reached; retry_after_ms says when to try again, if that is known."},
	LoginQueued:                   {429, actionRetry, "Too many players are logging in; details.position is the place in the login queue."},
	flow.LoginFlapping:            {429, actionRetry, "The player has logged in too often in a short time."},
	flow.Unavailable:              {503, actionRetry, "The service cannot answer now."},
	flow.QueueIsClosed:            {503, actionNone, "The queue is closed."},
	Maintenance:                   {503, actionRetry, "The service takes no players for a while."},
}

// New returns a Problem with only a code and a text.
func New(code flow.Code, format string, args ...any) *Problem {
	s, ok := spellings[code]
	if !ok {
		s = spelling{status: http.StatusConflict, action: actionNone}
	}
	return &Problem{status: s.status, Code: Code(code), Action: s.action, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns the Problem of an invalid field, whose name details.fields has as well.
func Invalid(field, format string, args ...any) *Problem {
	text := fmt.Sprintf(format, args...)
	p := New(flow.InvalidArgument, "%s: %s", field, text)
	p.Details.Fields = []Field{{field, text}}
	return p
}

// Later makes a Problem with the time after which to try again.
func Later(code flow.Code, wait time.Duration, format string, args ...any) *Problem {
	p := New(code, format, args...)
	p.RetryAfterMS = new(max(wait.Milliseconds(), 1))
	return p
}

// WithStatus changes the HTTP status of a problem, and adds headers to its answer.
func (p *Problem) WithStatus(status int, headers http.Header) *Problem {
	p.status, p.headers = status, headers
	return p
}

// Mark counts a refusal that operators intend as one, although its status is that of a failure of the service.
func (p *Problem) Mark(w http.ResponseWriter) {
	if p.Code == Code(flow.QueueIsClosed) || p.Code == Code(Maintenance) {
		callstats.Mark(w, callstats.Refused)
	}
}

// Write answers a request with a problem.
func Write(w http.ResponseWriter, p *Problem) {
	p.Mark(w)
	body, _ := json.Marshal(p)
	w.Header().Set("Cache-Control", "no-store")
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	WriteJSON(w, "application/json", p.status, body)
}

// WriteJSON answers a request with a document.
func WriteJSON(w http.ResponseWriter, contentType string, status int, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a failure means that the client is gone
}

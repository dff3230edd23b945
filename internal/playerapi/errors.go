package playerapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// Problem is the body of every answer that is a refusal.
type Problem struct {
	status  int
	headers http.Header // beside those that follow from the fields

	Code         Code    `json:"code"`
	Message      string  `json:"message" doc:"For people; never parsed."`
	Details      Details `json:"details" doc:"Which fields it has depends on the code; often none."`
	RetryAfterMS *int64  `json:"retry_after_ms,omitempty" doc:"When it is worth another try."`
	Action       string  `json:"action" enum:"LOGIN,RETRY,SYNC,NONE" doc:"What a client does about it: log in again, try again later, ask for the flow, or nothing."`
	Flow         *Stand  `json:"flow,omitempty" doc:"How the player stands, when it is known who asks."`
}

// Details says more about a refusal.
type Details struct {
	Players        []string `json:"players,omitempty" doc:"Whom the code speaks of."`
	CanDecline     *bool    `json:"can_decline,omitempty" doc:"Of PLAYER_IN_GAME: whether all who are named may decline their game."`
	InGame         []InGame `json:"in_game,omitempty" doc:"Of PLAYER_IN_GAME: each of them."`
	GameInstanceID string   `json:"game_instance_id,omitempty"`
	Lock           *Lock    `json:"lock,omitempty" doc:"Of MATCHMAKING_LOCKED."`
	Position       int      `json:"position,omitempty" doc:"Of LOGIN_QUEUED: place in the line."`
	Fields         []Field  `json:"fields,omitempty" doc:"Of INVALID_ARGUMENT: what is wrong with the request."`
	Hook           string   `json:"hook,omitempty" doc:"Of what the studio's backend did not allow, or could not be asked about."`
	HookMessage    string   `json:"hook_message,omitempty" doc:"What the studio's backend says to the player."`
}

// InGame is one of the players who are in a game.
type InGame struct {
	PlayerID   string `json:"player_id"`
	CanDecline bool   `json:"can_decline" doc:"Whether this player may decline to come back to the game."`
}

// Field is one thing that is wrong with a request.
type Field struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func (p *Problem) Error() string { return string(p.Code) + ": " + p.Message }

// GetStatus is the HTTP status.
func (p *Problem) GetStatus() int { return p.status }

// GetHeaders are the headers of the answer: when to try again is there for proxies and libraries as well, in whole seconds.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	maps.Copy(h, p.headers)
	if p.RetryAfterMS != nil {
		h.Set("Retry-After", strconv.FormatInt((*p.RetryAfterMS+999)/1000, 10))
	}
	return h
}

// The actions.
const (
	actionLogin = "LOGIN"
	actionRetry = "RETRY"
	actionSync  = "SYNC"
	actionNone  = "NONE"
)

// Codes that only this door answers with.
const (
	codeLoginQueued = flow.Code("LOGIN_QUEUED")
	codeMaintenance = flow.Code("MAINTENANCE")
	codeLapsed      = flow.Code("SUBSCRIPTION_LAPSED")
)

type spelling struct {
	status  int
	action  string
	meaning string // a sentence for the documents
}

// spellings is the table of docs/spec/player-api.md#errors. SYNC is for what only a client with an old picture would ask.
var spellings = map[flow.Code]spelling{
	flow.InvalidArgument:          {400, actionNone, "A field, a header or the body is not what the call takes; details.fields says which and what is wanted."},
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
	flow.PlayerNotFound:           {404, actionNone, "Nothing is known of the player."},
	flow.SessionReplaced:          {409, actionNone, "The player has logged in again, and this login session controls the player no more."},
	flow.AlreadyLoggedIn:          {409, actionNone, "The player is online on another device, and a second login is not allowed."},
	flow.RevConflict:              {409, actionSync, "The flow record has another revision than X-If-Rev."},
	flow.NotInParty:               {409, actionSync, "The player is in no party."},
	flow.AlreadyInParty:           {409, actionSync, "The player is in a party already, and on_existing is FAIL, or it is this party."},
	flow.PartyFull:                {409, actionNone, "The party has as many members as it may have."},
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
	flow.AlreadyMatched:           {409, actionSync, "A match was found before: the search cannot end any more."},
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
	codeLapsed:                    {410, actionSync, "The subscription has lapsed; Events.Subscribe with the same X-Request-Id lets it go on."},
	flow.MatchmakingLocked:        {423, actionRetry, "A lock keeps a member from searching until its end; see details.lock."},
	flow.RateLimited:              {429, actionRetry, "Too many calls of this kind, or as many records as there may be; retry_after_ms says when to try again, if that is known."},
	codeLoginQueued:               {429, actionRetry, "Too many players log in now; details.position is the place in the line."},
	flow.LoginFlapping:            {429, actionRetry, "The player has logged in too often in a short time."},
	flow.Unavailable:              {503, actionRetry, "The service cannot answer now."},
	flow.QueueIsClosed:            {503, actionNone, "The queue is closed."},
	codeMaintenance:               {503, actionRetry, "The service takes no players for a while."},
}

// nearest are the codes for refusals of the core that carry none: those of placements and of the engine itself.
var nearest = map[domain.Reason]flow.Code{
	domain.Invalid: flow.InvalidArgument, domain.NotFound: flow.QueueNotFound, domain.WrongPlayerState: flow.InvalidToken,
	domain.Conflict: flow.InvalidArgument, domain.TokenMismatch: flow.InvalidArgument, domain.LimitExceeded: flow.RateLimited,
	domain.TerminalRoute: flow.QueueNotFound,
}

// refusal makes a Problem with nothing but a code and a text.
func refusal(code flow.Code, format string, args ...any) *Problem {
	s, ok := spellings[code]
	if !ok {
		s = spelling{status: http.StatusConflict, action: actionNone}
	}
	return &Problem{status: s.status, Code: Code(code), Action: s.action, Message: fmt.Sprintf(format, args...)}
}

// later makes a Problem that says when to try again.
func later(code flow.Code, wait time.Duration, format string, args ...any) *Problem {
	p := refusal(code, format, args...)
	ms := max(wait.Milliseconds(), 1)
	p.RetryAfterMS = &ms
	return p
}

// spell translates an error for its caller. What is no refusal goes to the log, never to the caller.
func (d *Door) spell(ctx context.Context, err error, player string) *Problem {
	p, ok := errors.AsType[*Problem](err)
	if !ok {
		p = d.spellHook(err)
	}
	if p == nil {
		p = d.spellRefusal(err)
	}
	if player != "" && p.Flow == nil {
		p.Flow = d.standOf(ctx, player)
	}
	return p
}

// again is how long a client waits that cannot know better.
const again = time.Second

func (d *Door) spellRefusal(err error) *Problem {
	refused, ok := errors.AsType[*domain.Refusal](err)
	if !ok {
		if !errors.Is(err, engine.ErrStopped) && !errors.Is(err, context.Canceled) {
			d.log.Error("player flow request failed", "err", err)
		}
		return later(flow.Unavailable, again, "the service cannot answer now")
	}
	why, ok := errors.AsType[*flow.Refusal](err)
	if !ok {
		code, ok := nearest[refused.Reason]
		if !ok {
			return later(flow.Unavailable, again, "%s", refused.Detail)
		}
		return refusal(code, "%s", refused.Detail)
	}
	p := refusal(why.Code, "%s", refused.Detail)
	details := Details{Players: why.Players}
	if len(why.Faults) > 0 {
		details.Fields = fieldsOf(why.Faults)
	}
	if why.Code == flow.PlayerInGame {
		all := len(why.Decliners) == len(why.Players)
		details.CanDecline = &all
		for _, id := range why.Players {
			details.InGame = append(details.InGame, InGame{id, slices.Contains(why.Decliners, id)})
		}
	}
	if !why.Instance.IsZero() {
		details.GameInstanceID = objects.GameInstanceID(why.Instance)
	}
	until := why.Until
	if why.Lock != nil {
		lock := lockOf(why.Lock)
		details.Lock, until = &lock, why.Lock.Until
	}
	p.Details = details
	switch {
	case until != 0:
		ms := max(until.Sub(domain.TimeOf(d.engine.Now())).Milliseconds(), 1)
		p.RetryAfterMS = &ms
	case p.Action == actionRetry:
		ms := again.Milliseconds()
		p.RetryAfterMS = &ms
	}
	return p
}

// standOf is how a player stands now; nil when nothing is known.
func (d *Door) standOf(ctx context.Context, player string) *Stand {
	var stand *Stand
	_ = d.engine.Read(ctx, func(v *cell.View) error { // the answer goes out without it
		if s, ok := v.Stand(player); ok {
			x := standOf(s)
			stand = &x
		}
		return nil
	})
	return stand
}

// setUpHuma makes huma speak in Problems, also where a request does not fit its declaration, and lets no list be null. It
// has no other place for that than its package.
var setUpHuma = sync.OnceFunc(func() {
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true // PLAYER_ID is not player_id, as an unknown field is none that is known
	huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
		p := problemOf(status, message, errs)
		if ctx != nil {
			if who, ok := ctx.Context().Value(whoKey{}).(*who); ok && who.player != "" {
				p.Flow = who.door.standOf(ctx.Context(), who.player)
			}
		}
		return p
	}
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return problemOf(status, message, errs)
	}
})

func problemOf(status int, message string, errs []error) *Problem {
	if status >= http.StatusInternalServerError {
		return later(flow.Unavailable, again, "the service cannot answer now")
	}
	p := refusal(flow.InvalidArgument, "%s", message)
	switch status {
	case http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusNotAcceptable:
		p.status = status
	}
	var said []string
	for _, err := range errs {
		if err == nil {
			continue
		}
		field := Field{Field: "body", Message: err.Error()}
		if x, ok := err.(huma.ErrorDetailer); ok {
			detail := x.ErrorDetail()
			field = Field{Field: strings.TrimPrefix(detail.Location, "body."), Message: detail.Message}
			if detail.Location != "body" { // its value would be the whole request
				field.Message = shown(detail.Value) + field.Message
			}
		}
		p.Details.Fields = append(p.Details.Fields, field)
		said = append(said, field.Field+": "+field.Message)
	}
	if len(said) > 0 {
		p.Message = strings.Join(said, "; ")
	}
	return p
}

// shownMax is the longest text that an answer repeats.
const shownMax = 60

// shown is a wrong value as the answer repeats it, in front of what is wanted. Long texts, which may be tokens, objects and
// lists are not.
func shown(value any) string {
	switch x := value.(type) {
	case string:
		if len(x) <= shownMax {
			return strconv.Quote(x) + ", "
		}
		return fmt.Sprintf("%d characters, ", utf8.RuneCountInString(x))
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64) + ", "
	case bool:
		return strconv.FormatBool(x) + ", "
	}
	return ""
}

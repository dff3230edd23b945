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
)

// Problem is the body of every answer that is a refusal.
type Problem struct {
	status  int
	headers http.Header // beside those that follow from the fields

	Code         string  `json:"code" doc:"What programs act upon. Clients treat one that they do not know by its HTTP status."`
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

func (p *Problem) Error() string { return p.Code + ": " + p.Message }

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
	status int
	action string
}

// spellings is the table of docs/spec/player-api.md#errors. SYNC is for what only a client with an old picture would ask.
var spellings = map[flow.Code]spelling{
	flow.InvalidArgument:          {400, actionNone},
	flow.CannotTargetSelf:         {400, actionNone},
	flow.Unauthenticated:          {401, actionLogin},
	flow.SessionNotFound:          {401, actionLogin},
	flow.TokenExpired:             {401, actionLogin},
	flow.PermissionDenied:         {403, actionNone},
	flow.NotLeader:                {403, actionSync},
	flow.KickedNeedsInvite:        {403, actionNone},
	flow.JoinNotAllowed:           {403, actionNone},
	flow.PlayerBanned:             {403, actionNone},
	flow.PartyNotFound:            {404, actionNone},
	flow.InviteNotFound:           {404, actionSync},
	flow.TargetNotInParty:         {404, actionSync},
	flow.QueueNotFound:            {404, actionNone},
	flow.GameInstanceNotFound:     {404, actionNone},
	flow.PlayerNotFound:           {404, actionNone},
	flow.SessionReplaced:          {409, actionNone},
	flow.AlreadyLoggedIn:          {409, actionNone},
	flow.RevConflict:              {409, actionSync},
	flow.NotInParty:               {409, actionSync},
	flow.AlreadyInParty:           {409, actionSync},
	flow.PartyFull:                {409, actionNone},
	flow.PartyClosed:              {409, actionNone},
	flow.PartyInMatchmaking:       {409, actionNone},
	flow.PartyChangeLocked:        {409, actionNone},
	flow.PartyVersionMismatch:     {409, actionNone},
	flow.ClientVersionUnsupported: {409, actionNone},
	flow.PlayersNotReady:          {409, actionNone},
	flow.MembersOffline:           {409, actionNone},
	flow.PartyTooLarge:            {409, actionNone},
	flow.InMatchmaking:            {409, actionSync},
	flow.NotInMatchmaking:         {409, actionSync},
	flow.AlreadyMatched:           {409, actionSync},
	flow.AcceptanceNotOpen:        {409, actionSync},
	flow.PlayerInGame:             {409, actionSync},
	flow.NotInGame:                {409, actionSync},
	flow.HostNotReady:             {409, actionRetry},
	flow.NotDisconnected:          {409, actionSync},
	flow.CannotDeclineReconnect:   {409, actionNone},
	flow.LeaveNotAllowed:          {409, actionNone},
	flow.GameIsEnding:             {409, actionNone},
	flow.GameFull:                 {409, actionSync},
	flow.InvalidToken:             {409, actionNone}, // of a connection token, to game servers
	flow.WrongGame:                {409, actionNone},
	flow.Superseded:               {409, actionNone},
	flow.InviteExpired:            {410, actionSync},
	flow.GameHasEnded:             {410, actionSync},
	codeLapsed:                    {410, actionSync},
	flow.MatchmakingLocked:        {423, actionRetry},
	flow.RateLimited:              {429, actionRetry},
	codeLoginQueued:               {429, actionRetry},
	flow.LoginFlapping:            {429, actionRetry},
	flow.Unavailable:              {503, actionRetry},
	flow.QueueIsClosed:            {503, actionNone},
	codeMaintenance:               {503, actionRetry},
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
		s = spelling{http.StatusConflict, actionNone}
	}
	return &Problem{status: s.status, Code: string(code), Action: s.action, Message: fmt.Sprintf(format, args...)}
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
		details.GameInstanceID = gameID(why.Instance)
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

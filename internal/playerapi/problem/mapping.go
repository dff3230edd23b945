package problem

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerhooks"
)

// nearest has codes for refusals of the core that have none: those of placements and of the engine.
var nearest = map[domain.Reason]flow.Code{
	domain.Invalid: flow.InvalidArgument, domain.NotFound: flow.QueueNotFound, domain.WrongPlayerState: flow.InvalidToken,
	domain.Conflict: flow.InvalidArgument, domain.TokenMismatch: flow.InvalidArgument, domain.LimitExceeded: flow.RateLimited,
	domain.TerminalRoute: flow.QueueNotFound,
}

// Again is how long a client should wait when the service has no better estimate.
const Again = time.Second

// Of maps an error to the answer for the client. An error that is neither a Problem, nor a refusal, nor the verdict of a hook
// goes to the log, and the client learns only that the service is unavailable.
func Of(err error, now domain.Time, log *slog.Logger) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if denied, ok := errors.AsType[*playerhooks.Denied](err); ok {
		return problemOfDenied(denied)
	}
	if silent, ok := errors.AsType[*playerhooks.Silent](err); ok {
		log.Debug("a player's call was refused because a hook did not answer", "error", err)
		p := Later(flow.Unavailable, Again, "the studio's backend cannot be asked now; try again later")
		p.Details = Details{Hook: string(silent.Hook)}
		return p
	}
	refused, ok := errors.AsType[*domain.Refusal](err)
	if !ok {
		if !errors.Is(err, engine.ErrStopped) && !errors.Is(err, context.Canceled) {
			log.Error("player flow request failed", "error", err)
		}
		return Later(flow.Unavailable, Again, "the service cannot answer now; try again later")
	}
	if why, ok := errors.AsType[*flow.Refusal](err); ok {
		return problemOfRefusal(why, refused.Detail, now)
	}
	if refused.Quota != "" && refused.Reason == domain.Overloaded {
		return Later(flow.RateLimited, Again, "%s", refused.Detail)
	}
	code, ok := nearest[refused.Reason]
	if !ok {
		return Later(flow.Unavailable, Again, "%s", refused.Detail)
	}
	return New(code, "%s", refused.Detail)
}

// problemOfDenied returns the answer to a call that a hook has denied.
func problemOfDenied(denied *playerhooks.Denied) *Problem {
	code := flow.PermissionDenied
	if denied.Hook == playerhooks.BeforeJoinParty || denied.Hook == playerhooks.BeforeDirectJoin {
		code = flow.JoinNotAllowed
	}
	p := New(code, "the studio's backend does not allow this call")
	if denied.Message != "" {
		p.Message = denied.Message
	}
	p.Details = Details{Hook: string(denied.Hook), HookMessage: denied.Message}
	return p
}

// problemOfRefusal returns the answer to a call that player flow has refused.
func problemOfRefusal(why *flow.Refusal, detail string, now domain.Time) *Problem {
	p := New(why.Code, "%s", detail)
	details := Details{Players: why.Players}
	if len(why.Faults) > 0 {
		details.Fields = FieldsOf(why.Faults)
	}
	if why.Code == flow.PlayerInGame {
		details.CanDecline = new(len(why.Decliners) == len(why.Players))
		for _, id := range why.Players {
			details.InGame = append(details.InGame, InGame{id, slices.Contains(why.Decliners, id)})
		}
	}
	if !why.Instance.IsZero() {
		details.GameInstanceID = objects.ID(why.Instance)
	}
	until := why.Until
	if why.Lock != nil {
		lock := objects.LockOf(why.Lock)
		details.Lock, until = &lock, why.Lock.Until
	}
	p.Details = details
	switch {
	case until != 0:
		p.RetryAfterMS = new(max(until.Sub(now).Milliseconds(), 1))
	case p.Action == actionRetry:
		p.RetryAfterMS = new(Again.Milliseconds())
	}
	return p
}

// FieldsOf lists the faults of a configuration as field errors.
func FieldsOf(faults flow.Faults) []Field {
	all := []Field{}
	for _, f := range faults {
		all = append(all, Field{Field: f.Path, Message: f.Message})
	}
	return all
}

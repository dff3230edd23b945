package calls

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/playerapi/rates"
)

// playerInput is a player's call: its headers and its body.
type playerInput[B any] struct {
	RequestID string `header:"X-Request-Id" maxLength:"64" doc:"A repeat with the same id within ten minutes changes nothing and gets the first answer."`
	IfRev     string `header:"X-If-Rev" pattern:"^[0-9]{0,19}$" doc:"Refused with REV_CONFLICT if the flow record has another revision."`
	Body      B      `required:"false"`
}

// partnerInput is a call of a trusted server or an operator.
type partnerInput[B any] struct {
	RequestID string `header:"X-Request-Id" maxLength:"64"`
	Body      B      `required:"false"`
}

type output[B any] struct{ Body *B }

// None is a call without parameters, or an answer without fields.
type None struct{}

// Player declares a call of players, with the class of calls that limits its rate. by is the player's login session, for a
// command.
func Player[B, A any](r *Realm, name string, c rates.Class, summary string, f func(ctx context.Context, by *playerflow.Caller, body *B) (*A, error)) {
	declare(r, name, c, summary, func(ctx context.Context, call *playerInput[B]) (*A, error) {
		p := principal.Of(ctx)
		by := playerflow.Caller{Player: p.Player, LoginSessionID: p.LoginSessionID, Request: call.RequestID}
		if call.IfRev != "" {
			rev, err := strconv.ParseUint(call.IfRev, 10, 64)
			if err != nil {
				return nil, problem.New(flow.InvalidArgument, "X-If-Rev: %s, want a revision", call.IfRev)
			}
			by.IfRev = &rev
		}
		return f(ctx, &by, &call.Body)
	})
}

// Partner declares a call of trusted servers or operators. request is its X-Request-Id, which may be empty.
func Partner[B, A any](r *Realm, name, summary string, f func(ctx context.Context, request string, body *B) (*A, error)) {
	declare(r, name, rates.Partner, summary, func(ctx context.Context, call *partnerInput[B]) (*A, error) {
		return f(ctx, call.RequestID, &call.Body)
	})
}

func declare[I, A any](r *Realm, name string, c rates.Class, summary string, f func(ctx context.Context, call *I) (*A, error)) {
	path := r.prefix() + name
	r.classes[path] = c
	huma.Register(r.api, operation(path, name, summary), func(ctx context.Context, call *I) (*output[A], error) {
		answer, err := f(ctx, call)
		if err != nil {
			return nil, r.state.Problem(ctx, err, principal.Of(ctx).Player)
		}
		return &output[A]{answer}, nil
	})
}

// withoutToken are the calls that need no token: their parameters are the credential.
var withoutToken = map[string]bool{"Session.Login": true, "Server.Exchange": true}

func operation(path, name, summary string) huma.Operation {
	service, _, _ := strings.Cut(name, ".")
	security := []map[string][]string{{"token": {}}}
	if withoutToken[name] {
		security = []map[string][]string{}
	}
	return huma.Operation{
		OperationID: name, Method: http.MethodPost, Path: path, Summary: summary, Tags: []string{service}, MaxBodyBytes: bodyMax + 1,
		BodyReadTimeout: -1, DefaultStatus: http.StatusOK, Security: security,
	}
}

package calls

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/playerapi/rates"
)

// playerInput is the input of a player's call: its headers and its body. The code of the call decodes the body once huma has checked it
// against its schema. huma.Register is a generic function of 15 KB: with the types of calls as its parameters, the binary would contain a
// copy for each call.
type playerInput struct {
	RequestID string          `header:"X-Request-Id" maxLength:"64" doc:"A repeat with the same id within ten minutes changes nothing and gets the first answer."`
	IfRev     string          `header:"X-If-Rev" pattern:"^[0-9]{0,19}$" doc:"Refused with REV_CONFLICT if the flow record has another revision."`
	Body      json.RawMessage `required:"false"`
}

// partnerInput is the input of a call of a trusted server or an operator.
type partnerInput struct {
	RequestID string          `header:"X-Request-Id" maxLength:"64"`
	Body      json.RawMessage `required:"false"`
}

type output struct{ Body any }

// None stands for a call without parameters or an answer without fields.
type None struct{}

// Player declares a call of players, with the class of calls that limits its rate. by is the player's login session, for a command.
func Player[B, A any](r *Realm, name string, c rates.Class, summary string, f func(ctx context.Context, by *playerflow.Caller, body *B) (*A, error)) {
	player(r, r.operation(name, c, summary, reflect.TypeFor[B](), reflect.TypeFor[A]()), func(ctx context.Context, by *playerflow.Caller, body json.RawMessage) (any, error) {
		var b B
		if err := decode(body, &b); err != nil {
			return nil, err
		}
		return f(ctx, by, &b)
	})
}

func player(r *Realm, o huma.Operation, f func(ctx context.Context, by *playerflow.Caller, body json.RawMessage) (any, error)) {
	huma.Register(r.api, o, func(ctx context.Context, call *playerInput) (*output, error) {
		p := principal.Of(ctx)
		by := playerflow.Caller{Player: p.Player, LoginSessionID: p.LoginSessionID, Request: call.RequestID}
		if call.IfRev != "" {
			rev, err := strconv.ParseUint(call.IfRev, 10, 64)
			if err != nil {
				return r.answer(ctx, nil, problem.Invalid("header.X-If-Rev", "%s, want a revision", call.IfRev))
			}
			by.IfRev = &rev
		}
		answer, err := f(ctx, &by, call.Body)
		return r.answer(ctx, answer, err)
	})
}

// Partner declares a call of trusted servers or operators. request is the call's X-Request-Id, which may be empty.
func Partner[B, A any](r *Realm, name, summary string, f func(ctx context.Context, request string, body *B) (*A, error)) {
	partner(r, r.operation(name, rates.Partner, summary, reflect.TypeFor[B](), reflect.TypeFor[A]()), func(ctx context.Context, request string, body json.RawMessage) (any, error) {
		var b B
		if err := decode(body, &b); err != nil {
			return nil, err
		}
		return f(ctx, request, &b)
	})
}

func partner(r *Realm, o huma.Operation, f func(ctx context.Context, request string, body json.RawMessage) (any, error)) {
	huma.Register(r.api, o, func(ctx context.Context, call *partnerInput) (*output, error) {
		answer, err := f(ctx, call.RequestID, call.Body)
		return r.answer(ctx, answer, err)
	})
}

func (r *Realm) answer(ctx context.Context, answer any, err error) (*output, error) {
	if err != nil {
		by := principal.Of(ctx)
		refused := r.state.Problem(ctx, err, by.Player)
		refused.Mark(by.Answer)
		return nil, refused
	}
	return &output{answer}, nil
}

// withoutToken has the calls that need no token, because their parameters contain the credential.
var withoutToken = map[string]bool{"Session.Login": true, "Server.Exchange": true}

// operation declares a call with the types of its body and its answer.
func (r *Realm) operation(name string, c rates.Class, summary string, body, answer reflect.Type) huma.Operation {
	path := r.prefix() + name
	r.classes[path] = c
	service, _, _ := strings.Cut(name, ".")
	security := []map[string][]string{{"token": {}}}
	if withoutToken[name] {
		security = []map[string][]string{}
	}
	schemas := r.api.OpenAPI().Components.Schemas
	content := func(t reflect.Type) map[string]*huma.MediaType {
		return map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(t, true, "")}}
	}
	return huma.Operation{
		OperationID: name, Method: http.MethodPost, Path: path, Summary: summary, Tags: []string{service}, MaxBodyBytes: bodyMax + 1,
		BodyReadTimeout: -1, DefaultStatus: http.StatusOK, Security: security,
		RequestBody: &huma.RequestBody{Content: content(body)},
		Responses:   map[string]*huma.Response{"200": {Content: content(answer)}},
	}
}

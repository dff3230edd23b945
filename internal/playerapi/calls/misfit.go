package calls

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
)

// setUpHuma makes huma answer with Problems when a request does not fit its declaration, and forbids null for lists. Huma has
// these settings only as package variables.
var setUpHuma = sync.OnceFunc(func() {
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true // PLAYER_ID is an unknown field, not player_id
	huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
		p := misfit(status, message, errs)
		if ctx != nil {
			realm, _ := ctx.Context().Value(realmKey{}).(*Realm)
			if by := principal.Of(ctx.Context()); realm != nil && by != nil && by.Player != "" {
				p.Flow = realm.state.StandNow(ctx.Context(), by.Player)
			}
		}
		return p
	}
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return misfit(status, message, errs)
	}
})

// misfit returns the problem of a request that does not fit its declaration.
func misfit(status int, message string, errs []error) *problem.Problem {
	if _, ok := errors.AsType[*cutOff](errors.Join(errs...)); ok {
		return problem.New(flow.InvalidArgument, "the body ended early")
	}
	if status >= http.StatusInternalServerError {
		return problem.Later(flow.Unavailable, problem.Again, "the service cannot answer now")
	}
	p := problem.New(flow.InvalidArgument, "%s", message)
	switch status {
	case http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusNotAcceptable:
		p.WithStatus(status, nil)
	}
	var said []string
	for _, err := range errs {
		if err == nil {
			continue
		}
		field := problem.Field{Field: "body", Message: err.Error()}
		if x, ok := err.(huma.ErrorDetailer); ok {
			detail := x.ErrorDetail()
			field = problem.Field{Field: strings.TrimPrefix(detail.Location, "body."), Message: detail.Message}
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

// shownMax is the longest text that a message repeats, in bytes.
const shownMax = 60

// shown returns a wrong value as the message repeats it before the expected one. The message repeats neither long texts, which
// may be tokens, nor objects and lists.
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

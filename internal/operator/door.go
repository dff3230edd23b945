package operator

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/keyring"
)

// Prefix is where every path of this door begins.
const Prefix = "/operator/v1/"

// Config is what a Door needs.
type Config struct {
	Engine *engine.Engine
	// Authorize reports whether a request may look at everything, and if not, with which HTTP status and text it is refused.
	Authorize func(*http.Request) (status int, refused error)
	// Operate reports whether a request may change something, and who sent it: the id of an access key.
	Operate func(*http.Request) (keyID string, status int, refused error)
	// AuthorizeAdmin tells which admin key has signed a request with this body, and if none has, with which HTTP status and
	// text it is refused.
	AuthorizeAdmin func(r *http.Request, body []byte) (keyID string, status int, refused error)
	Keys           *keyring.Ring
	Private        func(*http.Request) bool // whether nobody can overhear a request
	Searches       Searches                 // nil: matches are not looked for here
	Log            *slog.Logger
}

// Door answers operators over HTTP, with JSON.
type Door struct {
	engine    *engine.Engine
	config    Config
	authorize func(*http.Request) (int, error)
	operate   func(*http.Request) (string, int, error)
	searches  Searches
	log       *slog.Logger
	routes    http.ServeMux
}

// NewDoor makes a Door.
func NewDoor(c Config) *Door {
	d := &Door{config: c, engine: c.Engine, authorize: c.Authorize, operate: c.Operate, searches: c.Searches, log: c.Log}
	for kind, explain := range map[string]func(context.Context, string) (*Explanation, error){
		"fleet": d.explainFleet, "compute": d.explainCompute, "placement": d.explainPlacement, "process": d.explainProcess, "game-session": d.explainGameSession,
		"ticket": d.explainTicket, "player": d.explainPlayer, "party": d.explainParty, "game-instance": d.explainGameInstance,
	} {
		d.routes.HandleFunc("GET "+Prefix+"explain/"+kind+"/{id...}", func(w http.ResponseWriter, r *http.Request) {
			x, err := explain(r.Context(), r.PathValue("id"))
			if err != nil {
				d.refuse(w, r, err)
				return
			}
			answer(w, http.StatusOK, x)
		})
	}
	d.routes.HandleFunc("POST "+RotateTokenPath, d.rotateToken)
	d.keyRoutes()
	return d
}

func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost || isKeyPath(r.URL.Path) { // each handler asks for more than looking
		d.routes.ServeHTTP(w, r)
		return
	}
	if status, refused := d.authorize(r); refused != nil {
		answer(w, status, Problem{refused.Error()})
		return
	}
	d.routes.ServeHTTP(w, r)
}

// Problem is the body of every answer that is none.
type Problem struct {
	Message string `json:"message"`
}

func (d *Door) refuse(w http.ResponseWriter, r *http.Request, err error) {
	refusal, ok := errors.AsType[*domain.Refusal](err)
	switch {
	case ok && refusal.Reason == domain.NotFound:
		answer(w, http.StatusNotFound, Problem{refusal.Detail})
	case ok && refusal.Reason == domain.Conflict:
		answer(w, http.StatusConflict, Problem{refusal.Detail})
	case ok && refusal.Reason == domain.Overloaded:
		answer(w, http.StatusServiceUnavailable, Problem{refusal.Detail})
	case ok:
		answer(w, http.StatusBadRequest, Problem{refusal.Detail})
	case errors.Is(err, engine.ErrStopped):
		answer(w, http.StatusServiceUnavailable, Problem{err.Error()})
	default:
		d.log.Error("operator request failed", "path", r.URL.Path, "error", err)
		answer(w, http.StatusInternalServerError, Problem{"the request failed inside the service; the log has the cause"})
	}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if status == http.StatusTooManyRequests { // after failed sign-ins
		w.Header().Set("Retry-After", "6")
	}
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(body) // the client has gone if it fails
}

package calls

import (
	"bufio"
	"context"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/principal"
	"github.com/musterhq/muster/internal/playerapi/problem"
	"github.com/musterhq/muster/internal/playerapi/rates"
	"github.com/musterhq/muster/internal/playerapi/state"
	"github.com/musterhq/muster/internal/tracing"
)

// Realm is a set of calls for one kind of principal, with an OpenAPI document of its own.
type Realm struct {
	Name string

	state     *state.State
	mux       *http.ServeMux
	api       huma.API
	classes   map[string]rates.Class // of the calls, by path
	stats     *callstats.Door
	tracing   *tracing.Tracer
	door      string                                   // the realm's name in metrics and traces
	documents func() (newest, older []byte, err error) // made at the first request, when all calls are declared
}

// New makes a realm without calls; its name is part of their paths.
func New(state *state.State, name, title string) *Realm {
	setUpHuma()
	c := huma.DefaultConfig(title, "1")
	c.CreateHooks = nil // no links to schemas in answers
	c.Formats = strictFormats
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "", "", ""
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	r := &Realm{Name: name, state: state, mux: http.NewServeMux(), classes: map[string]rates.Class{}}
	r.api = humago.New(r.mux, c)
	r.documents = onceDocuments(r.api, name)
	r.serveDocument(documentName, r.Document)
	r.serveDocument(document30Name, r.Document30)
	return r
}

// Count counts and traces the realm's calls under a name. It must be called after all calls are declared.
func (r *Realm) Count(calls *callstats.Calls, tracer *tracing.Tracer, door string) {
	var names []string
	for path := range r.classes {
		names = append(names, r.nameOf(path))
	}
	r.stats = calls.Door(door, names...)
	r.tracing, r.door = tracer, door
}

// Classes returns the classes of the realm's calls, by path.
func (r *Realm) Classes() map[string]rates.Class { return r.classes }

func (r *Realm) prefix() string { return objects.Prefix + r.Name + "/" }

func (r *Realm) nameOf(path string) string { return strings.TrimPrefix(path, r.prefix()) }

// Begin counts a call, and returns its X-Request-Id to the client. The caller answers through the returned ResponseWriter and then calls answered.
func (r *Realm) Begin(w http.ResponseWriter, request *http.Request) (counted http.ResponseWriter, answered func()) {
	counted, answered = r.stats.Note(w, request, r.nameOf(request.URL.Path))
	if id := request.Header.Get(requestIDHeader); id != "" && len(id) <= requestIDMax {
		counted.Header().Set(requestIDHeader, id)
	}
	return counted, answered
}

// The header that identifies a request, in logs along its way and when it is repeated.
const (
	requestIDHeader = "X-Request-Id"
	requestIDMax    = 64
)

// Check refuses requests that are not calls of the realm. hint names the listener that serves the path, if any.
func (r *Realm) Check(request *http.Request, hint func(path string) string) (rates.Class, *problem.Problem) {
	c, known := r.classes[request.URL.Path]
	switch {
	case !known:
		p := problem.New(flow.InvalidArgument, "there is no call %.100q%s", request.URL.Path, hint(request.URL.Path))
		return c, p.WithStatus(http.StatusNotFound, nil)
	case request.Method != http.MethodPost:
		return c, WrongMethod(request.Method, http.MethodPost)
	}
	return c, checkMedia(request)
}

// WrongMethod refuses a method.
func WrongMethod(method, want string) *problem.Problem {
	return problem.New(flow.InvalidArgument, "method %.20q, want %s", method, want).WithStatus(http.StatusMethodNotAllowed, http.Header{"Allow": {want}})
}

// checkMedia requires that a body is declared as JSON. A web page that declares this needs permission first (a CORS preflight), which
// only the allowed origins get.
func checkMedia(r *http.Request) *problem.Problem {
	said := r.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(said); said == "" && r.ContentLength == 0 || err == nil && media == "application/json" {
		return nil
	}
	return problem.New(flow.InvalidArgument, "Content-Type %.100q, want application/json", said).WithStatus(http.StatusUnsupportedMediaType, nil)
}

// bodyMax bounds the body of a request, in bytes.
const bodyMax = 64 << 10

type realmKey struct{}

// Serve executes a call that has passed Check, for a principal.
func (r *Realm) Serve(w http.ResponseWriter, request *http.Request, by *principal.Principal) {
	if by.Player != "" || by.ID != "" { // strangers who log in cause no spans
		var traced func()
		w, request, traced = r.tracing.Serve(w, request, tracing.Call{
			Door: r.door, Operation: r.nameOf(request.URL.Path), Trusted: by.Player == "" && by.Instance.IsZero(), Began: time.Now(),
		})
		defer traced()
	}
	request.Header.Set("Content-Type", "application/json") // an empty body may have none
	request.Header.Set("Accept", "application/json")
	request.Body = orEmptyObject(http.MaxBytesReader(callstats.Unwrapped(w), request.Body, bodyMax+1))
	w.Header().Set("Cache-Control", "no-store")
	by.Realm, by.Answer = r.Name, w
	ctx := principal.With(context.WithValue(request.Context(), realmKey{}, r), by)
	r.mux.ServeHTTP(w, request.WithContext(ctx))
}

// orEmptyObject replaces an empty body by {}. The request may not have announced its length.
func orEmptyObject(body io.Reader) io.ReadCloser {
	b := bufio.NewReader(body)
	if _, err := b.Peek(1); err == io.EOF {
		return io.NopCloser(strings.NewReader("{}"))
	}
	return io.NopCloser(arriving{b}) // the server closes the body itself
}

// arriving marks the errors of a body, so that misfit can distinguish them from errors of the service.
type arriving struct{ io.Reader }

func (a arriving) Read(b []byte) (int, error) {
	n, err := a.Reader.Read(b)
	if err != nil && err != io.EOF {
		err = &cutOff{err}
	}
	return n, err
}

// cutOff is the error of a body that did not arrive: the client or the network ended it, or its chunks are malformed.
type cutOff struct{ cause error }

func (e *cutOff) Error() string { return e.cause.Error() }
func (e *cutOff) Unwrap() error { return e.cause }

package gamelift

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/smithy-go"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/live"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/signin"
	"github.com/musterhq/muster/internal/tracing"
)

// pooledBytesMax prevents one large request from occupying memory forever.
const pooledBytesMax = 64 << 10

// Config has the parts and settings of a Handler. Log and Keys must be set.
type Config struct {
	Keys identity.Finder
	Dev  bool             // accept any credentials or none; only for loopback
	Now  func() time.Time // clock for signatures and rates; nil for time.Now
	Log  *slog.Logger

	// Private reports whether a request was protected from modification in transit; nil: only requests over TLS.
	Private func(*http.Request) bool
	Proxies *clientaddress.Proxies // for limits by address

	Signins         *signin.Door // of requests to the API
	OperatorSignins *signin.Door // for requests that AuthorizeLooking and similar methods check

	Audit  *audit.Log       // for refused attempts; nil: they are not recorded
	Panics *panics.Guard    // nil: a guard of its own
	Calls  *callstats.Calls // nil: calls are not counted
	Limits Limits

	Tracing *tracing.Tracer // nil: calls are not traced
}

// panicDoor is the label of panics of this door.
const panicDoor = "gamelift"

// Handler serves the API over HTTP, in both protocols.
type Handler struct {
	service    *Service
	verifier   verifier
	operations map[string]*compiled
	limiter    *live.Value[*limiter]
	now        func() time.Time
	clients    clientRates
	admission  admission
	audit      *audit.Log
	panics     *panics.Guard
	calls      *callstats.Door        // signed requests
	console    *callstats.Door        // requests that Perform executes
	refusals   *prometheus.CounterVec // by error code
	tracing    *tracing.Tracer
	log        *slog.Logger
}

// NewHandler returns a Handler for a service.
func NewHandler(s *Service, c Config) *Handler {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Private == nil {
		c.Private = func(r *http.Request) bool { return r.TLS != nil }
	}
	c.Panics = cmp.Or(c.Panics, panics.New(c.Log))
	return &Handler{
		service: s,
		verifier: verifier{
			keys: c.Keys, now: c.Now, dev: c.Dev, private: c.Private, proxies: c.Proxies, signins: c.Signins, operators: c.OperatorSignins,
		},
		operations: compiledOperations(),
		limiter:    live.Of(newLimiter(c.Limits, c.Now)),
		now:        c.Now,
		clients:    newClientRates(c.Limits, c.Now),
		admission:  newAdmission(c.Limits),
		audit:      c.Audit,
		panics:     c.Panics,
		calls:      c.Calls.Door("api", slices.Collect(maps.Keys(compiledOperations()))...),
		console:    c.Calls.Door("console", slices.Collect(maps.Keys(compiledOperations()))...),
		refusals:   newRefusals(),
		tracing:    c.Tracing,
		log:        c.Log,
	}
}

// buffers hold a request's body, then its answer.
type buffers struct{ body, answer []byte }

var bufferPool = sync.Pool{New: func() any { return new(buffers) }}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	pooled := bufferPool.Get().(*buffers)
	defer func() {
		if cap(pooled.body) <= pooledBytesMax && cap(pooled.answer) <= pooledBytesMax {
			bufferPool.Put(pooled)
		}
	}()
	requestID := newRequestID()
	codec, name := route(r)
	out, refused := h.handle(w, r, codec, name, requestID, pooled, began)
	h.count(r.Context(), h.calls, name, refused, began)
	if refused != nil {
		code := refused.ErrorCode()
		if h.log.Enabled(r.Context(), slog.LevelDebug) {
			h.log.Debug("API request refused", "operation", name, "request_id", requestID, "code", code, "message", refused.ErrorMessage())
		}
		w.Header()["X-Amzn-Errortype"] = []string{code}
		out = codec.appendError(pooled.answer[:0], code, refused.ErrorMessage())
		pooled.answer = out
		write(w, codec, requestID, statusOf(code), out)
		return
	}
	write(w, codec, requestID, http.StatusOK, out)
}

// handle returns the body of a successful answer, or the refusal.
func (h *Handler) handle(w http.ResponseWriter, r *http.Request, c codec, name, requestID string, pooled *buffers, began time.Time) (answer []byte, refused smithy.APIError) {
	var span *tracing.Span
	defer func() { span.End(outcomeOf(r.Context(), refused)) }()
	defer h.confine(name, requestID, &answer, &refused)
	op, known := h.operations[name]
	if !known || r.Method != http.MethodPost {
		discard(w, r)
		if name == "" || known { // no operation is named, or it is called with another method than POST
			return nil, commonError(codeUnknownOperation, "the request names no operation of this service")
		}
		return nil, commonError(codeUnknownOperation, "'%s' is not an operation of this service", excerpt.Short(name))
	}
	if refused := checkMedia(r, c); refused != nil {
		discard(w, r)
		return nil, refused
	}
	signed, refused := h.verifier.begin(r, "gamelift")
	if refused != nil {
		discard(w, r)
		return nil, refused
	}
	address := signed.address
	arriving := body{w: w, r: r, most: op.bounds.body, pool: &h.admission, address: address}
	defer arriving.done()
	if refused := arriving.read(pooled); refused != nil {
		return nil, refused
	}
	caller, refused := h.verifier.finish(r, pooled.body, signed)
	if refused != nil {
		return nil, refused
	}
	connlimit.Prove(r.Context())
	caller.Used(name)
	var ctx context.Context
	ctx, span = h.tracing.Begin(r, tracing.Call{Door: "api", Operation: name, RequestID: requestID, Trusted: caller.Role != identity.Client, Began: began})
	if op.recorded {
		var by audit.Origin
		if by, refused = originOf(r, &caller, name); refused != nil {
			return nil, refused
		}
		ctx = audit.With(ctx, by)
		defer func() { h.noteRefused(by, refused) }()
	}
	return h.perform(ctx, c, op, &caller, requestID, pooled)
}

// confine limits the effect of a panic to one request, whose connection continues. It must be deferred directly.
func (h *Handler) confine(name, requestID string, answer *[]byte, refused *smithy.APIError) {
	if p := recover(); p != nil {
		h.panics.Note(panicDoor, p, "operation", name, "request_id", requestID)
		*answer, *refused = nil, internalError()
	}
}

// perform executes an operation for a caller, with the body in the buffers. The audit log records what it changes if the context has an origin.
func (h *Handler) perform(ctx context.Context, c codec, op *compiled, caller *Caller, requestID string, pooled *buffers) (answer []byte, refused smithy.APIError) {
	if !h.AllowClient(&caller.Principal) || !h.limiter.Get().allow(caller.Holder(), op.name) {
		return nil, throttled()
	}
	if !op.access.Allow(caller.Role) {
		return nil, commonError(codeAccessDenied, "access key %s has the role %s, which may not call %s", caller.ID, caller.Role, op.name)
	}
	work, ok := h.admission.enter(&caller.Principal)
	if !ok {
		return nil, throttled()
	}
	defer work.leave()
	in, err := decodeInput(c, op, pooled.body, &work)
	if err != nil {
		return nil, h.apiError(op, requestID, err)
	}
	if err := op.constraints.check(in); err != nil {
		return nil, h.apiError(op, requestID, err)
	}
	request := &requestContext{Context: ctx, caller: *caller, requestID: requestID}
	if caller.Restricted() {
		err := mayDo(request, h.service, op, caller, in)
		if denied, ok := errors.AsType[*identity.Denied](err); ok {
			return nil, commonError(codeAccessDenied, "%s", denied)
		}
		if err != nil {
			return nil, h.apiError(op, requestID, err)
		}
	}
	out, err := op.call(h.service, request, in)
	if err != nil {
		return nil, h.apiError(op, requestID, err)
	}
	if op.noBody {
		return nil, nil
	}
	pooled.answer = c.appendOutput(pooled.answer[:0], op.wire, reflect.ValueOf(out).Elem())
	return pooled.answer, nil
}

// apiError maps an error to the answer. Clients with typed errors treat an error that the operation does not declare as unknown, so it becomes
// the one that all operations declare.
func (h *Handler) apiError(op *compiled, requestID string, err error) smithy.APIError {
	spelled, cause := toAPI(err)
	code := spelled.ErrorCode()
	if cause != nil && !errors.Is(cause, context.Canceled) {
		h.log.Error("API request failed", "operation", op.name, "request_id", requestID, "error", cause)
	}
	if _, common := commonStatus[code]; common || op.declares[code] {
		return spelled
	}
	h.log.Error("the API model does not declare this error for the operation", "operation", op.name, "request_id", requestID, "code", code)
	return invalidRequestError(new(spelled.ErrorMessage()))
}

// decodeInput decodes an input after reserving memory for it.
func decodeInput(c codec, op *compiled, body []byte, work *work) (any, error) {
	bytes, result := c.scan(body, op.constraints, op.bounds.memory)
	switch result {
	case overBound:
		return nil, tooMuch(op.name, op.bounds.memory)
	case tooDeep:
		return nil, serializationError("the body is nested more than %d deep", depthMax)
	case badNumber:
		return nil, serializationError("the body has a number of more than %d characters", numberBytesMax)
	case badTag:
		return nil, serializationError("the body has a CBOR tag that no member of the API uses; want no tag other than 1, for timestamps")
	}
	if !work.decode(bytes) {
		return nil, throttled()
	}
	in := op.make()
	if err := c.decode(body, in); err != nil {
		return nil, err
	}
	if result == malformed { // a decoder less strict than the scan could read without a bound
		return nil, serializationError("the body is malformed")
	}
	return in, nil
}

var rpcProtocolHeader = []string{rpcProtocol}

func write(w http.ResponseWriter, c codec, requestID string, status int, body []byte) {
	header := w.Header()
	header["X-Amzn-Requestid"] = []string{requestID}
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	if len(body) > 0 {
		header["Content-Type"] = c.contentType()
	}
	if _, ok := c.(cborCodec); ok { // the client ignores an answer without it
		header["Smithy-Protocol"] = rpcProtocolHeader
	}
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // the client has closed the connection
}

// newRequestID returns a UUID to find a request in the log. It need not be secret, so it does not use uuid.New, which takes four times as long.
func newRequestID() string {
	var id uuid.UUID
	binary.LittleEndian.PutUint64(id[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(id[8:], rand.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id.String()
}

package cloudwatch

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/gamelift"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/series"
)

// Config is what a Door needs.
type Config struct {
	Store *series.Store // nil: no metrics are kept
	// Signed reads the body of a request and returns the principal that signed it for a service. Otherwise it returns the refusal.
	Signed func(w http.ResponseWriter, r *http.Request, service string, most int64) (by identity.Principal, body []byte, refused *gamelift.Refused)
	Now    func() time.Time // nil: time.Now
	Calls  *callstats.Calls // nil: calls are not counted
	Log    *slog.Logger

	now func() time.Time
}

// Door answers clients of CloudWatch.
type Door struct {
	config Config
	calls  *callstats.Door
	places chan struct{} // of requests that are being answered
}

// placesMax bounds how many requests read from the store concurrently. Further ones wait, up to waitMax.
const (
	placesMax = 4
	waitMax   = 10 * time.Second
)

type operation func(*Door, reader) (fields, error)

var operations = map[string]operation{
	"GetMetricData": (*Door).getMetricData, "GetMetricStatistics": (*Door).getMetricStatistics, "ListMetrics": (*Door).listMetrics,
}

// Actions returns the actions of this door, with the roles that may take them.
func Actions() map[policy.Action]identity.Roles {
	all := map[policy.Action]identity.Roles{}
	for name := range operations {
		all[policy.MustBe("cloudwatch:"+name)] = identity.MayLook
	}
	return all
}

// NewDoor makes a Door.
func NewDoor(c Config) *Door {
	c.now = c.Now
	if c.now == nil {
		c.now = time.Now
	}
	d := &Door{config: c, places: make(chan struct{}, placesMax)}
	names := make([]string, 0, len(operations))
	for name := range operations {
		names = append(names, name)
	}
	d.calls = c.Calls.Door("cloudwatch", names...)
	return d
}

const (
	rpcPath      = "/service/" + target + "/operation/"
	targetPrefix = target + "."
	signedFor    = "monitoring"
	scope        = "/" + signedFor + "/aws4_request"
	formType     = "application/x-www-form-urlencoded"
)

// Serves reports whether a request is for this door.
func Serves(r *http.Request) bool {
	return r.Method == http.MethodPost && (strings.Contains(r.URL.Path, rpcPath) || strings.HasPrefix(r.Header.Get("X-Amz-Target"), targetPrefix) ||
		strings.HasPrefix(r.Header.Get("Content-Type"), formType) && strings.Contains(r.Header.Get("Authorization"), scope))
}

// route returns the protocol of a request, and the operation that its header names.
func route(r *http.Request) (p protocol, operation string) {
	if i := strings.LastIndex(r.URL.Path, rpcPath); i >= 0 {
		return cborProtocol{}, r.URL.Path[i+len(rpcPath):]
	}
	if name, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), targetPrefix); ok {
		return jsonProtocol{}, name
	}
	return queryProtocol{}, ""
}

func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began, id := time.Now(), gamelift.NewRequestID()
	p, name := route(r)
	by, body, refused := d.config.Signed(w, r, signedFor, bodyMax)
	if refused != nil {
		d.refuse(w, p, &refusal{refused.Code, refused.Message}, refused.Status, id)
		return
	}
	out, name, err := d.answer(p, name, body, by)
	if err != nil {
		problem, ok := errors.AsType[*refusal](err)
		status := http.StatusBadRequest
		switch {
		case !ok:
			d.config.Log.Error("a request for metrics failed", "operation", name, "request_id", id, "error", err)
			problem, status = &refusal{codeInternal, "The request failed inside the service. The log has the cause under this request id."}, http.StatusInternalServerError
			d.calls.Done(name, callstats.Failed, began)
		case problem.code == "AccessDenied":
			status = http.StatusForbidden
			d.calls.Done(name, callstats.Refused, began)
		default:
			d.calls.Done(name, callstats.Refused, began)
		}
		d.refuse(w, p, problem, status, id)
		return
	}
	d.calls.Done(name, callstats.OK, began)
	d.write(w, p, http.StatusOK, p.answer(name, out, id), id)
}

// answer executes an operation, whose name may be in the body.
func (d *Door) answer(p protocol, name string, body []byte, by identity.Principal) (fields, string, error) {
	o, err := p.read(body)
	if err != nil {
		return nil, name, err
	}
	r := newReader(o)
	if name == "" {
		name = r.text("Action")
	}
	op, ok := operations[name]
	if ok {
		by.Used(name)
	}
	switch {
	case !ok:
		return nil, name, &refusal{"InvalidAction", "The action " + clip(name) + " is not valid for this service; want GetMetricData, GetMetricStatistics or ListMetrics."}
	case !identity.MayLook.Allow(by.Role):
		return nil, name, &refusal{"AccessDenied", "access key " + by.ID + " has the role " + by.Role.String() + ", which may not call " + name}
	}
	if err := by.MayCall("cloudwatch:" + name); err != nil {
		return nil, name, &refusal{"AccessDenied", err.Error()}
	}
	switch {
	case d.config.Store == nil:
		return nil, name, &refusal{codeInvalidValue, "This installation keeps no metrics: --metrics-max is 0."}
	}
	wait := time.NewTimer(waitMax)
	defer wait.Stop()
	select {
	case d.places <- struct{}{}:
		defer func() { <-d.places }()
	case <-wait.C:
		return nil, name, &refusal{"Throttling", "Rate exceeded: too many requests for metrics are in progress."}
	}
	out, err := op(d, r)
	return out, name, err
}

func (d *Door) refuse(w http.ResponseWriter, p protocol, problem *refusal, status int, id string) {
	sender := status < http.StatusInternalServerError
	kind := ";Sender"
	if !sender {
		kind = ";Receiver"
	}
	w.Header().Set("X-Amzn-Query-Error", problem.code+kind)
	w.Header().Set("X-Amzn-Errortype", shapeOf(problem.code))
	d.write(w, p, status, p.refuse(problem, sender, id), id)
}

func (d *Door) write(w http.ResponseWriter, p protocol, status int, body []byte, id string) {
	h := w.Header()
	h.Set("X-Amzn-Requestid", id)
	h.Set("Content-Type", p.contentType())
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if _, ok := p.(cborProtocol); ok {
		h.Set("Smithy-Protocol", "rpc-v2-cbor")
	}
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // the client has closed the connection
}

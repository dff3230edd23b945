// Package sts serves clients of the AWS Security Token Service. They ask who they are, and get temporary credentials for themselves or for a role. It
// implements the query protocol of the AWS CLI and the SDKs. Package identity checks the issued credentials at every door.
package sts

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/callstats"
	domainaudit "github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/fair"
	"github.com/musterhq/muster/internal/gamelift"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/rate"
	"github.com/musterhq/muster/internal/signin"
)

const (
	signedFor = "sts"
	formType  = "application/x-www-form-urlencoded"

	// bodyMax is far larger than the forms that clients send: the largest has a role, the name of a session and its tags.
	bodyMax = 32 << 10
)

// Issuer issues temporary credentials. *identity.Keys implements it.
type Issuer interface {
	identity.Finder
	CertificateRevoked(x *identity.Session) bool
	Issue(x identity.Session, valid time.Duration) identity.Credentials
}

// Engine is what the door needs of the engine: to record who was issued what.
type Engine interface {
	Do(ctx context.Context, cmd kernel.Command) error
}

// Config is what a Door needs.
type Config struct {
	Keys   Issuer
	Engine Engine
	// Signed reads the body of a request and returns the principal that has signed it for a service, or else the refusal.
	Signed func(w http.ResponseWriter, r *http.Request, service string, most int64) (by identity.Principal, body []byte, refused *gamelift.Refused)
	// Unsigned reads the body of an unsigned request and returns the client's address.
	Unsigned func(w http.ResponseWriter, r *http.Request, most int64) (from string, body []byte, refused *gamelift.Refused)
	Machines func() Verifier // of machines that authenticate with a token, as of now; nil, or a nil Verifier: there are none
	Signins  *signin.Door    // counts their failed attempts

	Certificates       func() CertificateVerifier // of backends that authenticate with a client certificate, as of now; nil as above
	CertificateSignins *signin.Door               // counts their failed attempts
	// Private reports whether an answer cannot be read on the way.
	Private func(*http.Request) bool
	Audit   *audit.Log       // for refused attempts; nil: they are not recorded
	Calls   *callstats.Calls // nil: calls are not counted
	Log     *slog.Logger
}

// Door answers clients of STS.
type Door struct {
	config Config
	calls  *callstats.Door

	machineRate *fair.Rate
	unreachable rate.Lines
}

// NewDoor returns a Door.
func NewDoor(c Config) *Door {
	names := append(make([]string, 0, len(operations)+1), createSession)
	for name := range operations {
		names = append(names, name)
	}
	return &Door{config: c, calls: c.Calls.Door("sts", names...), machineRate: fair.NewRate(webIdentityRate, time.Now),
		unreachable: rate.Lines{Most: unreachableLogged, Period: unreachableWithin}}
}

// Serves reports whether a request is for this door. No other AWS service at the port accepts forms without a header that names it.
func Serves(r *http.Request) bool {
	return r.Method == http.MethodPost && r.Header.Get("X-Amz-Target") == "" && strings.HasPrefix(r.Header.Get("Content-Type"), formType)
}

// request is one call.
type request struct {
	*http.Request
	by   identity.Principal
	form url.Values
	id   string

	stranger bool // it has not authenticated
}

// operations are the actions by name. An operation that neither changes nor issues anything has no entry in the audit log.
var operations = map[string]func(*Door, *request) (any, error){
	"GetCallerIdentity":  (*Door).getCallerIdentity,
	"GetAccessKeyInfo":   (*Door).getAccessKeyInfo,
	"GetSessionToken":    (*Door).getSessionToken,
	"AssumeRole":         (*Door).assumeRole,
	"AssumeRoleWithSAML": refuseAs("AssumeRoleWithSAML", "SAML is not supported: want AssumeRole with an access key, or AssumeRoleWithWebIdentity"),
	webIdentity:          (*Door).assumeRoleWithWebIdentity,
}

// Actions returns the actions of this door, with the roles that may take them. Anyone may ask who they are.
func Actions() map[policy.Action]identity.Roles {
	return map[policy.Action]identity.Roles{policy.MustBe("sts:GetSessionToken"): identity.MayLook, policy.MustBe("sts:AssumeRole"): identity.MayLook}
}

// refuseAs returns an operation that this service does not support.
func refuseAs(name, why string) func(*Door, *request) (any, error) {
	return func(*Door, *request) (any, error) { return nil, &refusal{codeAccessDenied, name + ": " + why} }
}

func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began, id := time.Now(), gamelift.NewRequestID()
	by, body, refused := d.caller(w, r)
	if refused != nil {
		d.calls.Done("", outcome(refused.Status), began)
		refuse(w, &refusal{codeOf(refused.Code), refused.Message}, refused.Status, id)
		return
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		d.calls.Done("", callstats.Refused, began)
		refuse(w, &refusal{codeMalformed, "the body is not a form"}, http.StatusBadRequest, id)
		return
	}
	name := form.Get("Action")
	answer, err := d.perform(name, &request{Request: r, by: by, form: form, id: id})
	if err == nil {
		d.calls.Done(name, callstats.OK, began)
		write(w, http.StatusOK, answer, id)
		return
	}
	problem, ok := errors.AsType[*refusal](err)
	status := problem.status()
	if !ok {
		problem, status = &refusal{codeInternal, "The request failed inside the service. The log has the cause under this request id."}, http.StatusInternalServerError
		d.logFailure(name, id, err)
	}
	d.calls.Done(name, callstats.Heard(r.Context(), outcome(status)), began)
	refuse(w, problem, status, id)
}

// logFailure logs why a request failed inside the service, unless its client has left.
func (d *Door) logFailure(operation, id string, err error) {
	if !errors.Is(err, context.Canceled) {
		d.config.Log.Error("a request for temporary credentials failed", "operation", operation, "request_id", id, "error", err)
	}
}

// caller reads the body of a request and returns who has signed it. Only calls with a machine's token need no signature.
func (d *Door) caller(w http.ResponseWriter, r *http.Request) (by identity.Principal, body []byte, refused *gamelift.Refused) {
	if !isSigned(r) {
		from, body, refused := d.config.Unsigned(w, r, bodyMax)
		if refused != nil {
			return by, nil, refused
		}
		if form, err := url.ParseQuery(string(body)); err == nil && form.Get("Action") == webIdentity {
			return identity.Principal{Address: from}, body, nil
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return d.config.Signed(w, r, signedFor, bodyMax)
}

func outcome(status int) callstats.Outcome {
	if status >= http.StatusInternalServerError {
		return callstats.Failed
	}
	return callstats.Refused
}

func (d *Door) perform(name string, r *request) (any, error) {
	operation, ok := operations[name]
	if !ok {
		return nil, &refusal{codeInvalidAction, "Could not find operation " + excerpt.Short(name) + " for version " + excerpt.Short(r.form.Get("Version"))}
	}
	r.by.Used(name)
	answer, err := operation(d, r)
	if refused, ok := errors.AsType[*refusal](err); ok && refused.code == codeAccessDenied && !r.stranger {
		d.config.Audit.RefusedAs(d.origin(r, name), "AccessDenied")
	}
	return answer, err
}

func (d *Door) origin(r *request, operation string) audit.Origin {
	return audit.Origin{Principal: r.by.ID, Door: audit.DoorAPI, Address: r.by.Address, Agent: r.UserAgent(), Operation: operation}
}

// issue issues temporary credentials once the audit log has recorded to whom. Credentials of the role client belong to players, and are not recorded
// unless a machine got them.
func (d *Door) issue(r *request, operation string, x identity.Session, valid time.Duration) (identity.Credentials, error) {
	if !d.config.Private(r.Request) {
		return identity.Credentials{}, notPrivate()
	}
	c := d.config.Keys.Issue(x, valid)
	if x.Role != identity.Client || x.Machine() {
		err := d.config.Engine.Do(r.Context(), &domainaudit.Note{
			By: d.origin(r, operation), Kind: "temporary credentials", ID: c.ID,
			Changes: []domainaudit.Change{{Field: "Expires", After: c.Expires.UTC().Format(time.RFC3339)}, {Field: "Role", After: c.Role.String()}, {Field: "Session", After: c.Name}},
		})
		if err != nil {
			return identity.Credentials{}, err
		}
	}
	d.config.Log.Debug("temporary credentials issued", "key", c.ID, "holder", c.Holder, "session", c.Name, "role", c.Role.String(), "expires", c.Expires, "address", r.by.Address)
	return c, nil
}

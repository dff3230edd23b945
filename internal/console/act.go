package console

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/permit"
	"github.com/musterhq/muster/internal/policy"
)

// API is the service API, whose operations most actions execute.
type API interface {
	// Allows reports whether a role may call an operation.
	Allows(operation string, role identity.Role) bool
	// Perform executes an operation with the rights of a principal. Documents are those of AWS JSON 1.1. A refusal is an apiRefusal.
	Perform(ctx context.Context, by *identity.Principal, operation string, input []byte) (output []byte, err error)
}

// apiRefusal is a refusal by the service API.
type apiRefusal interface {
	error
	ErrorCode() string
	ErrorMessage() string
}

// action is something that a person can do in the console: a page with a form, and what submitting the form does.
type action struct {
	name    string // its name in the path
	text    string // text of the link to its page, and of its button
	done    string // confirmation shown afterwards
	section string // section of the navigation
	object  bool   // the path names the object to change

	operation string         // the service API operation that it executes, which determines who may
	may       identity.Roles // roles that may, if it is not an operation of the service API
	service   string         // in that case, its policy action

	page     string // its template, if not the common one
	bytesMax int64  // bytes of the sent form; 0: formBytesMax

	// prepare fills the form with the current state of the object. Its error is a *domain.Refusal if the object does not exist or there is nothing to
	// do.
	prepare func(d *Door, r *http.Request, f *form) error
	// command returns the terminal command with the same effect and the values of the form.
	command func(f *form) string
	// do executes the action, and returns the page to show next, below Prefix. Instead, it may report problems with fields.
	do func(ctx context.Context, d *Door, by *actor, f *form) (to string, err error)
}

// actor is the person who acts, in the form recorded by the audit log.
type actor struct {
	identity.Principal
	origin audit.Origin
}

// actions maps names to actions.
var actions = func() map[string]*action {
	byName := map[string]*action{}
	for _, a := range slices.Concat(gameSessionActions, hostActions, computeActions, fleetActions, aliasActions, queueActions, keyActions, policyActions, peopleActions, ruleSetActions, clusterActions) {
		byName[a.name] = a
	}
	return byName
}()

// actionPages registers the pages of all actions.
func (d *Door) actionPages() {
	for _, a := range actions {
		path := Prefix + "/do/" + a.name
		if a.object {
			path += "/{id...}"
		}
		d.routes.HandleFunc("GET "+path, d.signedIn(func(w http.ResponseWriter, r *http.Request, by identity.AccessKey) { d.showAction(w, r, a, by) }))
		d.routes.HandleFunc("POST "+path, d.signedIn(func(w http.ResponseWriter, r *http.Request, by identity.AccessKey) { d.act(w, r, a, by) }))
	}
}

// mayNot returns why a role may not execute an action; empty: it may.
func (d *Door) mayNot(a *action, role identity.Role) string {
	allows := func(role identity.Role) bool {
		if a.operation == "" {
			return a.may.Allow(role)
		}
		return d.config.API.Allows(a.operation, role)
	}
	if allows(role) {
		return ""
	}
	var want []string
	for _, other := range []identity.Role{identity.Backend, identity.Admin} {
		if allows(other) {
			want = append(want, other.String())
		}
	}
	return "needs the role " + strings.Join(want, " or ")
}

// actionPage is the data of an action's page.
type actionPage struct {
	*form
	Text    string // of the button
	Path    string
	Command string
	May     string // why the person's role may not; empty: it may
}

// prepared returns the form of an action with the current state of the object.
func (d *Door) prepared(r *http.Request, a *action) (*form, error) {
	f := &form{ID: r.PathValue("id"), Title: a.text}
	if err := a.prepare(d, r, f); err != nil {
		return nil, err
	}
	f.finish()
	return f, nil
}

// showAction shows the form. The query may contain values of fields, so that a link can open a filled form; but the name of what an action destroys
// must be typed.
func (d *Door) showAction(w http.ResponseWriter, r *http.Request, a *action, by identity.AccessKey) {
	at := d.engine.Applied()
	var f *form
	err := d.mayOpen(r, a, by)
	if err == nil {
		f, err = d.prepared(r, a)
	}
	if err != nil {
		d.refuse(w, r, err, by)
		return
	}
	query := r.URL.Query()
	query.Del(confirmField)
	query.Del(seenField)
	f.fill(query)
	d.writeAction(w, r, http.StatusOK, at, a, f, by)
}

func (d *Door) writeAction(w http.ResponseWriter, r *http.Request, status int, at uint64, a *action, f *form, by identity.AccessKey) {
	p := &actionPage{form: f, Text: a.text, Path: r.URL.EscapedPath(), Command: a.command(f), May: d.mayNot(a, by.Role)}
	if a.page == editorPage {
		d.writeEditor(w, r, status, &editor{actionPage: p}, by)
		return
	}
	if a.page == policyEditorPage {
		d.writePolicyEditor(w, r, status, p, by)
		return
	}
	d.write(w, r, status, &content{Title: f.Title, Section: a.section, page: "action", At: at, Data: p}, by)
}

// mayOpen refuses the form of an action on something that only administrators see to those who may not execute the action: the form shows its object.
func (d *Door) mayOpen(r *http.Request, a *action, by identity.AccessKey) error {
	if !slices.Contains([]string{"keys", "policies", "people"}, a.section) {
		return nil
	}
	if why := d.mayNot(a, by.Role); why != "" {
		return denied("“" + a.text + "” " + why + ".")
	}
	who := &actor{Principal: by.Principal(d.config.Proxies.Of(r))}
	if err := d.mayDo(r, a, who, ""); err != nil {
		return denied(err.Error())
	}
	return nil
}

// mayDo checks a person's policies for an action that is not an operation of the service API, and for the fleet named in its form.
func (d *Door) mayDo(r *http.Request, a *action, who *actor, fleetID string) error {
	service, ok := policy.Of(a.service)
	if !ok { // denied to people with policies
		return who.MayCall(a.service)
	}
	q := permit.Request{By: &who.Principal, Engine: d.engine}
	if a.section == "aliases" { // about rollouts
		q.Name(permit.Alias, r.PathValue("id"))
		if fleetID != "" {
			q.Name(permit.Fleet, fleetID)
		}
	}
	return q.May(r.Context(), service)
}

// act executes a submitted form.
func (d *Door) act(w http.ResponseWriter, r *http.Request, a *action, by identity.AccessKey) {
	at := d.engine.Applied()
	who := &actor{Principal: by.Principal(d.config.Proxies.Of(r))}
	who.origin = audit.Origin{Principal: who.ID, Door: audit.DoorConsole, Address: who.Address, Agent: r.UserAgent(), Operation: cmp.Or(a.operation, a.name)}
	refuse := func(status int, text string) {
		d.config.Audit.RefusedAs(who.origin, "AccessDenied")
		d.write(w, r, status, &content{Title: http.StatusText(status), page: "refusal", Data: text}, by)
	}
	switch why := d.mayNot(a, by.Role); {
	case !d.ownPage(r):
		refuse(http.StatusForbidden, "A page of another site sent this form. Nothing was changed.")
		return
	case !d.config.Private(r):
		refuse(http.StatusForbidden, "This connection is not encrypted, so the form could be altered in transit. Nothing was changed: use https.")
		return
	case why != "":
		refuse(http.StatusForbidden, "Access key "+by.ID+" has the role "+by.Role.String()+". “"+a.text+"” "+why+". Nothing was changed.")
		return
	}
	values, err := readForm(w, r, cmp.Or(a.bytesMax, formBytesMax))
	if err == nil && a.operation == "" {
		if err := d.mayDo(r, a, who, values.Get("fleet")); err != nil {
			refuse(http.StatusForbidden, err.Error()+". Nothing was changed.")
			return
		}
	}
	var f *form
	if err == nil {
		f, err = d.prepared(r, a)
	}
	if err == nil {
		err = f.sent(values)
	}
	if err != nil {
		d.refuse(w, r, err, by)
		return
	}
	to := ""
	if f.valid() {
		who.origin.Reason = f.value(reasonField)
		to, err = a.do(audit.With(r.Context(), who.origin), d, who, f)
		if code := refusalCode(err); code != "" {
			d.config.Audit.RefusedAs(who.origin, code)
		} else if err == nil && f.valid() {
			d.log.Info("an action of the console", "action", a.name, "id", f.ID, "reason", who.origin.Reason, "principal", who.ID, "address", who.Address)
		}
	}
	status := http.StatusUnprocessableEntity
	if err != nil {
		var whole bool
		if status, f.Problem, whole = d.problem(err); !whole {
			d.refuse(w, r, err, by)
			return
		}
	}
	if err != nil || !f.valid() {
		d.writeAction(w, r, status, at, a, f, by)
		return
	}
	if f.Made != nil { // shown only once, so it is in this answer and not on a page that can be fetched again
		d.write(w, r, http.StatusOK, &content{Title: a.done, Section: a.section, page: "made-key", Still: true, Data: f.Made}, by)
		return
	}
	http.Redirect(w, r, d.withDone(to, a.name, by.ID), http.StatusSeeOther)
}

// problem returns the text for the form about an error, and its status; ok is false if a person cannot do anything about the error.
func (d *Door) problem(err error) (status int, text string, ok bool) {
	if refused, ok := errors.AsType[*domain.Refusal](err); ok {
		if refused.Reason == domain.Overloaded {
			return http.StatusServiceUnavailable, refused.Detail, true
		}
		return http.StatusUnprocessableEntity, refused.Detail, true
	}
	refused, ok := errors.AsType[apiRefusal](err)
	if !ok {
		return 0, "", false
	}
	switch refused.ErrorCode() {
	case codeThrottling:
		return http.StatusTooManyRequests, "Too many requests with this access key. Try again in a few seconds.", true
	case codeInternal: // the API's message names the request by an id that this page does not have
		return http.StatusServiceUnavailable, "The request failed inside the service; the log has the cause.", true
	case codeUnavailable:
		return http.StatusServiceUnavailable, refused.ErrorMessage(), true
	}
	return http.StatusUnprocessableEntity, cmp.Or(refused.ErrorMessage(), "The service refused it: "+refused.ErrorCode()+"."), true
}

// refusalCode returns the audit log's name for a refusal caused by the person; empty: err is not such a refusal.
func refusalCode(err error) string {
	if refused, ok := errors.AsType[*domain.Refusal](err); ok {
		if refused.Reason == domain.Overloaded {
			return ""
		}
		return refused.Reason.String()
	}
	if refused, ok := errors.AsType[apiRefusal](err); ok && refused.ErrorCode() != codeThrottling && refused.ErrorCode() != codeInternal && refused.ErrorCode() != codeUnavailable {
		return refused.ErrorCode()
	}
	return ""
}

// Codes of the service API for errors not caused by a person.
const (
	codeThrottling  = "ThrottlingException"
	codeInternal    = "InternalServiceException"
	codeUnavailable = "ServiceUnavailableException"
)

// doneLife is how long the page after an action confirms what was done.
const doneLife = 5 * time.Minute

// withDone returns the path of a page that confirms what a person has done. The confirmation is signed, so that no link can make a page show it to
// another person.
func (d *Door) withDone(to, name, key string) string {
	u, err := url.Parse(Prefix + "/" + to)
	if err != nil { // a page of our own
		return Prefix + "/"
	}
	q := u.Query()
	until := strconv.FormatInt(time.Now().Add(doneLife).Unix(), 10)
	q.Set(doneParameter, name+"."+until+"."+doneSignature(d.config.Secret, name, until, key))
	u.RawQuery = q.Encode()
	return u.RequestURI()
}

// doneParameter is the URL parameter that withDone adds.
const doneParameter = "done"

// doneSignature signs a confirmation. The signed text ends with a word, that of a cookie's ticket with a number, so neither can be used as the other.
func doneSignature(by identity.CellSecret, name, until, key string) string {
	return base64.RawURLEncoding.EncodeToString(by.ConsoleSignature(key + "." + name + "." + until + ".done"))
}

// whatWasDone returns the confirmation for the person with a key who comes from an action; empty: there is none.
func (d *Door) whatWasDone(query url.Values, key string) string {
	name, rest, _ := strings.Cut(query.Get(doneParameter), ".")
	until, signature, _ := strings.Cut(rest, ".")
	seconds, err := strconv.ParseInt(until, 10, 64)
	a, known := actions[name]
	if err != nil || !known || !d.config.Secret.Accepts("address of a page of the console", func(g identity.CellSecret) bool {
		return identity.Equal(signature, doneSignature(g, name, until, key))
	}) || time.Now().After(time.Unix(seconds, 0)) {
		return ""
	}
	return a.done
}

// perform executes an operation of the service API.
func (d *Door) perform(ctx context.Context, by *actor, operation string, input map[string]any) (output map[string]any, err error) {
	maps.DeleteFunc(input, func(_ string, value any) bool { return value == "" }) // empty fields count as not given
	answer, err := d.config.API.Perform(ctx, &by.Principal, operation, mustJSON(input))
	if err != nil || len(answer) == 0 {
		return nil, err
	}
	err = json.Unmarshal(answer, &output)
	return output, err
}

// mustJSON encodes texts, numbers, and lists and maps of them.
func mustJSON(x any) []byte {
	text, err := json.Marshal(x)
	if err != nil {
		panic(err) // cannot happen with such values
	}
	return text
}

// offer is a link to an action's page, or to another page about a row.
type offer struct {
	Text, URL string
	Why       string // why it is not available; empty: it is
	Of        string // name of the object, for screen readers; empty: the page is about it
}

// Offer returns the link to an action, on an object if it has one.
func (f frame) Offer(name string, id ...string) offer {
	return f.door.offer(f.role, name, strings.Join(id, "/"))
}

// OfferOf is Offer for one of several rows; `of` distinguishes them for screen readers.
func (f frame) OfferOf(name, of string, id ...string) offer {
	x := f.Offer(name, id...)
	x.Of = of
	return x
}

// offer returns the link to an action on an object, whose id may have several parts; empty: the action has no object.
func (d *Door) offer(role identity.Role, name, id string) offer {
	a := actions[name]
	path := Prefix + "/do/" + name
	if id != "" {
		path += "/" + escaped(id)
	}
	return offer{Text: a.text, URL: path, Why: d.mayNot(a, role)}
}

// terminal formats a command for a terminal. An option with an empty value gets its placeholder; without a placeholder, the option is omitted.
func terminal(command string, options ...option) string {
	var text strings.Builder
	text.WriteString(command)
	for _, o := range options {
		switch {
		case o.value != "":
			text.WriteString(" " + o.name + " " + shellWord(o.value))
		case o.placeholder != "":
			text.WriteString(" " + o.name + " " + o.placeholder)
		}
	}
	return text.String()
}

type option struct{ name, value, placeholder string }

// escaped returns an id escaped for a path. Slashes stay readable, unless browsers and servers would change the path because it has empty or dotted parts.
func escaped(id string) string {
	if whole := "/" + id; path.Clean(whole) != whole {
		return url.PathEscape(id)
	}
	return (&url.URL{Path: id}).EscapedPath()
}

// name returns the actor's name in records.
func (by *actor) name() string { return cmp.Or(by.ID, "console") }

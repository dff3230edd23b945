package sso

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	domainaudit "github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/excerpt"
)

// stateMax bounds the state parameter that a client gets back, in bytes.
const stateMax = 512

// authorization is a request for a code that has been checked.
type authorization struct {
	client    *client
	id        string // of the client
	redirect  *url.URL
	state     string
	challenge []byte
}

// readAuthorization checks a request. A problem with the client or its redirect URI is shown only to the person, because the browser must not be
// redirected there. For any other problem, the client gets the OAuth error code.
func (d *Door) readAuthorization(r *http.Request) (x authorization, problem, code string) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return x, "The address of this page is incomplete. Start again in the program that sent you here.", ""
	}
	for name, values := range q {
		if len(values) > 1 { // a duplicate is an attempt to make one part of the service see the first value, and another part the last
			return x, "The address of this page contains " + excerpt.Short(name) + " twice. Start again in the program that sent you here.", ""
		}
	}
	x.client = &client{}
	x.id = q.Get("client_id")
	switch uri := q.Get("redirect_uri"); {
	case !d.open(clientKind, x.id, clientIDMax, x.client) || !d.now().Before(x.client.Expires):
		return x, "The program that sent you here is not registered with this installation, or its registration has expired. Start again in the program.", ""
	case !x.client.redirects(uri):
		return x, "The program that sent you here asked for the answer at an address that it has not registered. Nothing was approved.", ""
	default:
		x.redirect, _ = loopback(uri)
	}
	x.state = q.Get("state")
	if len(x.state) > stateMax {
		x.state = ""
		return x, "", "invalid_request"
	}
	x.challenge, err = base64.RawURLEncoding.Strict().DecodeString(q.Get("code_challenge"))
	scopes := strings.Fields(q.Get("scopes") + " " + q.Get("scope"))
	switch {
	case x.client.Grants&byCode == 0:
		return x, "", "unauthorized_client"
	case q.Get("response_type") != "code":
		return x, "", "unsupported_response_type"
	case q.Get("code_challenge_method") != "S256" || err != nil || len(x.challenge) != 32:
		return x, "", "invalid_request"
	}
	for _, scope := range scopes {
		if scope != accountScope {
			return x, "", "invalid_scope"
		}
	}
	return x, "", ""
}

// back redirects the browser to the program. The answer names this service as the issuer, so that a program that knows several cannot confuse them
// (RFC 9207).
func (d *Door) back(w http.ResponseWriter, r *http.Request, x *authorization, name, value string) {
	q := url.Values{name: {value}, "iss": {d.base(r)}}
	if x.state != "" {
		q.Set("state", x.state)
	}
	d.policy(w, x.redirect.Scheme+"://"+x.redirect.Host)
	http.Redirect(w, r, withQuery(x.redirect, q), http.StatusSeeOther)
}

// showAuthorize asks the person whether a program may act for them. Showing the page approves nothing.
func (d *Door) showAuthorize(w http.ResponseWriter, r *http.Request) {
	x, problem, code := d.readAuthorization(r)
	switch {
	case problem != "":
		d.message(w, http.StatusBadRequest, problem)
		return
	case code != "":
		d.back(w, r, &x, "error", code)
		return
	}
	p, ok := d.person(w, r, r.URL.RequestURI())
	if !ok {
		return
	}
	d.policy(w, x.redirect.Scheme+"://"+x.redirect.Host)
	d.show(w, http.StatusOK, "authorize", view{Title: "Allow access", Who: p.Name, Token: d.formToken(&p, r.URL.RawQuery), Client: x.client.Name, Target: x.redirect.Host,
		Query: authorizePath + "?" + r.URL.RawQuery, Roles: roleNames(&p)})
}

// answerAuthorize redirects the browser back with a code, or with the refusal.
func (d *Door) answerAuthorize(w http.ResponseWriter, r *http.Request) {
	x, problem, code := d.readAuthorization(r)
	if problem != "" || code != "" {
		d.message(w, http.StatusBadRequest, "The form was not sent to the address of its page. Nothing was approved.")
		return
	}
	p, ok := d.person(w, r, r.URL.RequestURI())
	if !ok {
		return
	}
	if !d.checkForm(r, &p, r.URL.RawQuery) {
		d.message(w, http.StatusForbidden, wrongForm)
		return
	}
	if r.PostForm.Get("answer") != "approve" {
		d.back(w, r, &x, "error", "access_denied")
		return
	}
	id := newID()
	err := d.config.Engine.Do(r.Context(), &domainaudit.Note{By: d.origin(r, &p, "AuthorizeClient"), Kind: "sign-in client", ID: short(x.id), Changes: []domainaudit.Change{
		{Field: "Client", After: x.client.Name}, {Field: "Session", After: p.SignIn},
	}})
	if err != nil {
		d.unable(w, err)
		return
	}
	uri := r.URL.Query().Get("redirect_uri")
	d.back(w, r, &x, "code", d.seal(codeKind, &authCode{ID: id, SignIn: p.SignIn, Client: short(x.id), Redirect: digest(uri), Challenge: x.challenge, Expires: d.now().Add(codeLife)}))
}

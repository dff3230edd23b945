package sso

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/engine"
)

//go:embed pages
var pageFiles embed.FS

var templates = parse("authorize", "device", "confirm", "message", "login", "copy")

func parse(names ...string) map[string]*template.Template {
	all := map[string]*template.Template{}
	for _, name := range names {
		all[name] = template.Must(template.ParseFS(pageFiles, "pages/layout.html", "pages/"+name+".html"))
	}
	return all
}

// formLife is how long after a page is shown its form can be submitted. formBytesMax bounds the form.
const (
	formLife     = 10 * time.Minute
	formBytesMax = 8 << 10
	queryMax     = 6 << 10
)

// view is the content of a page.
type view struct {
	Title, Style string
	Who          string // name of the person who has signed in; empty: not signed in
	Token        string // of the form
	Problem      string

	Client, Address, Code, Target, Query string
	Roles                                []string
	Done                                 bool
}

// page serves a browser.
func (d *Door) page(w http.ResponseWriter, r *http.Request, get, post http.HandlerFunc) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	d.policy(w, "")
	switch {
	case !d.config.Private(r):
		d.message(w, http.StatusForbidden, "This connection is not encrypted, so others on the network could act as you: use https.")
	case len(r.URL.RawQuery) > queryMax:
		d.message(w, http.StatusRequestURITooLong, "The address of this page is too long.")
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		get(w, r)
	case r.Method == http.MethodPost && !d.config.People.OwnPage(r):
		d.message(w, http.StatusForbidden, "Another site's page sent this form. Nothing was approved.")
	case r.Method == http.MethodPost:
		r.Body = http.MaxBytesReader(w, r.Body, formBytesMax)
		if err := r.ParseForm(); err != nil {
			d.message(w, http.StatusBadRequest, "The form cannot be read.")
			return
		}
		post(w, r)
	default:
		h.Set("Allow", "GET, POST")
		d.message(w, http.StatusMethodNotAllowed, "This page takes GET and POST only.")
	}
}

// policy allows a page only our style sheet, and its form only our own origin and one other, because browsers also check where the form's answer
// redirects.
func (d *Door) policy(w http.ResponseWriter, origin string) {
	w.Header().Set("Content-Security-Policy", strings.TrimSuffix("default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self' "+origin, " "))
}

func (d *Door) show(w http.ResponseWriter, status int, name string, v view) {
	v.Style = d.config.Style
	var page bytes.Buffer
	if err := templates[name].ExecuteTemplate(&page, "layout.html", v); err != nil {
		d.config.Log.Error("a page for signing in failed", "page", name, "error", err)
		http.Error(w, "The page failed inside the service; the log has the cause.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes()) // the browser has gone if it fails
}

func (d *Door) message(w http.ResponseWriter, status int, text string) {
	d.show(w, status, "message", view{Title: "Sign in", Problem: text})
}

// unable shows the page for a failure inside the service.
func (d *Door) unable(w http.ResponseWriter, err error) {
	if errors.Is(err, engine.ErrStopped) || errors.Is(err, engine.ErrNotLeading) {
		d.message(w, http.StatusServiceUnavailable, "This node cannot answer for the cluster at the moment. Try again.")
		return
	}
	if p, ok := errors.AsType[*domain.Refusal](err); ok && p.Reason != domain.Invalid {
		d.message(w, http.StatusConflict, strings.ToUpper(p.Detail[:1])+p.Detail[1:]+".")
		return
	}
	if !errors.Is(err, context.Canceled) { // else the browser has left
		d.config.Log.Error("a page for signing in failed", "error", err)
	}
	d.message(w, http.StatusInternalServerError, "The request failed inside the service; the log has the cause.")
}

// formToken returns a token which proves that a form about a subject was made for a person. A page of another site can make a browser submit a form,
// but cannot read ours.
func (d *Door) formToken(p *Person, about string) string {
	return d.seal(formKind, &form{SignIn: p.SignIn, Of: digest(about), Expires: d.now().Add(formLife)})
}

// wrongForm is the message for a form that checkForm refuses.
const wrongForm = "This form does not come from a page that was made for you in the last ten minutes. Nothing was approved."

func (d *Door) checkForm(r *http.Request, p *Person, about string) bool {
	var x form
	return d.open(formKind, r.PostForm.Get("token"), tokenMax, &x) && x.SignIn == p.SignIn && bytes.Equal(x.Of, digest(about)) && d.now().Before(x.Expires)
}

// person returns the person who has signed in. Without a sign-in, it redirects the browser to the sign-in page, which leads back here.
func (d *Door) person(w http.ResponseWriter, r *http.Request, back string) (Person, bool) {
	p, ok := d.config.People.Browser(r)
	if !ok {
		d.config.People.SignIn(w, r, back)
	}
	return p, ok
}

func (d *Door) origin(r *http.Request, p *Person, operation string) audit.Origin {
	return audit.Origin{Principal: p.Holder, Door: audit.DoorSignIn, Address: d.from(r), Agent: r.UserAgent(), Operation: operation}
}

func roleNames(p *Person) (names []string) {
	for _, role := range rolesOf(p) {
		names = append(names, role.String())
	}
	return names
}

// withQuery adds to the query of a URL that has none.
func withQuery(u *url.URL, q url.Values) string {
	to := *u
	to.RawQuery = q.Encode()
	return to.String()
}

package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/people"
	"github.com/musterhq/muster/internal/signin"
)

// cookieName has the prefix __Host-, so browsers accept the cookie only from this host over TLS. Development mode has no sessions.
const cookieName = "__Host-muster-console"

// plainCookieName is the cookie's name if the console is used without TLS on the same machine.
const plainCookieName = "muster-console"

// sessionLife is how long a sign-in lasts.
const sessionLife = 12 * time.Hour

// signInBytesMax bounds the form of a sign-in.
const signInBytesMax = 4 << 10

// ticket returns the value of a cookie: the handle of the key that has signed in and the expiry, with a signature.
func (d *Door) ticket(key string, expires time.Time) string {
	text := key + "." + strconv.FormatInt(expires.Unix(), 10)
	return text + "." + base64.RawURLEncoding.EncodeToString(d.config.Secret.ConsoleSignature(text))
}

// holder returns the valid key of a ticket sent by a browser at an address.
func (d *Door) holder(ticket, from string, now time.Time) (key identity.AccessKey, expires time.Time, ok bool) {
	text, signature, _ := cutLast(ticket, ".")
	sent, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	if err != nil || !d.config.Secret.Accepts("sign-in to the console", func(g identity.CellSecret) bool {
		return subtle.ConstantTimeCompare(sent, g.ConsoleSignature(text)) == 1
	}) {
		return key, expires, false
	}
	id, until, _ := cutLast(text, ".")
	seconds, err := strconv.ParseInt(until, 10, 64)
	if err != nil || !now.Before(time.Unix(seconds, 0)) {
		return key, expires, false
	}
	key, err = identity.FindHandle(d.config.Keys, id, from)
	return key, time.Unix(seconds, 0), err == nil && identity.MayLook.Allow(key.Role)
}

func cutLast(text, separator string) (before, after string, ok bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// session returns the key with which a request's browser has signed in.
func (d *Door) session(r *http.Request) (key identity.AccessKey, expires time.Time, ok bool) {
	if d.config.Dev {
		return identity.AccessKey{ID: "development mode", Account: identity.DefaultAccount, Role: identity.Admin}, time.Now().Add(sessionLife), true
	}
	name := cookieName
	if !d.config.Secure(r) {
		name = plainCookieName // which, over TLS, a sibling host or a page without TLS may have set
	}
	cookie, err := r.Cookie(name)
	if err != nil {
		return key, expires, false
	}
	return d.holder(cookie.Value, d.config.Proxies.Of(r), time.Now())
}

// LookAction is the action of looking at any page in policies, because the pages show everything.
const LookAction = "muster:Console.Look"

// signedIn serves requests of people who have signed in, and shows others the sign-in page. It does not redirect a submitted form, whose contents
// only the browser has: a reload sends them again.
func (d *Door) signedIn(next func(http.ResponseWriter, *http.Request, identity.AccessKey)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key, _, ok := d.session(r)
		if ok {
			connlimit.Prove(r.Context())
			by := key.Principal(d.config.Proxies.Of(r))
			by.Used("console")
			if err := by.MayCall(LookAction); err != nil {
				d.write(w, r, http.StatusForbidden, &content{Title: http.StatusText(http.StatusForbidden), page: "refusal", Data: err.Error()}, key)
				return
			}
			next(w, r, key)
			return
		}
		if r.URL.Path == livePath {
			leadToSignIn(w)
			return
		}
		target := Prefix + "/sign-in?to=" + url.QueryEscape(r.URL.RequestURI())
		if r.Header.Get("HX-Request") != "" { // the answer must replace the page, and not a part of it; a page in which a person writes stays
			w.Header().Set("HX-Redirect", target)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodPost && d.ownPage(r) {
			d.write(w, r, http.StatusUnauthorized, &content{Title: "Sign in", page: "signed-out"}, identity.AccessKey{})
			return
		}
		http.Redirect(w, r, target, http.StatusSeeOther)
	}
}

// signInForm is the content of the sign-in page.
type signInForm struct {
	To, Key, Problem string
	Ways             []people.Way // other than access keys
}

func (d *Door) showSignIn(w http.ResponseWriter, r *http.Request) {
	if _, _, ok := d.session(r); ok {
		http.Redirect(w, r, within(r.URL.Query().Get("to")), http.StatusSeeOther)
		return
	}
	to := within(r.URL.Query().Get("to"))
	if !d.takeOver(w, r, to) {
		d.writeSignIn(w, r, http.StatusOK, signInForm{To: to})
	}
}

func (d *Door) writeSignIn(w http.ResponseWriter, r *http.Request, status int, f signInForm) {
	f.Ways = d.waysToSignIn(f.To)
	d.write(w, r, status, &content{Title: "Sign in", page: "sign-in", Data: f}, identity.AccessKey{})
}

// within returns the path of the console to redirect to. Any other target is replaced, because a link must not lead a person to another site.
func within(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || !Serves(u.Path) || strings.HasPrefix(u.Path, Prefix+"/sign-in") || u.Path == linkPath {
		return Prefix + "/"
	}
	return u.RequestURI()
}

// ownPage reports whether a form was sent from a page of this console. All recent browsers say so in a header that pages cannot set.
func (d *Door) ownPage(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin":
		return true
	case "":
		origin, err := url.Parse(r.Header.Get("Origin"))
		return err == nil && origin.Host != "" && strings.EqualFold(origin.Host, r.Host) && (origin.Scheme == "https" || !d.config.Secure(r)) // a page without TLS may be forged
	}
	return false
}

func (d *Door) signIn(w http.ResponseWriter, r *http.Request) {
	form, err := readForm(w, r, signInBytesMax)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f := signInForm{To: within(form.Get("to")), Key: strings.TrimSpace(form.Get("key"))}
	refuse := func(status int, problem string) {
		f.Problem = problem
		d.writeSignIn(w, r, status, f)
	}
	switch {
	case !d.ownPage(r):
		refuse(http.StatusForbidden, "A page of another site sent this form. Sign in here.")
		return
	case !d.config.Private(r):
		refuse(http.StatusForbidden, "This connection is not encrypted, so the secret may have been read in transit: use https, and revoke this key.")
		return
	}
	key, err := d.config.Signins.Proven(d.config.Keys, d.config.Proxies.Of(r), f.Key, strings.TrimSpace(form.Get("secret")))
	if slow, ok := errors.AsType[*signin.Slowed](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(slow.Seconds()))
		refuse(http.StatusTooManyRequests, slow.Error())
		return
	}
	switch {
	case errors.Is(err, identity.ErrExpired):
		refuse(http.StatusUnauthorized, "This access key, or these temporary credentials, have expired.")
		return
	case err != nil:
		refuse(http.StatusUnauthorized, "The access key or its secret is wrong.")
		return
	case !identity.MayLook.Allow(key.Role):
		refuse(http.StatusForbidden, "Access key "+key.ID+" has the role "+key.Role.String()+", which may not look at the console. Use one of the role readonly, backend or admin.")
		return
	}
	d.enter(w, r, key.Handle(), f.To, "secret")
}

// enter signs a browser in with the key of a handle.
func (d *Door) enter(w http.ResponseWriter, r *http.Request, handle, to, by string) {
	http.SetCookie(w, d.cookie(r, d.ticket(handle, time.Now().Add(sessionLife)), int(sessionLife/time.Second)))
	key, _, _ := strings.Cut(handle, ".")
	d.log.Info("signed in to the console", "key", key, "by", by, "address", d.config.Proxies.Of(r))
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// cookie returns the session's cookie. Private connections without TLS come from the same machine.
func (d *Door) cookie(r *http.Request, value string, maxAge int) *http.Cookie {
	c := &http.Cookie{Name: cookieName, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: true, SameSite: http.SameSiteStrictMode}
	if !d.config.Secure(r) {
		c.Name, c.Secure = plainCookieName, false
	}
	return c
}

func (d *Door) signOut(w http.ResponseWriter, r *http.Request) {
	if d.ownPage(r) {
		http.SetCookie(w, d.cookie(r, "", -1))
		if d.config.People != nil && d.config.People.SignOut(w, r) != nil {
			d.write(w, r, http.StatusServiceUnavailable, &content{Title: "Sign out", page: "refusal", Data: people.NotEnded}, identity.AccessKey{})
			return
		}
	}
	http.Redirect(w, r, Prefix+"/sign-in", http.StatusSeeOther)
}

// version returns the part of a static file's URL that changes with its content, so that browsers can cache the file until then.
func version(content []byte) string {
	sum := sha256.Sum256(content)
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

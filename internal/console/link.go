package console

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/signin"
)

// linkPath is the page of a sign-in link. The code is in the fragment, which browsers send to no server, neither in the request nor in the Referer.
const linkPath = Prefix + "/link"

// Link returns a path of the console that signs one browser in with an access key, at any node, until it expires. In development mode, it returns the
// console's own path, and expires is zero.
func (d *Door) Link(ctx context.Context, key string) (path string, expires time.Time, err error) {
	if d.config.Dev {
		return Prefix + "/", expires, nil
	}
	cmd := access.IssueConsoleLink{ID: rand.Text(), Key: key}
	if err := d.engine.Do(ctx, &cmd); err != nil {
		return "", expires, err
	}
	return linkPath + "#" + cmd.ID + "." + d.config.Secret.ConsoleLinkSignature(cmd.ID), cmd.Expires.Std(), nil
}

// showLink asks whether to sign in. Showing the page does not use up the link, so programs that prefetch links do no harm.
func (d *Door) showLink(w http.ResponseWriter, r *http.Request) { d.writeLink(w, r, http.StatusOK, "") }

func (d *Door) writeLink(w http.ResponseWriter, r *http.Request, status int, problem string) {
	d.write(w, r, status, &content{Title: "Sign in with a link", page: "link", Data: problem}, identity.AccessKey{})
}

// useLink signs in with the code of a link. Only a code that this installation has signed is looked up in the state.
func (d *Door) useLink(w http.ResponseWriter, r *http.Request) {
	form, err := readForm(w, r, signInBytesMax)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch {
	case !d.ownPage(r):
		d.writeLink(w, r, http.StatusForbidden, "A page of another site sent this form. Open the link itself.")
		return
	case !d.config.Private(r):
		d.writeLink(w, r, http.StatusForbidden, "This connection is not encrypted, so the link may have been read in transit: use https, and a new link.")
		return
	}
	from := d.config.Proxies.Of(r)
	fail := func(status int, reason signin.Reason, problem string) {
		if slow := d.config.Signins.Fail(signin.Failure{From: from, Reason: reason}); slow != nil {
			w.Header().Set("Retry-After", strconv.Itoa(slow.Seconds()))
			status, problem = http.StatusTooManyRequests, slow.Error()
		}
		d.writeLink(w, r, status, problem)
	}
	id, signature, _ := strings.Cut(strings.TrimSpace(form.Get("code")), ".")
	if !d.config.Secret.Accepts("link to the console", func(g identity.CellSecret) bool { return identity.Equal(signature, g.ConsoleLinkSignature(id)) }) {
		fail(http.StatusUnauthorized, signin.WrongToken, "This is not a link of this service, or it is incomplete. Copy the whole line that muster console printed.")
		return
	}
	cmd := access.UseConsoleLink{ID: id}
	err = d.engine.Do(r.Context(), &cmd)
	refused, ok := errors.AsType[*domain.Refusal](err)
	switch {
	case ok && refused.Reason == domain.Conflict:
		fail(http.StatusUnauthorized, signin.Expired, "The access key of this link was revoked.")
		return
	case ok && refused.Reason == domain.NotFound:
		fail(http.StatusUnauthorized, signin.Expired, "This link was used, or it is older than "+minutes(access.ConsoleLinkLife)+". Run muster console again for a new one.")
		return
	case err != nil: // the link may or may not be used up: the person needs a new one in any case
		d.refuse(w, r, err, identity.AccessKey{})
		return
	}
	d.enter(w, r, cmd.Key, Prefix+"/", "link")
}

func minutes(d time.Duration) string { return strconv.Itoa(int(d/time.Minute)) + " minutes" }

package people

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/grants"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/people/providers"
	"github.com/musterhq/muster/internal/rate"
	"github.com/musterhq/muster/internal/signin"
)

// logoutRate limits logouts from one address, which is the provider's.
var logoutRate = rate.Every(time.Second/10, 100)

// backchannelLogout receives a provider's message that a person signed out there: OpenID Connect Back-Channel Logout 1.0. After the answer, this node refuses all credentials and tokens of the
// sessions; the other nodes do so within a second.
func (d *Door) backchannelLogout(w http.ResponseWriter, r *http.Request) {
	from := d.config.Proxies.Of(r)
	if !d.logouts.Allow(from) {
		refuseLogout(w, http.StatusTooManyRequests, "Too many requests from this address.")
		return
	}
	p := d.file.Get().byName[r.PathValue("provider")]
	if p == nil {
		refuseLogout(w, http.StatusNotFound, "There is no such provider.")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, bodyMax)
	if err := r.ParseForm(); err != nil || len(r.PostForm["logout_token"]) != 1 {
		refuseLogout(w, http.StatusBadRequest, "want a form with one logout_token")
		return
	}
	said, err := p.Logout(r.Context(), r.PostForm.Get("logout_token"))
	switch {
	case errors.Is(err, providers.ErrBusy):
		w.Header().Set("Retry-After", "1")
		refuseLogout(w, http.StatusServiceUnavailable, "Too many logouts at the moment.")
		return
	case errors.Is(err, providers.ErrTooSoon):
		w.Header().Set("Retry-After", "10")
		refuseLogout(w, http.StatusServiceUnavailable, "The key of the logout_token is unknown, and the keys were fetched only a moment ago. Try again.")
		return
	case errors.Is(err, providers.ErrUnreachable):
		d.unreached.log(d.log, slog.LevelWarn, "a logout token cannot be checked", "provider", p.Name, "error", err)
		w.Header().Set("Retry-After", "10")
		refuseLogout(w, http.StatusServiceUnavailable, "The keys for the logout_token cannot be fetched. Try again.")
		return
	case err != nil:
		if slow := d.config.Signins.Fail(signin.Failure{From: from, Reason: signin.WrongToken, Cause: err}); slow != nil {
			w.Header().Set("Retry-After", strconv.Itoa(slow.Seconds()))
			refuseLogout(w, http.StatusTooManyRequests, slow.Error())
			return
		}
		refuseLogout(w, http.StatusBadRequest, "the logout_token was not issued by the provider for this service, or is too old")
		return
	}
	ended, err := d.logOut(r, p.Name, &said)
	if domain.IsRefused(err, domain.Conflict) {
		refuseLogout(w, http.StatusBadRequest, "the logout_token was used before")
		return
	}
	if err != nil {
		d.log.Error("a logout by an identity provider failed: the sessions stay valid until the provider repeats it or no longer confirms them", "provider", p.Name, "error", err)
		w.Header().Set("Retry-After", "1")
		refuseLogout(w, http.StatusServiceUnavailable, "This failed inside the service. Try again.")
		return
	}
	proven(r)
	d.log.Info("identity provider has signed a person out", "provider", p.Name, "subject", short(said.Subject), "sessions", ended)
	w.WriteHeader(http.StatusOK)
}

// logOut ends the sessions that a logout names, once.
func (d *Door) logOut(r *http.Request, provider string, said *providers.Logout) (ended int, err error) {
	holder := ""
	if said.Subject != "" {
		holder = provider + "/" + said.Subject
	}
	ctx := audit.With(context.WithoutCancel(r.Context()), d.origin(r, cmp.Or(holder, provider), "BackChannelLogout"))
	sum := sha256.Sum256([]byte(provider + "\x00" + said.ID))
	once := &grants.UseCode{Kind: grants.Logout, ID: base64.RawURLEncoding.EncodeToString(sum[:]), SignIn: provider, Expires: grants.ExpiresIn(d.engine.Now(), time.Until(said.Until))}
	cmd := &people.EndSessionsOf{Holder: holder, Provider: provider, Sid: said.Sid, Cause: people.LoggedOut}
	// The token is marked as used after the sessions have ended: a logout that fails in between can be repeated, and a later repetition does not end sessions that began since.
	used := false
	if err := d.engine.Read(ctx, func(v *cell.View) error { used = v.UsedOnce(grants.Logout, once.ID); return nil }); err != nil {
		return 0, err
	}
	if used {
		return 0, domain.Refuse(domain.Conflict, "the token was used")
	}
	if err := d.engine.Do(ctx, cmd); err != nil {
		return 0, err
	}
	if err := d.engine.Do(ctx, once); err != nil {
		return 0, err
	}
	if cmd.Ended == 0 {
		return 0, nil
	}
	return cmd.Ended, d.config.Keys.Await(ctx, cmd.Number)
}

// refuseLogout answers in the form of OpenID Connect Back-Channel Logout 1.0.
func refuseLogout(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_request", "error_description": text}) // fails if the provider has gone
}

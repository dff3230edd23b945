// Package metrics is the door of machines that watch an installation: GET /metrics in Prometheus' text form.
//
// It shows the matchers, whose work is bounded: what a rule set costs, and when it was cut short; and what others register.
package metrics

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/connlimit"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/matchmaker"
	"github.com/musterhq/muster/internal/signin"
)

// Path is where the door is.
const Path = "/metrics"

// Config is what a Door needs.
type Config struct {
	Keys        identity.Finder
	Dev         bool // anybody may look
	Matchmakers func() []matchmaker.Status
	Private     func(*http.Request) bool // reports whether nobody on the way could read a request
	Proxies     clientaddress.Proxies
	Signins     *signin.Door
	Log         *slog.Logger
}

// Door answers those who watch. They name an access key of any role but client, as user and password: Prometheus cannot
// sign requests.
type Door struct {
	config   Config
	registry *prometheus.Registry
	inner    http.Handler
}

// NewDoor makes a Door.
func NewDoor(c Config) *Door {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&matchmakers{c.Matchmakers})
	return &Door{c, registry, promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelError)})}
}

// Register shows more: what nobody else shows under the same names.
func (d *Door) Register(all ...prometheus.Collector) { d.registry.MustRegister(all...) }

func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, refused := d.authorize(r)
	if refused == "" {
		d.inner.ServeHTTP(w, r)
		return
	}
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Basic realm="Muster"`)
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", retryAfter)
	}
	http.Error(w, refused, status)
}

// retryAfter is when one more try is worth it, in seconds: Prometheus scrapes less often.
const retryAfter = "6"

// Allows reports whether the caller may look at metrics.
func (d *Door) Allows(r *http.Request) bool {
	_, refused := d.authorize(r)
	return refused == ""
}

// authorize says with which HTTP status and text the caller is refused; an empty text means that it is not.
func (d *Door) authorize(r *http.Request) (status int, refused string) {
	if !d.config.Dev {
		id, secret, _ := r.BasicAuth()
		key, err := d.config.Signins.Proven(d.config.Keys, d.config.Proxies.Of(r), id, secret)
		if slow, ok := errors.AsType[*signin.Slowed](err); ok {
			return http.StatusTooManyRequests, slow.Error()
		}
		if err != nil {
			return http.StatusUnauthorized, "Name an access key of a role other than client: its id as the user, its secret as the password."
		}
		if key.Role == identity.Client {
			return http.StatusForbidden, "Access keys of the role client may not look at metrics."
		}
		if !d.config.Private(r) {
			return http.StatusForbidden, "Access key " + key.ID + " was sent without TLS, so others on the way may know it now: use https, and revoke this key."
		}
	}
	connlimit.Prove(r.Context())
	return http.StatusOK, ""
}

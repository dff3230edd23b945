// Package metrics is the door of monitoring: GET /metrics in Prometheus' text form.
//
// It serves the metrics of matchers (the cost of a rule set, and passes that reached their limit) and those that other packages register.
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

// Path is the path of the door.
const Path = "/metrics"

// ActionName is the policy action for reading it.
const ActionName = "muster:Metrics.Read"

// Config is what a Door needs.
type Config struct {
	Keys        identity.Finder
	Dev         bool // every client may read
	Matchmakers func() []matchmaker.Status
	Private     func(*http.Request) bool // reports whether others on the network could not read a request
	Proxies     *clientaddress.Proxies
	Signins     *signin.Door
	Log         *slog.Logger
}

// Door answers monitoring clients. They send an access key of any role except client, as user and password: Prometheus cannot
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

// Register adds collectors, whose names must be new.
func (d *Door) Register(all ...prometheus.Collector) { d.registry.MustRegister(all...) }

// Gatherer returns a gatherer of all metrics of the door.
func (d *Door) Gatherer() prometheus.Gatherer { return d.registry }

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

// retryAfter is when another attempt makes sense, in seconds: Prometheus scrapes less often.
const retryAfter = "6"

// Allows reports whether the caller may read metrics. A request without a key, such as a load balancer's health check, does not count as a failed sign-in.
func (d *Door) Allows(r *http.Request) bool {
	if _, _, named := r.BasicAuth(); !named && !d.config.Dev {
		return false
	}
	_, refused := d.authorize(r)
	return refused == ""
}

// authorize returns the HTTP status and text of a refusal; an empty text means that the caller may read.
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
		by := key.Principal(d.config.Proxies.Of(r))
		if err := by.MayCall(ActionName); err != nil {
			return http.StatusForbidden, err.Error()
		}
		if !d.config.Private(r) {
			return http.StatusForbidden, "Access key " + key.ID + " was sent without TLS, so others on the network may have read it: use https, and revoke this key."
		}
		by.Used("metrics")
	}
	connlimit.Prove(r.Context())
	return http.StatusOK, ""
}

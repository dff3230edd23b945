package service

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/agentlink"
	"github.com/musterhq/muster/internal/builddoor"
	"github.com/musterhq/muster/internal/cloudwatch"
	"github.com/musterhq/muster/internal/console"
	"github.com/musterhq/muster/internal/devclock"
	"github.com/musterhq/muster/internal/gamelift"
	"github.com/musterhq/muster/internal/metrics"
	"github.com/musterhq/muster/internal/notify"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/people"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/serverlink"
	"github.com/musterhq/muster/internal/sessionapi"
	"github.com/musterhq/muster/internal/sessionlogs"
	"github.com/musterhq/muster/internal/sso"
	"github.com/musterhq/muster/internal/sts"
)

// router selects the door for a request to the shared port, by upgrade header and path.
type router struct {
	api      *gamelift.Handler
	link     http.Handler
	agents   http.Handler
	joins    http.Handler // machines that become hosts
	operator http.Handler
	scripts  http.Handler
	notify   http.Handler
	metrics  http.Handler
	graphs   http.Handler // clients of CloudWatch
	players  http.Handler // nil without player flow
	builds   http.Handler // nil where builds cannot be uploaded
	logs     http.Handler // nil where no logs of game sessions are kept
	console  http.Handler
	people   http.Handler // people who sign in
	sts      http.Handler // clients of STS
	exchange http.Handler // backends with client certificates
	sso      http.Handler // sign-in clients, and the browsers of their people
	clock    http.Handler // nil on real time
	health   func() error
	ready    func() error             // health; a cluster node must also be able to carry out requests
	damage   func() []string          // places that the store cannot read although the service works
	looks    func(*http.Request) bool // whether the caller may read both
}

// confine limits a handler's panic to its own connection. The AWS API and the player API do so themselves.
func (d *router) confine(g *panics.Guard) {
	for door, h := range map[string]*http.Handler{
		"serverlink": &d.link, "agentlink": &d.agents, "joins": &d.joins, "operator": &d.operator, "sessionapi": &d.scripts, "notify": &d.notify, "metrics": &d.metrics,
		"cloudwatch": &d.graphs, "builds": &d.builds, "sessionlogs": &d.logs, "console": &d.console, "people": &d.people, "sts": &d.sts, "certificates": &d.exchange, "sso": &d.sso,
	} {
		if *h == nil {
			continue
		}
		*h = g.Handler(door, *h)
	}
}

func (d *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, objects.Prefix):
		if d.players == nil {
			http.Error(w, "Player flow is off: muster serve --player-flow turns it on.", http.StatusNotFound)
			return
		}
		d.players.ServeHTTP(w, r)
	case builddoor.Serves(r.URL.Path):
		if d.builds == nil {
			builddoor.Refuse(w, "This installation stores no files of builds: --builds-max is 0.")
			return
		}
		d.builds.ServeHTTP(w, r)
	case sessionlogs.Serves(r.URL.Path):
		if d.logs == nil {
			http.Error(w, "This installation keeps no logs of game sessions: --session-logs-max is 0.", http.StatusNotFound)
			return
		}
		d.logs.ServeHTTP(w, r)
	case serverlink.IsUpgrade(r):
		if agentlink.IsPath(r.URL.Path) {
			d.agents.ServeHTTP(w, r)
			return
		}
		d.link.ServeHTTP(w, r)
	case agentlink.IsJoin(r):
		d.joins.ServeHTTP(w, r)
	case d.clock != nil && strings.HasPrefix(r.URL.Path, devclock.Prefix):
		d.clock.ServeHTTP(w, r)
	case strings.HasPrefix(r.URL.Path, sessionapi.Prefix):
		d.scripts.ServeHTTP(w, r)
	case strings.HasPrefix(r.URL.Path, operator.Prefix):
		d.operator.ServeHTTP(w, r)
	case cloudwatch.Serves(r):
		d.graphs.ServeHTTP(w, r)
	case console.Serves(r.URL.Path):
		d.console.ServeHTTP(w, r)
	case people.Serves(r.URL.Path):
		d.people.ServeHTTP(w, r)
	case sso.Serves(r.URL.Path):
		d.sso.ServeHTTP(w, r)
	case sts.Serves(r):
		d.sts.ServeHTTP(w, r)
	case sts.ServesCertificates(r):
		d.exchange.ServeHTTP(w, r)
	case r.Method == http.MethodPost:
		d.api.ServeHTTP(w, r)
	case (r.Method == http.MethodGet || r.Method == http.MethodHead) && (r.URL.Path == "/healthz" || r.URL.Path == "/readyz"):
		d.serveHealth(w, r)
	case (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.URL.Path == metrics.Path:
		d.metrics.ServeHTTP(w, r)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, notify.ConfirmPath):
		d.notify.ServeHTTP(w, r)
	default:
		http.Error(w, "This is Muster. AWS clients send POST requests here, game servers open a WebSocket; health is at /healthz.", http.StatusNotFound)
	}
}

// serveHealth answers whether the service works and, at /readyz, whether clients should use it. The port is served only once the state is loaded, so
// the two differ only at a cluster node, which may work but reach no leader. Only callers who may read metrics get the reason of a failure, because
// it names files. A damaged archive is not a failure, because only the records in the damaged place cannot be read.
func (d *router) serveHealth(w http.ResponseWriter, r *http.Request) {
	answer, status := map[string]any{"status": "ok"}, http.StatusOK
	check, failed := d.health, "failed"
	if r.URL.Path == "/readyz" {
		check, failed = d.ready, "not ready"
	}
	if err := check(); err != nil {
		answer, status = map[string]any{"status": failed}, http.StatusServiceUnavailable
		if d.looks(r) {
			answer["reason"] = err.Error()
		}
	}
	if damage := d.damage(); len(damage) > 0 && d.looks(r) {
		answer["damaged"] = damage
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // an error means that the client has gone
}

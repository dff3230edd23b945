package service

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/builddoor"
	"github.com/musterhq/muster/internal/devclock"
	"github.com/musterhq/muster/internal/edge"
	"github.com/musterhq/muster/internal/metrics"
	"github.com/musterhq/muster/internal/playerapi"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/serverlink"
	"github.com/musterhq/muster/internal/sessionapi"
	"github.com/musterhq/muster/internal/sso"
	"github.com/musterhq/muster/internal/sts"
)

// healthPaths are the paths for load balancers and supervisors, which often use plain HTTP. Their answers contain no
// secrets.
var healthPaths = []string{"/healthz", "/readyz", objects.ReadyPath}

// guarded wraps the doors of a port in the guard that all ports have.
func (x *Service) guarded(doors http.Handler, refuse func(http.ResponseWriter, *http.Request, string)) http.Handler {
	s := x.settings
	c := edge.Config{
		Transport: x.transport, RequireTLS: &x.requireTLS, Plain: healthPaths, StrictTransport: s.BehindTLS(), Refuse: refuse, Log: x.log,
	}
	if s.Dev {
		c.Pages = &edge.Pages{Allowed: x.allowsPage}
		for _, address := range []string{s.Listen, s.PartnerListen, s.OperatorListen} {
			if host, _, err := net.SplitHostPort(address); err == nil && host != "" {
				c.Pages.Names = append(c.Pages.Names, strings.ToLower(host))
			}
		}
		if host := s.PublicHost(); host != "" {
			c.Pages.Names = append(c.Pages.Names, host)
		}
	}
	return edge.NewGuard(c, x.onceCurrent(doors))
}

// onceCurrent keeps the doors of a cluster node closed until the node has caught up after its start.
func (x *Service) onceCurrent(doors http.Handler) http.Handler {
	if x.node == nil {
		return doors
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (!x.node.Current() || x.secrets == nil || !x.secrets.Complete()) && !slices.Contains(healthPaths, r.URL.Path) && r.URL.Path != metrics.Path {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "this node of the cluster has not caught up yet; use another node", http.StatusServiceUnavailable)
			return
		}
		doors.ServeHTTP(w, r)
	})
}

// allowsPage reports whether a page may call as a player: the pages of the sites in player-origins may.
func (x *Service) allowsPage(r *http.Request, origin string) bool {
	path := r.URL.Path
	if path != objects.KeysPath && !strings.HasPrefix(path, objects.PlayerPrefix) {
		return false
	}
	origins := x.reload.current.Get().Origins()
	return slices.Contains(origins, origin) || slices.Contains(origins, playerapi.AnyOrigin)
}

// refuse answers in the format of the door that the request is for.
func (d *router) refuse(w http.ResponseWriter, r *http.Request, message string) {
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, objects.Prefix):
		playerapi.Refuse(w, message)
	case builddoor.Serves(path):
		builddoor.Refuse(w, message)
	case serverlink.IsUpgrade(r):
		http.Error(w, message, http.StatusForbidden)
	case strings.HasPrefix(path, devclock.Prefix):
		devclock.Refuse(w, message)
	case strings.HasPrefix(path, sessionapi.Prefix):
		sessionapi.Refuse(w, message)
	case sso.Serves(path):
		sso.Refuse(w, r, message)
	case sts.Serves(r):
		sts.Refuse(w, message)
	case r.Method == http.MethodPost && d.api != nil:
		d.api.Refuse(w, r, message)
	default:
		http.Error(w, message, http.StatusForbidden)
	}
}

func refusePlayers(w http.ResponseWriter, _ *http.Request, message string) {
	playerapi.Refuse(w, message)
}

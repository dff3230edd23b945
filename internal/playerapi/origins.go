package playerapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/playerapi/problem"
)

// AnyOrigin lets pages of all web sites call.
const AnyOrigin = "*"

const (
	originMethods  = "GET, POST"
	originHeaders  = "Authorization, Content-Type, X-Request-Id, X-If-Rev"
	exposedHeaders = "Retry-After, X-Request-Id, RateLimit, RateLimit-Policy"
	originSeconds  = "600" // how long a browser may cache the answer to a preflight
)

// crossOrigin sets whether pages of other sites may read the answers, and answers preflight requests. The API uses no cookies, so a page
// cannot act on behalf of its visitor without an access token.
func (d *Door) crossOrigin(w http.ResponseWriter, r *http.Request) (answered bool) {
	if len(d.origins.Get()) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	allowed := origin != "" && d.allowsOrigin(origin)
	if allowed {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", exposedHeaders)
	}
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	if !allowed {
		problem.Write(w, problem.New(flow.PermissionDenied, "origin %.100q may not call; the setting player-origins lists the allowed ones", origin))
		return true
	}
	h.Set("Access-Control-Allow-Methods", originMethods)
	h.Set("Access-Control-Allow-Headers", originHeaders)
	h.Set("Access-Control-Max-Age", originSeconds)
	w.WriteHeader(http.StatusNoContent)
	return true
}

// allowsOrigin compares whole origins, because scheme, host and port all matter.
func (d *Door) allowsOrigin(origin string) bool {
	return slices.Contains(d.origins.Get(), origin) || slices.Contains(d.origins.Get(), AnyOrigin)
}

// allowsStream reports whether a page may open a stream. Browsers open a WebSocket without a preflight, so the origin is checked here.
// Clients other than browsers send none.
func (d *Door) allowsStream(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || d.allowsOrigin(origin) {
		return true
	}
	page, err := url.Parse(origin)
	if err != nil || page.Host == "" {
		return false
	}
	if strings.EqualFold(page.Host, r.Host) {
		return true // of our own site
	}
	public, err := url.Parse(d.config.PublicURL) // a proxy may have rewritten Host
	return err == nil && strings.EqualFold(page.Host, public.Host)
}

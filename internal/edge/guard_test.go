package edge

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/live"
	"github.com/musterhq/muster/internal/logtest"
)

func guard(t *testing.T, c Config) (*Guard, *logtest.Log) {
	t.Helper()
	log := &logtest.Log{}
	c.Log = slog.New(slog.NewTextHandler(log, nil))
	c.Refuse = func(w http.ResponseWriter, _ *http.Request, message string) {
		http.Error(w, message, http.StatusForbidden)
	}
	return NewGuard(c, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })), log
}

func TestTLSIsRequired(t *testing.T) {
	g, log := guard(t, Config{RequireTLS: live.Of(true), Plain: []string{"/healthz"}})
	for _, c := range []struct {
		name, from, path, authorization, forwarded string
		want                                       int
		says                                       string
	}{
		{name: "this machine", from: "127.0.0.1:5", path: "/", want: 204},
		{name: "elsewhere", from: "203.0.113.9:5", path: "/", want: 403, says: "https://"},
		{name: "health", from: "203.0.113.9:5", path: "/healthz", want: 204},
		{name: "nearly health", from: "203.0.113.9:5", path: "/healthz/", want: 403},
		{name: "a key", from: "203.0.113.9:5", path: "/metrics", authorization: "basic eDp5", want: 403, says: "revoke it"},
		{name: "a token", from: "203.0.113.9:5", path: "/", authorization: "Bearer x", want: 403, says: "revoke it"},
		{name: "a proxy that no setting names", from: "10.0.0.5:5", path: "/", forwarded: "https", want: 403, says: "If 10.0.0.5 is your proxy"},
	} {
		r := httptest.NewRequest("GET", c.path, nil)
		r.RemoteAddr = c.from
		if c.authorization != "" {
			r.Header.Set("Authorization", c.authorization)
		}
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-Proto", c.forwarded)
		}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code != c.want || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %s, want %d and %q", c.name, w.Code, w.Body, c.want, c.says)
		}
	}
	if text := log.String(); !strings.Contains(text, "request refused") || strings.Contains(text, "eDp5") {
		t.Errorf("the log says %s", text)
	}
	for range 1000 {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "203.0.113.9:5"
		g.ServeHTTP(httptest.NewRecorder(), r)
	}
	if n := strings.Count(log.String(), "\n"); n > 3*toldMax {
		t.Errorf("%d lines of log about 1,000 refused requests", n)
	}
}

func TestStrictTransport(t *testing.T) {
	for _, on := range []bool{false, true} {
		g, _ := guard(t, Config{StrictTransport: on})
		for _, over := range []*tls.ConnectionState{nil, {}} {
			r := httptest.NewRequest("GET", "/", nil)
			r.TLS = over
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			if got, want := w.Header().Get("Strict-Transport-Security") != "", on && over != nil; got != want {
				t.Errorf("wanted %t, TLS %t: sent %t", on, over != nil, got)
			}
		}
	}
}

func TestPages(t *testing.T) {
	g, _ := guard(t, Config{Pages: &Pages{
		Names: []string{"muster.test", "10.0.0.7"},
		Allowed: func(r *http.Request, origin string) bool {
			return r.URL.Path == "/players" && origin == "http://localhost:3000"
		},
	}})
	for _, c := range []struct {
		name, host, path, origin, site string
		want                           int
	}{
		{name: "an SDK", host: "127.0.0.1:8080", want: 204},
		{name: "by name", host: "localhost:8080", want: 204},
		{name: "by a name with a dot at the end", host: "LocalHost.:8080", want: 204},
		{name: "a name below localhost", host: "muster.localhost", want: 204},
		{name: "another loopback address", host: "127.8.0.1:8080", want: 204},
		{name: "IPv6", host: "[::1]:8080", want: 204},
		{name: "IPv6 without a port", host: "[::1]", want: 204},
		{name: "IPv4 in IPv6", host: "[::ffff:127.0.0.1]:8080", want: 204},
		{name: "the public name", host: "Muster.test:8080", want: 204},
		{name: "the address listened at", host: "10.0.0.7:8080", want: 204},
		{name: "a rebound name", host: "evil.example:8080", want: 403},
		{name: "a rebound name that ends like one of ours", host: "evil-localhost:8080", want: 403},
		{name: "a rebound name that begins like an address", host: "127.0.0.1.evil.example:8080", want: 403},
		{name: "all addresses of this machine", host: "0.0.0.0:8080", want: 403},
		{name: "another address", host: "192.168.0.1:8080", want: 403},
		{name: "its own page", host: "localhost:8080", origin: "http://localhost:8080", site: "same-origin", want: 204},
		{name: "a typed URL", host: "localhost:8080", site: "none", want: 204},
		{name: "the public page behind a proxy", host: "127.0.0.1:8080", origin: "https://muster.test", want: 204},
		{name: "another page", host: "localhost:8080", origin: "https://evil.example", want: 403},
		{name: "another page, in a browser that names no origin", host: "localhost:8080", site: "cross-site", want: 403},
		{name: "another port of this machine", host: "localhost:8080", origin: "http://localhost:3000", want: 403},
		{name: "the same, as the browser says it", host: "localhost:8080", site: "same-site", want: 403},
		{name: "a hidden page", host: "localhost:8080", origin: "null", want: 403},
		{name: "a page that may", host: "localhost:8080", path: "/players", origin: "http://localhost:3000", site: "same-site", want: 204},
		{name: "a page that may, elsewhere", host: "localhost:8080", path: "/operator", origin: "http://localhost:3000", site: "same-site", want: 403},
		{name: "a page that may, by a rebound name", host: "evil.example", path: "/players", origin: "http://localhost:3000", want: 403},
	} {
		for _, method := range []string{"GET", "POST", "OPTIONS"} {
			r := httptest.NewRequest(method, "/"+strings.TrimPrefix(c.path, "/"), nil)
			r.Host = c.host
			for name, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("%s, %s: %d %s, want %d", c.name, method, w.Code, w.Body, c.want)
			}
		}
	}
}

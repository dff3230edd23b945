package playerapi

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/musterhq/muster/internal/playerapi/objects"
)

func askedFrom(method, path string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, path, nil)
	r.RemoteAddr, r.Host = "127.0.0.1:1", "api.example.com"
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// Only pages of allowed sites may call the player realm; no page may call the partner and operator realms.
func TestOrigins(t *testing.T) {
	const page, other = "https://play.example.com", "https://evil.example"
	const login = objects.PlayerPrefix + "Session.Login"
	for _, c := range []struct {
		name, origin, method, path string
		allowed                    []string
		status                     int
		told                       string // Access-Control-Allow-Origin
	}{
		{"a preflight", page, http.MethodOptions, login, []string{page}, 204, page},
		{"a preflight of any page", other, http.MethodOptions, login, []string{AnyOrigin}, 204, other},
		{"a preflight of another page", other, http.MethodOptions, login, []string{page}, 403, ""},
		{"a page that only begins alike", page + ".evil.example", http.MethodOptions, login, []string{page}, 403, ""},
		{"another port", page + ":8443", http.MethodOptions, login, []string{page}, 403, ""},
		{"another scheme", "http://play.example.com", http.MethodOptions, login, []string{page}, 403, ""},
		{"a page without a site", "null", http.MethodOptions, login, []string{page}, 403, ""},
		{"nobody may", page, http.MethodOptions, login, nil, 405, ""},
		{"a call", page, http.MethodPost, login, []string{page}, 400, page},
		{"a call that is refused", page, http.MethodPost, objects.PlayerPrefix + "Session.GetFlow", []string{page}, 401, page},
		{"the keys", page, http.MethodGet, objects.KeysPath, []string{page}, 200, page},
		{"a call of another page", other, http.MethodPost, login, []string{page}, 400, ""},
		{"a call of no page", "", http.MethodPost, login, []string{page}, 400, ""},
		{"a partner's call", page, http.MethodOptions, objects.PartnerPrefix + "Flow.GetPlayers", []string{AnyOrigin}, 405, ""},
		{"an operator's call", page, http.MethodOptions, objects.OperatorPrefix + "Operator.Audit", []string{AnyOrigin}, 405, ""},
	} {
		x := newLobby(t, func(config *Config) { config.Origins = c.allowed })
		r := askedFrom(c.method, c.path, "Origin", c.origin)
		if c.method == http.MethodOptions {
			r.Header.Set("Access-Control-Request-Method", http.MethodPost)
			r.Header.Set("Access-Control-Request-Headers", "authorization,x-request-id")
		}
		if c.origin == "" {
			r.Header.Del("Origin")
		}
		w := httptest.NewRecorder()
		x.door.ServeHTTP(w, r)
		if got := w.Header().Get("Access-Control-Allow-Origin"); w.Code != c.status || got != c.told {
			t.Errorf("%s: %d, allowed %q, want %d, %q: %s", c.name, w.Code, got, c.status, c.told, w.Body)
		}
		if got := w.Header().Get("Access-Control-Allow-Headers"); (got == originHeaders) != (c.status == 204) {
			t.Errorf("%s: headers %q", c.name, got)
		}
		if w.Header().Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: a browser may bring credentials", c.name)
		}
		if players := len(c.allowed) > 0 && c.status != 405; players != (w.Header().Get("Vary") == "Origin") {
			t.Errorf("%s: Vary %q", c.name, w.Header().Get("Vary"))
		}
	}
}

// Browsers open a WebSocket to any site, so the service checks the page then.
func TestOriginsOfStreams(t *testing.T) {
	d := &Door{config: Config{PublicURL: "https://public.example.com"}}
	d.origins.Set([]string{"https://play.example.com"})
	for origin, want := range map[string]bool{
		"": true, "https://play.example.com": true, "https://api.example.com": true, "http://API.example.com": true, "https://public.example.com": true,
		"https://evil.example": false, "https://api.example.com.evil.example": false, "https://api.example.com:444": false, "null": false, "file://": false, "%": false,
	} {
		r := askedFrom(http.MethodGet, objects.StreamPath)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		if got := d.allowsStream(r); got != want {
			t.Errorf("%q: %t, want %t", origin, got, want)
		}
	}
	x := newLobby(t, nil)
	r := askedFrom(http.MethodGet, objects.StreamPath, "Origin", "https://evil.example", "Upgrade", "websocket", "Connection", "Upgrade", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Protocol", "playerflow.v1")
	w := httptest.NewRecorder()
	x.door.Player().ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("the stream of a foreign page: %d %s", w.Code, w.Body)
	}
}

package playerapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/problem"
)

// Ambiguous JSON, or JSON that not all its readers can parse, is refused, and the refusal names the field and the error.
func TestWrongBodies(t *testing.T) {
	x := newLobby(t, nil)
	token := x.login("ann")
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for _, c := range []struct {
		name, call, body string
		says             string // empty: it is taken
	}{
		{"nothing", "Party.CreateParty", ``, ""},
		{"an object", "Party.CreateParty", ` {} `, ""},
		{"a name in capitals", "Party.CreateParty", `{"Joinability":"OPEN"}`, "Joinability: unexpected property"},
		{"a name twice", "Party.CreateParty", `{"joinability":"OPEN","joinability":"CLOSED"}`, `"joinability" is given twice`},
		{"a name twice in attributes", "Party.CreateParty", `{"attributes":{"a":1,"a":2}}`, `"a" is given twice`},
		{"deep attributes", "Party.CreateParty", `{"attributes":` + nested(32-1) + `}`, ""},
		{"deeper attributes", "Party.CreateParty", `{"attributes":` + nested(32) + `}`, "nested more than 32 deep"},
		{"many values", "Party.CreateParty", `{"attributes":{"a":[0` + strings.Repeat(",0", 10_000-6) + `]}}`, "attributes: 19997 bytes"},
		{"one value more", "Party.CreateParty", `{"attributes":{"a":[0` + strings.Repeat(",0", 10_000-5) + `]}}`, "more than 10000 values and names"},
		{"no UTF-8 in attributes", "Party.CreateParty", "{\"attributes\":{\"a\":\"\xff\"}}", "invalid UTF-8"},
		{"no UTF-8 in a name", "Party.SetPlayerPreferences", "{\"client_version\":\"\xff\"}", "invalid UTF-8"},
		{"half a character", "Party.CreateParty", `{"attributes":{"a":"\ud800"}}`, "invalid"},
		{"two objects", "Party.CreateParty", `{} {}`, "after top-level value"},
		{"half an object", "Party.CreateParty", `{"attributes":`, "ends too early"},
		{"a number over the limit", "Party.CreateParty", `{"max_members":1e3}`, "max_members: 1000, expected number <= 100"},
		{"an integer with a fraction of zero", "Party.CreateParty", `{"max_members":2.0}`, ""},
		{"a seq as it comes out of JSON.stringify", "Session.Ack", `{"seq":1.0}`, ""},
		{"latencies that were measured as floats", "Party.SetPlayerPreferences", `{"latency_ms":{"eu-central-1":18.0}}`, ""},
		{"a fraction", "Party.CreateParty", `{"max_members":1.5}`, "max_members: 1.5, expected integer"},
		{"a number that no type holds", "Session.Ack", `{"seq":18446744073709551616}`, "seq: number 18446744073709551616 is too large"},
		{"another type", "Party.CreateParty", `{"joinability":7}`, "joinability: 7, expected string"},
		{"a value that is none", "Party.CreateParty", `{"joinability":"OPENED"}`, `joinability: "OPENED", expected value to be one of`},
		{"a long value", "Party.SetPlayerPreferences", `{"client_version":"` + strings.Repeat("x", 65) + `"}`, "client_version: 65 characters, expected length <= 64"},
		{"null for optional fields", "Party.CreateParty", `{"joinability":null,"attributes":null,"max_members":null}`, ""},
		{"null for optional numbers", "Session.PollEvents", `{"after_seq":null,"wait_ms":null}`, ""},
		{"null for a required field", "Session.Ack", `{"seq":null}`, "seq: expected integer"},
		{"null in a list", "Party.SetPartyPreferences", `{"regions":[null]}`, "regions[0]: expected string"},
		{"null as the body", "Party.CreateParty", `null`, "body: expected object"},
		{"a list of attributes", "Party.CreateParty", `{"attributes":[]}`, "attributes: expected object"},
	} {
		x.pass(time.Second)
		status, o := x.call(token, c.call, c.body)
		message, _ := o["message"].(string)
		switch {
		case c.says == "" && status != http.StatusOK, c.says != "" && status != http.StatusBadRequest:
			t.Errorf("%s: %d %v", c.name, status, o)
		case !strings.Contains(message, c.says):
			t.Errorf("%s: %q, want %q", c.name, message, c.says)
		}
		if strings.Contains(message, "Go ") {
			t.Errorf("%s: %q is for people who know Go", c.name, message)
		}
	}
	many := `{"reason":[0` + strings.Repeat(",0", 10_000) + `]}`
	open := newLobby(t, func(c *Config) { c.Dev = true }) // its other realms ask for no key
	for path, realm := range map[string]http.Handler{objects.PartnerPrefix + "Events.List": open.door.Partner(), objects.OperatorPrefix + "Operator.GetPlayer": open.door.Operator()} {
		if _, o := open.send(realm, "", path, many); !strings.Contains(fmt.Sprint(o["message"]), "more than 10000 values and names") {
			t.Errorf("many values for %s: %v", path, o)
		}
	}
	// A wrong proof is not repeated.
	_, o := x.call("", "Session.Login", `{"provider":"dev","token":"secret"`)
	if said, _ := json.Marshal(o); strings.Contains(string(said), "secret") {
		t.Errorf("the refusal tells the token: %s", said)
	}
}

// An empty body counts as {} even if its length was not announced, so the call's required fields are still required.
func TestEmptyBodies(t *testing.T) {
	x := newLobby(t, nil)
	token := x.login("ann")
	x.wants(200, "")(x.call(token, "Party.CreateParty", `{}`))
	for call, want := range map[string]int{"Party.GetParty": 200, "Party.SetReady": 400, "Party.KickPlayer": 400} {
		for name, body := range map[string]io.Reader{"none": nil, "announced": strings.NewReader(""), "chunked": struct{ io.Reader }{strings.NewReader("")}} {
			w := x.ask(http.MethodPost, objects.PlayerPrefix+call, body, "Authorization", "Bearer "+token)
			if w.Code != want {
				t.Errorf("%s with an empty body (%s): %d %s, want %d", call, name, w.Code, w.Body, want)
			}
		}
	}
}

// A body that does not arrive is a mistake of its client or of the network: a player's telephone that loses its connection must not count as a failure
// of the service, for which there is an alert.
func TestBodiesThatEndEarly(t *testing.T) {
	x := newLobby(t, nil)
	token := x.login("ann")
	for name, body := range map[string]io.Reader{
		"nothing arrives": iotest.ErrReader(io.ErrUnexpectedEOF), "half of it": io.MultiReader(strings.NewReader(`{"joina`), iotest.ErrReader(io.ErrUnexpectedEOF)),
		"all of it, and wrong chunks": io.MultiReader(strings.NewReader(`{}`), iotest.ErrReader(errors.New("malformed chunked encoding"))),
	} {
		w := x.ask(http.MethodPost, objects.PlayerPrefix+"Party.CreateParty", body, "Authorization", "Bearer "+token)
		var p problem.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusBadRequest || p.Code != "INVALID_ARGUMENT" || p.Message != "the body ended early" {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// The alert for calls that fail inside the service does not count what operators intend, nor clients that leave while a call waits.
func TestRefusalsThatAreNoFailures(t *testing.T) {
	stats := callstats.New()
	x := newLobby(t, func(c *Config) { c.Dev, c.Calls = true, stats })
	token := x.login("ann")
	_, polled := x.call(token, "Session.PollEvents", `{"after_seq":0,"wait_ms":1}`)
	leaves, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	r := httptest.NewRequestWithContext(leaves, http.MethodPost, objects.PlayerPrefix+"Session.PollEvents", strings.NewReader(fmt.Sprintf(`{"after_seq":%v,"wait_ms":20000}`, polled["head_seq"])))
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	x.door.Player().ServeHTTP(httptest.NewRecorder(), r)
	x.wants(200, "")(x.send(x.door.Operator(), "", objects.OperatorPrefix+"Operator.Drain", `{"reason":"new disk"}`))
	x.wants(503, "MAINTENANCE")(x.call("", "Session.Login", `{"provider":"dev","token":"{\"player_id\":\"bob\"}"}`))

	registry := prometheus.NewRegistry()
	registry.MustRegister(stats)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "muster_calls_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			counted[labels["operation"]+" "+labels["outcome"]] += m.GetCounter().GetValue()
		}
	}
	for what, want := range map[string]float64{"Session.PollEvents refused": 1, "Session.PollEvents failed": 0, "Session.Login refused": 1, "Session.Login failed": 0} {
		if counted[what] != want {
			t.Errorf("%s: %v, want %v", what, counted[what], want)
		}
	}
}

// The largest body is 64 KiB, and not a byte less.
func TestLargestBody(t *testing.T) {
	x := newLobby(t, nil)
	token := x.login("ann")
	for size, want := range map[int]int{64 << 10: 200, 64<<10 + 1: 413} {
		body := "{}" + strings.Repeat(" ", size-2)
		if w := x.ask(http.MethodPost, objects.PlayerPrefix+"Session.GetFlow", strings.NewReader(body), "Authorization", "Bearer "+token); w.Code != want {
			t.Errorf("%d bytes: %d %s, want %d", size, w.Code, w.Body, want)
		}
	}
}

// ask sends any request to the players' realm. headers are pairs of names and values.
func (x *lobby) ask(method, path string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	x.Helper()
	r := httptest.NewRequestWithContext(x.Context(), method, path, body)
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	x.door.Player().ServeHTTP(w, r)
	return w
}

// The refusal of a wrong method or path names the correct one, in the same form as every refusal.
func TestWrongRequests(t *testing.T) {
	x := newLobby(t, nil)
	x.login("ann")
	for _, c := range []struct {
		name, method, path string
		headers            []string
		status             int
		header, value      string
	}{
		{"a call by GET", "GET", objects.PlayerPrefix + "Party.GetParty", nil, 405, "Allow", "POST"},
		{"a call by OPTIONS", "OPTIONS", objects.PlayerPrefix + "Party.GetParty", nil, 405, "Allow", "POST"},
		{"no call", "POST", objects.PlayerPrefix + "Party.Nothing", nil, 404, "", ""},
		{"a call with a slash", "POST", objects.PlayerPrefix + "Party.GetParty/", nil, 404, "", ""},
		{"a call in capitals", "POST", objects.PlayerPrefix + "party.getparty", nil, 404, "", ""},
		{"the keys by POST", "POST", objects.KeysPath, nil, 405, "Allow", "GET, HEAD"},
		{"the document by POST", "POST", objects.PlayerPrefix + "openapi.json", nil, 405, "Allow", "GET, HEAD"},
		{"readiness by PUT", "PUT", objects.ReadyPath, nil, 405, "Allow", "GET, HEAD"},
		{"a stream without an upgrade", "GET", objects.StreamPath, nil, 426, "Upgrade", "websocket"},
		{"a stream of an old kind", "GET", objects.StreamPath, []string{"Upgrade", "websocket", "Sec-WebSocket-Version", "8"}, 426, "Sec-Websocket-Version", "13"},
		{"a stream that speaks something else", "GET", objects.StreamPath,
			[]string{"Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Protocol", "chat, bearer.pfa_x"}, 400, "", ""},
		{"a stream behind no number", "GET", objects.StreamPath + "?after_seq=all",
			[]string{"Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Protocol", "playerflow.v1"}, 400, "", ""},
	} {
		w := x.ask(c.method, c.path, nil, c.headers...)
		var p problem.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Code != "INVALID_ARGUMENT" || p.Message == "" || w.Code != c.status {
			t.Errorf("%s: %d %s, want %d", c.name, w.Code, w.Body, c.status)
		}
		if got := w.Header().Get(c.header); c.header != "" && got != c.value {
			t.Errorf("%s: %s is %q, want %q", c.name, c.header, got, c.value)
		}
	}
	for _, path := range []string{objects.KeysPath, objects.ReadyPath, objects.PlayerPrefix + "openapi.json"} {
		if w := x.ask(http.MethodHead, path, nil); w.Code != http.StatusOK {
			t.Errorf("HEAD %s: %d", path, w.Code)
		}
	}
}

// Load balancers send no players to a node that cannot serve them, such as one without contact to a leader.
func TestReadyAtANodeThatIsNot(t *testing.T) {
	var why error
	x := newLobby(t, func(c *Config) { c.Ready = func() error { return why } })
	for _, why = range []error{nil, errors.New("no contact to a leader"), nil} {
		want := http.StatusOK
		if why != nil {
			want = http.StatusServiceUnavailable
		}
		if w := x.ask(http.MethodGet, objects.ReadyPath, nil); w.Code != want {
			t.Errorf("with %v: %d %s, want %d", why, w.Code, w.Body, want)
		}
	}
}

// A refusal with 401 names the scheme of Authorization, as RFC 9110, 15.5.2 requires.
func TestChallenges(t *testing.T) {
	x := newLobby(t, nil)
	for name, w := range map[string]*httptest.ResponseRecorder{
		"no token":      x.ask(http.MethodPost, objects.PlayerPrefix+"Party.GetParty", nil),
		"a wrong token": x.ask(http.MethodPost, objects.PlayerPrefix+"Party.GetParty", nil, "Authorization", "Bearer pfa_x"),
		"a wrong login": x.ask(http.MethodPost, objects.PlayerPrefix+"Session.Login", strings.NewReader(`{"provider":"dev","token":"x"}`)),
	} {
		if got := w.Header().Values("WWW-Authenticate"); w.Code != http.StatusUnauthorized || len(got) != 1 || got[0] != `Bearer realm="muster"` {
			t.Errorf("%s: %d %s, WWW-Authenticate %q", name, w.Code, w.Body, got)
		}
	}
}

// The retry delay is also in a header, the request id is returned, no answer may be cached, and details exist even if empty.
func TestHeadersOfAnswers(t *testing.T) {
	x := newLobby(t, nil)
	token := x.login("ann")
	bearer := "Bearer " + token
	ask := func(call string) *httptest.ResponseRecorder {
		return x.ask(http.MethodPost, objects.PlayerPrefix+call, nil, "Authorization", bearer, "X-Request-Id", "r-1")
	}
	refused := ask("Party.GetParty")
	for range 5 {
		ask("Session.GetFlow")
	}
	limited := ask("Session.GetFlow")
	for name, w := range map[string]*httptest.ResponseRecorder{
		"a success": ask("Party.ListInvites"), "a refusal": refused, "over the limit": limited, "wrong": x.ask(http.MethodPost, objects.PlayerPrefix+"Session.GetFlow", nil, "X-Request-Id", "r-1"),
	} {
		if got := w.Header(); got.Get("Cache-Control") != "no-store" || got.Get("Content-Type") != "application/json" || got.Get("X-Request-Id") != "r-1" {
			t.Errorf("%s: %v", name, got)
		}
		var o map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &o); err != nil {
			t.Error(err)
		}
		if details, ok := o["details"].(map[string]any); o["code"] != nil && (!ok || len(details) > 0) {
			t.Errorf("%s: details %v", name, o["details"])
		}
	}
	if limited.Code != http.StatusTooManyRequests || limited.Header().Get("Retry-After") != "1" {
		t.Errorf("over the limit: %d, Retry-After %q", limited.Code, limited.Header().Get("Retry-After"))
	}
}

// Players tell each other codes and type them, so variants are accepted.
func TestCodesAsPeopleTypeThem(t *testing.T) {
	x := newLobby(t, nil)
	party := x.wants(200, "")(x.call(x.login("ann"), "Party.CreateParty", `{}`))["party"].(map[string]any)
	code := party["invite_code"].(string)
	for i, typed := range []string{code, strings.ToLower(code), code[:4] + "-" + code[4:], " " + code[:4] + " " + code[4:]} {
		o := x.wants(200, "")(x.call(x.login(string(rune('b'+i))), "Party.JoinPartyByInviteCode", `{"code":"`+typed+`"}`))
		if joined, _ := o["party"].(map[string]any); joined["party_id"] != party["party_id"] {
			t.Errorf("%q: %v", typed, o)
		}
	}
}

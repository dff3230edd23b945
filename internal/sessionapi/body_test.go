package sessionapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/clientaddress"
	"github.com/musterhq/muster/internal/edge"
	"github.com/musterhq/muster/internal/identity"
)

// FuzzBodies: for every body a node answers with its input checked, or with a problem that JSON can express.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{
		"", "{}", "null", "[]", "{", `{"fleetId":"fleet-1","maxPlayer":2}`, `{"fleetId":"fleet-1","maxPlayer":1e9}`, `{"maxPlayer":-1.5}`,
		`{"sessionProperties":{"a":"b"}}`, `{"sessionProperties":{"a":7}}`, `{"queueName":"q","maxPlayer":2,"players":[{"playerId":"p"}]}`,
		`{"latencies":[{"milliseconds":1e40}]}`, `{"playerId":"\ud800"}`, "{\"a\":\"\xff\"}", `{"ok":true}`, `{"configurationName":"c","players":[{"playerId":"p","playerAttributes":{"a":"{\"N\":1}","b":{"SDM":{"k":1}}},"latencyInMs":{"r":5}}]}`,
		`{"ticketId":"t","acceptMatch":true,"playerIds":["p"]}`, `{"name":"` + strings.Repeat("n", 2000) + `"}`,
		`{"nextToken":"AAAA","fleetId":"fleet-1"}`, `{"fleetId":"fleet-1"} x`, `{"includeDashes":true,"INCLUDEBRACKETS":true}`, `{"":0}`,
	} {
		f.Add(body)
	}
	all := append([]*node{placementNode, ticketNode, connectedNode}, nodes...)
	f.Fuzz(func(t *testing.T, body string) {
		for _, n := range all {
			in, problem := n.read([]byte(body))
			if problem == nil {
				if search, ok := in.(*searchSessionsRequest); ok {
					_, _ = search.query()
				}
				continue
			}
			if problem.status < 400 || problem.status > 499 || problem.Name == "" || problem.Message == "" || problem.Field == "" {
				t.Errorf("%s %q: %+v", n.name, body, problem)
			}
			text, err := encode(failure{problem})
			if err != nil || !json.Valid(text) || !utf8.Valid(text) || len(text) > 16<<10 {
				t.Errorf("%s %q: answered with %d bytes %.300q, %v", n.name, body, len(text), text, err)
			}
		}
	})
}

type oneKey identity.AccessKey

func (k oneKey) Find(id string) (identity.AccessKey, bool) { return identity.AccessKey(k), id == k.ID }

func (k oneKey) With(id, token, _ string) (identity.AccessKey, error) {
	if id != k.ID || token != "" {
		return identity.AccessKey{}, identity.ErrUnknown
	}
	return identity.AccessKey(k), nil
}

var proxies = clientaddress.NewProxies(netip.MustParsePrefix("192.0.2.0/24"))

// Only a client key may be sent over connections that can be read in transit.
func TestSecretsNeedTLS(t *testing.T) {
	for _, c := range []struct {
		role       identity.Role
		from, over string
		secure     bool
		status     int
	}{
		{identity.Client, "192.0.2.1:5", "http", false, 0},
		{identity.Backend, "192.0.2.1:5", "http", false, http.StatusForbidden},
		{identity.Admin, "[2001:db8::1]:5", "http", false, http.StatusForbidden},
		{identity.Admin, "192.0.2.1:5", "https", false, 0},
		{identity.Admin, "192.0.2.1:5", "http", true, 0},
		{identity.Admin, "127.0.0.1:5", "http", false, 0},
		{identity.Admin, "[::1]:5", "http", false, 0},
		{identity.Admin, "[::ffff:127.0.0.1]:5", "http", false, 0},
		{identity.Admin, "", "http", false, http.StatusForbidden},
	} {
		d := &Door{config: Config{Keys: oneKey{ID: "K", Secret: "s", Role: c.role}, Private: (&edge.Transport{Proxies: proxies, BehindTLS: c.secure}).Private}}
		r := httptest.NewRequest("POST", c.over+"://muster.example/session/v1/JoinSession", nil)
		r.RemoteAddr = c.from
		r.Header.Set("Authorization", "Bearer K.s")
		_, problem := d.authorize(r, identity.MayPlay, "JoinSession")
		got := 0
		if problem != nil {
			got = problem.status
		}
		if got != c.status {
			t.Errorf("%s from %s over %s: got %v, want %d", c.role, c.from, c.over, problem, c.status)
		}
	}
}

// A whole number may have a fraction of zero or an exponent: in Godot and other engines, every number of a parsed JSON text is a float.
func TestWholeNumbersInAnySpelling(t *testing.T) {
	type request struct {
		MaxPlayer int              `json:"maxPlayer"`
		Latency   map[string]int32 `json:"latency"`
	}
	for body, want := range map[string]string{
		`{"maxPlayer":2.0,"latency":{"a":1.2e1}}`: "", `{"maxPlayer":2.5}`: "maxPlayer: a number 2.5; want a whole number", `{"maxPlayer":2.0,"maxplayers":1}`: "maxplayers: this node has no such field",
		`{"maxPlayer":2.0} {}`: "body: want nothing after the object", `{"latency":{"a":1e10}}`: "latency: a number 10000000000; want a whole number that fits in 32 bits",
	} {
		var in request
		got := ""
		if p := decode([]byte(body), &in); p != nil {
			got = p.Message
		}
		if got != want || want == "" && (in.MaxPlayer != 2 || in.Latency["a"] != 12) {
			t.Errorf("%s: %q and %+v, want %q", body, got, in, want)
		}
	}
}

// A body of many small values takes far more memory decoded than as text, so values are counted before anything is decoded.
func TestValuesAreCountedBeforeDecoding(t *testing.T) {
	for _, c := range []struct {
		body   string
		status int // 0: decoded
	}{
		{`{"queueName":"` + strings.Repeat(`,`, 2*valuesMax) + `"}`, 0}, // inside a string
		{`{"queueName":"` + strings.Repeat(`\",`, valuesMax) + `"}`, 0},
		{`{"players":[` + strings.Repeat(`{},`, valuesMax) + `{}]}`, http.StatusRequestEntityTooLarge},
		{`{"players":` + strings.Repeat(`[`, valuesMax+1) + `}`, http.StatusRequestEntityTooLarge},
	} {
		var in struct {
			QueueName string           `json:"queueName"`
			Players   []map[string]any `json:"players"`
		}
		problem := decode([]byte(c.body), &in)
		switch {
		case problem == nil && c.status != 0:
			t.Errorf("%.40s…: decoded, want status %d", c.body, c.status)
		case problem != nil && (problem.status != c.status || problem.Field != "body"):
			t.Errorf("%.40s…: %+v, want status %d", c.body, problem, c.status)
		}
	}
}

func TestBodiesHaveAByteBudget(t *testing.T) {
	bodies := newShares(bodyBytesMax)
	largest := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", bodyMax)))
	mallory := &identity.Principal{ID: "game", Role: identity.Client, Address: "192.0.2.1"}
	taken := int64(0)
	for bodies.Take(mallory, bodyCost(largest)) {
		taken += bodyCost(largest)
	}
	if share := int64(bodyBytesMax / 8); taken == 0 || taken > share {
		t.Errorf("one address with a client key holds %d bytes of bodies, want some and at most %d", taken, share)
	}
	largest.ContentLength = -1 // chunked: as much as may come
	if unknown, known := bodyCost(largest), bodyCost(httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", bodyMax)))); unknown != known {
		t.Errorf("a body of unknown length costs %d, want %d", unknown, known)
	}
	if !bodies.Take(&identity.Principal{ID: "backend", Role: identity.Backend}, bodyCost(largest)) {
		t.Error("a backend finds no room")
	}
}

package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/attention"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/gamelift"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/series"
	"github.com/musterhq/muster/internal/signin"
)

// desk is a console in front of a real engine and the real service API, with a key of each role.
type desk struct {
	*Door
	t      *testing.T
	engine *engine.Engine
	keys   *identity.Keys
	secret identity.CellSecret
	links  uint64
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	return newDeskWith(t, nil, nil)
}

// newDeskWith makes a console with a clock that a test moves, and with stored metrics.
func newDeskWith(t *testing.T, clock *engine.Clock, kept *series.Store) *desk {
	t.Helper()
	return newDeskOn(t, engine.Config{Cell: cell.DefaultConfig(), Clock: clock}, kept)
}

// newDeskOn makes a console in front of its own engine.
func newDeskOn(t *testing.T, config engine.Config, kept *series.Store) *desk {
	t.Helper()
	e := enginetest.Open(t, config)
	secret := identity.CellSecret{}
	x := &desk{t: t, engine: e, keys: identity.NewKeys(secret, time.Now), secret: secret}
	x.keys.Publish(keysNamed("LOOK", access.ReadOnly, "PLAY", access.Client, "RUN", access.Backend, "ADMIN", access.Admin))
	api, err := gamelift.NewService(e, secret, "https://muster.example")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	x.Door = NewDoor(Config{
		Engine: e, Secret: secret, Keys: x.keys, Private: func(r *http.Request) bool { return r.Header.Get("Open") == "" }, Secure: func(r *http.Request) bool { return r.Header.Get("Plain") == "" },
		Signins: signin.New(signin.Config{}).Door("console"), Attention: attention.New(attention.Config{Engine: e}), Log: log, Series: kept,
		API: gamelift.NewHandler(api, gamelift.Config{Keys: x.keys, Log: log}),
		Explain: func(_ context.Context, kind, id string, _ bool) ([]byte, error) {
			return nil, domain.Refuse(domain.NotFound, "%s %s not found", kind, id)
		},
	})
	t.Cleanup(x.Close)
	return x
}

func keysNamed(pairs ...any) (all []access.Key) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, access.Key{ID: pairs[i].(string), Role: pairs[i+1].(access.Role)})
	}
	return all
}

func (x *desk) get(path string, cookies ...*http.Cookie) *http.Response {
	r := httptest.NewRequest("GET", path, nil)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	x.ServeHTTP(w, r)
	return w.Result()
}

// post signs in, with further headers in pairs.
func (x *desk) post(key, secret, to string, headers ...string) *http.Response {
	r := httptest.NewRequest("POST", Prefix+"/sign-in", strings.NewReader(url.Values{"key": {key}, "secret": {secret}, "to": {to}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	x.ServeHTTP(w, r)
	return w.Result()
}

func (x *desk) signedInAs(key string) *http.Cookie {
	x.t.Helper()
	cookies := x.post(key, x.secret.AccessKeySecret(key), "").Cookies()
	if len(cookies) != 1 {
		x.t.Fatalf("signing in as %s set %d cookies", key, len(cookies))
	}
	return cookies[0]
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	all, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func TestSigningIn(t *testing.T) {
	x := newDesk(t)
	right := x.secret.AccessKeySecret("LOOK")
	if r := x.get(Prefix + "/fleets?a=b"); r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != Prefix+"/sign-in?to=%2Fconsole%2Ffleets%3Fa%3Db" {
		t.Errorf("without a sign-in: %d, %s", r.StatusCode, r.Header.Get("Location"))
	}
	r := x.post("LOOK", right, Prefix+"/fleets?a=b")
	if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != Prefix+"/fleets?a=b" || len(r.Cookies()) != 1 {
		t.Fatalf("a right secret: %d, %s", r.StatusCode, r.Header.Get("Location"))
	}
	c := r.Cookies()[0]
	if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || !strings.HasPrefix(c.Name, "__Host-") || c.Path != "/" || strings.Contains(c.Value, right) {
		t.Errorf("the cookie is %s", c)
	}
	if r := x.get(Prefix+"/fleets", c); r.StatusCode != http.StatusOK {
		t.Errorf("signed in: %d", r.StatusCode)
	}
	for name, refused := range map[string]struct {
		response *http.Response
		status   int
	}{
		"a wrong secret":             {x.post("LOOK", "wrong", ""), http.StatusUnauthorized},
		"an unknown key":             {x.post("NONE", right, ""), http.StatusUnauthorized},
		"a key of the role client":   {x.post("PLAY", x.secret.AccessKeySecret("PLAY"), ""), http.StatusForbidden},
		"a form of another site":     {x.post("LOOK", right, "", "Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		"an old browser's":           {x.post("LOOK", right, "", "Sec-Fetch-Site", "", "Origin", "https://evil.example"), http.StatusForbidden},
		"an open connection":         {x.post("LOOK", right, "", "Open", "1"), http.StatusForbidden},
		"a form that is much larger": {x.post("LOOK", strings.Repeat("x", signInBytesMax), ""), http.StatusBadRequest},
	} {
		if refused.response.StatusCode != refused.status || len(refused.response.Cookies()) != 0 {
			t.Errorf("%s: %d with %d cookies, want %d", name, refused.response.StatusCode, len(refused.response.Cookies()), refused.status)
		}
	}
	for _, to := range []string{"https://evil.example/console/", "//evil.example/console/", "/elsewhere", `/\evil.example`, "/console/sign-in", "/consoles", "%zz"} {
		if r := x.post("LOOK", right, to); r.Header.Get("Location") != Prefix+"/" {
			t.Errorf("to %s: led to %s", to, r.Header.Get("Location"))
		}
	}
	if c := x.post("LOOK", right, "", "Plain", "1").Cookies()[0]; c.Secure || c.Name != plainCookieName {
		t.Errorf("without TLS on this machine the cookie is %s", c)
	}
}

func TestForgedAndStaleCookies(t *testing.T) {
	x := newDesk(t)
	good := x.signedInAs("LOOK")
	if key, _, ok := x.holder(good.Value, "", time.Now()); !ok || key.ID != "LOOK" {
		t.Fatalf("the ticket is that of %q", key.ID)
	}
	_, signature, _ := cutLast(good.Value, ".")
	later := time.Now().Add(100 * sessionLife)
	for name, value := range map[string]string{
		"another key":   strings.Replace(good.Value, "LOOK", "PLAY", 1),
		"a later end":   strings.TrimSuffix(x.ticket("LOOK", later), afterLast(x.ticket("LOOK", later))) + signature,
		"no signature":  strings.TrimSuffix(good.Value, signature),
		"half":          good.Value[:len(good.Value)-1],
		"empty":         "",
		"dots":          "...",
		"of a client":   x.ticket("PLAY", later),
		"of no key":     x.ticket("NONE", later),
		"that is over":  x.ticket("LOOK", time.Now().Add(-time.Second)),
		"without an id": x.ticket("", later),
	} {
		for _, cookie := range []string{cookieName, plainCookieName} {
			if status := x.statusWith(cookie, value); status != http.StatusSeeOther {
				t.Errorf("a cookie %s: %d", name, status)
			}
		}
	}
	x.keys.Publish(nil)
	if r := x.get(Prefix+"/", good); r.StatusCode != http.StatusSeeOther {
		t.Errorf("with a revoked key: %d", r.StatusCode)
	}
}

// statusWith returns the status of the first page for a cookie. The connection has no TLS if the cookie has no prefix.
func (x *desk) statusWith(cookie, value string) int {
	r := httptest.NewRequest("GET", Prefix+"/", nil)
	if cookie == plainCookieName {
		r.Header.Set("Plain", "1")
	}
	r.AddCookie(&http.Cookie{Name: cookie, Value: value})
	w := httptest.NewRecorder()
	x.ServeHTTP(w, r)
	return w.Code
}

// Another host of the domain, or a page without TLS, can set a cookie without the prefix, and send forms with this host's name: over TLS both are ignored.
func TestWhatPagesWithoutTLSCannotDo(t *testing.T) {
	x := newDesk(t)
	ticket := x.signedInAs("LOOK").Value
	if r := x.get(Prefix+"/", &http.Cookie{Name: plainCookieName, Value: ticket}); r.StatusCode != http.StatusSeeOther {
		t.Errorf("a cookie without the prefix, over TLS: %d", r.StatusCode)
	}
	if status := x.statusWith(plainCookieName, ticket); status != http.StatusOK {
		t.Errorf("without TLS on this machine: %d", status)
	}
	for origin, want := range map[string]int{"http://example.com": http.StatusForbidden, "https://example.com": http.StatusSeeOther} {
		if r := x.post("LOOK", x.secret.AccessKeySecret("LOOK"), "", "Sec-Fetch-Site", "", "Origin", origin); r.StatusCode != want {
			t.Errorf("a form of a page at %s: %d, want %d", origin, r.StatusCode, want)
		}
	}
}

func afterLast(ticket string) string { _, after, _ := cutLast(ticket, "."); return after }

func TestPages(t *testing.T) {
	x := newDesk(t)
	c := x.signedInAs("LOOK")
	for _, path := range []string{"/", "/fleets", "/game-sessions", "/queues", "/matchmaking", "/hosts"} {
		r := x.get(Prefix+path, c)
		if r.StatusCode != http.StatusOK || !strings.Contains(text(t, r), "<main") {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
		if h := r.Header; !strings.Contains(h.Get("Content-Security-Policy"), "script-src 'self';") || strings.Contains(h.Get("Content-Security-Policy"), "unsafe") || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s has the headers %v", path, h)
		}
	}
	for _, path := range []string{"/fleets/fleet-none", "/ticket/none", "/game-session/a/b/c", "/nothing", "/static/nothing"} {
		if r := x.get(Prefix+path, c); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
	r := x.get(urls["console.css"])
	if r.StatusCode != http.StatusOK || !strings.Contains(r.Header.Get("Cache-Control"), "immutable") || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/css") {
		t.Errorf("a static file: %d, %v", r.StatusCode, r.Header)
	}
	if r := x.get(Prefix + "/static/console.css?v=other"); r.Header.Get("Cache-Control") != "no-store" { // in the URL that a node of another release gave
		t.Errorf("another version of a static file may be kept: %v", r.Header)
	}
	if r := x.get(Prefix+"/find?id=fleet-1", c); r.Header.Get("Location") != Prefix+"/fleets/fleet-1" {
		t.Errorf("finding a fleet leads to %s", r.Header.Get("Location"))
	}
	if r := x.get(Prefix+"/find?id="+url.QueryEscape("//evil.example/../x?y"), c); !strings.HasPrefix(r.Header.Get("Location"), Prefix+"/") {
		t.Errorf("finding a strange player leads to %s", r.Header.Get("Location"))
	}
}

// follow opens the event stream of a page that was built after an entry.
func (x *desk) follow(s *httptest.Server, at uint64) (*bufio.Scanner, *http.Response) {
	x.t.Helper()
	r, err := http.NewRequestWithContext(x.t.Context(), "GET", s.URL+Prefix+"/live?since="+strconv.FormatUint(at, 10), nil)
	if err != nil {
		x.t.Fatal(err)
	}
	r.AddCookie(x.signedInAs("LOOK"))
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.Header.Get("Content-Type") != "text/event-stream" {
		x.t.Fatalf("%v, %v", err, answer)
	}
	x.t.Cleanup(func() { answer.Body.Close() })
	return bufio.NewScanner(answer.Body), answer
}

func awaitChange(t *testing.T, lines *bufio.Scanner) {
	t.Helper()
	for lines.Scan() {
		if lines.Text() == "event: changed" {
			return
		}
	}
	t.Fatalf("the stream ended before the change: %v", lines.Err())
}

// An open page's stream reports changes, and ends when the page's key is revoked.
func TestLive(t *testing.T) {
	x := newDesk(t)
	s := httptest.NewServer(x)
	t.Cleanup(s.Close)
	lines, _ := x.follow(s, x.engine.Applied())
	if !lines.Scan() { // the stream is open
		t.Fatal(lines.Err())
	}
	if err := x.engine.Do(t.Context(), &hosting.CreateLocation{Name: "custom-1"}); err != nil {
		t.Fatal(err)
	}
	awaitChange(t, lines)
	x.keys.Publish(nil)
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("after the key was revoked: %v", err)
	}
	// The browser opens the stream again. A redirect to the sign-in would be no stream, and the page would stay as it is.
	r := x.get(livePath)
	if said := text(t, r); r.Header.Get("Content-Type") != "text/event-stream" || !strings.HasSuffix(said, "\n\nevent: changed\ndata: \n\n") {
		t.Errorf("the stream of a page whose person is signed out: %s, %q", r.Status, said)
	}
}

// A page misses no change that happens before its stream is open or while the stream is interrupted.
func TestLiveMissesNothing(t *testing.T) {
	x := newDesk(t)
	s := httptest.NewServer(x)
	t.Cleanup(s.Close)
	before := x.engine.Applied()
	page := text(t, x.get(Prefix+"/", x.signedInAs("LOOK")))
	if !strings.Contains(page, fmt.Sprintf(`sse-connect="/console/live?since=%d"`, before)) {
		t.Errorf("the page does not follow from entry %d on: %s", before, page)
	}
	if err := x.engine.Do(t.Context(), &hosting.CreateLocation{Name: "custom-1"}); err != nil {
		t.Fatal(err)
	}
	first, answer := x.follow(s, before)
	awaitChange(t, first) // the watch has seen it from here on
	answer.Body.Close()
	second, _ := x.follow(s, before)
	awaitChange(t, second)
}

// The commands that pages offer for a terminal take any id as one word.
func TestCommandsQuoteIDs(t *testing.T) {
	for id, want := range map[string]string{
		"PlayerOne": "PlayerOne", "fleet-1/rack/p-1": "fleet-1/rack/p-1", "a; rm -rf ~": "'a; rm -rf ~'", "$(x)": "'$(x)'", "it's": `'it'\''s'`, "--debug": "'--debug'", "a\nb": "'a\nb'",
	} {
		if got := shellWord(id); got != want {
			t.Errorf("%q is written %s, want %s", id, got, want)
		}
	}
	x := newDesk(t)
	if page := text(t, x.get(Prefix+"/player/"+url.PathEscape("a;reboot"), x.signedInAs("LOOK"))); !strings.Contains(page, "--player-id &#39;a;reboot&#39;") {
		t.Errorf("the page of a player has the command without quotes: %s", page)
	}
}

func TestLiveStreamsAreBounded(t *testing.T) {
	x := newDesk(t)
	c := x.signedInAs("LOOK")
	x.live.mu.Lock()
	x.live.open = liveStreamsMax
	x.live.mu.Unlock()
	if r := x.get(Prefix+"/live", c); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one stream too many: %d", r.StatusCode)
	}
	x.live.mu.Lock()
	x.live.open, x.live.holders = liveOfHolder, map[string]int{"LOOK": liveOfHolder}
	x.live.mu.Unlock()
	if r := x.get(Prefix+"/live", c); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one stream of a key too many: %d", r.StatusCode)
	}
}

// explains makes the operators' API explain one object.
func (x *desk) explains(kind, id string) {
	x.config.Explain = func(_ context.Context, k, i string, _ bool) ([]byte, error) {
		if k == kind && i == id {
			return fmt.Appendf(nil, `{"kind":%q,"id":%q,"status":"ACTIVE","why":"It is so."}`, kind, id), nil
		}
		return nil, domain.Refuse(domain.NotFound, "%s %s not found", k, i)
	}
}

// Every section names the command that shows the same data.
func TestEveryPageHasACommand(t *testing.T) {
	x := furnished(t)
	x.withKeys()
	admin := x.signedInAs("ADMIN")
	paths := []string{"fleets/" + testFleet, "queues/global", "queues/global/metrics", "compute/none", "player/ann", "rule-sets", "do/create-location", "game-sessions/search"}
	for _, s := range navigation {
		paths = append(paths, s.Path)
	}
	for _, path := range paths {
		r := x.get(Prefix+"/"+path, admin)
		if page := text(t, r); r.StatusCode == http.StatusOK && !strings.Contains(page, `class="command"`) {
			t.Errorf("%s names no command", path)
		}
	}
}

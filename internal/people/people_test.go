package people

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/people/providers"
	"github.com/musterhq/muster/internal/people/providertest"
	"github.com/musterhq/muster/internal/signin"
)

// house is a service at which people sign in.
type house struct {
	*testing.T
	*Door
	ring   *keyring.Ring
	engine *engine.Engine
	ahead  atomic.Int64 // of the wall clock, as a duration
	server *httptest.Server
	log    *logged
	path   string // of the file of providers
}

// logged is a log that a test reads.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newHouse(t *testing.T, settings map[string]any) *house {
	t.Helper()
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "people.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	x := &house{T: t, log: &logged{}, path: path}
	file := x.reread()
	x.engine = enginetest.Open(t, engine.Config{Cell: cell.DefaultConfig(), Now: func() time.Time { return time.Now().Add(time.Duration(x.ahead.Load())) }})
	secret, err := identity.OpenCellSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if x.ring, err = keyring.Open(t.Context(), keyring.Config{Engine: x.engine, Secret: secret}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.ring.Close)
	var door *Door
	x.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if Serves(r.URL.Path) {
			door.ServeHTTP(w, r)
			return
		}
		p, ok := door.Browser(r)
		if !ok {
			http.Error(w, "nobody", http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, p.Holder()+" "+p.Roles.String()+" at "+r.URL.RequestURI())
	}))
	t.Cleanup(x.server.Close)
	all := func(*http.Request) bool { return true }
	never := func(*http.Request) bool { return false }
	log := slog.New(slog.NewTextHandler(x.log, nil))
	door, err = NewDoor(Config{
		Engine: x.engine, Secret: secret, Keys: x.ring, URL: strings.Replace(x.server.URL, "127.0.0.1", "localhost", 1), File: file, Private: all, Secure: never,
		Log: log, Signins: signin.New(signin.Config{CountOnly: true, Log: log}).Door("sign_in"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(door.Close)
	x.Door = door
	return x
}

// reread reads the file of providers again, as a reload or another node does.
func (x *house) reread() *providers.File {
	x.Helper()
	file, err := providers.ReadFile(x.path)
	if err != nil {
		x.Fatal(err)
	}
	return file
}

// studio returns a house with one provider.
func studio(t *testing.T, p *providertest.Provider, more map[string]any) *house {
	t.Helper()
	settings := map[string]any{"providers": []any{p.Settings(t, "studio", map[string][]string{"backend": {"dev"}, "admin": {"ops"}})}}
	for name, value := range more {
		settings[name] = value
	}
	return newHouse(t, settings)
}

// browser keeps cookies, and follows redirects and the page that leads back from the provider.
type browser struct {
	*house
	client *http.Client
	seen   []string // URLs
}

func (x *house) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		x.Fatal(err)
	}
	b := &browser{house: x}
	b.client = &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		b.seen = append(b.seen, r.URL.String())
		return nil
	}}
	return b
}

// base returns the address of the service in browsers.
func (x *house) base() string { return x.config.URL }

func (b *browser) get(path string) (status int, body string) {
	b.Helper()
	target := path
	if strings.HasPrefix(path, "/") {
		target = b.base() + path
	}
	answer, err := b.client.Get(target)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.Fatal(err)
	}
	if _, after, ok := strings.Cut(string(text), `http-equiv="refresh" content="0; url=`); ok && answer.StatusCode == http.StatusOK {
		to, _, _ := strings.Cut(after, `"`)
		return b.get(strings.ReplaceAll(to, "&amp;", "&"))
	}
	return answer.StatusCode, string(text)
}

// session returns the id of the browser's sign-in session.
func (b *browser) session() string {
	b.Helper()
	u, _ := url.Parse(b.base())
	r := httptest.NewRequest("GET", "/", nil)
	for _, c := range b.client.Jar.Cookies(u) {
		r.AddCookie(c)
	}
	id, _ := b.sessionOf(r)
	return id
}

func (x *house) pass() {
	r := x.Rechecker()
	r.pass(x.Context())
	r.work.Wait()
}

func TestSignInWithAProvider(t *testing.T) {
	p := providertest.New(t)
	x := studio(t, p, nil)
	b := x.browser()
	if status, body := b.get("/thing"); status != http.StatusUnauthorized {
		t.Fatalf("before: %d %s", status, body)
	}
	if _, body := b.get("/signin?back=/thing%3Fa%3D1"); !strings.Contains(body, "/signin/start/studio?back=%2Fthing%3Fa%3D1") {
		t.Errorf("the page has no button: %s", body)
	}
	if status, body := b.get("/signin/start/studio?back=/thing%3Fa%3D1%26b%3D2"); status != http.StatusOK || body != "studio/ann backend at /thing?a=1&b=2" {
		t.Fatalf("signed in: %d %s", status, body)
	}
	id := b.session()
	person, ok := x.Session(t.Context(), id)
	if !ok || person.Name != "ann@example.com" || strings.Join(person.Groups, " ") != "dev" || person.SessionName() != "ann@example.com" {
		t.Errorf("the person is %+v", person)
	}

	by := audit.Origin{Door: audit.DoorAPI, Operation: "GetRoleCredentials"}
	if _, err := x.Issue(t.Context(), by, &person, access.Admin, time.Hour); err != ErrNoRole {
		t.Errorf("credentials above the role: %v", err)
	}
	c, err := x.Issue(t.Context(), by, &person, access.ReadOnly, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x.ring.With(c.ID, c.Token, "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	life := key.Life()
	if err := x.End(t.Context(), id, people.EndedByAdmin); err != nil {
		t.Fatal(err)
	}
	if _, err := x.ring.With(c.ID, c.Token, "192.0.2.1"); err == nil || life.Err() == nil {
		t.Errorf("after the session: %v, %v", err, life.Err())
	}
	if status, _ := b.get("/thing"); status != http.StatusUnauthorized {
		t.Errorf("after the session, the cookie: %d", status)
	}
	if log := x.log.String(); strings.Contains(log, c.Token) || strings.Contains(log, p.Secret) || strings.Contains(log, "code=") {
		t.Errorf("a secret is in the log: %s", log)
	}
}

func TestSignOut(t *testing.T) {
	x := studio(t, providertest.New(t), nil)
	b := x.browser()
	b.get("/signin/start/studio?back=/")
	id := b.session()
	post := func(origin string) {
		r, _ := http.NewRequest("POST", x.base()+"/signin/out", nil)
		r.Header.Set("Origin", origin)
		answer, err := b.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	if post("https://evil.example"); !x.goesOn(id) {
		t.Error("a page of another site has signed the person out")
	}
	if post(x.base()); x.goesOn(id) {
		t.Error("the session goes on after the sign-out")
	}
}

// A sign-out ends the session even if its browser does not wait for the answer. If the session cannot be ended, the page says so.
func TestSignOutOfABrowserThatLeaves(t *testing.T) {
	x := studio(t, providertest.New(t), nil)
	b := x.browser()
	b.get("/signin/start/studio?back=/")
	id := b.session()
	ctx, leave := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "POST", x.base()+"/signin/out", nil)
	r.Header.Set("Origin", x.base())
	u, _ := url.Parse(x.base())
	for _, c := range b.client.Jar.Cookies(u) {
		r.AddCookie(c)
	}
	leave()
	if x.Door.ServeHTTP(httptest.NewRecorder(), r); x.goesOn(id) {
		t.Errorf("the session goes on\n%s", x.log)
	}

	b.get("/signin/start/studio?back=/")
	if err := x.engine.Close(); err != nil {
		t.Fatal(err)
	}
	r, _ = http.NewRequest("POST", x.base()+"/signin/out", nil)
	r.Header.Set("Origin", x.base())
	answer, err := b.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if page, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(page), "could not end the sign-in") || b.session() != "" {
		t.Errorf("a sign-out that failed: %d %s", answer.StatusCode, page)
	}
}

// A flood of requests with the cookie of an ended session does not become a flood of requests to the leader.
func TestLooksForSessionsAreBounded(t *testing.T) {
	x := studio(t, providertest.New(t), nil)
	b := x.browser()
	b.get("/signin/start/studio?back=/")
	id := b.session()
	for range looksMax {
		x.looks <- struct{}{}
	}
	if !x.goesOn(id) {
		t.Error("a session that this node knows waits for the others")
	}
	if err := x.End(t.Context(), id, people.EndedByAdmin); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := x.Session(ctx, id); ok {
		t.Error("an ended session goes on while others are looked for")
	}
	for range looksMax {
		<-x.looks
	}
	if x.goesOn(id) || len(x.looks) != 0 {
		t.Errorf("an ended session goes on, or its look has not ended: %d", len(x.looks))
	}
}

// lateKeys has not received a session yet when it is first asked for it.
type lateKeys struct {
	Keys
	asked atomic.Int32
}

func (k *lateKeys) SignIn(id string) (identity.SignIn, bool) {
	if k.asked.Add(1) == 1 {
		return identity.SignIn{}, false
	}
	return k.Keys.SignIn(id)
}

// A node that receives a session later than the request with its cookie waits for the session, and not for entries that do not concern credentials.
func TestSessionArrivesAfterItsRequest(t *testing.T) {
	x := studio(t, providertest.New(t), nil)
	b := x.browser()
	b.get("/signin/start/studio?back=/")
	id := b.session()
	x.ahead.Add(int64(time.Minute))
	use := people.Use{ID: id, At: domain.TimeOf(x.engine.Now()), Address: "192.0.2.1"}
	if err := x.engine.Do(t.Context(), &people.NoteUses{Uses: []people.Use{use}}); err != nil {
		t.Fatal(err)
	}
	if s, _ := x.stored(id); s.Used != use.At {
		t.Fatalf("the use is not recorded: %+v", s)
	}
	x.config.Keys = &lateKeys{Keys: x.ring}
	if !x.goesOn(id) {
		t.Error("the session is unknown")
	}
}

func (x *house) goesOn(id string) bool {
	_, ok := x.Session(x.Context(), id)
	return ok
}

// A change at the provider takes effect at the next check, and a person who was removed there is signed out.
func TestRecheck(t *testing.T) {
	p := providertest.New(t)
	x := studio(t, p, nil)
	b := x.browser()
	b.get("/signin/start/studio?back=/")
	id := b.session()
	x.due(id)
	p.Person("ann", map[string]any{"email": "ann@example.com", "groups": []string{"ops"}})
	x.pass()
	if s, ok := x.Session(t.Context(), id); !ok || s.Roles != access.Roles(access.Admin) {
		t.Fatalf("after a change of the groups: %v %+v\n%s", ok, s, x.log)
	}
	x.due(id)
	p.Down(true)
	x.pass()
	if !x.goesOn(id) {
		t.Error("while the provider is down, the session has ended before its time")
	}
	p.Down(false)
	x.pass() // with the same refresh token: the failed attempt did not use it up
	if s, _ := x.stored(id); s.Checked < s.Started {
		t.Errorf("the session was not confirmed after the provider came back: %+v", s)
	}
	x.due(id)
	p.Person("eve", map[string]any{"groups": []string{"ops"}})
	x.pass()
	if s, _ := x.stored(id); s.Subject != "ann" || !strings.Contains(x.log.String(), "want \\\"ann\\\"") {
		t.Errorf("a token of somebody else was taken for a confirmation: %+v\n%s", s, x.log)
	}
	p.Person("ann", map[string]any{"groups": []string{"guests"}})
	b.get("/signin/start/studio?back=/") // has a session; the new one has no role
	x.due(id)
	p.Gone()
	x.pass()
	if x.goesOn(id) {
		t.Error("a person whom the provider does not confirm is still signed in")
	}
}

// A check can fail after the provider has replaced the refresh token. The next check uses the new one.
func TestRecheckFailsAfterTheNewRefreshToken(t *testing.T) {
	p := providertest.New(t)
	p.Claims = func(claims map[string]any) { delete(claims, "groups") } // so they come from another request
	var down atomic.Bool
	p.Serve = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/userinfo" || !down.Load() {
			return false
		}
		http.Error(w, "down", http.StatusServiceUnavailable)
		return true
	}
	x := studio(t, p, nil)
	b := x.browser()
	b.get("/signin/start/studio?back=/")
	id := b.session()
	x.due(id)
	before, _ := x.stored(id)
	down.Store(true)
	x.pass()
	if s, _ := x.stored(id); s.Checked != before.Checked || s.CheckBy != before.CheckBy || bytes.Equal(s.Refresh, before.Refresh) {
		t.Errorf("after a check that failed the session is %+v, want only another refresh token than in %+v\n%s", s, before, x.log)
	}
	down.Store(false)
	x.pass()
	if s, ok := x.stored(id); !ok || s.Checked <= before.Checked {
		t.Errorf("the next check has not confirmed the session: %+v %t\n%s", s, ok, x.log)
	}
}

// A check in progress ends with its outcome stored when the node no longer leads, because the provider may have replaced the refresh token. Others do not begin.
func TestRecheckInProgressAtTheEndOfLeadership(t *testing.T) {
	p := providertest.New(t)
	ctx, rest := context.WithCancel(t.Context())
	p.Serve = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" && r.FormValue("grant_type") == "refresh_token" {
			rest()
		}
		return false
	}
	x := studio(t, p, nil)
	var ids []string
	for range recheckAtOnce + 2 {
		b := x.browser()
		b.get("/signin/start/studio?back=/")
		ids = append(ids, b.session())
	}
	x.due(ids...)
	before := map[string][]byte{} // refresh tokens
	for _, id := range ids {
		s, _ := x.stored(id)
		before[id] = s.Refresh
	}
	asked := p.Asked("/token")
	r := x.Rechecker()
	r.grace = time.Hour
	r.pass(ctx)
	r.work.Wait()
	asked = p.Asked("/token") - asked
	stored := 0
	for id, refresh := range before {
		if s, ok := x.stored(id); ok && !bytes.Equal(s.Refresh, refresh) {
			stored++
		}
	}
	if asked == 0 || asked > recheckAtOnce || stored != asked {
		t.Errorf("the outcome of %d checks is stored, want that of all %d that had begun, and at most %d\n%s", stored, asked, recheckAtOnce, x.log)
	}
}

// While a provider is down, a session whose check has failed waits, and others are checked at the same time. The race detector watches.
func TestRecheckWhileOthersWait(t *testing.T) {
	p := providertest.New(t)
	x := studio(t, p, nil)
	var ids []string
	for range 3 {
		b := x.browser()
		b.get("/signin/start/studio?back=/")
		ids = append(ids, b.session())
		x.ahead.Add(int64(time.Second)) // sessions are checked in the order of their start
	}
	for i, check := range []time.Duration{28 * time.Second, 24 * time.Second, 20 * time.Second} { // due after half of it
		s, _ := x.stored(ids[i])
		if err := x.engine.Do(t.Context(), &people.RenewSession{ID: s.ID, Groups: s.Groups, Roles: s.Roles, Check: check}); err != nil {
			t.Fatal(err)
		}
	}
	p.Down(true)
	checker := x.Rechecker()
	for _, wait := range []time.Duration{10 * time.Second, 2 * time.Second, 2 * time.Second} {
		x.ahead.Add(int64(wait))
		asked := p.Asked("/token")
		checker.pass(t.Context())
		checker.work.Wait()
		if p.Asked("/token") != asked+1 {
			t.Errorf("a pass made %d requests, want one", p.Asked("/token")-asked)
		}
	}
}

// Each provider accepts the client's secret in one form, and refuses the other. A person whom it does not confirm is signed out at once, whichever form it is.
func TestRecheckWithOneFormOfTheSecret(t *testing.T) {
	for form, inHeader := range map[string]bool{"header": true, "body": false} {
		t.Run(form, func(t *testing.T) {
			p := providertest.New(t)
			p.Serve = func(w http.ResponseWriter, r *http.Request) bool {
				if _, _, ok := r.BasicAuth(); r.URL.Path != "/token" || ok == inHeader {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, `{"error":"invalid_client"}`)
				return true
			}
			x := studio(t, p, nil)
			b := x.browser()
			b.get("/signin/start/studio?back=/")
			id := b.session()
			asked := p.Asked("/token")
			x.due(id)
			x.pass()
			if !x.goesOn(id) || p.Asked("/token") != asked+1 {
				t.Errorf("a check made %d requests; the session goes on: %t\n%s", p.Asked("/token")-asked, x.goesOn(id), x.log)
			}
			p.Gone()
			x.due(id)
			x.pass()
			if x.goesOn(id) {
				t.Errorf("a person whom the provider does not confirm is still signed in:\n%s", x.log)
			}
		})
	}
}

// due makes the checks of sessions due, as if enough time had passed.
func (x *house) due(ids ...string) {
	x.Helper()
	for _, id := range ids {
		s, ok := x.stored(id)
		if !ok {
			x.Fatal("there is no such session")
		}
		if err := x.engine.Do(x.Context(), &people.RenewSession{ID: id, Groups: s.Groups, Roles: s.Roles, Check: 2 * time.Minute}); err != nil {
			x.Fatal(err)
		}
	}
	x.ahead.Add(int64(time.Minute))
}

func (x *house) stored(id string) (s people.SignIn, ok bool) {
	x.Helper()
	if err := x.engine.Read(x.Context(), func(v *cell.View) error { s, ok = v.SignIn(id); return nil }); err != nil {
		x.Fatal(err)
	}
	return s, ok
}

// Without a refresh token the provider cannot be asked again, so the session ends at the configured time.
func TestNoRefreshToken(t *testing.T) {
	p := providertest.New(t)
	p.NoRefresh()
	x := studio(t, p, map[string]any{"recheck": "10s"})
	b := x.browser()
	b.get("/signin/start/studio?back=/")
	s, ok := x.stored(b.session())
	if !ok || len(s.Refresh) != 0 || s.CheckBy != s.Started.Add(10*time.Second) {
		t.Errorf("the session is %+v", s)
	}
}

// The state contains the refresh token only in encrypted form.
func TestRefreshTokenIsEncrypted(t *testing.T) {
	x := studio(t, providertest.New(t), nil)
	b := x.browser()
	b.get("/signin/start/studio?back=/")
	s, _ := x.stored(b.session())
	token, err := x.openRefresh(&s)
	if err != nil || len(token) < 20 || strings.Contains(string(s.Refresh), token) {
		t.Errorf("the token is %q, %v", token, err)
	}
	other := s
	other.ID = people.SignInID{1}.String()
	if _, err := x.openRefresh(&other); err == nil {
		t.Error("the token of one session is read as that of another one")
	}
}

func TestNobodyWithoutARole(t *testing.T) {
	p := providertest.New(t)
	p.Person("bob", map[string]any{"email": "bob@example.com", "groups": []string{"guests"}})
	x := studio(t, p, nil)
	b := x.browser()
	if status, body := b.get("/signin/start/studio?back=/"); status != http.StatusForbidden || !strings.Contains(body, "bob@example.com") || b.session() != "" {
		t.Errorf("%d %s", status, body)
	}
}

func TestSignInReturnsOnlyToOwnPages(t *testing.T) {
	for to, want := range map[string]string{
		"/thing?a=b": "/thing?a=b", "/authorize?redirect_uri=http%3A%2F%2F127.0.0.1%2Fcb": "/authorize?redirect_uri=http%3A%2F%2F127.0.0.1%2Fcb",
		"": home, "thing": home, "//evil.example/": home, "https://evil.example/": home, `/\evil.example/`: home, `\\evil.example`: home, "/%5cevil": "/%5cevil", "javascript:alert(1)": home,
		"/signin": home, "/signin/start/studio": home, "/a\nb": home, "/" + strings.Repeat("x", backMax): home, "http:/evil": home, "///evil.example": home, "/\t/evil.example": home,
	} {
		if got := backOf(to); got != want {
			t.Errorf("%q leads to %q, want %q", to, got, want)
		}
	}
}

// A provider that does not answer when a browser returns is the reason that the person sees, and no failed sign-in of the browser's address.
func TestProviderIsDownWhenTheBrowserReturns(t *testing.T) {
	for what, path := range map[string]string{"metadata": "/.well-known/openid-configuration", "token": "/token"} {
		p := providertest.New(t)
		x := studio(t, p, nil)
		var down atomic.Bool
		p.Serve = func(w http.ResponseWriter, r *http.Request) bool {
			if !down.Load() || r.URL.Path != path {
				return false
			}
			http.Error(w, "down", http.StatusServiceUnavailable)
			return true
		}
		b := x.browser()
		back := b.callback()
		x.SetFile(x.reread())
		down.Store(true)
		status, body := b.get(back.String())
		if status != http.StatusBadGateway || !strings.Contains(body, "did not answer as expected") {
			t.Errorf("%s: %d %s", what, status, body)
		}
		for range 2 * linesMost {
			b.get("/signin/start/studio")
		}
		if log := x.log.String(); strings.Contains(log, "wrong_token") || !strings.Contains(log, "provider=studio") || strings.Count(log, "cannot be used") > linesMost {
			t.Errorf("%s: the log is %s", what, log)
		}
	}
}

// If the file turns passkeys off, the pages and the answers to their scripts say so.
func TestPagesSayWhyThereAreNoPasskeys(t *testing.T) {
	x := newHouse(t, map[string]any{"own": map[string]any{"off": true}})
	for _, path := range []string{"/signin", "/signin/enrol"} {
		if _, body := x.browser().get(path); !strings.Contains(body, "turns off sign-in") {
			t.Errorf("%s does not say why there are no passkeys: %s", path, body)
		}
	}
	r, _ := http.NewRequest("POST", x.base()+"/signin/passkey/begin", strings.NewReader("{}"))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusNotFound || !strings.Contains(string(body), "turns off sign-in") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
}

// Browsers bind passkeys to the host in lower case.
func TestPasskeysOfAHostInCapitals(t *testing.T) {
	d := &Door{config: Config{URL: "https://Muster.Example.com"}}
	if d.openPasskeys(); d.passkeys == nil || d.passkeys.Config.RPID != "muster.example.com" {
		t.Errorf("passkeys are for %+v", d.passkeys)
	}
}

// While a cluster is being upgraded and its level is below that of these events, sign-ins are refused with a readable message.
func TestBeforeTheLevelIsInForce(t *testing.T) {
	x := studio(t, providertest.New(t), nil)
	var level uint
	if err := x.engine.Read(t.Context(), func(v *cell.View) error { level = kernel.Level; return nil }); err != nil || level < 2 {
		t.Fatal(level, err)
	}
	if status, text := x.problem(x.engine.Do(context.Background(), &people.RemovePerson{Person: "nobody"})); status != http.StatusBadRequest || !strings.Contains(text, "nobody") {
		t.Errorf("%d %s", status, text)
	}
}

func b64(text []byte) string { return base64.RawURLEncoding.EncodeToString(text) }

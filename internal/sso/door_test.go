package sso

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/signin"
)

// crowd has the people whom the test signs in.
type crowd struct {
	keys *identity.Keys

	mu      sync.Mutex
	live    map[string]Person // by session
	ended   []string
	private bool
}

func (c *crowd) Browser(r *http.Request) (Person, bool) {
	cookie, err := r.Cookie("session")
	if err != nil {
		return Person{}, false
	}
	return c.Session(r.Context(), cookie.Value)
}

func (c *crowd) SignIn(w http.ResponseWriter, r *http.Request, back string) {
	http.Redirect(w, r, "/signin?to="+url.QueryEscape(back), http.StatusSeeOther)
}

func (c *crowd) OwnPage(r *http.Request) bool { return r.Header.Get("Sec-Fetch-Site") == "same-origin" }

func (c *crowd) Session(_ context.Context, id string) (Person, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.live[id]
	return p, ok
}

func (c *crowd) End(ctx context.Context, _ audit.Origin, id string, _ Cause) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.live, id)
	c.ended = append(c.ended, id)
	return nil
}

func (c *crowd) Issue(_ context.Context, _ audit.Origin, p *Person, role identity.Role, valid time.Duration) (identity.Credentials, error) {
	return c.keys.Issue(identity.Session{Source: identity.FromWebIdentity, Holder: p.Holder, Role: role, Account: identity.DefaultAccount}, valid), nil
}

func (c *crowd) isLive(id string) bool {
	_, ok := c.Session(context.Background(), id)
	return ok
}

// desk is a service with the door at one port.
type desk struct {
	*testing.T
	*crowd
	door   *Door
	engine *engine.Engine
	url    string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	secret, err := identity.OpenCellSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e := enginetest.Open(t, engine.Config{Cell: cell.DefaultConfig(), Clock: engine.NewClock(time.Now())})
	if err := e.Do(t.Context(), &kernel.RaiseLevel{To: kernel.Level}); err != nil {
		t.Fatal(err)
	}
	x := &desk{T: t, engine: e, crowd: &crowd{keys: identity.NewKeys(secret, e.Now), live: map[string]Person{}, private: true}}
	for _, id := range []string{"ann", "bob"} {
		x.live[id] = Person{SignIn: id, Name: strings.ToUpper(id), Holder: "studio/" + id, Roles: []identity.Role{identity.Backend}, Expires: e.Now().Add(12 * time.Hour)}
	}
	watch := signin.New(signin.Config{})
	x.door = NewDoor(Config{Engine: e, People: x.crowd, Secret: secret, Secure: func(*http.Request) bool { return false },
		Private: func(*http.Request) bool { return x.private }, Signins: watch.Door("sso"), Style: "/style.css", Log: slog.New(slog.DiscardHandler)})
	x.door.clock = e.Now // which the programs of the tests also have
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !Serves(r.URL.Path) {
			http.NotFound(w, r)
			return
		}
		x.door.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	x.url = server.URL
	return x
}

func (x *desk) pass(d time.Duration) {
	x.Helper()
	if err := x.engine.Advance(x.Context(), d); err != nil {
		x.Fatal(err)
	}
}

type object = map[string]any

// post calls an operation of SSO-OIDC, and returns the answer and the type of the error.
func (x *desk) post(path string, in any) (out object, kind string) {
	x.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		x.Fatal(err)
	}
	answer, err := http.Post(x.url+path, "application/json", bytes.NewReader(body))
	if err != nil {
		x.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil {
		x.Fatal(err)
	}
	kind = answer.Header.Get("X-Amzn-Errortype")
	if (kind == "") != (answer.StatusCode == http.StatusOK) || kind != "" && (out["error"] == "" || out["error_description"] == "") {
		x.Fatalf("%s: %d %s %v", path, answer.StatusCode, kind, out)
	}
	return out, kind
}

// want calls an operation, which must have this outcome.
func (x *desk) want(kind, path string, in any) object {
	x.Helper()
	out, got := x.post(path, in)
	if got != kind {
		x.Fatalf("%s: %q %v, want %q", path, got, out, kind)
	}
	return out
}

const callback = "http://127.0.0.1/oauth/callback"

// register registers a client as the CLI does, with changes.
func (x *desk) register(changes object) (id, secret string) {
	x.Helper()
	out := x.want("", "/client/register", registrationOf(changes))
	return out["clientId"].(string), out["clientSecret"].(string)
}

func registrationOf(changes object) object {
	in := object{"clientName": "botocore-client-muster", "clientType": "public", "scopes": []string{accountScope}, "grantTypes": []string{codeGrant, refreshGrant, deviceGrant},
		"redirectUris": []string{callback}, "issuerUrl": "https://muster.example.com/start"}
	for k, v := range changes {
		if in[k] = v; v == nil {
			delete(in, k)
		}
	}
	return in
}

// browse sends a browser's request. With a body it is a form of one of the service's pages.
func (x *desk) browse(person, path string, form url.Values, headers ...string) (*http.Response, string) {
	x.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(x.Context(), method, x.url+path, body)
	if err != nil {
		x.Fatal(err)
	}
	if person != "" {
		r.AddCookie(&http.Cookie{Name: "session", Value: person})
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		x.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		x.Fatal(err)
	}
	return answer, string(text)
}

var tokenField = regexp.MustCompile(`name="token" value="([^"]+)"`)

// approve makes a person open a page and send its form with an answer.
func (x *desk) approve(person, path, answer string, fields url.Values) (*http.Response, string) {
	x.Helper()
	page, text := x.browse(person, path, nil)
	found := tokenField.FindStringSubmatch(text)
	if page.StatusCode != http.StatusOK || found == nil {
		x.Fatalf("%s: %d %s", path, page.StatusCode, text)
	}
	form := url.Values{"token": {found[1]}, "answer": {answer}}
	for k, v := range fields {
		form[k] = v
	}
	return x.browse(person, path, form)
}

const verifier = "0123456789-abcdefghijklmnopqrstuvwxyz._~ABCDEF"

func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// authorizationOf returns the path to which the CLI sends a browser, with changes.
func authorizationOf(id string, changes map[string]string) string {
	q := url.Values{"response_type": {"code"}, "client_id": {id}, "redirect_uri": {"http://127.0.0.1:4321/oauth/callback"}, "state": {"the state"},
		"code_challenge_method": {"S256"}, "scopes": {accountScope}, "code_challenge": {challenge(verifier)}}
	for k, v := range changes {
		if v == "" {
			q.Del(k)
		} else {
			q.Set(k, v)
		}
	}
	return authorizePath + "?" + q.Encode()
}

// code makes ann approve a client, and returns its code.
func (x *desk) code(id string) string {
	x.Helper()
	answer, text := x.approve("ann", authorizationOf(id, nil), "approve", nil)
	to, err := answer.Location()
	if err != nil {
		x.Fatalf("%d %s", answer.StatusCode, text)
	}
	if q := to.Query(); to.Host != "127.0.0.1:4321" || to.Path != "/oauth/callback" || q.Get("state") != "the state" || q.Get("iss") != x.url || q.Get("code") == "" {
		x.Fatalf("the browser goes to %s", to)
	}
	return to.Query().Get("code")
}

// codeAsks returns the request for tokens for a code, with changes.
func codeAsks(id, secret, code string, changes object) object {
	in := object{"clientId": id, "clientSecret": secret, "grantType": codeGrant, "code": code, "redirectUri": "http://127.0.0.1:4321/oauth/callback", "codeVerifier": verifier}
	for k, v := range changes {
		if in[k] = v; v == nil {
			delete(in, k)
		}
	}
	return in
}

// portal calls an operation of the portal.
func (x *desk) portal(method, path, token string) (status int, kind string, out object) {
	x.Helper()
	r, err := http.NewRequestWithContext(x.Context(), method, x.url+path, nil)
	if err != nil {
		x.Fatal(err)
	}
	if token != "" {
		r.Header.Set("x-amz-sso_bearer_token", token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		x.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil {
		x.Fatal(err)
	}
	return answer.StatusCode, answer.Header.Get("X-Amzn-Errortype"), out
}

// A program on the person's machine gets a code, exchanges it for tokens, and these for valid temporary credentials.
func TestAuthorizationCode(t *testing.T) {
	x := newDesk(t)
	id, secret := x.register(nil)
	out := x.want("", "/token", codeAsks(id, secret, x.code(id), nil))
	if out["tokenType"] != "Bearer" || out["expiresIn"] != accessLife.Seconds() || out["refreshToken"] == nil {
		t.Errorf("tokens: %v", out)
	}
	access := out["accessToken"].(string)
	status, _, roles := x.portal("GET", "/assignment/roles?account_id=000000000000", access)
	if got, _ := json.Marshal(roles["roleList"]); status != 200 || string(got) != `[{"accountId":"000000000000","roleName":"backend"},{"accountId":"000000000000","roleName":"readonly"}]` {
		t.Errorf("roles: %d %s", status, got)
	}
	status, _, accounts := x.portal("GET", "/assignment/accounts", access)
	if got, _ := json.Marshal(accounts["accountList"]); status != 200 || string(got) != `[{"accountId":"000000000000","accountName":"Muster"}]` {
		t.Errorf("accounts: %d %s", status, got)
	}
	status, _, given := x.portal("GET", "/federation/credentials?account_id=000000000000&role_name=readonly", access)
	c, _ := given["roleCredentials"].(map[string]any)
	if status != 200 || c == nil {
		t.Fatalf("credentials: %d %v", status, given)
	}
	key, err := x.keys.With(c["accessKeyId"].(string), c["sessionToken"].(string), "192.0.2.1")
	if err != nil || key.Role != identity.ReadOnly || key.Secret != c["secretAccessKey"] || float64(key.Session().Expires.Add(-identity.Grace).UnixMilli()) != c["expiration"] {
		t.Errorf("credentials %v: %v %v", c, key, err)
	}

	x.pass(accessLife)
	if status, _, _ := x.portal("GET", "/assignment/accounts", access); status != 200 {
		t.Errorf("a token at its end, which the client may just have used: %d", status)
	}
	x.pass(identity.Grace)
	if status, kind, out := x.portal("GET", "/assignment/accounts", access); status != 401 || kind != "UnauthorizedException" || out["message"] != "Session token not found or invalid" {
		t.Errorf("an expired token: %d %s %v", status, kind, out)
	}
	renewed := x.want("", "/token", object{"clientId": id, "clientSecret": secret, "grantType": refreshGrant, "refreshToken": out["refreshToken"]})
	if renewed["refreshToken"] != out["refreshToken"] {
		t.Error("the refresh token is another one, which two programs that renew at once would lose")
	}
	if status, _, _ := x.portal("POST", "/logout", renewed["accessToken"].(string)); status != 200 || x.isLive("ann") {
		t.Errorf("logout: %d, the session lives: %v", status, x.isLive("ann"))
	}
	if status, kind, _ := x.portal("GET", "/assignment/accounts", renewed["accessToken"].(string)); status != 401 || kind != "UnauthorizedException" {
		t.Errorf("a token of an ended session: %d %s", status, kind)
	}
	x.want("InvalidGrantException", "/token", object{"clientId": id, "clientSecret": secret, "grantType": refreshGrant, "refreshToken": out["refreshToken"]})
}

// A device waits for a person, who types or compares its code.
func TestDevice(t *testing.T) {
	x := newDesk(t)
	id, secret := x.register(object{"grantTypes": nil, "redirectUris": nil}) // as clients of before 2024
	asks := object{"clientId": id, "clientSecret": secret, "startUrl": "https://muster.example.com/start"}
	waits := x.want("", "/device_authorization", asks)
	poll := object{"clientId": id, "clientSecret": secret, "grantType": deviceGrant, "deviceCode": waits["deviceCode"]}
	x.want("AuthorizationPendingException", "/token", poll)
	x.want("AuthorizationPendingException", "/token", poll)
	shown := waits["userCode"].(string)
	if !regexp.MustCompile(`^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$`).MatchString(shown) || waits["verificationUri"] != x.url+"/device" ||
		waits["verificationUriComplete"] != x.url+"/device?user_code="+shown || waits["expiresIn"] != 600.0 || waits["interval"] != 1.0 {
		t.Errorf("%v", waits)
	}
	answer, _ := x.browse("", "/device?user_code="+shown, nil)
	if to, err := answer.Location(); err != nil || to.Path != "/signin" || to.Query().Get("to") != "/device?user_code="+shown {
		t.Errorf("a browser without a person goes to %v", to)
	}
	_, text := x.browse("ann", "/device?user_code="+url.QueryEscape(strings.ToLower(strings.ReplaceAll(shown, "-", " "))), nil)
	for _, want := range []string{shown, "botocore-client-muster", "127.0.0.1", "ANN", "backend", "readonly"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q: %s", want, text)
		}
	}
	if answer, text := x.approve("ann", "/device?user_code="+shown, "approve", url.Values{"user_code": {shown}}); answer.StatusCode != 200 || !strings.Contains(text, "signed in") {
		t.Fatalf("approve: %d %s", answer.StatusCode, text)
	}
	out := x.want("", "/token", poll)
	if out["refreshToken"] == nil {
		t.Errorf("%v", out)
	}
	x.want("", "/token", object{"clientId": id, "clientSecret": secret, "grantType": refreshGrant, "refreshToken": out["refreshToken"]})
	if x.want("InvalidGrantException", "/token", poll); x.isLive("ann") {
		t.Error("the code of the device worked twice, and its session goes on")
	}

	waits = x.want("", "/device_authorization", asks)
	poll["deviceCode"] = waits["deviceCode"]
	x.approve("bob", "/device?user_code="+waits["userCode"].(string), "deny", url.Values{"user_code": {waits["userCode"].(string)}})
	x.want("AccessDeniedException", "/token", poll)

	waits = x.want("", "/device_authorization", asks)
	poll["deviceCode"] = waits["deviceCode"]
	x.pass(10 * time.Minute)
	x.want("ExpiredTokenException", "/token", poll)
	if answer, _ := x.browse("bob", "/device?user_code="+waits["userCode"].(string), nil); answer.StatusCode != 404 {
		t.Errorf("an expired code: %d", answer.StatusCode)
	}
}

// The session of a stolen code ends, even if the thief does not wait for the answer.
func TestAttackThiefDisconnects(t *testing.T) {
	x := newDesk(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x.door.stolen(httptest.NewRequest("POST", "/token", nil).WithContext(ctx), "authorization code", "ann")
	if x.isLive("ann") {
		t.Error("the session goes on")
	}
}

// A client that requests no scope, like profiles without an sso-session, gets one token for the working day and no refresh token.
func TestWithoutScopes(t *testing.T) {
	x := newDesk(t)
	id, secret := x.register(object{"scopes": nil})
	out := x.want("", "/token", codeAsks(id, secret, x.code(id), nil))
	if out["refreshToken"] != nil || out["expiresIn"] != onlyLife.Seconds() {
		t.Errorf("%v", out)
	}
}

// No token outlives its session.
func TestTokensEndWithTheSession(t *testing.T) {
	x := newDesk(t)
	x.mu.Lock()
	ann := x.live["ann"]
	ann.Expires = x.engine.Now().Add(10 * time.Minute)
	x.live["ann"] = ann
	x.mu.Unlock()
	id, secret := x.register(nil)
	out := x.want("", "/token", codeAsks(id, secret, x.code(id), nil))
	if seconds := out["expiresIn"].(float64); seconds > 600 || seconds < 590 {
		t.Errorf("%v", out)
	}
	_, _, given := x.portal("GET", "/federation/credentials?account_id=000000000000&role_name=readonly", out["accessToken"].(string))
	if until := given["roleCredentials"].(map[string]any)["expiration"].(float64); int64(until) > ann.Expires.UnixMilli() {
		t.Errorf("credentials until %v, the session until %v", until, ann.Expires.UnixMilli())
	}
	_ = x.End(t.Context(), audit.Origin{}, "ann", SignedOut)
	x.want("InvalidGrantException", "/token", object{"clientId": id, "clientSecret": secret, "grantType": refreshGrant, "refreshToken": out["refreshToken"]})
}

// A code is useless without the verifier, the client and the redirect URI of its request, and cannot be used twice.
func TestAttackCodes(t *testing.T) {
	x := newDesk(t)
	id, secret := x.register(nil)
	other, otherSecret := x.register(object{"clientName": "other"})
	for name, changes := range map[string]object{
		"no verifier":          {"codeVerifier": nil},
		"another verifier":     {"codeVerifier": strings.Repeat("x", 43)},
		"the challenge":        {"codeVerifier": challenge(verifier)},
		"another redirect URI": {"redirectUri": "http://127.0.0.1:4322/oauth/callback"},
		"no redirect URI":      {"redirectUri": nil},
		"another client":       {"clientId": other, "clientSecret": otherSecret},
	} {
		code := x.code(id)
		x.want("InvalidGrantException", "/token", codeAsks(id, secret, code, changes))
		if !x.isLive("ann") {
			t.Fatalf("%s: the session has ended", name)
		}
		x.want("InvalidGrantException", "/token", codeAsks(id, secret, code, nil)) // it was seen by two
		if x.isLive("ann") {
			t.Errorf("%s: the session goes on", name)
		}
		x.live["ann"] = Person{SignIn: "ann", Name: "ANN", Holder: "studio/ann", Roles: []identity.Role{identity.Backend}, Expires: x.engine.Now().Add(12 * time.Hour)}
	}
	code := x.code(id)
	out := x.want("", "/token", codeAsks(id, secret, code, nil))
	x.want("InvalidGrantException", "/token", codeAsks(id, secret, code, nil))
	if status, _, _ := x.portal("GET", "/assignment/accounts", out["accessToken"].(string)); status != 401 {
		t.Errorf("the token of a code that came twice: %d", status)
	}
	x.live["ann"] = Person{SignIn: "ann", Name: "ANN", Expires: x.engine.Now().Add(12 * time.Hour)}
	code = x.code(id)
	x.pass(codeLife)
	x.want("InvalidGrantException", "/token", codeAsks(id, secret, code, nil))
	if !x.isLive("ann") {
		t.Error("a code that has expired ended its session")
	}
}

// If many clients exchange a code at once, at most one gets tokens.
func TestAttackCodeAtOnce(t *testing.T) {
	x := newDesk(t)
	id, secret := x.register(nil)
	code := x.code(id)
	var wait sync.WaitGroup
	var mu sync.Mutex
	got := map[string]int{}
	for range 8 {
		wait.Go(func() {
			_, kind := x.post("/token", codeAsks(id, secret, code, nil))
			mu.Lock()
			got[kind]++
			mu.Unlock()
		})
	}
	wait.Wait()
	if got[""] > 1 || got[""]+got["InvalidGrantException"] != 8 || x.isLive("ann") {
		t.Errorf("%v, the session lives: %v", got, x.isLive("ann"))
	}
}

// Invalid requests for a code are refused.
func TestAttackAuthorizations(t *testing.T) {
	x := newDesk(t)
	id, _ := x.register(object{"redirectUris": []string{callback, "http://localhost:77/x", "http://[::1]/y"}})
	device, _ := x.register(object{"grantTypes": []string{deviceGrant}})
	for _, c := range []struct {
		name    string
		id      string
		changes map[string]string
		code    string // empty: the browser stays here
	}{
		{name: "no client", id: "x"},
		{name: "a changed client", id: id[:len(id)-3] + "AAA"},
		{name: "another path", id: id, changes: map[string]string{"redirect_uri": "http://127.0.0.1:4321/other"}},
		{name: "another host", id: id, changes: map[string]string{"redirect_uri": "http://127.0.0.2:4321/oauth/callback"}},
		{name: "another site", id: id, changes: map[string]string{"redirect_uri": "http://evil.example/oauth/callback"}},
		{name: "a site with our host as its user", id: id, changes: map[string]string{"redirect_uri": "http://127.0.0.1:80@evil.example/oauth/callback"}},
		{name: "another scheme", id: id, changes: map[string]string{"redirect_uri": "https://127.0.0.1:4321/oauth/callback"}},
		{name: "a query", id: id, changes: map[string]string{"redirect_uri": "http://127.0.0.1:4321/oauth/callback?x=1"}},
		{name: "a fragment", id: id, changes: map[string]string{"redirect_uri": "http://127.0.0.1:4321/oauth/callback#x"}},
		{name: "another port than the registered one", id: id, changes: map[string]string{"redirect_uri": "http://localhost:78/x"}},
		{name: "no redirect URI", id: id, changes: map[string]string{"redirect_uri": ""}},
		{name: "a path with dots", id: id, changes: map[string]string{"redirect_uri": "http://127.0.0.1:4321/a/../oauth/callback"}},
		{name: "no challenge", id: id, changes: map[string]string{"code_challenge": ""}, code: "invalid_request"},
		{name: "no method", id: id, changes: map[string]string{"code_challenge_method": ""}, code: "invalid_request"},
		{name: "a plain challenge", id: id, changes: map[string]string{"code_challenge_method": "plain"}, code: "invalid_request"},
		{name: "a short challenge", id: id, changes: map[string]string{"code_challenge": "abc"}, code: "invalid_request"},
		{name: "another response", id: id, changes: map[string]string{"response_type": "token"}, code: "unsupported_response_type"},
		{name: "another scope", id: id, changes: map[string]string{"scopes": "sso:account:access admin"}, code: "invalid_scope"},
		{name: "a long state", id: id, changes: map[string]string{"state": strings.Repeat("x", stateMax+1)}, code: "invalid_request"},
		{name: "a client of devices", id: device, code: "unauthorized_client"},
	} {
		answer, text := x.browse("ann", authorizationOf(c.id, c.changes), nil)
		to, err := answer.Location()
		switch {
		case c.code == "" && (err == nil || answer.StatusCode != 400 || !strings.Contains(text, "problem")):
			t.Errorf("%s: %d %v %s", c.name, answer.StatusCode, to, text)
		case c.code != "" && (err != nil || to.Query().Get("error") != c.code || to.Query().Get("code") != ""):
			t.Errorf("%s: %d %v", c.name, answer.StatusCode, to)
		}
	}
	if answer, _ := x.browse("ann", authorizationOf(id, nil)+"&redirect_uri="+url.QueryEscape(callback), nil); answer.StatusCode != 400 {
		t.Errorf("two redirect URIs: %d", answer.StatusCode)
	}
	for _, uri := range []string{"http://localhost:77/x", "http://[::1]:5/y", callback} {
		if answer, text := x.browse("ann", authorizationOf(id, map[string]string{"redirect_uri": uri}), nil); answer.StatusCode != 200 {
			t.Errorf("%s: %d %s", uri, answer.StatusCode, text)
		}
	}
	answer, text := x.browse("ann", authorizationOf(id, nil), nil)
	policy := answer.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'self' http://127.0.0.1:4321"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %q", policy, want)
		}
	}
	for _, want := range []string{"botocore-client-muster", "127.0.0.1:4321", "ANN"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	answer, _ = x.approve("ann", authorizationOf(id, nil), "deny", nil)
	if to, err := answer.Location(); err != nil || to.Query().Get("error") != "access_denied" || to.Query().Get("state") != "the state" {
		t.Errorf("denied: %v", to)
	}
}

// A page of another site cannot approve a request. One person's page cannot approve for another person or another request.
func TestAttackForms(t *testing.T) {
	x := newDesk(t)
	id, secret := x.register(nil)
	path := authorizationOf(id, nil)
	_, text := x.browse("ann", path, nil)
	token := tokenField.FindStringSubmatch(text)[1]
	waits := x.want("", "/device_authorization", object{"clientId": id, "clientSecret": secret, "startUrl": "s"})
	shown := waits["userCode"].(string)
	good := url.Values{"token": {token}, "answer": {"approve"}}
	device := url.Values{"token": {token}, "answer": {"approve"}, "user_code": {shown}}
	for _, c := range []struct {
		name, person, path string
		form               url.Values
		headers            []string
	}{
		{"of another site", "ann", path, good, []string{"Sec-Fetch-Site", "cross-site"}},
		{"of no page", "ann", path, good, []string{"Sec-Fetch-Site", "none"}},
		{"without a token", "ann", path, url.Values{"answer": {"approve"}}, nil},
		{"of another person", "bob", path, good, nil},
		{"of another request", "ann", authorizationOf(id, map[string]string{"state": "another"}), good, nil},
		{"of another page", "ann", devicePath, device, nil},
		{"with a token of another kind", "ann", path, url.Values{"token": {id}, "answer": {"approve"}}, nil},
	} {
		answer, text := x.browse(c.person, c.path, c.form, c.headers...)
		if to, err := answer.Location(); err == nil || answer.StatusCode != 403 {
			t.Errorf("%s: %d %v %s", c.name, answer.StatusCode, to, text)
		}
	}
	if answer, _ := x.browse("", path, good); answer.StatusCode != 303 || !strings.HasPrefix(answer.Header.Get("Location"), "/signin") {
		t.Errorf("nobody: %d", answer.StatusCode)
	}
	x.pass(formLife)
	if answer, _ := x.browse("ann", path, good); answer.StatusCode != 403 {
		t.Errorf("an old form: %d", answer.StatusCode)
	}
	x.want("ExpiredTokenException", "/token", object{"clientId": id, "clientSecret": secret, "grantType": deviceGrant, "deviceCode": waits["deviceCode"]})
}

// Invalid registrations are refused, and so are invalid clients that request tokens.
func TestAttackClients(t *testing.T) {
	x := newDesk(t)
	for kind, all := range map[string][]object{
		"InvalidClientMetadataException": {{"clientType": "confidential"}, {"clientType": nil}, {"clientName": nil}, {"clientName": "a\nb"}, {"clientName": strings.Repeat("x", nameMax+1)}},
		"InvalidScopeException":          {{"scopes": []string{"admin"}}},
		"UnsupportedGrantTypeException":  {{"grantTypes": []string{"password"}}},
		"InvalidRedirectUriException": {{"redirectUris": nil}, {"redirectUris": []string{"https://evil.example/"}}, {"redirectUris": []string{"http://evil.example/"}}, {"redirectUris": []string{"http://127.0.0.1.evil.example/"}},
			{"redirectUris": []string{callback, callback, callback, callback, callback}}, {"redirectUris": []string{"http://10.0.0.1/"}}, {"redirectUris": []string{"muster://x"}}},
		"InvalidRequestException": {{"scopes": "no list"}, {"redirectUris": make([]string, 200)}},
	} {
		for _, changes := range all {
			x.want(kind, "/client/register", registrationOf(changes))
		}
	}
	id, secret := x.register(object{"grantTypes": []string{codeGrant}})
	guess := func(path string, asks object) string { out, kind := x.post(path, asks); return fmt.Sprint(kind, out) }
	for what, pair := range map[string][2]string{
		"clients":        {guess("/token", codeAsks(id, "wrong", "x", nil)), guess("/token", codeAsks(id[:len(id)-3]+"AAA", "wrong", "x", nil))},
		"refresh tokens": {guess("/token", object{"clientId": id, "clientSecret": "wrong", "grantType": refreshGrant}), guess("/token", object{"clientId": "x", "clientSecret": "wrong", "grantType": refreshGrant})},
	} {
		if pair[0] != pair[1] { // or the answer would say which of them are registered
			t.Errorf("%s: %s; %s", what, pair[0], pair[1])
		}
	}
	x.want("InvalidClientException", "/token", codeAsks(id, "wrong", "x", nil))
	x.want("InvalidClientException", "/token", codeAsks("wrong", secret, "x", nil))
	x.want("UnsupportedGrantTypeException", "/token", codeAsks(id, secret, "x", object{"grantType": "password"}))
	x.want("UnauthorizedClientException", "/token", codeAsks(id, secret, "x", object{"grantType": refreshGrant}))
	x.want("UnauthorizedClientException", "/device_authorization", object{"clientId": id, "clientSecret": secret, "startUrl": "s"})
	x.want("InvalidRequestException", "/device_authorization", object{"clientId": id, "clientSecret": secret})
	x.want("InvalidGrantException", "/token", codeAsks(id, secret, "x", nil))
	x.want("InvalidScopeException", "/token", codeAsks(id, secret, "x", object{"scope": []string{"admin"}}))
	x.pass(clientLife)
	x.want("InvalidClientException", "/token", codeAsks(id, secret, "x", nil))
	x.private = false
	x.want("InvalidRequestException", "/client/register", registrationOf(nil))
}

// A token is valid for one purpose and one installation only.
func TestAttackTokensOfOtherKinds(t *testing.T) {
	x, other := newDesk(t), newDesk(t)
	id, secret := x.register(nil)
	out := x.want("", "/token", codeAsks(id, secret, x.code(id), nil))
	access, refresh := out["accessToken"].(string), out["refreshToken"].(string)
	for name, token := range map[string]string{"a refresh token": refresh, "a client": id, "nothing": "", "a changed token": access[:len(access)-1] + "_", "a long one": strings.Repeat("A", 100_000)} {
		if status, kind, _ := x.portal("GET", "/assignment/accounts", token); status != 401 && status != 431 || status == 401 && kind != "UnauthorizedException" {
			t.Errorf("%s: %d %s", name, status, kind)
		}
	}
	if status, kind, _ := other.portal("GET", "/assignment/accounts", access); status != 401 || kind != "UnauthorizedException" {
		t.Errorf("of another cell: %d %s", status, kind)
	}
	other.want("InvalidClientException", "/token", object{"clientId": id, "clientSecret": secret, "grantType": refreshGrant, "refreshToken": refresh})
	otherID, otherSecret := other.register(nil)
	other.want("InvalidGrantException", "/token", object{"clientId": otherID, "clientSecret": otherSecret, "grantType": refreshGrant, "refreshToken": refresh})
	second, secondSecret := x.register(object{"clientName": "second"})
	x.want("InvalidGrantException", "/token", object{"clientId": second, "clientSecret": secondSecret, "grantType": refreshGrant, "refreshToken": refresh})
	x.want("InvalidGrantException", "/token", object{"clientId": id, "clientSecret": secret, "grantType": refreshGrant, "refreshToken": access})
}

// A person gets only roles that the groups give, and only the one account.
func TestRolesOfAPerson(t *testing.T) {
	x := newDesk(t)
	id, secret := x.register(nil)
	access := x.want("", "/token", codeAsks(id, secret, x.code(id), nil))["accessToken"].(string)
	for query, want := range map[string]string{
		"account_id=000000000000&role_name=admin":   "ForbiddenException",
		"account_id=000000000000&role_name=client":  "ForbiddenException",
		"account_id=000000000000&role_name=root":    "ForbiddenException",
		"account_id=111111111111&role_name=backend": "ForbiddenException",
		"role_name=backend":                         "InvalidRequestException",
		"account_id=000000000000":                   "InvalidRequestException",
	} {
		if _, kind, _ := x.portal("GET", "/federation/credentials?"+query, access); kind != want {
			t.Errorf("%s: %s", query, kind)
		}
	}
	_, _, first := x.portal("GET", "/assignment/roles?account_id=000000000000&max_result=1", access)
	next, _ := first["nextToken"].(string)
	_, _, second := x.portal("GET", "/assignment/roles?account_id=000000000000&max_result=1&next_token="+next, access)
	if len(first["roleList"].([]any)) != 1 || len(second["roleList"].([]any)) != 1 || second["nextToken"] != nil {
		t.Errorf("pages: %v %v", first, second)
	}
	for _, query := range []string{"max_result=0", "max_result=101", "next_token=9", "next_token=-1", "next_token=x"} {
		if _, kind, _ := x.portal("GET", "/assignment/roles?account_id=000000000000&"+query, access); kind != "InvalidRequestException" {
			t.Errorf("%s: %s", query, kind)
		}
	}
	_, _, own := x.portal("GET", "/federation/credentials?account_id=000000000000&role_name=own", access)
	c, _ := own["roleCredentials"].(map[string]any)
	if key, err := x.keys.With(c["accessKeyId"].(string), c["sessionToken"].(string), "192.0.2.1"); err != nil || key.Role != identity.Backend {
		t.Errorf("the own role of a person: %v %v", key, err)
	}
	x.mu.Lock()
	ann := x.live["ann"]
	ann.Roles = nil
	x.live["ann"] = ann
	x.mu.Unlock()
	if _, kind, _ := x.portal("GET", "/federation/credentials?account_id=000000000000&role_name=readonly", access); kind != "ForbiddenException" {
		t.Errorf("a person whose groups give nothing any more: %s", kind)
	}
	if _, _, out := x.portal("GET", "/assignment/accounts", access); len(out["accountList"].([]any)) != 0 {
		t.Errorf("accounts of such a person: %v", out)
	}
}

// Strangers who guess, flood and send large bodies are slowed. Other clients are not.
func TestAttackSignInFloods(t *testing.T) {
	x := newDesk(t)
	if out, kind := x.post("/client/register", object{"clientName": strings.Repeat("x", bodyMax)}); kind != "InvalidRequestException" {
		t.Errorf("a large body: %s %v", kind, out)
	}
	id, secret := x.register(nil)
	asks := object{"clientId": id, "clientSecret": secret, "startUrl": "s"}
	waits := x.want("", "/device_authorization", asks)
	poll := object{"clientId": id, "clientSecret": secret, "grantType": deviceGrant, "deviceCode": waits["deviceCode"]}
	kinds := map[string]int{}
	for range 10 {
		_, kind := x.post("/token", poll)
		kinds[kind]++
	}
	if kinds["SlowDownException"] == 0 || kinds["AuthorizationPendingException"] == 0 || len(kinds) != 2 {
		t.Errorf("a device that asks all the time: %v", kinds)
	}
	clear(kinds)
	for range 60 {
		_, kind := x.post("/device_authorization", asks)
		kinds[kind]++
	}
	if kinds["SlowDownException"] == 0 || len(kinds) != 2 {
		t.Errorf("a flood of devices: %v", kinds)
	}
	statuses := map[int]int{}
	for i := range 15 {
		answer, _ := x.browse("ann", "/device?user_code=BBBB-BB"+string(letters[i])+"B", nil)
		statuses[answer.StatusCode]++
	}
	if statuses[404] == 0 || statuses[429] == 0 || len(statuses) != 2 {
		t.Errorf("a person who guesses codes: %v", statuses)
	}
	at := "/device?user_code=" + waits["userCode"].(string)
	if answer, text := x.browse("ann", at, nil); answer.StatusCode != 429 || strings.Contains(text, waits["userCode"].(string)) {
		t.Errorf("a right code after too many wrong ones: %d", answer.StatusCode)
	}
	if answer, _ := x.browse("bob", at, nil); answer.StatusCode != 200 {
		t.Errorf("another person at the same address: %d", answer.StatusCode)
	}
}

// A sign-out ends the session even if its client does not wait for the answer.
func TestLogoutOfAClientThatLeaves(t *testing.T) {
	x := newDesk(t)
	id, secret := x.register(nil)
	tokens := x.want("", "/token", object{"clientId": id, "clientSecret": secret, "grantType": codeGrant, "code": x.code(id), "redirectUri": "http://127.0.0.1:4321/oauth/callback", "codeVerifier": verifier})
	ctx, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(ctx, "POST", "/logout", nil)
	r.Header.Set(tokenHeader, tokens["accessToken"].(string))
	if x.door.ServeHTTP(httptest.NewRecorder(), r); x.isLive("ann") {
		t.Error("the session goes on")
	}
}

// A browser that leaves before it has its page is not a failure of the service.
func TestBrowserThatLeaves(t *testing.T) {
	x := newDesk(t)
	var log bytes.Buffer
	x.door.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	id, _ := x.register(nil)
	path := authorizationOf(id, nil)
	_, page := x.browse("ann", path, nil)
	form := url.Values{"token": {tokenField.FindStringSubmatch(page)[1]}, "answer": {"approve"}}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(ctx, "POST", path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.AddCookie(&http.Cookie{Name: "session", Value: "ann"})
	if x.door.ServeHTTP(httptest.NewRecorder(), r); log.Len() > 0 {
		t.Errorf("the log has %s", &log)
	}
}

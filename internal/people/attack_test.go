package people

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/musterhq/muster/internal/domain/kernel"
	domainpeople "github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/people/providertest"
	"github.com/musterhq/muster/internal/waittest"
)

// refused checks that a sign-in fails and creates no session.
func (b *browser) refused(what, path string) {
	b.Helper()
	status, body := b.get(path)
	if status < 400 || b.session() != "" {
		b.Errorf("%s: %d %.300s; want a refusal and no session", what, status, body)
	}
}

// callback begins a sign-in and returns the URL to which the provider would redirect the browser.
func (b *browser) callback() *url.URL {
	b.Helper()
	stop := &http.Client{Jar: b.client.Jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	step := func(target string) *url.URL {
		answer, err := stop.Get(target)
		if err != nil {
			b.Fatal(err)
		}
		answer.Body.Close()
		to, err := answer.Location()
		if err != nil {
			b.Fatalf("%s: %s: %v", target, answer.Status, err)
		}
		return to
	}
	return step(step(b.base() + "/signin/start/studio?back=/").String())
}

func with(u *url.URL, change func(url.Values)) string {
	query := u.Query()
	change(query)
	x := *u
	x.RawQuery = query.Encode()
	return x.String()
}

// An attacker's code must not sign in a victim's browser (login CSRF), and a victim's code must not sign in the attacker's (code injection).
func TestAttackCodeOfAnotherBrowser(t *testing.T) {
	x := studio(t, providertest.New(t), nil)
	attacker, victim := x.browser(), x.browser()
	own := attacker.callback()
	victim.refused("a browser that has begun nothing", own.String())
	begun := victim.callback()
	victim.refused("the state of another browser", with(begun, func(q url.Values) { q.Set("state", own.Query().Get("state")) }))
	if status, _ := victim.get(begun.String()); status < 400 || victim.session() != "" {
		t.Errorf("the cookie of a sign-in works after an answer that was wrong: %d", status)
	}
	begun = victim.callback()
	victim.refused("an injected code: PKCE and the nonce bind it to the other browser", with(begun, func(q url.Values) { q.Set("code", own.Query().Get("code")) }))
	for _, missing := range []string{"state", "code"} {
		begun = victim.callback()
		victim.refused("without "+missing, with(begun, func(q url.Values) { q.Del(missing) }))
	}
	begun = victim.callback()
	if status, body := victim.get(begun.String()); status != http.StatusOK {
		t.Fatalf("the honest answer: %d %s", status, body)
	}
	first := victim.session()
	if victim.get(begun.String()); victim.session() != first {
		t.Error("the same answer has begun another session")
	}
}

// An answer of a dishonest provider, or of one that an attacker controls, is never taken for an answer of another provider.
func TestAttackMixUp(t *testing.T) {
	honest, evil := providertest.New(t), providertest.New(t)
	x := newHouse(t, map[string]any{"providers": []any{
		honest.Settings(t, "studio", map[string][]string{"admin": {"*"}}), evil.Settings(t, "partner", map[string][]string{"readonly": {"*"}}),
	}})
	b := x.browser()
	begun := b.callback() // at the honest one
	toEvil := *begun
	toEvil.Path = "/signin/callback/partner"
	b.refused("the answer of one provider at the address of another", toEvil.String())
	for what, change := range map[string]func(url.Values){
		"the issuer of another provider": func(q url.Values) { q.Set("iss", evil.URL) },
		"no issuer from one that names":  func(q url.Values) { q.Del("iss") },
		"two issuers":                    func(q url.Values) { q.Add("iss", evil.URL) },
	} {
		b.refused(what, with(b.callback(), change))
	}
	if honest.Asked("/token") != 0 || evil.Asked("/token") != 0 {
		t.Errorf("codes were sent to token endpoints: %d and %d times", honest.Asked("/token"), evil.Asked("/token"))
	}
	if status, body := b.get("/signin/start/partner?back=/"); status != http.StatusOK || !strings.HasPrefix(body, "partner/ann readonly") {
		t.Errorf("the other provider gives its own roles: %d %s", status, body)
	}
}

// Every fault of an ID token is detected, although the token comes directly from the provider.
func TestAttackIDTokens(t *testing.T) {
	now := time.Now()
	other := providertest.New(t)
	for what, p := range map[string]func(p *providertest.Provider){
		"not signed": func(p *providertest.Provider) {
			p.Sign = func(_ *providertest.Provider, claims map[string]any) string {
				text, _ := json.Marshal(claims)
				return "eyJhbGciOiJub25lIn0." + b64(text) + "."
			}
		},
		"signed with the client's secret": func(p *providertest.Provider) {
			p.Sign = func(p *providertest.Provider, claims map[string]any) string {
				return p.SignedAs(jose.HS256, []byte(strings.Repeat(p.Secret, 2)), "k1", claims)
			}
			p.Discovery = func(d map[string]any) { d["id_token_signing_alg_values_supported"] = []string{"HS256", "none"} }
		},
		"signed with the public key": func(p *providertest.Provider) {
			p.Sign = func(p *providertest.Provider, claims map[string]any) string {
				key, _ := json.Marshal(jose.JSONWebKey{Key: p.PublicKey()})
				return p.SignedAs(jose.HS256, key, "k1", claims)
			}
		},
		"of another provider": func(p *providertest.Provider) {
			p.Sign = func(_ *providertest.Provider, claims map[string]any) string { return other.Signed(claims) }
		},
		"of another issuer":   claim("iss", other.URL),
		"for another client":  claim("aud", "another"),
		"for several clients": claim("aud", []string{"muster", "another"}),
		"of another party":    claim("azp", "another"),
		"without a subject":   claim("sub", ""),
		"expired":             claim("exp", now.Add(-2*time.Minute).Unix()),
		"not valid yet":       claim("nbf", now.Add(10*time.Minute).Unix()),
		"issued in the future": func(p *providertest.Provider) {
			p.Claims = func(c map[string]any) {
				c["iat"], c["exp"] = now.Add(time.Hour).Unix(), now.Add(2*time.Hour).Unix()
			}
		},
		"another nonce":            claim("nonce", "another"),
		"no nonce":                 func(p *providertest.Provider) { p.Claims = func(c map[string]any) { delete(c, "nonce") } },
		"groups that are no texts": claim("groups", []any{map[string]any{"admin": true}}),
		"a subject of two lines":   claim("sub", "ann\nadmin"),
		"a subject without end":    claim("sub", strings.Repeat("x", 4096)),
		"too many groups":          claim("groups", strings.Split(strings.Repeat("dev,", 300)+"dev", ",")),
	} {
		t.Run(what, func(t *testing.T) {
			provider := providertest.New(t)
			p(provider)
			if what == "too many groups" {
				provider.Claims = func(c map[string]any) {
					var groups []string
					for i := range 300 {
						groups = append(groups, "dev"+strings.Repeat("x", i%50)+string(rune('a'+i/50)))
					}
					c["groups"] = append(groups, "dev")
				}
			}
			studio(t, provider, nil).browser().refused(what, "/signin/start/studio?back=/")
		})
	}
	for what, p := range map[string]func(p *providertest.Provider){
		"expired half a minute ago": claim("exp", now.Add(-30*time.Second).Unix()), // clocks differ
		"of a clock that is fast":   claim("iat", now.Add(2*time.Minute).Unix()),
		"for several clients, with this one as the party": func(p *providertest.Provider) {
			p.Claims = func(c map[string]any) { c["aud"], c["azp"] = []string{"muster", "another"}, "muster" }
		},
	} {
		t.Run(what, func(t *testing.T) {
			provider := providertest.New(t)
			p(provider)
			b := studio(t, provider, nil).browser()
			if status, body := b.get("/signin/start/studio?back=/"); status != http.StatusOK {
				t.Errorf("%d %s\n%s", status, body, b.log)
			}
		})
	}
}

// ID tokens and logout tokens of an RSA key that is too short to be safe are refused, and the log names the key.
func TestShortKeysOfAProvider(t *testing.T) {
	for bits, accepted := range map[int]bool{1024: false, 2048: true} {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			t.Fatal(err)
		}
		p := providertest.New(t)
		p.Discovery = func(d map[string]any) { d["id_token_signing_alg_values_supported"] = []string{"RS256"} }
		p.Sign = func(p *providertest.Provider, claims map[string]any) string {
			return p.SignedAs(jose.RS256, key, "rsa", claims)
		}
		p.Serve = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/keys" {
				return false
			}
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "rsa"}}})
			return true
		}
		b := studio(t, p, nil).browser()
		status, body := b.get("/signin/start/studio?back=/")
		if (status == http.StatusOK && b.session() != "") != accepted {
			t.Errorf("a sign-in with %d bits: %d %s", bits, status, body)
		}
		status, body = b.logout("studio", p.Signed(logoutClaims(p, "x", nil)))
		if (status == http.StatusOK) != accepted {
			t.Errorf("a logout with %d bits: %d %s", bits, status, body)
		}
		const want = "is an RSA key of 1024 bits, want at least 2048"
		if logged := strings.Count(b.log.String(), want); !accepted && logged != 2 {
			t.Errorf("the log has %d lines with %q, want 2:\n%s", logged, want, b.log)
		}
	}
}

func claim(name string, value any) func(*providertest.Provider) {
	return func(p *providertest.Provider) { p.Claims = func(c map[string]any) { c[name] = value } }
}

// A provider that sends endlessly, never answers, or redirects costs bounded memory and time, and the other providers keep working.
func TestAttackAnswersOfAProvider(t *testing.T) {
	endless := func(path string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != path {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			chunk := []byte(`{"issuer":"` + strings.Repeat("x", 64<<10))
			for range 1024 { // 64 MiB
				if _, err := w.Write(chunk); err != nil {
					return true
				}
			}
			return true
		}
	}
	for what, serve := range map[string]func(p *providertest.Provider){
		"an endless discovery document": func(p *providertest.Provider) { p.Serve = endless("/.well-known/openid-configuration") },
		"endless keys":                  func(p *providertest.Provider) { p.Serve = endless("/keys") },
		"an endless token":              func(p *providertest.Provider) { p.Serve = endless("/token") },
		"discovery of another issuer": func(p *providertest.Provider) {
			p.Discovery = func(d map[string]any) { d["issuer"] = "https://id.example.com" }
		},
		"endpoints without TLS elsewhere": func(p *providertest.Provider) {
			p.Discovery = func(d map[string]any) { d["token_endpoint"] = "http://id.example.com/token" }
		},
		"keys in a file": func(p *providertest.Provider) {
			p.Discovery = func(d map[string]any) { d["jwks_uri"] = "file:///etc/passwd" }
		},
		"a redirect of the code": func(p *providertest.Provider) {
			p.Serve = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/token" {
					http.Redirect(w, r, "http://127.0.0.1:1/steal", http.StatusTemporaryRedirect)
				}
				return r.URL.Path == "/token"
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			p := providertest.New(t)
			serve(p)
			studio(t, p, nil).browser().refused(what, "/signin/start/studio?back=/")
		})
	}
}

// Cookies are bound to their purpose, and altered cookies are rejected. A cookie from before the sign-in does not name the session after it.
func TestAttackCookies(t *testing.T) {
	x := studio(t, providertest.New(t), nil)
	b := x.browser()
	b.get("/signin/start/studio?back=/")
	first := b.session()
	b.get("/signin/start/studio?back=/")
	if second := b.session(); second == first || !x.goesOn(first) {
		t.Error("want a new sign-in to have a new session")
	}
	good := x.signed("session", []byte(first))
	for what, value := range map[string]string{
		"another purpose": x.signed("signing-in", []byte(first)), "no signature": strings.Split(good, ".")[0], "an empty signature": strings.Split(good, ".")[0] + ".", "nothing": "",
		"cut": good[:len(good)-1], "longer": good + "A", "another session": x.signed("session", []byte("signin-00000000-0000-4000-8000-000000000000")), "not a session": x.signed("session", []byte("LOBBY")),
		"huge": strings.Repeat("A", 4000),
	} {
		r, _ := http.NewRequest("GET", x.base()+"/thing", nil)
		r.AddCookie(&http.Cookie{Name: sessionCookie, Value: value})
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %s", what, answer.Status)
		}
	}
	for i := range good {
		changed := []byte(good)
		changed[i] ^= 1
		if _, ok := x.opened("session", string(changed)); ok {
			t.Fatalf("character %d can be changed", i)
		}
	}
}

// The cookies have every protection that browsers offer, over TLS.
func TestCookiesOverTLS(t *testing.T) {
	x := studio(t, providertest.New(t), nil)
	x.config.Secure = func(*http.Request) bool { return true }
	r, _ := http.NewRequest("GET", "https://muster.example.com/", nil)
	c := x.cookie(r, sessionCookie, "x", 1)
	if !strings.HasPrefix(c.Name, "__Host-") || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
		t.Errorf("the cookie is %+v", c)
	}
	r.AddCookie(&http.Cookie{Name: sessionCookie, Value: "set by a sibling host"})
	if got := x.cookieOf(r, sessionCookie); got != "" {
		t.Errorf("over TLS, the cookie without the prefix counts: %s", got)
	}
}

// A provider that hangs blocks only a bounded number of sign-ins, and the other providers keep working.
func TestAttackSlowProvider(t *testing.T) {
	slow, quick := providertest.New(t), providertest.New(t)
	release := make(chan struct{})
	slow.Serve = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			<-release
		}
		return false
	}
	x := newHouse(t, map[string]any{"providers": []any{slow.Settings(t, "studio", map[string][]string{"admin": {"*"}}), quick.Settings(t, "partner", map[string][]string{"readonly": {"*"}})}})
	var waiting sync.WaitGroup
	const places = 16 // providers.exchangesAtOnce
	var answers [places]int
	for i := range places {
		b := x.browser()
		waiting.Go(func() { answers[i], _ = b.get("/signin/start/studio?back=/") })
	}
	deadline := time.Now().Add(time.Minute)
	for slow.Asked("/token") < places {
		if time.Now().After(deadline) {
			t.Fatalf("%d requests for tokens, want %d", slow.Asked("/token"), places)
		}
		time.Sleep(time.Millisecond)
	}
	if status, _ := x.browser().get("/signin/start/studio?back=/"); status != http.StatusServiceUnavailable {
		t.Errorf("one sign-in more: %d, want 503", status)
	}
	if status, _ := x.browser().get("/signin/start/partner?back=/"); status != http.StatusOK {
		t.Errorf("with another provider: %d", status)
	}
	close(release)
	waiting.Wait()
	for _, status := range answers {
		if status != http.StatusOK {
			t.Errorf("a sign-in that waited: %d", status)
		}
	}
}

// A provider that hangs delays no check of the people of another one.
func TestAttackSlowProviderAtChecks(t *testing.T) {
	slow, quick := providertest.New(t), providertest.New(t)
	x := newHouse(t, map[string]any{"providers": []any{slow.Settings(t, "studio", map[string][]string{"admin": {"*"}}), quick.Settings(t, "partner", map[string][]string{"readonly": {"*"}})}})
	var sessions []string
	for range recheckAtOnce + 1 {
		b := x.browser()
		b.get("/signin/start/studio?back=/")
		sessions = append(sessions, b.session())
	}
	b := x.browser()
	b.get("/signin/start/partner?back=/")
	id := b.session()
	x.due(append(sessions, id)...)
	release := make(chan struct{})
	var gaveUp atomic.Int32
	slow.Serve = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			_ = r.ParseForm() // a server notices that its client has gone once it has read the body
			select {
			case <-release:
			case <-r.Context().Done():
				gaveUp.Add(1)
			}
		}
		return false
	}
	before, _ := x.stored(id)
	checker := x.Rechecker()
	waittest.Until(t, "the other provider confirms its person", func() bool {
		checker.pass(t.Context())
		s, _ := x.stored(id)
		return s.Checked > before.Checked
	})
	if asked := slow.Asked("/token") - len(sessions); gaveUp.Load() > 0 || asked > recheckAtOnce {
		t.Errorf("the check waited for %d requests to the slow provider, which has got %d, want at most %d", gaveUp.Load(), asked, recheckAtOnce)
	}
	close(release)
	checker.work.Wait()
}

// Passkey requests are bounded, accepted only from this service's own pages, and reveal nothing. TestPeopleInABrowser covers real browsers.
func TestAttackPasskeys(t *testing.T) {
	x := newHouse(t, map[string]any{})
	for _, path := range []string{"/signin/passkey/begin", "/signin/passkey/finish", "/signin/enrol/begin", "/signin/enrol/finish"} {
		if status, text, _ := x.post(path, "https://evil.example", "{}"); status != http.StatusForbidden {
			t.Errorf("%s from another site: %d %s", path, status, text)
		}
		if status, text, _ := x.post(path, x.base(), `{"x":"`+strings.Repeat("x", bodyMax)); status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s with a huge body: %d %s", path, status, text)
		}
		for _, body := range []string{"", "[", "null", `{"link":1}`, `{"response":{}}`, "\xff"} {
			if status, text, _ := x.post(path, x.base(), body); status >= 500 {
				t.Errorf("%s with %q: %d %s", path, body, status, text)
			}
		}
	}
	person := &domainpeople.CreatePerson{Person: domainpeople.Person{ID: domainpeople.ID{1}.String(), Name: "ann"}}
	secret, hash := x.NewEnrolment()
	for _, cmd := range []kernel.Command{person, &domainpeople.IssueEnrolment{Person: "ann", Hash: hash, Valid: time.Hour}} {
		if err := x.engine.Do(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
	}
	// Whether a person exists, the answer to a wrong link is the same.
	_, unknown, _ := x.post("/signin/enrol/begin", x.base(), `{"link":"`+domainpeople.ID{2}.String()+`.x"}`)
	for _, link := range []string{person.Person.ID + ".x", person.Person.ID + "." + secret + "A", person.Person.ID, "", secret, "." + secret} {
		if status, text, _ := x.post("/signin/enrol/begin", x.base(), `{"link":"`+link+`"}`); status != http.StatusUnauthorized || text != unknown {
			t.Errorf("link %q: %d %s, want %s", link, status, text, unknown)
		}
	}
	status, text, cookies := x.post("/signin/enrol/begin", x.base(), `{"link":"`+person.Person.ID+"."+secret+`"}`)
	if status != http.StatusOK || !strings.Contains(text, `"userVerification":"required"`) || !strings.Contains(text, `"residentKey":"required"`) {
		t.Errorf("the right link: %d %s", status, text)
	}
	// The challenge of one purpose is none for another, and an invented credential is refused.
	const invented = `{"id":"AQ","rawId":"AQ","type":"public-key","response":{"clientDataJSON":"e30","authenticatorData":"AA","signature":"AA","userHandle":"AQAAAAAAAAAAAAAAAAAAAA"}}`
	for what, cookie := range map[string][]*http.Cookie{"no challenge": nil, "that of a registration": cookies} {
		if status, text, _ := x.post("/signin/passkey/finish", x.base(), invented, cookie...); status != http.StatusBadRequest && status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", what, status, text)
		}
	}
	_, _, cookies = x.post("/signin/passkey/begin", x.base(), `{"back":"//evil.example"}`)
	if status, text, _ := x.post("/signin/passkey/finish", x.base(), invented, cookies...); status != http.StatusUnauthorized || !strings.Contains(text, "not registered with this service") {
		t.Errorf("an invented answer: %d %s", status, text)
	}
}

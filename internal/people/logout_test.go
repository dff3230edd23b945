package people

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/people/providers"
	"github.com/musterhq/muster/internal/people/providertest"
)

const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// logoutClaims returns valid claims for a logout of ann, with changes. A nil value omits a claim.
func logoutClaims(p *providertest.Provider, id string, changes map[string]any) map[string]any {
	now := time.Now().Unix()
	all := map[string]any{"iss": p.URL, "aud": p.ClientID, "iat": now, "exp": now + 120, "jti": id, "sub": "ann", "events": map[string]any{logoutEvent: map[string]any{}}}
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

// logout sends a logout token as a provider does.
func (x *house) logout(provider, token string) (status int, text string) {
	x.Helper()
	answer, err := http.PostForm(x.server.URL+Path+"/logout/"+provider, url.Values{"logout_token": {token}})
	if err != nil {
		x.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	if answer.Header.Get("Cache-Control") != "no-store" {
		x.Errorf("the answer may be stored: %v", answer.Header)
	}
	return answer.StatusCode, string(body)
}

// signedIn makes a sign-in session of a person, who also has a session at the provider.
func (x *house) signedIn(p *providertest.Provider, subject, sid string) string {
	x.Helper()
	claims := map[string]any{"email": subject + "@example.com", "groups": []string{"dev"}}
	if sid != "" {
		claims["sid"] = sid
	}
	p.Person(subject, claims)
	b := x.browser()
	if status, body := b.get("/signin/start/studio?back=/"); status != http.StatusOK {
		x.Fatalf("%d %s", status, body)
	}
	return b.session()
}

func TestBackChannelLogout(t *testing.T) {
	p := providertest.New(t)
	x := studio(t, p, nil)
	one, two, plain, bob := x.signedIn(p, "ann", "s1"), x.signedIn(p, "ann", "s2"), x.signedIn(p, "ann", ""), x.signedIn(p, "bob", "s3")
	person, _ := x.Session(t.Context(), one)
	c, err := x.Issue(t.Context(), audit.Origin{Door: audit.DoorAPI, Operation: "GetRoleCredentials"}, &person, access.ReadOnly, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x.ring.With(c.ID, c.Token, "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	still := func(what string, want ...bool) {
		t.Helper()
		for i, id := range []string{one, two, plain, bob} {
			if got := x.goesOn(id); got != want[i] {
				t.Errorf("%s: session %d goes on: %t, want %t", what, i, got, want[i])
			}
		}
	}
	send := func(id string, changes map[string]any) {
		t.Helper()
		if status, text := x.logout("studio", p.Signed(logoutClaims(p, id, changes))); status != http.StatusOK || text != "" {
			t.Fatalf("%d %s", status, text)
		}
	}
	send("a", map[string]any{"sub": nil, "sid": "none"})
	still("a session that is not there", true, true, true, true)
	send("b", map[string]any{"sid": "s3"})
	still("another person's session", true, true, true, true)
	send("c", map[string]any{"sid": "s1"})
	still("a session of the person", false, true, true, true)
	if _, err := x.ring.With(c.ID, c.Token, "192.0.2.1"); err == nil || key.Life().Err() == nil {
		t.Errorf("what the session has given: %v, %v", err, key.Life().Err())
	}
	send("d", map[string]any{"sub": nil, "sid": "s2"})
	still("a session without its person", false, false, true, true)
	send("e", nil)
	still("the person", false, false, false, true)

	// The id of a session at the provider may be too long to be kept. A logout of such a session ends all of the person's.
	long := strings.Repeat("s", people.SidMax+1)
	plain = x.signedIn(p, "ann", long)
	send("f", map[string]any{"sid": long})
	still("a session with a long id", false, false, false, true)

	// A later repeat does not end sessions that have begun since.
	again := p.Signed(logoutClaims(p, "e", nil))
	back := x.signedIn(p, "ann", "s4")
	if status, text := x.logout("studio", again); status != http.StatusBadRequest || !strings.Contains(text, "used before") {
		t.Errorf("a token that was used: %d %s", status, text)
	}
	if !x.goesOn(back) {
		t.Error("a repeated logout has ended a new session")
	}
}

// A provider whose keys cannot be fetched learns that it should repeat its logout.
func TestLogoutWithoutTheKeys(t *testing.T) {
	p := providertest.New(t)
	x := studio(t, p, nil)
	id := x.signedIn(p, "ann", "s1")
	p.Serve = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/keys" {
			return false
		}
		http.Error(w, "down", http.StatusServiceUnavailable)
		return true
	}
	x.SetFile(x.reread())
	if status, text := x.logout("studio", p.Signed(logoutClaims(p, "a", nil))); status != http.StatusServiceUnavailable || !x.goesOn(id) {
		t.Errorf("%d %s", status, text)
	}
	if log := x.log.String(); strings.Contains(log, `"sign-in failed"`) {
		t.Errorf("the provider's address has a failed sign-in: %s", log)
	}
}

// The time of a cluster may differ from the clock of the provider, and of this machine. A logout token works all the same, and once.
func TestLogoutInATimeThatIsAhead(t *testing.T) {
	p := providertest.New(t)
	x := studio(t, p, nil)
	x.ahead.Store(int64(time.Hour))
	x.signedIn(p, "ann", "s1")
	token := p.Signed(logoutClaims(p, "a", nil))
	if status, text := x.logout("studio", token); status != http.StatusOK {
		t.Errorf("%d %s\n%s", status, text, x.log)
	}
	if status, text := x.logout("studio", token); status != http.StatusBadRequest || !strings.Contains(text, "used before") {
		t.Errorf("again: %d %s", status, text)
	}
}

// A logout by a key that the provider has made since a forged token caused a request for its keys is not refused for good.
func TestLogoutByANewKeyAfterAForgedOne(t *testing.T) {
	p, other := providertest.New(t), providertest.New(t)
	x := studio(t, p, nil)
	if err := other.NewKey("forged"); err != nil {
		t.Fatal(err)
	}
	if status, text := x.logout("studio", other.Signed(logoutClaims(p, "x", nil))); status != http.StatusBadRequest {
		t.Errorf("a forged token: %d %s", status, text)
	}
	if err := p.NewKey("new"); err != nil {
		t.Fatal(err)
	}
	if status, text := x.logout("studio", p.Signed(logoutClaims(p, "y", nil))); status != http.StatusServiceUnavailable || !strings.Contains(text, "Try again") {
		t.Errorf("a logout by a new key: %d %s", status, text)
	}
}

func TestAttackLogoutTokens(t *testing.T) {
	p, other := providertest.New(t), providertest.New(t)
	x := studio(t, p, nil)
	id := x.signedIn(p, "ann", "s1")
	now := time.Now().Unix()
	good := strings.Split(p.Signed(logoutClaims(p, "x", nil)), ".")
	typed := func(typ string) string {
		head, _ := json.Marshal(map[string]any{"alg": "ES256", "kid": "k1", "typ": typ})
		return base64.RawURLEncoding.EncodeToString(head) + "." + good[1] + "." + good[2]
	}
	signed := func(changes map[string]any) string { return p.Signed(logoutClaims(p, "x", changes)) }
	for what, token := range map[string]string{
		"none":                       "",
		"no JWT":                     "x.y.z",
		"no signature":               good[0] + "." + good[1] + ".",
		"alg none":                   base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + good[1] + ".",
		"HS256 with a public key":    p.SignedAs(jose.HS256, []byte(strings.Repeat("k", 32)), "k1", logoutClaims(p, "x", nil)),
		"the key of another":         other.Signed(logoutClaims(p, "x", nil)),
		"an access token's type":     typed("at+jwt"),
		"another issuer":             signed(map[string]any{"iss": other.URL}),
		"another audience":           signed(map[string]any{"aud": "other"}),
		"no audience":                signed(map[string]any{"aud": nil}),
		"an ID token":                signed(map[string]any{"events": nil, "nonce": "n"}),
		"an event beside a nonce":    signed(map[string]any{"nonce": "n"}),
		"no event":                   signed(map[string]any{"events": nil}),
		"another event":              signed(map[string]any{"events": map[string]any{"http://schemas.openid.net/event/other": map[string]any{}}}),
		"an event that is a text":    signed(map[string]any{"events": map[string]any{logoutEvent: "yes"}}),
		"events that are a text":     signed(map[string]any{"events": logoutEvent}),
		"no id":                      signed(map[string]any{"jti": nil}),
		"nobody":                     signed(map[string]any{"sub": nil}),
		"expired":                    signed(map[string]any{"exp": now - 3600}),
		"no end":                     signed(map[string]any{"exp": nil}),
		"old, and still valid":       signed(map[string]any{"iat": now - 3600, "exp": now + 3600}),
		"of the future":              signed(map[string]any{"iat": now + 3600, "exp": now + 7200}),
		"no time":                    signed(map[string]any{"iat": nil}),
		"a session that is too long": signed(map[string]any{"sub": nil, "sid": strings.Repeat("x", 300)}),
		"too long":                   strings.Repeat("x", providers.LogoutTokenMax+1),
	} {
		if status, text := x.logout("studio", token); status != http.StatusBadRequest || strings.Contains(text, "used") {
			t.Errorf("%s: %d %s", what, status, text)
		}
	}
	if status, _ := x.logout("none", signed(nil)); status != http.StatusNotFound {
		t.Errorf("an unknown provider: %d", status)
	}
	for what, form := range map[string]url.Values{"no token": {}, "two tokens": {"logout_token": {signed(nil), signed(nil)}}} {
		answer, err := http.PostForm(x.server.URL+Path+"/logout/studio", form)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", what, answer.Status)
		}
	}
	answer, err := http.Get(x.server.URL + Path + "/logout/studio?logout_token=" + signed(nil))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		t.Errorf("a GET: %s", answer.Status)
	}
	if !x.goesOn(id) {
		t.Fatal("the session has ended")
	}
	throttled := 0
	for range 200 {
		if status, _ := x.logout("studio", "x.y.z"); status == http.StatusTooManyRequests {
			throttled++
		}
	}
	if throttled == 0 {
		t.Error("no attempt of 200 was throttled")
	}
	if log := x.log.String(); strings.Contains(log, good[2]) {
		t.Error("a token is in the log")
	}
}

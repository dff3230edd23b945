package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// attacker is a stranger who has registered a client, which needs no permission.
type attacker struct {
	*workplace
	id, secret string
}

const attackVerifier = "0123456789-abcdefghijklmnopqrstuvwxyz._~ABCDEF"

func newAttacker(x *workplace) *attacker {
	a := &attacker{workplace: x}
	out, kind := a.post("/client/register", map[string]any{"clientName": "botocore-client-muster", "clientType": "public", "scopes": []string{"sso:account:access"},
		"grantTypes": []string{"authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"}, "redirectUris": []string{"http://127.0.0.1/oauth/callback"}})
	if kind != "" {
		x.t.Fatalf("register: %s %v", kind, out)
	}
	a.id, a.secret = out["clientId"].(string), out["clientSecret"].(string)
	return a
}

func (a *attacker) post(path string, in any) (out map[string]any, kind string) {
	a.t.Helper()
	body, err := json.Marshal(in)
	must(a.t, err)
	answer, err := http.Post(a.url()+path, "application/json", bytes.NewReader(body))
	must(a.t, err)
	defer answer.Body.Close()
	must(a.t, json.NewDecoder(answer.Body).Decode(&out))
	return out, answer.Header.Get("X-Amzn-Errortype")
}

func (a *attacker) authorization() string {
	sum := sha256.Sum256([]byte(attackVerifier))
	return a.url() + "/authorize?" + url.Values{"response_type": {"code"}, "client_id": {a.id}, "redirect_uri": {"http://127.0.0.1:1/oauth/callback"}, "state": {"s"},
		"code_challenge_method": {"S256"}, "scopes": {"sso:account:access"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}}.Encode()
}

func (a *attacker) exchange(code, verifier string) (map[string]any, string) {
	return a.post("/token", map[string]any{"clientId": a.id, "clientSecret": a.secret, "grantType": "authorization_code", "code": code, "redirectUri": "http://127.0.0.1:1/oauth/callback", "codeVerifier": verifier})
}

// code returns a code that the person approved.
func (a *attacker) code() string {
	a.t.Helper()
	text, err := a.open(a.authorization())
	must(a.t, err)
	at, form, err := a.sendable(text)
	must(a.t, err)
	back, err := a.sendBack(at, form)
	must(a.t, err)
	return back.Get("code")
}

// sendBack sends a form, and returns the query with which the answer leads back to the program.
func (x *workplace) sendBack(at string, form url.Values) (url.Values, error) {
	follow := x.browser.CheckRedirect
	x.browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := x.send(at, form)
	x.browser.CheckRedirect = follow
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	to, err := answer.Location()
	if err != nil {
		return nil, err
	}
	return to.Query(), nil
}

// A leaked code is worthless without the verifier, and a second time, even if the service was killed in between. The second use ends the tokens from the first.
func TestAttackStolenCodes(t *testing.T) {
	t.Parallel()
	x := newWorkplace(t)
	x.start()
	a := newAttacker(x)
	if out, kind := a.exchange(a.code(), strings.Repeat("x", 43)); kind != "InvalidGrantException" {
		t.Errorf("a code without its verifier: %s %v", kind, out)
	}
	code := a.code()
	out, kind := a.exchange(code, attackVerifier)
	if kind != "" {
		t.Fatalf("the rightful client: %s %v", kind, out)
	}
	x.kill()
	x.start()
	roles := func() int {
		r, err := http.NewRequest(http.MethodGet, x.url()+"/assignment/roles?account_id=000000000000", nil)
		must(t, err)
		r.Header.Set("x-amz-sso_bearer_token", out["accessToken"].(string))
		answer, err := http.DefaultClient.Do(r)
		must(t, err)
		answer.Body.Close()
		return answer.StatusCode
	}
	if got := roles(); got != http.StatusOK {
		t.Errorf("the token after the restart: %d", got)
	}
	if again, kind := a.exchange(code, attackVerifier); kind != "InvalidGrantException" {
		t.Errorf("the code again: %s %v", kind, again)
	}
	if got := roles(); got != http.StatusUnauthorized {
		t.Errorf("the token of a code that came twice: %d", got)
	}
}

// A page of another site runs in the browser of a person who has signed in, which sends the cookie, but it cannot approve anything.
func TestAttackForgedApprovals(t *testing.T) {
	t.Parallel()
	x := newWorkplace(t)
	x.start()
	a := newAttacker(x)
	text, err := x.open(a.authorization())
	must(t, err)
	at, form, err := x.sendable(text)
	must(t, err)
	forge := func(form url.Values, headers ...string) int {
		r, err := http.NewRequest(http.MethodPost, at, strings.NewReader(form.Encode()))
		must(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		answer, err := x.browser.Do(r)
		must(t, err)
		answer.Body.Close()
		return answer.StatusCode
	}
	for name, headers := range map[string][]string{
		"another site":              {"Sec-Fetch-Site", "cross-site"},
		"a sibling host":            {"Sec-Fetch-Site", "same-site"},
		"an old browser":            {"Origin", "https://evil.example"},
		"an old browser, no origin": {},
		"a sandbox":                 {"Origin", "null"},
	} {
		if got := forge(form, headers...); got != http.StatusForbidden {
			t.Errorf("%s: %d", name, got)
		}
	}
	other := newAttacker(x)
	was, err := url.Parse(at)
	must(t, err)
	to, err := url.Parse(other.authorization())
	must(t, err)
	to.Host = was.Host // the browser has signed in there
	at = to.String()
	if got := forge(form, "Sec-Fetch-Site", "same-origin"); got != http.StatusForbidden {
		t.Errorf("the token of another page: %d", got)
	}
	if got := forge(url.Values{"answer": {"approve"}}, "Sec-Fetch-Site", "same-origin"); got != http.StatusForbidden {
		t.Errorf("no token: %d", got)
	}
}

// No attacker can guess the code of another person's device, and floods of device requests are slowed.
func TestAttackDeviceCodes(t *testing.T) {
	t.Parallel()
	x := newWorkplace(t)
	x.start()
	a := newAttacker(x)
	asks := map[string]any{"clientId": a.id, "clientSecret": a.secret, "startUrl": "s"}
	kinds := map[string]int{}
	for range 100 {
		_, kind := a.post("/device_authorization", asks)
		kinds[kind]++
	}
	if kinds["SlowDownException"] < 50 || kinds[""] > 31 || len(kinds) != 2 {
		t.Errorf("a flood of devices: %v", kinds)
	}
	if _, kind := a.post("/token", map[string]any{"clientId": a.id, "clientSecret": a.secret, "grantType": "urn:ietf:params:oauth:grant-type:device_code", "deviceCode": strings.Repeat("A", 80)}); kind != "InvalidGrantException" {
		t.Errorf("an invented device code: %s", kind)
	}
	device, err := x.open(x.url() + "/device")
	must(t, err)
	statuses := map[int]int{}
	for _, first := range "BCDFGHJKLMNPQRST" {
		answer, err := x.browser.Get(device.path("/device?user_code=" + string(first) + "BBB-BBBB"))
		must(t, err)
		answer.Body.Close()
		statuses[answer.StatusCode]++
	}
	if statuses[http.StatusTooManyRequests] == 0 || statuses[http.StatusOK] != 0 {
		t.Errorf("guesses of a person: %v", statuses)
	}
}

package e2e

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Every door refuses the signatures of a retired generation of the secret, also after a kill. Forged generations are refused like any other wrong token.
func TestAttackRetiredSecret(t *testing.T) {
	t.Parallel()
	s := newService(t, "--dev=false")
	id, secret := s.key("admin")
	s.start()
	c := s.assume(id, secret, "admin", "stolen")
	doors := map[string]func() bool{
		"the API":            func() bool { return s.lists(c) == nil },
		"the operators' API": func() bool { _, err := s.remoteAs(c, "keys", "list"); return err == nil },
		"metrics": func() bool {
			return s.shows("/metrics", "", c.AccessKeyID, c.SecretAccessKey+"."+c.SessionToken) == http.StatusOK
		},
		"scripts": func() bool {
			return s.shows("/session/v1/calls/none", "", c.AccessKeyID, c.SecretAccessKey+"."+c.SessionToken) != http.StatusUnauthorized
		},
	}
	browser := s.browser(id, secret)
	doors["the console"] = func() bool { return browser("/console/fleets") == http.StatusOK }
	for name, works := range doors {
		if !works() {
			t.Errorf("%s refuses what the present generation has signed", name)
		}
	}
	s.command("secret", "rotate", "--data", s.data)
	for name, works := range doors {
		if !works() {
			t.Errorf("%s refuses what the generation before has signed", name)
		}
	}
	out, err := s.remote(id, secret, "secret", "retire", "1")
	must(t, err)
	if !strings.Contains(out, id) {
		t.Errorf("the access key that is derived from it is not named: %s", out)
	}
	check := func(when string) {
		t.Helper()
		for name, works := range doors {
			if works() {
				t.Errorf("%s %s accepts what a retired generation has signed", name, when)
			}
		}
	}
	check("after the retirement")
	s.kill()
	s.start()
	check("after a kill")
	must(t, s.lists(aws.Credentials{AccessKeyID: id, SecretAccessKey: secret}))

	// Only administrators see or change the generations, and none learns a secret.
	reader, readerSecret := s.key("readonly")
	for _, args := range [][]string{{"secret", "list"}, {"secret", "rotate"}, {"secret", "retire", "1"}} {
		if out, err := s.remote(reader, readerSecret, args...); err == nil || !strings.Contains(out, "readonly") {
			t.Errorf("a reader, %q: %v, %s", args, err, out)
		}
	}
	for _, number := range []string{"0", "9", "4294967295"} {
		if out, err := s.remote(id, secret, "secret", "retire", number); err == nil || !strings.Contains(out, "there is no generation") {
			t.Errorf("generation %s: %v, %s", number, err, out)
		}
	}
	for _, body := range []string{`{"overlapSeconds":-1}`, `{"overlapSeconds":9223372036854775807}`, `{"overlapSeconds":1}`, `{"secret":"AAAA"}`, `[]`} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url()+"/operator/v1/secret/rotate", strings.NewReader(body))
		must(t, err)
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(signedBy(t, r, body, id, secret))
		must(t, err)
		answer.Body.Close()
		if answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: status %d", body, answer.StatusCode)
		}
	}
	if states := secretStates(t, s); len(states) != 2 || states["2"] != "signs" {
		t.Errorf("the generations are %v", states)
	}
}

// Tokens of players, game servers and computes of a retired generation are refused, and so are forged numbers of generations.
func TestAttackRetiredSecretOfPlayers(t *testing.T) {
	t.Parallel()
	p := startFlow(t)
	ann := p.come("ann")[0]
	status := func(token string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url()+"/playerflow/v1/player/Session.GetFlow", strings.NewReader("{}"))
		must(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		must(t, err)
		answer.Body.Close()
		return answer.StatusCode
	}
	old := ann.token
	p.command("secret", "rotate", "--data", p.data)
	bob := p.come("bob")[0]
	if got := status(old); got != http.StatusOK {
		t.Errorf("before the retirement: %d", got)
	}
	p.command("secret", "retire", "1", "--data", p.data)
	if got := status(old); got != http.StatusUnauthorized {
		t.Errorf("an access token of a retired generation: %d", got)
	}
	rest := strings.TrimPrefix(bob.token, "pfa_2.")
	if status(bob.token) != http.StatusOK || rest == bob.token {
		t.Fatalf("an access token of the present generation, %.8s…, does not work", bob.token)
	}
	for _, forged := range []string{
		"pfa_" + rest, "pfa_1." + rest, "pfa_3." + rest, "pfa_02." + rest, "pfa_2." + base64.RawURLEncoding.EncodeToString(make([]byte, 32)), "pfa_2." + strings.TrimPrefix(old, "pfa_"),
		"pfa_" + strings.Repeat("9", 4000) + "." + rest, "pfa_.", "pfa_2.",
	} {
		if got := status(forged); got != http.StatusUnauthorized {
			t.Errorf("%.30s…: %d", forged, got)
		}
	}
	p.staysHealthy()
}

// browser signs in to the console, and returns the status of its pages.
func (s *service) browser(id, secret string) func(path string) int {
	s.t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	form := url.Values{"key": {id}, "secret": {secret}}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url()+"/console/sign-in", strings.NewReader(form.Encode()))
	must(s.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	answer, err := client.Do(r)
	must(s.t, err)
	answer.Body.Close()
	cookies := answer.Cookies()
	if len(cookies) == 0 {
		s.t.Fatalf("the console did not sign in: %s", answer.Status)
	}
	return func(path string) int {
		r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url()+path, nil)
		must(s.t, err)
		for _, c := range cookies {
			r.AddCookie(c)
		}
		answer, err := client.Do(r)
		must(s.t, err)
		answer.Body.Close()
		return answer.StatusCode
	}
}

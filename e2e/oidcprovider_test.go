package e2e

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/porttest"
	"github.com/musterhq/muster/internal/waittest"
)

// A person signs in through a third-party identity provider, on its own pages, and gets into the console. The provider sends everything that a studio's provider does:
// discovery, keys, a code for PKCE, an ID token, userinfo, and refresh tokens, with which the service confirms the person again.
func TestAnOpenIDProviderOfOthers(t *testing.T) {
	t.Parallel()
	_, port, _ := net.SplitHostPort(porttest.Free(t))
	provider := net.JoinHostPort("localhost", port)
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	must(t, os.WriteFile(secret, []byte("not-for-others"), 0o600))
	settings, err := json.Marshal(map[string]any{"recheck": "10s", "providers": []any{map[string]any{
		"name": "zitadel", "issuer": "http://" + provider + "/", "clientId": "muster", "clientSecretFile": secret, "roles": map[string][]string{"readonly": {"*"}},
	}}})
	must(t, err)
	file := filepath.Join(dir, "people.json")
	must(t, os.WriteFile(file, settings, 0o600))
	s, _ := startProduction(t, "--people", file)
	_, own, _ := net.SplitHostPort(s.address)
	base := "http://localhost:" + own // the name under which passkeys and providers know the service on one machine

	program := exec.Command(oidcProviderBinary, provider, "muster", "not-for-others", base+"/signin/callback/zitadel")
	program.Env = cleanEnvironment()
	started := run(t, program)
	started.until("issuer http://" + provider)

	jar, err := cookiejar.New(nil)
	must(t, err)
	browser := &http.Client{Jar: jar, Timeout: patience}
	read := func(r *http.Response, err error) (text string, at *url.URL) {
		t.Helper()
		must(t, err)
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		must(t, err)
		return string(body), r.Request.URL
	}
	var form string
	var at *url.URL
	waittest.Until(t, "the provider to answer", func() bool {
		form, at = read(browser.Get(base + "/signin/start/zitadel?back=/console"))
		return strings.Contains(form, "password")
	})
	login := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(form)
	if login == nil || at.Host != provider {
		t.Fatalf("the provider shows no form for its users at %s:\n%s", at, form)
	}
	shown, at := read(browser.PostForm(at.Scheme+"://"+at.Host+at.Path, url.Values{"id": {login[1]}, "username": {"test-user2"}, "password": {"verysecure"}}))
	if at.Port() != own {
		t.Fatalf("the provider does not lead back, but to %s:\n%s", at, shown)
	}
	if page, at := read(browser.Get(base + "/console")); !strings.HasPrefix(at.Path, "/console") || !strings.Contains(page, "test-user2@zitadel.ch") {
		t.Fatalf("the console does not know the person, but leads to %s:\n%.2000s", at, page)
	}

	id, key := s.key("admin")
	sessions := func() (all []struct{ ID, Person, Checked string }) {
		out, err := s.remote(id, key, "people", "sessions", "--json")
		must(t, err)
		must(t, json.Unmarshal([]byte(out), &all))
		return all
	}
	first := sessions()
	if len(first) != 1 || first[0].Person != "zitadel/id2" {
		t.Fatalf("the sessions are %+v, want one of zitadel/id2", first)
	}
	waittest.Until(t, "the provider to confirm the person again", func() bool {
		now := sessions()
		return len(now) == 1 && now[0].Checked > first[0].Checked
	})
	started.kill()
	waittest.Until(t, "the session to end, as the provider no longer confirms the person", func() bool { return len(sessions()) == 0 })
}

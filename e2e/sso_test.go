package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/musterhq/muster/internal/people/providertest"
)

// workplace is a service at which people sign in with their provider, and the machine of one person.
type workplace struct {
	*service
	t        *testing.T
	provider *providertest.Provider
	home     string // of the person
	browser  *http.Client
	opener   *httptest.Server // opens pages for programs, as a person would

	before func() // the person opens the next page of a program; nil: nothing happens before

	mu     sync.Mutex
	answer string // of the person to all pages
	opened []string
	failed error
}

// newWorkplace returns a workplace in which ann is in the group dev, which grants the role backend. The service is not started.
func newWorkplace(t *testing.T) *workplace {
	t.Helper()
	x := newPerson(t)
	x.service = newService(t, "--dev=false", "--people", x.peopleFile(nil))
	return x
}

// peopleFile writes the settings for sign-ins, with additional ones.
func (x *workplace) peopleFile(more map[string]any) string {
	x.t.Helper()
	dir := x.t.TempDir()
	secret := filepath.Join(dir, "secret")
	must(x.t, os.WriteFile(secret, []byte(x.provider.Secret), 0o600))
	settings := map[string]any{"providers": []any{map[string]any{
		"name": "studio", "issuer": x.provider.URL, "clientId": x.provider.ClientID, "clientSecretFile": secret, "roles": map[string][]string{"backend": {"dev"}, "admin": {"ops"}},
	}}}
	maps.Copy(settings, more)
	text, err := json.Marshal(settings)
	must(x.t, err)
	file := filepath.Join(dir, "people.json")
	must(x.t, os.WriteFile(file, text, 0o600))
	return file
}

// newPerson returns a workplace without a service: a provider, and the machine of a person.
func newPerson(t *testing.T) *workplace {
	t.Helper()
	x := &workplace{t: t, provider: providertest.New(t), home: t.TempDir(), answer: "approve"}
	x.freshBrowser()
	x.opener = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		at := r.URL.Query().Get("url")
		x.mu.Lock()
		x.opened = append(x.opened, at) // before the visit, with which the program may end
		x.mu.Unlock()
		if x.before != nil {
			x.before()
			x.before = nil
		}
		err := x.visit(at)
		for end := time.Now().Add(patience); errors.Is(err, errTryAgain) && time.Now().Before(end); err = x.visit(at) {
			time.Sleep(100 * time.Millisecond)
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		x.failed = errors.Join(x.failed, err)
	}))
	t.Cleanup(x.opener.Close)
	must(t, os.WriteFile(filepath.Join(x.home, "open"), []byte("#!/bin/sh\nexec curl -s -o /dev/null --max-time 240 --get --data-urlencode \"url=$1\" "+x.opener.URL+"\n"), 0o700)) // BROWSER is a list with colons between
	return x
}

// freshBrowser replaces the browser with one in which no person has signed in.
func (x *workplace) freshBrowser() {
	jar, err := cookiejar.New(nil)
	must(x.t, err)
	x.browser = &http.Client{Jar: jar, Timeout: patience}
}

// page is a page in a browser.
type page struct {
	text string
	at   *url.URL
}

// path returns the address of a path on the page's host.
func (p *page) path(to string) string {
	u, err := p.at.Parse(to)
	if err != nil {
		return to
	}
	return u.String()
}

// open returns the page at an address, once the person has signed in at the provider if the service asks for that.
func (x *workplace) open(at string) (page, error) {
	p, err := x.get(at)
	if err != nil || p.at.Path != "/signin" {
		return p, err
	}
	back := p.at.Query().Get("back")
	if p, err = x.get(p.path("/signin/start/studio?back=" + url.QueryEscape(back))); err != nil || !strings.HasPrefix(p.at.Path, "/signin/callback/") {
		return p, errors.Join(err, fmt.Errorf("the provider leads to %s: %s", p.at, p.text))
	}
	return x.get(p.path(back))
}

// errTryAgain is the message of a page while its node cannot answer for the cluster.
var errTryAgain = errors.New("try again")

func (x *workplace) get(at string) (p page, err error) {
	answer, err := x.browser.Get(at)
	if err != nil {
		return p, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if answer.StatusCode == http.StatusServiceUnavailable {
		err = errTryAgain
	}
	return page{string(body), answer.Request.URL}, err
}

var (
	formToken  = regexp.MustCompile(`name="token" value="([^"]+)"`)
	formCode   = regexp.MustCompile(`name="user_code" value="([^"]+)"`)
	formAction = regexp.MustCompile(`action="([^"]+)"`)
	formRole   = regexp.MustCompile(`<option>([a-z]+)`)
)

// sendable returns the form of a page with the person's answer.
func (x *workplace) sendable(p page) (at string, form url.Values, err error) {
	text := p.text
	token, action := formToken.FindStringSubmatch(text), formAction.FindStringSubmatch(text)
	if token == nil || action == nil {
		return "", nil, fmt.Errorf("%s has no form: %s", p.at, text)
	}
	x.mu.Lock()
	form = url.Values{"token": {token[1]}, "answer": {x.answer}}
	x.mu.Unlock()
	if code := formCode.FindStringSubmatch(text); code != nil {
		form.Set("user_code", code[1])
	}
	if role := formRole.FindStringSubmatch(text); role != nil {
		form.Set("role", role[1])
	}
	return p.path(html.UnescapeString(action[1])), form, nil
}

// send sends a form as a page of the service does, and follows redirects.
func (x *workplace) send(at string, form url.Values) (*http.Response, error) {
	r, err := http.NewRequest(http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return x.browser.Do(r)
}

// visit opens a page and answers it.
func (x *workplace) visit(at string) error {
	p, err := x.open(at)
	if err != nil {
		return err
	}
	to, form, err := x.sendable(p)
	if err != nil {
		return err
	}
	answer, err := x.send(to, form)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusServiceUnavailable:
		return errTryAgain
	}
	return fmt.Errorf("POST %s: %s", to, answer.Status)
}

// environment returns the environment of the person's programs.
func (x *workplace) environment(more ...string) []string {
	return cleanEnvironment(append([]string{"HOME=" + x.home, "AWS_EC2_METADATA_DISABLED=true",
		"BROWSER=" + filepath.Join(x.home, "open") + " %s &"}, more...)...)
}

// run runs a program of the person. It ends within a limited time, even if the program does not end or leaves child processes that hold its output open.
func (x *workplace) run(env []string, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(x.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.WaitDelay = env, 10*time.Second
	out, err := cmd.CombinedOutput()
	x.mu.Lock()
	defer x.mu.Unlock()
	return string(out), errors.Join(err, x.failed)
}

// muster runs a command of the person.
func (x *workplace) muster(args ...string) (string, error) {
	env := x.environment()
	for i, e := range env { // muster waits for the program in BROWSER no more than for a browser
		env[i] = strings.TrimSuffix(e, " &")
	}
	return x.run(env, musterBinary, args...)
}

func (x *workplace) mustMuster(args ...string) string {
	x.t.Helper()
	out, err := x.muster(args...)
	if err != nil {
		x.t.Fatalf("muster %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// oldModels makes Debian's AWS CLI, which ignores endpoints in profiles, find the service through its data files with endpoint rules.
func (x *workplace) oldModels() string {
	x.t.Helper()
	dir := x.t.TempDir()
	for service, version := range map[string]string{"sso-oidc": "2019-06-10", "sso": "2019-06-10"} {
		at := filepath.Join(dir, service, version)
		must(x.t, os.MkdirAll(at, 0o700))
		must(x.t, os.WriteFile(filepath.Join(at, "endpoint-rule-set-1.json"), []byte(`{"version":"1.0","parameters":{"Region":{"builtIn":"AWS::Region","required":false,"type":"String"},
"UseDualStack":{"builtIn":"AWS::UseDualStack","required":true,"default":false,"type":"Boolean"},"UseFIPS":{"builtIn":"AWS::UseFIPS","required":true,"default":false,"type":"Boolean"},
"Endpoint":{"builtIn":"SDK::Endpoint","required":false,"type":"String"}},"rules":[{"conditions":[],"endpoint":{"url":"`+x.url()+`","properties":{},"headers":{}},"type":"endpoint"}]}`), 0o600))
	}
	return dir
}

// signedInCLI is Debian's AWS CLI with the profile studio, whose person has signed in.
type signedInCLI struct {
	x   *workplace
	env []string
}

// loginWithCLI signs a person in, and checks that the profile works.
func (x *workplace) loginWithCLI() *signedInCLI {
	x.t.Helper()
	c := &signedInCLI{x, x.environment("AWS_DATA_PATH=" + x.oldModels())}
	out, err := x.run(c.env, debianAWS, "sso", "login", "--profile", "studio")
	if err != nil || !strings.Contains(out, "Successfully logged into") {
		x.t.Fatalf("aws sso login: %v\n%s", err, out)
	}
	if out, err := c.call("sts", "get-caller-identity"); err != nil || !strings.Contains(out, ":assumed-role/backend/") {
		x.t.Errorf("who am I: %v\n%s", err, out)
	}
	if out, err := c.call("gamelift", "list-fleets"); err != nil || !strings.Contains(out, "FleetIds") {
		x.t.Errorf("list fleets: %v\n%s", err, out)
	}
	return c
}

func (c *signedInCLI) call(args ...string) (string, error) {
	return c.x.run(c.env, debianAWS, append([]string{"--profile", "studio", "--endpoint-url", c.x.url(), "--output", "json"}, args...)...)
}

// credentials returns the temporary credentials of the profile.
func (c *signedInCLI) credentials() aws.Credentials {
	c.x.t.Helper()
	exported, err := c.x.run(c.env, debianAWS, "configure", "export-credentials", "--profile", "studio")
	must(c.x.t, err)
	var key struct{ AccessKeyId, SecretAccessKey, SessionToken string }
	must(c.x.t, json.Unmarshal([]byte(exported), &key))
	return aws.Credentials{AccessKeyID: key.AccessKeyId, SecretAccessKey: key.SecretAccessKey, SessionToken: key.SessionToken}
}

func (c *signedInCLI) logout() {
	c.x.t.Helper()
	if out, err := c.x.run(c.env, debianAWS, "sso", "logout", "--profile", "studio"); err != nil {
		c.x.t.Fatalf("aws sso logout: %v\n%s", err, out)
	}
}

// Debian's AWS CLI signs a person in with a device code, uses the role that the group grants, and signs out, after which its credentials no longer work.
func TestSSOWithTheAWSCLI(t *testing.T) {
	t.Parallel()
	x := newWorkplace(t)
	x.start()
	x.mustMuster("aws-profile", "studio", "--sso", "--public-url", x.url())
	cli := x.loginWithCLI()
	if out, err := cli.call("gamelift", "create-location", "--location-name", "custom-x"); err == nil || !strings.Contains(out, "may not call CreateLocation") {
		t.Errorf("what the role backend may not: %v\n%s", err, out)
	}
	key := cli.credentials()
	cli.logout()
	if out, err := x.run(cleanEnvironment("HOME="+t.TempDir(), "AWS_ACCESS_KEY_ID="+key.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+key.SecretAccessKey, "AWS_SESSION_TOKEN="+key.SessionToken),
		debianAWS, "--endpoint-url", x.url(), "--region", region, "gamelift", "list-fleets"); err == nil || !strings.Contains(out, "UnrecognizedClientException") && !strings.Contains(out, "invalid") {
		t.Errorf("credentials of an ended sign-in: %v\n%s", err, out)
	}
	if p, err := x.open(x.url() + "/device"); err != nil || !strings.Contains(p.text, "user_code") {
		t.Errorf("the browser signs in again: %v\n%s", err, p.text)
	}
}

// A person signs in with muster login; muster, the SDK for Go and that for JavaScript use the sign-in, each by the profile alone, until the person is gone at the provider or signs out.
func TestMusterLogin(t *testing.T) {
	x := newWorkplace(t)
	x.provider.Person("ola", map[string]any{"email": "ola@example.com", "groups": []string{"ops"}})
	x.start()
	out := x.mustMuster("login", "--server", x.url())
	if !strings.Contains(out, "Signed in at "+x.url()) {
		t.Errorf("muster login: %s", out)
	}
	if out := x.mustMuster("hosts", "list"); strings.Contains(out, "no key") { // the role own is admin here; neither flag nor variable names service or key
		t.Errorf("muster hosts list: %s", out)
	}
	if out := x.mustMuster("keys", "list", "--server", x.url()); out == "" {
		t.Error("muster keys list says nothing")
	}
	var key struct {
		Version                                                int
		AccessKeyId, SecretAccessKey, SessionToken, Expiration string
	}
	must(t, json.Unmarshal([]byte(x.mustMuster("credentials")), &key))
	if until, err := time.Parse(time.RFC3339, key.Expiration); err != nil || key.Version != 1 || time.Until(until) < 50*time.Minute {
		t.Errorf("muster credentials: %+v", key)
	}

	t.Setenv("HOME", x.home)
	aws, err := config.LoadDefaultConfig(t.Context(), config.WithSharedConfigProfile("muster"), config.WithSharedConfigFiles([]string{filepath.Join(x.home, ".aws", "config")}))
	must(t, err)
	who, err := sts.NewFromConfig(aws).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil || !strings.Contains(*who.Arn, ":assumed-role/admin/") {
		t.Errorf("the SDK for Go: %v %v", who, err)
	}
	if _, err := gamelift.NewFromConfig(aws).ListFleets(t.Context(), &gamelift.ListFleetsInput{}); err != nil {
		t.Errorf("the SDK for Go: %v", err)
	}
	node := exec.CommandContext(t.Context(), "node", "signin.js")
	node.Dir, node.Env = "js", x.environment("AWS_PROFILE=muster")
	if out, err := node.CombinedOutput(); err != nil || !strings.Contains(string(out), ":assumed-role/admin/") {
		t.Errorf("the SDK for JavaScript: %v\n%s", err, out)
	}

	if out := x.mustMuster("logout"); !strings.Contains(out, "Signed out") {
		t.Errorf("muster logout: %s", out)
	}
	if _, err := gamelift.NewFromConfig(aws).ListFleets(t.Context(), &gamelift.ListFleetsInput{}); err == nil {
		t.Error("the SDK's credentials work after the logout")
	}
	if out, err := x.muster("credentials"); err == nil || !strings.Contains(out, "muster login") {
		t.Errorf("muster credentials after the logout: %v\n%s", err, out)
	}

	device := exec.CommandContext(t.Context(), musterBinary, "login", "--use-device-code")
	device.Env = x.environment()
	shown, err := device.StdoutPipe()
	must(t, err)
	must(t, device.Start())
	for lines := bufio.NewScanner(shown); lines.Scan(); {
		if _, at, ok := strings.Cut(lines.Text(), "The address with the code in it: "); ok {
			must(t, x.visit(at))
		}
	}
	must(t, device.Wait())
	must(t, json.Unmarshal([]byte(x.mustMuster("credentials")), &key))
}

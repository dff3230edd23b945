package ssoclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/awsfile"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/sso"
)

// desk is a service at which one person has signed in with every browser, and the person's home directory.
type desk struct {
	*testing.T
	keys    *identity.Keys
	home    string
	profile Profile

	mu    sync.Mutex
	ended bool
}

func (x *desk) person() sso.Person {
	return sso.Person{SignIn: "ann", Name: "Ann", Holder: "studio/ann", Roles: []identity.Role{identity.Backend}, Expires: time.Now().Add(12 * time.Hour)}
}

func (x *desk) Browser(r *http.Request) (sso.Person, bool) { return x.Session(r.Context(), "ann") }
func (x *desk) SignIn(w http.ResponseWriter, r *http.Request, _ string) {
	http.Error(w, "sign in", http.StatusUnauthorized)
}
func (x *desk) OwnPage(*http.Request) bool { return true }

func (x *desk) Session(context.Context, string) (sso.Person, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.person(), !x.ended
}

func (x *desk) End(context.Context, audit.Origin, string, sso.Cause) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	return nil
}

func (x *desk) Issue(_ context.Context, _ audit.Origin, p *sso.Person, role identity.Role, valid time.Duration) (identity.Credentials, error) {
	return x.keys.Issue(identity.Session{Source: identity.FromWebIdentity, Holder: p.Holder, Role: role, Account: identity.DefaultAccount}, valid), nil
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	secret, err := identity.OpenCellSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e := enginetest.Open(t, engine.Config{Cell: cell.DefaultConfig()})
	if err := e.Do(t.Context(), &kernel.RaiseLevel{To: kernel.Level}); err != nil {
		t.Fatal(err)
	}
	x := &desk{T: t, home: t.TempDir(), keys: identity.NewKeys(secret, time.Now)}
	yes := func(*http.Request) bool { return true }
	door := sso.NewDoor(sso.Config{Engine: e, People: x, Secret: secret, Secure: func(*http.Request) bool { return false }, Private: yes, Log: slog.New(slog.DiscardHandler)})
	server := httptest.NewServer(door)
	t.Cleanup(server.Close)
	x.profile = Profile{Name: "studio", Session: "studio", StartURL: StartURL(server.URL), Endpoint: server.URL, Region: "us-east-1", Account: identity.DefaultAccount, Role: OwnRole}
	return x
}

var (
	tokenField  = regexp.MustCompile(`name="token" value="([^"]+)"`)
	codeField   = regexp.MustCompile(`name="user_code" value="([^"]+)"`)
	actionField = regexp.MustCompile(`action="([^"]+)"`)
)

// browse opens a page as a person does, sends its form with an answer, and goes where that leads.
func (x *desk) browse(at, answer string) error {
	page, err := http.Get(at)
	if err != nil {
		return err
	}
	defer page.Body.Close()
	text, err := io.ReadAll(page.Body)
	if err != nil {
		return err
	}
	token, action := tokenField.FindSubmatch(text), actionField.FindSubmatch(text)
	if token == nil || action == nil {
		return fmt.Errorf("no form: %s", text)
	}
	form := url.Values{"token": {string(token[1])}, "answer": {answer}}
	if code := codeField.FindSubmatch(text); code != nil {
		form.Set("user_code", string(code[1]))
	}
	done, err := http.PostForm(x.profile.Endpoint+html.UnescapeString(string(action[1])), form)
	if err != nil {
		return err
	}
	defer done.Body.Close()
	if done.StatusCode != http.StatusOK {
		return errors.New(done.Status)
	}
	return nil
}

func (x *desk) login(out io.Writer, answer string) *Login {
	return &Login{Profile: x.profile, Home: x.home, Client: http.DefaultClient, Out: out, Open: func(at string) error {
		go func() {
			if err := x.browse(at, answer); err != nil {
				x.Error(err)
			}
		}()
		return nil
	}}
}

func (x *desk) works() {
	x.Helper()
	c, err := x.profile.Provider(x.home, http.DefaultClient).Retrieve(x.Context())
	if err != nil {
		x.Fatal(err)
	}
	if key, err := x.keys.With(c.AccessKeyID, c.SessionToken, "192.0.2.1"); err != nil || key.Role != identity.Backend || key.Secret != c.SecretAccessKey {
		x.Errorf("credentials: %v %v", key, err)
	}
}

// A person signs in with a browser and with a code, and the SDK for Go uses the same sign-in by the profile, and renews it.
func TestSignIn(t *testing.T) {
	x := newDesk(t)
	if _, err := x.profile.Provider(x.home, http.DefaultClient).Retrieve(t.Context()); err == nil || !strings.Contains(err.Error(), "muster login studio") {
		t.Errorf("nobody has signed in: %v", err)
	}
	var out strings.Builder
	if err := x.login(&out, "approve").WithBrowser(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	x.works()
	info, err := os.Stat(x.profile.TokenFile(x.home))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of the token: %v %v", info, err)
	}

	t.Setenv("HOME", x.home)
	file, err := awsfile.Open(filepath.Join(x.home, ".aws", "config"))
	if err != nil {
		t.Fatal(err)
	}
	x.profile.Write(file)
	if err := file.Save(); err != nil {
		t.Fatal(err)
	}
	if read, ok := Read(file, "studio"); !ok || read != x.profile {
		t.Errorf("the profile is %+v, want %+v", read, x.profile)
	}
	expire(t, x.profile.TokenFile(x.home))
	aws, err := config.LoadDefaultConfig(t.Context(), config.WithSharedConfigProfile("studio"), config.WithSharedConfigFiles([]string{filepath.Join(x.home, ".aws", "config")}))
	if err != nil {
		t.Fatal(err)
	}
	if c, err := aws.Credentials.Retrieve(t.Context()); err != nil {
		t.Errorf("the SDK: %v", err)
	} else if _, err := x.keys.With(c.AccessKeyID, c.SessionToken, "192.0.2.1"); err != nil {
		t.Errorf("the SDK's credentials: %v", err)
	}
	x.works()

	if err := x.login(&out, "approve").WithDevice(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	x.works()
	if ended, err := x.profile.Logout(t.Context(), x.home, http.DefaultClient); err != nil || !ended || x.profile.SignedIn(x.home) {
		t.Errorf("logout: %v %v", ended, err)
	}
	if _, going := x.Session(t.Context(), ""); going {
		t.Error("the session goes on after the logout")
	}
	if ended, err := x.profile.Logout(t.Context(), x.home, http.DefaultClient); err != nil || ended {
		t.Errorf("logout again: %v %v", ended, err)
	}
}

// expire makes a token one that has to be renewed.
func expire(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var token Token
	if err := json.Unmarshal(content, &token); err != nil {
		t.Fatal(err)
	}
	token.ExpiresAt = instant(time.Now().Add(-time.Minute))
	content, _ = json.Marshal(token)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// If the person denies the request, there is no sign-in.
func TestDenied(t *testing.T) {
	x := newDesk(t)
	if err := x.login(io.Discard, "deny").WithBrowser(t.Context()); err == nil || !strings.Contains(err.Error(), "access_denied") {
		t.Errorf("denied in the browser: %v", err)
	}
	if err := x.login(io.Discard, "deny").WithDevice(t.Context()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("denied with a code: %v", err)
	}
	if x.profile.SignedIn(x.home) {
		t.Error("there is a token")
	}
}

// The program takes an answer with its own state alone: any page can send a browser to its port.
func TestCallback(t *testing.T) {
	c := callback{state: "own", answers: make(chan url.Values, 1)}
	for _, path := range []string{"/oauth/callback?code=x", "/oauth/callback?code=x&state=other", "/other?code=x&state=own"} {
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != 404 || len(c.answers) != 0 {
			t.Errorf("%s: %d, %d answers", path, w.Code, len(c.answers))
		}
	}
	for range 2 { // browsers may repeat it
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest("GET", "/oauth/callback?code=x&state=own", nil))
		if w.Code != 200 {
			t.Errorf("the answer: %d", w.Code)
		}
	}
	if q := <-c.answers; q.Get("code") != "x" {
		t.Errorf("%v", q)
	}
}

// restarting is a service that restarts while a person confirms the code of a device.
type restarting struct {
	polls int
	gone  bool // it does not come back
}

func (x *restarting) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := http.StatusOK, `{"clientId":"c","clientSecret":"s","clientSecretExpiresAt":4000000000}`
	switch r.URL.Path {
	case "/device_authorization":
		body = `{"deviceCode":"d","userCode":"BCDF-GHJK","verificationUri":"https://muster.example.com/device","expiresIn":600,"interval":1}`
	case "/token":
		x.polls++
		switch {
		case x.gone:
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		case x.polls == 1:
			status, body = http.StatusBadRequest, `{"error":"authorization_pending","message":"m"}`
		case x.polls <= 8:
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		case x.polls <= 12:
			status, body = http.StatusServiceUnavailable, `{"error":"server_error","message":"m"}`
		default:
			body = `{"accessToken":"a","tokenType":"Bearer","expiresIn":3600,"refreshToken":"r"}`
		}
	}
	header := http.Header{"Content-Type": {"application/json"}}
	switch status {
	case http.StatusBadRequest:
		header.Set("X-Amzn-Errortype", "AuthorizationPendingException")
	case http.StatusServiceUnavailable:
		header.Set("X-Amzn-Errortype", "InternalServerException")
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// A service that is away for some seconds does not end a sign-in for which a person confirms the code.
func TestDeviceWhileTheServiceRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service restarting
		l := &Login{Profile: Profile{Session: "studio", Endpoint: "https://muster.example.com", Region: "us-east-1"}, Home: t.TempDir(), Client: &http.Client{Transport: &service}, Out: io.Discard}
		if err := l.WithDevice(t.Context()); err != nil || !l.Profile.SignedIn(l.Home) {
			t.Errorf("after %d requests for the tokens: %v", service.polls, err)
		}
	})
}

// A service that does not come back ends it when the code is no longer valid.
func TestDeviceWhoseServiceIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		l := &Login{Profile: Profile{Session: "studio", Endpoint: "https://muster.example.com", Region: "us-east-1"}, Home: t.TempDir(), Client: &http.Client{Transport: &restarting{gone: true}}, Out: io.Discard}
		if err := l.WithDevice(t.Context()); err == nil || time.Since(began) < 10*time.Minute || time.Since(began) > 11*time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

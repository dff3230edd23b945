package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A profile for people has everything that clients need to sign in, and no key; one with a key of Muster's becomes one for people, and back.
func TestAWSProfileForPeople(t *testing.T) {
	dir, home := filepath.Join(t.TempDir(), "data"), t.TempDir()
	config, credentials := filepath.Join(home, ".aws", "config"), filepath.Join(home, ".aws", "credentials")
	env := []string{"HOME=" + home, "MUSTER_DATA=" + dir}
	mustRun(t, env, "aws-profile", "studio")
	out := mustRun(t, env, "aws-profile", "studio", "--sso", "--public-url", "https://muster.example.com")
	for _, want := range []string{"aws sso login --profile studio", "muster login studio", "https://muster.example.com", "2.13"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q: %s", want, out)
		}
	}
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"[profile studio]\n", "sso_session = studio\n", "sso_account_id = 000000000000\n", "sso_role_name = own\n", "endpoint_url = https://muster.example.com\n", "services = studio\n",
		"[sso-session studio]\n", "sso_start_url = https://d-00000", "sso_registration_scopes = sso:account:access\n", "[services studio]\nsso =\n  endpoint_url = https://muster.example.com\nsso_oidc =\n  endpoint_url = https://muster.example.com\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the file lacks %q:\n%s", want, text)
		}
	}
	if keys, err := os.ReadFile(credentials); err != nil || strings.Contains(string(keys), "MUST") {
		t.Errorf("the credentials file has a key: %s %v", keys, err)
	}
	mustRun(t, env, "aws-profile", "studio", "--sso", "--role", "readonly", "--public-url", "https://muster.example.com")
	if text, _ := os.ReadFile(config); !strings.Contains(string(text), "sso_role_name = readonly\n") || strings.Count(string(text), "endpoint_url") != 3 {
		t.Errorf("another role:\n%s", text)
	}
	if out, err := runForTest(t, env, "aws-profile", "studio", "--sso", "--role", "client"); err == nil {
		t.Errorf("the role client: no error; printed %s", out)
	}
	mustRun(t, env, "aws-profile", "studio")
	if text, _ := os.ReadFile(config); strings.Contains(string(text), "sso_session") {
		t.Errorf("a profile with a key signs people in:\n%s", text)
	}
	put(t, config, "[profile work]\nregion = x\n")
	if out, err := runForTest(t, env, "aws-profile", "work", "--sso"); err == nil {
		t.Errorf("a profile of somebody else: no error; printed %s", out)
	}
}

// Commands of a person who has not signed in say what to do, and send no requests.
func TestNobodyHasSignedIn(t *testing.T) {
	home := t.TempDir()
	env := []string{"HOME=" + home}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Errorf("%s %s was asked for", r.Method, r.URL) }))
	defer service.Close()
	for _, args := range [][]string{{"login"}, {"logout", "other"}, {"credentials"}} {
		if out, err := runForTest(t, env, args...); err == nil || !strings.Contains(err.Error(), "muster aws-profile") {
			t.Errorf("%s: %v; printed %s", args, err, out)
		}
	}
	mustRun(t, env, "aws-profile", "muster", "--sso", "--public-url", service.URL)
	for _, args := range [][]string{{"credentials"}, {"explain", "fleet", "fleet-1", "--profile", "muster"}} {
		if out, err := runForTest(t, env, args...); err == nil || !strings.Contains(err.Error(), "muster login muster") {
			t.Errorf("%s: %v; printed %s", args, err, out)
		}
	}
	if out := mustRun(t, env, "logout"); !strings.Contains(out, "Nobody had signed in") {
		t.Errorf("logout: %s", out)
	}
}

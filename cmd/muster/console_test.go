package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/settings"
)

// ran returns the output of a command.
func ran(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := run(t.Context(), args, env, &out)
	return out.String(), err
}

// The link of the command signs a browser in, once, as the key that the command uses.
func TestConsoleCommand(t *testing.T) {
	t.Parallel()
	_, address, keys := servedForTest(t, nil)
	out, err := ran(t, envOf(keys[identity.ReadOnly]), "console", "--listen", address)
	if err != nil {
		t.Fatal(err)
	}
	link, _, _ := strings.Cut(out, "\n")
	page, code, ok := strings.Cut(link, "#")
	if !ok || page != "http://"+address+"/console/link" || !strings.Contains(out, keys[identity.ReadOnly].ID) {
		t.Fatalf("the command wrote %s", out)
	}
	signIn := func() int {
		jar, _ := cookiejar.New(nil)
		browser := http.Client{Jar: jar}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, page, strings.NewReader(url.Values{"code": {code}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		answer, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	if got := signIn(); got != http.StatusOK {
		t.Errorf("the link: %d", got)
	}
	if got := signIn(); got != http.StatusUnauthorized {
		t.Errorf("the second time: %d", got)
	}
	if _, err := ran(t, envOf(keys[identity.Client]), "console", "--listen", address); err == nil || !strings.Contains(err.Error(), "which may not look at the console") {
		t.Errorf("a client's key: %v", err)
	}
	wrong := keys[identity.ReadOnly]
	wrong.Secret = "wrong"
	if _, err := ran(t, envOf(wrong), "console", "--listen", address); err == nil {
		t.Error("a wrong secret got a link")
	}
}

func TestConsoleCommandInDevelopmentMode(t *testing.T) {
	t.Parallel()
	dir, address, _ := servedForTest(t, func(s *settings.Settings) { s.Dev = true })
	if out, err := ran(t, []string{"HOME=" + t.TempDir()}, "console", "--data", dir, "--listen", address); err != nil || out != "http://"+address+"/console/\n" {
		t.Errorf("the command wrote %q, %v", out, err)
	}
}

// Other users see only the name of a file in the arguments of the program that opens the link, and only its owner can read that file.
func TestOpenPage(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	const address = `https://example.com/console/link#CODE.SIGNED&"<`
	var file string
	err := openPage(t.Context(), address, func(name string) []string { file = name; return []string{"true"} })
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	text, err2 := os.ReadFile(file)
	if err := errors.Join(err, err2); err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(string(text), `url=https://example.com/console/link#CODE.SIGNED&amp;&#34;&lt;"`) {
		t.Errorf("%v: %v, %s", err, info.Mode(), text)
	}
	if err := openPage(context.Background(), address, func(string) []string { return []string{filepath.Join(t.TempDir(), "none")} }); err == nil || !strings.Contains(err.Error(), "open the link above") {
		t.Errorf("without a browser: %v", err)
	}
}

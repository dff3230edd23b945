package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/operator"
)

// withStderr returns what a command writes to stdout and to stderr.
func withStderr(t *testing.T, env []string, args ...string) (stdout, stderr string) {
	t.Helper()
	was := os.Stderr
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stderr = w
	stdout, err = runForTest(t, env, args...)
	os.Stderr = was
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return stdout, string(text)
}

// TestIncompleteAnswers: a command whose output is not complete says so, and a program that reads its JSON gets only JSON.
func TestIncompleteAnswers(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := any(operator.PeopleList{People: []operator.Person{}, SignIns: []operator.SignIn{{ID: "s1"}}, More: true})
		switch {
		case !strings.HasSuffix(r.URL.Path, operator.FeedPath):
		case r.URL.Query().Get("after") == "":
			answer = operator.Feed{Entries: []operator.FeedEntry{{What: "ONE"}}, Next: "1-0-0", LeftOut: []string{"the first"}}
		default:
			answer = operator.Feed{Entries: []operator.FeedEntry{{What: "TWO"}}, LeftOut: []string{"the first", "the second"}}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer service.Close()
	env := []string{"HOME=" + t.TempDir(), "AWS_ACCESS_KEY_ID=k", "AWS_SECRET_ACCESS_KEY=s"}
	for _, x := range []struct {
		args string
		want []string // on stderr, once each
	}{
		{"events fleet f", []string{"the second"}}, {"events --json fleet f", []string{"the first", "the second"}},
		{"people sessions", []string{"more sign-in sessions"}}, {"people sessions --json", []string{"more sign-in sessions"}},
	} {
		stdout, stderr := withStderr(t, env, append(strings.Fields(x.args), "--server", service.URL)...)
		for _, want := range x.want {
			if strings.Count(stderr, want) != 1 || strings.Contains(stdout, want) {
				t.Errorf("%s: want %q once on stderr; got %q and on stdout %q", x.args, want, stderr, stdout)
			}
		}
		for d := json.NewDecoder(strings.NewReader(stdout)); strings.Contains(x.args, "--json") && d.More(); {
			var any any
			if err := d.Decode(&any); err != nil {
				t.Fatalf("%s: %v in %q", x.args, err, stdout)
			}
		}
	}
}

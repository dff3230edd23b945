package playerhooks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	c, err := parse([]byte(`{
		"url": "https://backend.example.com/hooks", "timeout_ms": 1500, "concurrency": 8,
		"hooks": {
			"BeforeJoinParty": {},
			"ChooseRegions": null,
			"BeforeInvite": {"url": "http://127.0.0.1:7001/x", "timeout_ms": 300, "on_timeout": "ALLOW"}
		}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[Name]Hook{
		BeforeJoinParty: {"https://backend.example.com/hooks", 1500 * time.Millisecond, Deny},
		ChooseRegions:   {"https://backend.example.com/hooks", 1500 * time.Millisecond, Allow},
		BeforeInvite:    {"http://127.0.0.1:7001/x", 300 * time.Millisecond, Allow},
	}
	if len(c.Hooks) != len(want) || c.Concurrency != 8 {
		t.Errorf("%+v", c)
	}
	for name, x := range want {
		if c.Hooks[name] != x {
			t.Errorf("%s: %+v, want %+v", name, c.Hooks[name], x)
		}
	}
	if c, err := parse([]byte(`{"url":"https://b.example","on_timeout":"DENY","hooks":{"ChooseRegions":{}}}`)); err != nil || c.Hooks[ChooseRegions] != (Hook{"https://b.example", DefaultTimeout, Deny}) {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestConfigSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		`{"url":"https://b.example","hooks":{"BeforeLunch":{}}}`:                      "hooks.BeforeLunch",
		`{"hooks":{"BeforeInvite":{}}}`:                                               "hooks.BeforeInvite.url: empty",
		`{"url":"http://b.example","hooks":{"BeforeInvite":{}}}`:                      "https, or http to this machine",
		`{"url":"ftp://localhost","hooks":{"BeforeInvite":{}}}`:                       "https, or http to this machine",
		`{"url":"b.example","hooks":{"BeforeInvite":{}}}`:                             "want a URL",
		`{"url":"https://b.example","hooks":{"BeforeInvite":{"timeout_ms":10}}}`:      "timeout_ms: 10, want 50 to 10000",
		`{"url":"https://b.example","hooks":{"BeforeInvite":{"on_timeout":"MAYBE"}}}`: `on_timeout: "MAYBE"`,
		`{"url":"https://b.example","concurrency":0,"hooks":{"BeforeInvite":{}}}`:     "concurrency: 0",
		`{"url":"https://b.example","concurrency":1025,"hooks":{"BeforeInvite":{}}}`:  "concurrency: 1025, want 1 to 1024",
		`{"url":"https://b.example","hooks":{"BeforeInvite":{"retries":3}}}`:          "retries",
		`{"hooks":{}} {}`: "after the object",
		`hooks`:           "invalid character",
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if c, err := ReadFile(""); err != nil || len(c.Hooks) > 0 {
		t.Errorf("without a file: %+v, %v", c, err)
	}
	path := filepath.Join(t.TempDir(), "hooks.json")
	if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("of a file that is not there: %v", err)
	}
	if err := os.WriteFile(path, []byte(`{"hooks":{"BeforeInvite":{}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("of a file that makes no sense: %v", err)
	}
}

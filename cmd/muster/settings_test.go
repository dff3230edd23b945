package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/settings"
)

func TestFlagBeatsVariableBeatsFileBeatsDefault(t *testing.T) {
	file := settingsFile(t, `{
		"listen": "127.0.0.1:1",
		"reservation": "61s",
		"limit-fleets": 7,
		"dev": true,
		"heap-floor": "1GiB"
	}`)
	env := []string{"MUSTER_LISTEN=127.0.0.1:2", "MUSTER_RESERVATION=62s", "MUSTER_CONFIG=" + file, "HOME=/nowhere"}
	out := mustRun(t, env, "config", "--listen", "127.0.0.1:3")
	for setting, want := range map[string]string{
		"listen":       "127.0.0.1:3 --listen",
		"reservation":  "1m2s MUSTER_RESERVATION",
		"limit-fleets": "7 " + file + ":4",
		"dev":          "true " + file + ":5",
		"heap-floor":   "1GiB " + file + ":6",
		"data":         settings.Defaults().Data + " default",
		"tls-cert":     "- default",
	} {
		if got := configLine(out, setting); got != want {
			t.Errorf("%s: got %q, want %q", setting, got, want)
		}
	}
	for _, setting := range settingNames() {
		if configLine(out, setting) == "" {
			t.Errorf("%s is not shown", setting)
		}
	}
}

func TestConfigFlagBeatsConfigVariable(t *testing.T) {
	flag, variable := settingsFile(t, `{"limit-fleets": 1}`), settingsFile(t, `{"limit-fleets": 2}`)
	out := mustRun(t, []string{"MUSTER_CONFIG=" + variable}, "config", "--config", flag)
	if got := configLine(out, "limit-fleets"); got != "1 "+flag+":1" {
		t.Errorf("got %q", got)
	}
}

func TestMistakesInSettingsAreNamed(t *testing.T) {
	cases := map[string]struct {
		file string
		env  []string
		args []string
		want []string
	}{
		"unknown variable":          {env: []string{"MUSTER_LISTN=x"}, want: []string{"MUSTER_LISTN", "did you mean MUSTER_LISTEN"}},
		"variable unlike any":       {env: []string{"MUSTER_ZZZZZZZZZ=x"}, want: []string{"MUSTER_ZZZZZZZZZ", "muster config"}},
		"bad variable":              {env: []string{"MUSTER_RESERVATION=60"}, want: []string{"MUSTER_RESERVATION", `"60"`, "want a time", "10s"}},
		"unknown key":               {file: "{\n\"listen\": \":1\",\n\"limit-fleet\": 1}", want: []string{":3:", `"limit-fleet"`, `did you mean "limit-fleets"`}},
		"key of another case":       {file: `{"Listen": ":1"}`, want: []string{":1:", `"Listen"`, `did you mean "listen"`}},
		"config inside the file":    {file: `{"config": "x"}`, want: []string{":1:", `"config"`}},
		"key twice":                 {file: "{\"dev\": true,\n\"dev\": false}", want: []string{":2:", `"dev"`, "line 1"}},
		"bad value":                 {file: "{\n\"heap-floor\": \"64MB\"}", want: []string{":2:", "heap-floor", "64MB", "MiB"}},
		"bad flag":                  {args: []string{"--reservation", "soon"}, want: []string{"--reservation", `"soon"`, "want a time"}},
		"fraction":                  {file: `{"limit-fleets": 1.5}`, want: []string{":1:", "limit-fleets", "1.5"}},
		"list":                      {file: `{"listen": [":1"]}`, want: []string{":1:", `"listen"`, "want a string"}},
		"null":                      {file: `{"listen": null}`, want: []string{":1:", `"listen"`, "want a string"}},
		"not JSON":                  {file: "listen = :8080", want: []string{":1:", "JSON object"}},
		"comma at the end":          {file: "{\"dev\": true,\n}", want: []string{":2:"}},
		"cut off":                   {file: `{"dev": true`, want: []string{":1:", "want a }"}},
		"more behind":               {file: `{} {}`, want: []string{":1:", "nothing after"}},
		"value that makes no sense": {args: []string{"--dev", "--listen", ":8080"}, want: []string{"listen", "dev", "loopback"}},
		"file of other commands":    {file: `{"listn": ":1"}`, args: []string{"keys", "list"}, want: []string{`"listn"`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			args := c.args
			if len(args) == 0 || strings.HasPrefix(args[0], "-") {
				args = append([]string{"config"}, args...)
			}
			if c.file != "" {
				path := settingsFile(t, c.file)
				args = append(args, "--config", path)
				c.want = append(c.want, path)
			}
			out, err := runForTest(t, c.env, args...)
			if err == nil {
				t.Fatalf("no error; output:\n%s", out)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
		})
	}
}

// A file is checked alone: what flags and variables say cannot hide a mistake in it.
func TestConfigCheck(t *testing.T) {
	good := settingsFile(t, `{"limit-fleets": 7, "reservation": "61s"}`)
	if out := mustRun(t, []string{"MUSTER_LIMIT_FLEETS=8"}, "config", "check", good); !strings.Contains(out, good+": all settings are valid") {
		t.Errorf("got %q", out)
	}
	for text, want := range map[string]string{
		`{"limit-fleets": "many"}`:     "limit-fleets",
		`{"limit-fleats": 7}`:          "limit-fleets",
		`{"limit-fleets": 7`:           "",
		`{"virtual-clock": true}`:      "virtual-clock without dev",
		`{"player-flow-config": "/x"}`: "/x",
	} {
		file := settingsFile(t, text)
		var out strings.Builder
		err := run(t.Context(), []string{"config", "check", file}, nil, &out)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), file) != 1 {
			t.Errorf("%s: got %v, want it to name %q, and the file once", text, err, want)
		}
	}
}

// The variable that has the key outside of the data directory may have any name, also one that looks like a setting's. Where nothing names it, it may be a misspelled setting.
func TestVariableWithTheSecretKey(t *testing.T) {
	const variable, from = "MUSTER_SECRET_KEY", "env:MUSTER_SECRET_KEY"
	key := variable + "=" + strings.Repeat("5a", 32)
	file := settingsFile(t, `{"secret-key-file": "`+from+`"}`)
	for what, out := range map[string]string{
		"flag":     mustRun(t, []string{key}, "config", "--secret-key-file", from),
		"variable": mustRun(t, []string{key, "MUSTER_SECRET_KEY_FILE=" + from}, "config"),
		"file":     mustRun(t, []string{key}, "config", "--config", file),
	} {
		if !strings.Contains(configLine(out, "secret-key-file"), from) || strings.Contains(out, "5a5a") {
			t.Errorf("%s: %s", what, out)
		}
	}
	if _, err := runForTest(t, []string{key}, "config"); err == nil || !strings.Contains(err.Error(), "is not a setting") {
		t.Errorf("a variable that nothing names: %v", err)
	}
}

func TestMissingSettingsFile(t *testing.T) {
	if _, err := runForTest(t, nil, "config", "--config", "not-there.json"); err == nil || !strings.Contains(err.Error(), "not-there.json") {
		t.Errorf("got %v", err)
	}
}

func TestHelpOfEveryCommand(t *testing.T) {
	for _, command := range []string{"", "config", "config show", "config check", "doctor", "explain", "keys", "keys create", "aws-profile", "ca", "version"} {
		if out := mustRun(t, nil, append(strings.Fields(command), "--help")...); !strings.Contains(out, "Usage: muster "+command) {
			t.Errorf("muster %s --help: %s", command, out)
		}
	}
	if out := mustRun(t, nil); !strings.Contains(out, "Usage: muster <command>") {
		t.Errorf("muster without a command: %s", out)
	}
	if out := mustRun(t, nil, "config", "show", "--help"); !strings.Contains(out, settings.Defaults().Listen) {
		t.Errorf("the default of listen is not in the help:\n%s", out)
	}
}

func FuzzSettingsFile(f *testing.F) {
	f.Add(`{"listen": ":8080", "dev": true, "limit-fleets": 1e3}`)
	f.Add("{\n\"a\\u0000\": {}}")
	f.Fuzz(func(t *testing.T, content string) {
		path := settingsFile(t, content)
		if _, err := readSettingsFile(path, settingNames()); err != nil && !strings.HasPrefix(err.Error(), path+":") {
			t.Errorf("the error does not start with file and line: %v", err)
		}
	})
}

func settingsFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "muster.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// configLine returns value and source of a setting from the table that `muster config` prints.
func configLine(out, setting string) string {
	found := regexp.MustCompile(`(?m)^` + setting + ` +(.*?) +(\S+)$`).FindStringSubmatch(out)
	if found == nil {
		return ""
	}
	return found[1] + " " + found[2]
}

// Times in a JSON log are read by people, too.
func TestTimesInTheLog(t *testing.T) {
	var out strings.Builder
	s := settings.Defaults()
	s.LogFormat = "json"
	newLogger(&out, s).Info("done", "took", 1500*time.Millisecond)
	if !strings.Contains(out.String(), `"took":"1.5s"`) {
		t.Errorf("got %s", out.String())
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A command that ignored a flag, or accepted a value that makes no sense, would silently do something else than its user means.
func TestFlagsWithoutEffect(t *testing.T) {
	dir := t.TempDir()
	rules := filepath.Join(dir, "rules.json")
	if err := os.WriteFile(rules, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		args string // ~ stands for an empty text
		want []string
	}{
		{"restore " + dir + " --verify --data /srv/new", []string{"--verify", `--data "/srv/new"`}},
		{"restore " + dir + " --verify --reason audit", []string{"--verify", "--reason"}},
		{"export --to - --since 2026-11-02T00:00:00Z --until 2026-11-01T00:00:00Z --data " + dir, []string{"--since 2026-11-02T00:00:00Z", "--until 2026-11-01T00:00:00Z"}},
		{"events fleet x --since 1h --until 2h", []string{"--since 1h", "--until 2h"}},
		{"audit --since 2026-11-02T00:00:00Z --until 2026-11-02T00:00:00Z", []string{"--since 2026-11-02T00:00:00Z", "--until 2026-11-02T00:00:00Z"}},
		{"audit --since=-1h", []string{"--since", "-1h"}},
		{"keys list --server http://127.0.0.1:1 --data /srv/new", []string{"--server", `--data "/srv/new"`}},
		{"keys list --data " + dir + " --profile studio", []string{`--profile "studio"`, "--server"}},
		{"policies list --server http://127.0.0.1:1 --secret-key-file x", []string{"--server", "--secret-key-file"}},
		{"keys revoke-credentials --session ASIAX --issued-until 2026-11-02T00:00:00Z", []string{"--issued-until", "--holder"}},
		{"secret retire 1 --force", []string{"--force", "--revoke-keys"}},
		{"reload --profile studio", []string{"--profile", "--server"}},
		{"support-bundle --server http://127.0.0.1:1 --data /srv/new", []string{"--server", "--data"}},
		{"support-bundle --processor 500ms", []string{"--processor 500ms"}},
		{"hosts --listen 127.0.0.1:1 --server http://127.0.0.1:2", []string{"--listen", "--public-url"}},
		{"aws-profile studio --sso --data /srv/new", []string{"--sso", "--data"}},
		{"rollout --alias live --undo --steps 10,100", []string{"--undo", "--steps"}},
		{"drain rack-1 --undo --no-wait", []string{"--undo", "--no-wait"}},
		{"top --once --every 5s", []string{"--once", "--every 5s"}},
		{"simulate " + rules + " --arrivals " + rules + " --for 2h", []string{"--arrivals", "--for 2h"}},
		{"logs process-1 --tail=-3", []string{"--tail -3"}},
		{"logs process-1 --tail 0", []string{"--tail 0"}},
		{"health --timeout 0s", []string{"--timeout 0s"}},
		{"build push " + dir + " --patience=-1m", []string{"--patience -1m"}},
		{"people add ann --group admin --valid 0s", []string{"--valid 0s"}},
		{"people enrol ann --valid 500ms", []string{"--valid 500ms"}},
		{"people groups ann", []string{"--group", "--none"}},
		{"people groups ann --group ~", []string{"--group"}},
		{"people add ~ --group admin", []string{"name", "not empty"}},
		{"hosts join-token --fleet ~", []string{`--fleet ""`}},
		{"hosts join-token --uses 0", []string{"--uses 0"}},
		{"hosts join-token --valid=-1h", []string{"--valid -1h"}},
		{"keys create --role admin --data ~", []string{`--data ""`}},
		{"keys create --role admin --reason ~", []string{`--reason ""`}},
		{"archive repair --data " + dir + " --reason " + strings.Repeat("x", 201), []string{"reason", "1 to 200 characters"}}, // recorded at the next start
		{"bench --rounds 0", []string{"--rounds 0"}},
		{"bench players --binary /no/such/muster", []string{"--binary", "/no/such/muster"}},
		{"bench players --binary " + rules, []string{"--binary", rules}},
	} {
		args := strings.Fields(x.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "~", "")
		}
		out, err := runForTest(t, nil, args...)
		if err == nil {
			t.Errorf("muster %s: no error; printed %s", x.args, out)
			continue
		}
		for _, want := range x.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("muster %s: %v; want %s in it", x.args, err, want)
			}
		}
	}
	// Variables and the settings file are for all commands: they are in no command's way.
	if _, err := runForTest(t, []string{"MUSTER_DATA=" + dir, "MUSTER_LISTEN=127.0.0.1:1"}, "keys", "list", "--server", "http://127.0.0.1:1"); err == nil || strings.Contains(err.Error(), "ignore") {
		t.Errorf("with MUSTER_DATA and --server: %v", err)
	}
	mustRun(t, nil, "config", "--otlp-endpoint", "")
}

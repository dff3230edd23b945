package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/listen/devca"
	"github.com/musterhq/muster/internal/porttest"
)

func TestKeysFromTheCommandLine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	out := mustRun(t, nil, "keys", "create", "--data", dir, "--role", "backend", "--name", "lobby")
	id := regexp.MustCompile(`MUST[A-Z2-7]{16}`).FindString(out)
	key := onlyKey(t, dir)
	if id != key.ID || !strings.Contains(out, key.Secret) || key.Role != identity.Backend || key.Name != "lobby" {
		t.Fatalf("printed %s, stored %v", out, key)
	}
	list := mustRun(t, []string{"MUSTER_DATA=" + dir}, "keys", "list") // the directory is a setting like others
	if !strings.Contains(list, id) || !strings.Contains(list, "lobby") || strings.Contains(list, key.Secret) {
		t.Errorf("list: %s", list)
	}
	mustRun(t, nil, "keys", "revoke", "--data", dir, id)
	if key := onlyKey(t, dir); key.Revoked.IsZero() {
		t.Errorf("not revoked: %v", key)
	}
	if out := mustRun(t, nil, "keys", "create", "--data", dir, "--role", "admin", "--format", "env"); !regexp.MustCompile(
		`^export AWS_ACCESS_KEY_ID=MUST\w{16}\nexport AWS_SECRET_ACCESS_KEY=\S{40}\n$`).MatchString(out) {
		t.Errorf("for a shell: %s", out)
	}

	for _, args := range [][]string{
		{"keys", "create", "--data", dir, "--role", "root"},
		{"keys", "create", "--data", dir},
		{"keys", "revoke", "--data", dir, "MUSTNOTTHERE"},
		{"keys", "list", "--data", filepath.Join(dir, "misspelt")},
	} {
		if out, err := runForTest(t, nil, args...); err == nil {
			t.Errorf("muster %s: no error; printed %s", strings.Join(args, " "), out)
		}
	}
}

// Only commands that create a data directory create parts of one in a directory that has none.
func TestDirectoryWithoutData(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{"keys", "list"}, {"keys", "revoke", "MUSTNOTTHERE"}, {"keys", "rotate", "MUSTNOTTHERE"}, {"keys", "limit", "MUSTNOTTHERE", "--expires", "90d"},
		{"archive", "check"}, {"archive", "repair"}, {"secret-key", "remove"},
	} {
		out, err := runForTest(t, nil, append(args, "--data", dir)...)
		if err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("muster %s: %v; printed %s", strings.Join(args, " "), err, out)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range left {
		if x.Name() != identity.LockFile {
			t.Errorf("the commands have left %s", x.Name())
		}
	}
}

// A change that cannot be recorded for the audit log is reported as made, with an error for the record.
func TestUnrecordedChange(t *testing.T) {
	dir, key := t.TempDir(), filepath.Join(t.TempDir(), "key")
	mustRun(t, nil, "keys", "create", "--data", dir, "--role", "admin")
	mustRun(t, nil, "secret-key", "create", key)
	if err := os.Mkdir(filepath.Join(dir, "audit-later.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"secret-key", "change", "--data", dir, "--to", key}, "are now encrypted"},
		{[]string{"secret-key", "remove", "--data", dir, "--secret-key-file", key}, "no longer encrypted"},
	} {
		out, err := runForTest(t, nil, x.args...)
		if err == nil || !strings.Contains(err.Error(), "the change was made") || !strings.Contains(out, x.want) {
			t.Errorf("muster %s: %v; printed %s", strings.Join(x.args, " "), err, out)
		}
	}
}

// Temporary credentials are stored nowhere, so the service cannot say that it has given none: the command refuses names that cannot be right.
func TestRevokeCredentialsOfNobody(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, nil, "keys", "create", "--data", dir, "--role", "admin")
	for _, x := range []struct{ flag, value, want string }{
		{"--holder", "MUSTNOTTHERE", "no such access key"},
		{"--holder", onlyKey(t, dir).ID, "service"}, // which has to run
		{"--session", onlyKey(t, dir).ID, "ASIA"},
	} {
		if out, err := runForTest(t, nil, "keys", "revoke-credentials", "--data", dir, x.flag, x.value); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s %s: %v, want %q; printed %s", x.flag, x.value, err, x.want, out)
		}
	}
}

func TestAWSProfile(t *testing.T) {
	dir, home := filepath.Join(t.TempDir(), "data"), t.TempDir()
	config, credentials := filepath.Join(home, ".aws", "config"), filepath.Join(home, ".aws", "credentials")
	foreign := "[work]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = theirs\naws_session_token = old\n"
	put(t, credentials, foreign)
	env := []string{"HOME=" + home, "MUSTER_DATA=" + dir, "MUSTER_LISTEN=:9090"}

	out := mustRun(t, env, "aws-profile", "dev")
	for _, part := range []string{"http://127.0.0.1:9090", "2.13", "ignore endpoint_url", "--profile dev"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in what was printed: %s", part, out)
		}
	}
	key := onlyKey(t, dir)
	wantConfig := "[profile dev]\nregion = us-east-1\nendpoint_url = http://127.0.0.1:9090\n"
	wantCredentials := foreign + "\n[dev]\naws_access_key_id = " + key.ID + "\naws_secret_access_key = " + key.Secret + "\n"
	if got := get(t, config); got != wantConfig {
		t.Errorf("config: got\n%s\nwant\n%s", got, wantConfig)
	}
	if got := get(t, credentials); got != wantCredentials {
		t.Errorf("credentials: got\n%s\nwant\n%s", got, wantCredentials)
	}

	mustRun(t, env, "aws-profile", "dev", "--region", "eu-west-1", "--public-url", "wss://muster.example.com")
	if onlyKey(t, dir) != key || get(t, credentials) != wantCredentials {
		t.Error("the second time made another key")
	}
	if got, want := get(t, config), "[profile dev]\nregion = eu-west-1\nendpoint_url = https://muster.example.com\n"; got != want {
		t.Errorf("config: got\n%s\nwant\n%s", got, want)
	}

	if _, err := runForTest(t, env, "aws-profile", "work"); err == nil || !strings.Contains(err.Error(), "work") {
		t.Errorf("a foreign profile was replaced: %v", err)
	}
	if get(t, credentials) != wantCredentials {
		t.Error("the refused call changed the credentials")
	}
	mustRun(t, env, "aws-profile", "work", "--replace", "--role", "readonly")
	if got := get(t, credentials); strings.Contains(got, "theirs") || strings.Contains(got, "aws_session_token") {
		t.Errorf("left of the replaced profile: %s", got)
	}
	mustRun(t, env, "aws-profile", "default")
	if got := get(t, config); !strings.Contains(got, "\n[default]\n") {
		t.Errorf("the default profile has no prefix in the config: %s", got)
	}
	for _, name := range []string{"", "two words", "a]b"} {
		if _, err := runForTest(t, env, "aws-profile", name); err == nil {
			t.Errorf("profile name %q was taken", name)
		}
	}
}

func TestCA(t *testing.T) {
	dir := t.TempDir()
	if _, err := runForTest(t, nil, "ca", "--data", dir); err == nil || !strings.Contains(err.Error(), "--dev") {
		t.Errorf("without an authority: %v", err)
	}
	authority, err := devca.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	pem := string(authority.PEM())
	if out := mustRun(t, nil, "ca", "--data", dir, "--pem"); out != pem {
		t.Errorf("got %s, want %s", out, pem)
	}
	if out := mustRun(t, nil, "ca", "--data", dir); !strings.HasPrefix(out, pem) || !strings.Contains(out, "SSL_CERT_FILE") {
		t.Errorf("got %s", out)
	}
}

// The error of a command whose service does not run.
func TestNoService(t *testing.T) {
	address := porttest.Free(t)
	for _, args := range [][]string{{"explain", "player", "ann"}, {"drain", "pc"}} {
		_, err := runForTest(t, nil, append(args, "--listen", address, "--data", t.TempDir())...)
		if err == nil || !strings.Contains(err.Error(), "no service answers at http://"+address) || !strings.Contains(err.Error(), "--listen") {
			t.Errorf("muster %s: %v", strings.Join(args, " "), err)
		}
	}
}

func TestVersion(t *testing.T) {
	if out := mustRun(t, nil, "version"); !strings.HasPrefix(out, "muster ") || !strings.Contains(out, runtime.Version()) {
		t.Errorf("got %s", out)
	}
}

func mustRun(t *testing.T, env []string, args ...string) string {
	t.Helper()
	out, err := runForTest(t, env, args...)
	if err != nil {
		t.Fatalf("muster %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func runForTest(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), args, env, &out)
	return out.String(), err
}

func onlyKey(t *testing.T, dir string) identity.AccessKey {
	t.Helper()
	keys, err := keyring.OpenOffline(t.Context(), dir, nil, cell.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	list, err := keys.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("want one key, got %v, %v", list, err)
	}
	return keys.CellSecret().AccessKey(&list[0])
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestDemoWithoutItsGame(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "arena-server")
	out, err := runForTest(t, nil, "demo", "--exit", "--listen", "127.0.0.1:0", "--game-server", missing)
	if err == nil || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), "--game-server") || out != "" {
		t.Errorf("got %v, printed %q; want an error that names the file and the flag, before anything starts", err, out)
	}
}

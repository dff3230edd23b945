package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/people/providertest"
	"github.com/musterhq/muster/internal/waittest"
)

// The SDK's own chain of credentials renews them in the middle of a load, twice, and no call fails: for a person who has signed in, whose access token expires as well, for a machine
// with a token of its platform, and for a role that an access key assumes. Nothing shortens what the service gives: the clocks of the service and of the client are set to three seconds before
// the end of the hour, while no call is under way, and the end comes by itself. The SDK for Go uses credentials until the last moment, so calls that it has signed then arrive later.
func TestCredentialsAreRenewedUnderLoad(t *testing.T) {
	if !shiftable {
		t.Skip("the test knows the clock of amd64 only")
	}
	program, err := os.Executable()
	must(t, err)
	own := func(cmd *exec.Cmd) *shifted {
		return &shifted{cmd, func(ahead time.Duration) error { return setClock(cmd.Process, ahead) }}
	}
	for name, client := range map[string]func(*testing.T) *shifted{
		"Go":         func(*testing.T) *shifted { return own(exec.Command(program)) },
		"JavaScript": javaScriptLoad,
		"botocore": func(t *testing.T) *shifted {
			return own(exec.Command(newestClient(t, "python"), "renewing_load.py", loadProfiles))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			renewedUnderLoad(t, client(t))
		})
	}
}

// shifted is a program whose clock a test can set.
type shifted struct {
	*exec.Cmd
	set func(ahead time.Duration) error
}

// javaScriptLoad gets its time from faketime: Node.js asks for it by another function than the one that setClock knows.
func javaScriptLoad(t *testing.T) *shifted {
	library, err := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if err != nil || len(library) == 0 {
		t.Fatal("faketime is missing: run scripts/test-needs.sh")
	}
	file := filepath.Join(t.TempDir(), "time")
	set := func(ahead time.Duration) error {
		return os.WriteFile(file, fmt.Appendf(nil, "%+d\n", int(ahead/time.Second)), 0o600)
	}
	must(t, set(0))
	cmd := exec.Command("node", "renewing_load.js", loadProfiles)
	cmd.Dir, cmd.Env = "js", []string{"LD_PRELOAD=" + library[0], "FAKETIME_TIMESTAMP_FILE=" + file, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"}
	return &shifted{cmd, set}
}

const loadProfiles = "person,machine,role"

func renewedUnderLoad(t *testing.T, client *shifted) {
	x, issuer := newPerson(t), providertest.New(t)
	write := func(name string, content []byte) string {
		path := filepath.Join(x.home, name)
		must(t, os.WriteFile(path, content, 0o600))
		return path
	}
	machines, err := json.Marshal(map[string]any{"issuers": []any{map[string]any{"name": "k8s", "issuer": issuer.URL, "audiences": []string{"muster"},
		"rules": []any{map[string]any{"subjects": []string{"director"}, "roles": []string{"backend"}}}}}})
	must(t, err)
	x.service = newService(t, "--dev=false", "--people", x.peopleFile(map[string]any{"recheck": "24h"}), "--web-identities", write("issuers.json", machines))
	id, secret := x.key("admin")
	x.start()
	now := time.Now().Unix()
	token := write("token", []byte(issuer.Signed(map[string]any{"iss": issuer.URL, "aud": "muster", "sub": "director", "iat": now, "exp": now + 24*3600})))

	x.mustMuster("aws-profile", "person", "--sso", "--public-url", x.url())
	x.mustMuster("login", "person")
	path := filepath.Join(x.home, ".aws", "config")
	profiles, err := os.ReadFile(path)
	must(t, err)
	const role = "role_arn = arn:aws:iam::000000000000:role/backend\nrole_session_name = load\nregion = us-east-1\n"
	must(t, os.WriteFile(path, fmt.Appendf(profiles, "\n[profile machine]\n%sweb_identity_token_file = %s\n\n[profile role]\n%ssource_profile = key\nduration_seconds = 3600\n\n[profile key]\naws_access_key_id = %s\naws_secret_access_key = %s\n",
		role, token, role, id, secret), 0o600))

	client.Env = append(client.Env, x.environment(loadVariable+"="+loadProfiles, "AWS_ENDPOINT_URL="+x.url())...)
	for _, service := range []string{"SSO", "SSO_OIDC", "STS"} { // the SDK for Go makes their clients before it has read the other variable; see B210
		client.Env = append(client.Env, "AWS_ENDPOINT_URL_"+service+"="+x.url())
	}
	client.Stderr = x.logs
	commands, err := client.StdinPipe()
	must(t, err)
	out, err := client.StdoutPipe()
	must(t, err)
	must(t, client.Start())
	t.Cleanup(func() { _ = client.Process.Kill() }) // it has ended, unless the test failed
	answers := bufio.NewScanner(out)
	answers.Buffer(nil, 1<<20)
	ask := func(command string) (all []loadReport) {
		t.Helper()
		_, err := fmt.Fprintln(commands, command)
		must(t, err)
		if !answers.Scan() {
			t.Fatalf("the client has ended: %v", client.Wait())
		}
		must(t, json.Unmarshal(answers.Bytes(), &all))
		return all
	}
	var last []loadReport
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last report: %+v", last)
		}
	})
	until := func(what string, ok func(*loadReport) bool) {
		t.Helper()
		waittest.Until(t, what, func() bool {
			last = ask("report")
			for _, r := range last {
				if !ok(&r) {
					return false
				}
			}
			return true
		})
	}
	for round := range 2 {
		before := map[string]int{}
		until("calls", func(r *loadReport) bool { before[r.Profile] = r.Calls; return r.Calls > 0 && r.Keys == round+1 })
		soonest := time.Time{}
		for _, r := range ask("hold") {
			if soonest.IsZero() || r.Expires.Before(soonest) {
				soonest = r.Expires
			}
		}
		ahead := time.Until(soonest).Truncate(time.Second) - 3*time.Second
		if least := time.Duration(round+1) * 59 * time.Minute; ahead < least {
			t.Fatalf("credentials until %s, which is in %s; want an hour", soonest, ahead)
		}
		must(t, setClock(x.cmd.Process, ahead))
		must(t, client.set(ahead))
		ask("go")
		until("new credentials", func(r *loadReport) bool { return r.Keys == round+2 })
		until("calls with them", func(r *loadReport) bool { return r.Calls > before[r.Profile]+100 })
	}
	for _, r := range ask("first") {
		t.Logf("profile %s: %d calls, %d keys", r.Profile, r.Calls, r.Keys)
		if len(r.Problems) > 0 {
			t.Errorf("profile %s has had problems:\n%s", r.Profile, strings.Join(r.Problems, "\n"))
		}
		if !strings.Contains(r.First, "ExpiredToken") {
			t.Errorf("profile %s: its first credentials, an hour after their end: %q, want ExpiredToken", r.Profile, r.First)
		}
	}
	must(t, commands.Close())
	must(t, client.Wait())
}

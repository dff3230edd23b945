package e2e

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// newestClient returns the path of a program of the newest AWS clients that scripts/newest-clients.sh fetched. Without them it skips the test, and says why.
func newestClient(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.Abs("../bin/newest-clients")
	must(t, err)
	if reason, err := os.ReadFile(filepath.Join(dir, "missing")); err == nil {
		t.Skipf("the newest AWS clients could not be fetched: %s", reason)
	}
	if _, err := os.Stat(filepath.Join(dir, "versions")); errors.Is(err, fs.ErrNotExist) {
		t.Fatal("bin/newest-clients is missing: run scripts/newest-clients.sh")
	}
	return filepath.Join(dir, name)
}

// lastOpened returns the path of the page that a program opened last.
func (x *workplace) lastOpened() string {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.opened) == 0 {
		return ""
	}
	u, err := url.Parse(x.opened[len(x.opened)-1])
	must(x.t, err)
	return u.Path
}

// The newest AWS CLI as the guide has it: a profile, and no endpoint in any command. A person signs in with a browser, with the code of a device, and by aws login; the credentials work, and end
// with the sign-out.
func TestNewestAWSCLI(t *testing.T) {
	t.Parallel()
	cli := newestClient(t, "aws")
	x := newWorkplace(t)
	x.start()
	x.mustMuster("aws-profile", "studio", "--sso", "--public-url", x.url())
	x.append(".aws/config", "\n[profile dev]\nregion = us-east-1\nendpoint_url = "+x.url()+"\n")
	env := x.environment("AWS_PAGER=", "LC_ALL=C.UTF-8")
	fails := func(want string, args ...string) {
		t.Helper()
		if out, err := x.run(env, cli, args...); err == nil || !strings.Contains(out, want) {
			t.Errorf("aws %s: %v\n%s\nwant an error with %s", strings.Join(args, " "), err, out, want)
		}
	}
	does := func(want string, args ...string) string {
		t.Helper()
		out, err := x.run(env, cli, args...)
		if err != nil || !strings.Contains(out, want) {
			t.Fatalf("aws %s: %v\n%s\nwant %s", strings.Join(args, " "), err, out, want)
		}
		return out
	}
	opens := func(page string) {
		t.Helper()
		if got := x.lastOpened(); got != page {
			t.Errorf("the program opens %s, want %s", got, page)
		}
	}

	does("Successfully logged into", "sso", "login", "--profile", "studio")
	opens("/authorize")
	does(":assumed-role/backend/", "sts", "get-caller-identity", "--profile", "studio")
	does("FleetIds", "gamelift", "list-fleets", "--profile", "studio")
	fails("may not call CreateLocation", "gamelift", "create-location", "--location-name", "custom-x", "--profile", "studio")
	var c struct{ AccessKeyId, SecretAccessKey, SessionToken string }
	must(t, json.Unmarshal([]byte(does("SessionToken", "configure", "export-credentials", "--profile", "studio")), &c))
	does("", "sso", "logout", "--profile", "studio")
	refused(t, "the credentials after the logout", x.lists(aws.Credentials{AccessKeyID: c.AccessKeyId, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken}), "UnrecognizedClientException")
	fails("", "gamelift", "list-fleets", "--profile", "studio")

	does("Successfully logged into", "sso", "login", "--use-device-code", "--profile", "studio")
	opens("/device")
	does("FleetIds", "gamelift", "list-fleets", "--profile", "studio")

	does("", "login", "--profile", "dev")
	opens("/v1/authorize")
	does(":assumed-role/backend/", "sts", "get-caller-identity", "--profile", "dev")
	does("FleetIds", "gamelift", "list-fleets", "--profile", "dev")
	does("", "logout", "--profile", "dev")
	fails("", "gamelift", "list-fleets", "--profile", "dev")
}

// append appends to a file of the person.
func (x *workplace) append(name, text string) {
	x.t.Helper()
	f, err := os.OpenFile(filepath.Join(x.home, name), os.O_APPEND|os.O_WRONLY, 0)
	must(x.t, err)
	_, err = f.WriteString(text)
	must(x.t, errors.Join(err, f.Close()))
}

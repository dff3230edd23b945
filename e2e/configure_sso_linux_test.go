package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A person answers the questions of aws configure sso in a terminal, with the service in AWS_ENDPOINT_URL, and uses the profile that it writes.
func TestConfigureSSOByHand(t *testing.T) {
	t.Parallel()
	cli := newestClient(t, "aws")
	x := newWorkplace(t)
	x.start()
	terminal := func(env []string, args ...string) *screen {
		cmd := exec.CommandContext(t.Context(), cli, append([]string{"configure", "sso"}, args...)...)
		cmd.Env = append(env, "TERM=xterm", "PROMPT_TOOLKIT_NO_CPR=1", "AWS_MAX_ATTEMPTS=1")
		s := newScreen(t, 160, 60, cmd)
		for _, x := range [][2]string{{"SSO session name", "muster"}, {"SSO start URL", "https://d-0000000000.awsapps.com/start"}, {"SSO region", region}, {"SSO registration scopes", ""}} {
			s.shows(x[0])
			s.press(x[1] + "\r")
		}
		return s
	}
	// The command discards the profile that it is called with, and the endpoint with it, so it asks AWS. A proxy that does not exist keeps that here.
	must(t, os.MkdirAll(filepath.Join(x.home, ".aws"), 0o700))
	must(t, os.WriteFile(filepath.Join(x.home, ".aws", "config"), []byte("[profile named]\nendpoint_url = "+x.url()+"\n"), 0o600))
	terminal(x.environment("HTTPS_PROXY=http://127.0.0.1:1"), "--profile", "named").shows("Failed to connect to proxy URL")

	env := x.environment("AWS_ENDPOINT_URL=" + x.url())
	s := terminal(env)
	s.shows("000000000000", "backend", "readonly")
	s.press("\r") // the first of the list
	s.shows("client Region")
	s.press(region + "\r")
	s.shows("output format")
	s.press("json\r")
	s.shows("rofile name")
	s.press("by-hand\r")
	must(t, <-s.done)
	if got := x.lastOpened(); got != "/authorize" {
		t.Errorf("it opens %s", got)
	}
	for want, args := range map[string][]string{":assumed-role/backend/": {"sts", "get-caller-identity"}, "FleetIds": {"gamelift", "list-fleets"}} {
		if out, err := x.run(append(env, "AWS_PAGER="), cli, append(args, "--profile", "by-hand")...); err != nil || !strings.Contains(out, want) {
			t.Errorf("aws %v: %v\n%s", args, err, out)
		}
	}
}

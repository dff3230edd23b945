package e2e

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/doctor"
	"github.com/musterhq/muster/internal/porttest"
)

// examine runs muster doctor as the operator of a service would, and returns its findings by check.
func examine(t *testing.T, s *service, args ...string) (levels map[string]doctor.Finding, status int) {
	t.Helper()
	cmd := exec.Command(musterBinary, append([]string{"doctor", "--json", "--dev", "--data", s.data, "--listen", s.address}, args...)...)
	cmd.Env = cleanEnvironment()
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	var report struct {
		Worst    doctor.Level     `json:"worst"`
		Findings []doctor.Finding `json:"findings"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs.String())
	}
	levels = map[string]doctor.Finding{}
	for _, f := range report.Findings {
		levels[f.Check] = f
	}
	return levels, cmd.ProcessState.ExitCode()
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	s := startService(t)
	found, _ := examine(t, s)
	for check, want := range map[string]doctor.Level{
		"data directory": doctor.OK, "port of --listen": doctor.OK, "WebSockets": doctor.OK, "clock of the service": doctor.OK, "service": doctor.OK, "InitSDK": doctor.Skipped,
	} {
		if f := found[check]; f.Level != want && check != "data directory" { // the directory of a test has the mode that Go gives it
			t.Errorf("%s is %q (%s), want %q", check, f.Level, f.Found, want)
		}
	}

	status, _, metrics := sent(t, "GET", s.url()+"/metrics", "")
	if failed := `muster_failed_signins_total{door="game_servers",reason="wrong_token"} `; status != 200 || !strings.Contains(metrics, failed+"0") {
		t.Errorf("/metrics: status %d; want %q: a trial is no failed sign-in", status, failed+"0")
	}

	place := s.prepare()
	if found, _ = examine(t, s); found["InitSDK"].Level != doctor.OK {
		t.Errorf("InitSDK: %+v", found["InitSDK"])
	}
	events, err := s.client.DescribeFleetEvents(t.Context(), &gamelift.DescribeFleetEventsInput{FleetId: &place.fleet})
	must(t, err)
	for _, e := range events.Events {
		if strings.HasPrefix(string(e.EventCode), "SERVER_PROCESS_") {
			t.Errorf("the trial is told as an event of the fleet: %s %s", e.EventCode, *e.Message)
		}
	}
	if found, _ = examine(t, s, "--fleet", place.fleet, "--compute", "nowhere"); found["InitSDK"].Level != doctor.Skipped || !strings.Contains(found["InitSDK"].Found, "nowhere") {
		t.Errorf("with a compute that does not exist: %+v", found["InitSDK"])
	}

	found, status = examine(t, s, "--listen", porttest.Free(t))
	if do := found["public URL"].Do; status != 1 || !strings.Contains(do, "a service runs on "+s.data) {
		t.Errorf("with settings other than the service's it ends with status %d and says %q", status, do)
	}

	s.stop()
	found, status = examine(t, s)
	if status != 1 || found["public URL"].Level != doctor.Failure || found["service"].Level != doctor.Failure || found["port of --listen"].Level != doctor.OK {
		t.Errorf("without a service it ends with status %d and finds %+v", status, found)
	}
}

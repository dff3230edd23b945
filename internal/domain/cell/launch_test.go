package cell

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/exit"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// A trouble that keeps an entry of a runtime configuration from running on a host is one event, which counts its repeats. Another trouble, another host and a
// trouble that returns after an hour are separate events. The event's code depends on whether the fleet has been ACTIVE.
func TestLaunchTroubles(t *testing.T) {
	w := newWorld(t, DefaultConfig())
	w.must(&kernel.RaiseLevel{To: kernel.Level})
	w.hall()
	report := func(trouble hosting.LaunchTrouble, why string) *hosting.ReportLaunch {
		return &hosting.ReportLaunch{Fleet: testFleet, Compute: "host", Path: "/local/game/server", Trouble: trouble, Why: why}
	}
	log := func(code string) (lines []string) {
		v := w.cell.View()
		for _, e := range v.FleetEvents(testFleet, 0, 0, 0, 1000) {
			if e.Code == code {
				lines = append(lines, fmt.Sprint(e.Times(), " ", e.Message))
			}
		}
		return lines
	}
	const code = "FLEET_BINARY_DOWNLOAD_FAILED"
	w.must(report(hosting.BuildNotFetched, "no route to host"))
	w.must(report(hosting.BuildNotFetched, "connection refused"))
	if got := log(code); !slices.Equal(got, []string{"2 The build cannot be fetched on compute host in custom-home: connection refused"}) {
		t.Errorf("%q", got)
	}
	w.now = w.now.Add(time.Hour)
	w.must(report(hosting.BuildNotFetched, strings.Repeat("ä", 500)))
	if got := log(code); len(got) != 2 || !strings.HasSuffix(got[0], ": "+strings.Repeat("ä", 250)) {
		t.Errorf("%q", got)
	}
	w.must(report(hosting.CrashesTooOften, "exit code 1"))
	w.must(report(hosting.NotStarted, "no port is free"))
	w.must(report(hosting.PathNotFound, "no such file")) // the report of the end tells it
	if got := log("GENERIC_EVENT"); len(got) != 2 || !strings.Contains(got[0], "no port is free") || !strings.Contains(got[1], "crash too often") {
		t.Errorf("%q", got)
	}
	for range 5 {
		w.must(&hosting.ReportExit{Process: processKey("new"), Event: "SERVER_PROCESS_INVALID_PATH", Exit: exit.Report{Reason: "SERVER_PROCESS_INVALID_PATH", Output: "no such file"}})
		w.now = w.now.Add(30 * time.Minute)
	}
	if got := log("SERVER_PROCESS_INVALID_PATH"); !slices.Equal(got, []string{"5 Server process on compute host in custom-home cannot be started: no such file"}) {
		t.Errorf("%q", got)
	}

	// The computes of a fleet that fail together are bounded, too.
	for i := range 100 {
		name := fmt.Sprint("host-", i)
		w.must(&hosting.RegisterCompute{Compute: fleet.Compute{FleetID: testFleet, Name: name, Location: testLocation, IPAddress: "127.0.0.1"}})
		cmd := report(hosting.BuildNotFetched, "connection refused")
		cmd.Compute = name
		w.must(cmd)
	}
	if got := log(code); len(got) != 12 || !strings.HasPrefix(got[0], "91 ") {
		t.Errorf("%q", got)
	}
	cmd := report(hosting.BuildNotFetched, "x")
	cmd.Compute = "none"
	if err := w.do(cmd); err == nil {
		t.Error("the report of a compute that there is not succeeded")
	}

	r, _ := w.cell.hosting.Fleets.Fleet(testFleet)
	w.cell.hosting.Fleets.Fleets.Mut(r).Status = fleet.Downloading // as a fleet of a build is at first
	w.must(report(hosting.CrashesTooOften, "exit code 1"))
	w.must(report(hosting.PathNotFound, "no such file"))
	for code, want := range map[string]string{"FLEET_VALIDATION_EXECUTABLE_RUNTIME_FAILURE": "exit code 1", "FLEET_VALIDATION_LAUNCH_PATH_NOT_FOUND": "no such file"} {
		if got := log(code); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s: %q", code, got)
		}
	}
}

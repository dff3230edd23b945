package gamelift

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

//go:generate go test -run TestCompatibilityPage -update .

var update = flag.Bool("update", false, "write docs/compatibility.md instead of checking it")

const compatibilityFile = "../../docs/compatibility.md"

func TestCompatibilityPage(t *testing.T) {
	want := compatibilityPage()
	if *update {
		if err := os.WriteFile(compatibilityFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(compatibilityFile); err != nil || string(got) != want {
		t.Errorf("docs/compatibility.md is not what the table of operations says (%v); run go generate ./internal/gamelift", err)
	}
	for name, note := range differences {
		if !slices.ContainsFunc(operations, func(op operation) bool { return op.name == name && op.standing == works }) {
			t.Errorf("a difference is noted for %s, which does not work", name)
		}
		if note == "" {
			t.Errorf("no difference is noted for %s", name)
		}
	}
}

// differences are those that clients may notice in operations that work. Everything else is as the API's documentation says;
// where that is silent, see docs/behaviours.md.
var differences = map[string]string{
	"CreateBuild":                    "with a StorageLocation READY at once, and the service does not read it",
	"GetGameSessionLogUrl":           "for game sessions on hosts with `muster agent`; otherwise NotFoundException. The log is kept as long as `--session-logs-max` has room, 14 days at most",
	"GetPlayerConnectionDetails":     "the game server's own address: there is no player gateway",
	"ClaimGameServer":                "every instance is ACTIVE; a group that is being deleted has no capacity",
	"CreateGameServerGroup":          "ACTIVE at once; role, launch template and instance types are kept, and no instance is started",
	"DeleteGameServerGroup":          "the group is deleted with its last game server, with FORCE_DELETE at once; RETAIN is a safe delete",
	"DescribeGameServerInstances":    "the instances that game servers registered from, all ACTIVE",
	"ResumeGameServerGroup":          "stored without effect: Muster replaces no instances",
	"SuspendGameServerGroup":         "stored without effect: Muster replaces no instances",
	"UpdateGameServer":               "without a health report for three minutes a game server is deregistered; time while the service is down does not count",
	"CreateFleet":                    "an ANYWHERE fleet is ACTIVE at once; a fleet of a build waits for hosts whose agents join, and is ACTIVE once a server process runs on one; members for firewall, VPC and player gateway are refused, never ignored",
	"DescribeScalingPolicies":        "a policy is ACTIVE once it is stored; it changes the desired instances, which are taken from the hosts that have joined: Muster starts no machine",
	"PutScalingPolicy":               "fleets of a build only; as DescribeScalingPolicies",
	"StartFleetActions":              "fleets of a build only; takes effect at once",
	"StopFleetActions":               "fleets of a build only; takes effect at once",
	"UpdateFleetCapacity":            "fleets of a build only; the desired instances are taken from the hosts that have joined: Muster starts no machine",
	"UpdateRuntimeConfiguration":     "also for ANYWHERE fleets: agents on the hosts start the ServerProcesses, and the limits on activations apply to every fleet; see [B083](behaviours.md)",
	"CreateFleetLocations":           "also for ANYWHERE fleets",
	"DeleteFleetLocations":           "also for ANYWHERE fleets; the game sessions in the location end",
	"DescribeFleetCapacity":          "ACTIVE counts registered computes; an ANYWHERE fleet has no desired capacity, because Muster does not start its hosts",
	"DescribeFleetLocationCapacity":  "as DescribeFleetCapacity",
	"DescribeFleetUtilization":       "an ANYWHERE fleet has no home location: the figures are those of all its locations",
	"DeleteMatchmakingConfiguration": "refused while a ticket is active in it",
	"StartMatchBackfill":             "a later request for the same game session takes the place of the earlier one; see [B114 and B115](behaviours.md)",
	"ListFleets":                     "the filter ScriptId matches no fleet",
	"ListLocations":                  "custom locations only",
	"RegisterCompute":                "the same name again in the same location refreshes the address; both endpoints are always given",
	"TerminateGameSession":           "FORCE_TERMINATE is refused without an agent on the host",
}

// compatibilityPage is docs/compatibility.md: every operation of the API with its standing, from the table that requests
// are dispatched by.
func compatibilityPage() string {
	var page strings.Builder
	counts := map[string]int{}
	var rows []string
	for _, op := range slices.SortedFunc(slices.Values(operations), func(a, b operation) int { return strings.Compare(a.name, b.name) }) {
		status, note := "works", ""
		switch difference := differences[op.name]; {
		case op.standing == notOnOwnHardware:
			status, note = "not on own hardware", op.note
		case difference != "":
			status, note = "works, with a difference", difference
		}
		counts[status]++
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", op.name, status, note))
	}
	page.WriteString(compatibilityHead)
	for _, status := range []string{"works", "works, with a difference", "not on own hardware"} {
		fmt.Fprintf(&page, "- %d: %s\n", counts[status], status)
	}
	page.WriteString("\n| operation | status | what to know |\n| --- | --- | --- |\n" + strings.Join(rows, "") + compatibilityTail)
	return page.String()
}

const compatibilityHead = `# Compatibility

Every operation of the GameLift API (version 2015-10-01), and what it does here. ` + "`go generate ./internal/gamelift`" + ` makes
this page from the table that dispatches requests. A test fails when it is out of date.

All operations check their input by the API's own constraints first, in AWS JSON and in CBOR. *Not on own hardware* means an
operation on the cloud's data centres: it answers with a typed error that it declares, or with an empty list, so that tools that call
every operation keep working.

`

const compatibilityTail = `
## Operations that the cloud lacks

` + "`ReleasePlayerSession`" + ` takes a PlayerSessionId and gives a reserved seat back at once, where the cloud lets it time out. Its
input and output are those of DescribePlayerSessions, so that any SDK can call it by another name in the path or in
X-Amz-Target; the role ` + "`client`" + ` suffices. The library [gameclient](guide/session-interface.md) does so.
`

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

## Clients

` + "`make test`" + ` runs these against the service:

| client | version | protocol |
| --- | --- | --- |
| AWS CLI | 2.9 of Debian 12, and the newest of Debian's unstable branch | JSON |
| botocore, on which boto3 is built | the newest of Debian's unstable branch | JSON |
| AWS SDK for Go | v2, service/gamelift 1.55 | CBOR |
| AWS SDK for JavaScript | v3, 3.1133 | JSON |
| AWS SDK for Ruby | v3, its core 3.168 of Debian 12 with a client made from the API's model | JSON |
| server SDK for Go | 5.4.0, 5.5.0 | WebSocket |

These were tried by hand on 2026-11-27, and work: AWS CLI 1.45 and botocore 1.43.11; the AWS SDKs for Go v1 (1.55.8) and for JavaScript v2 (2.1693), whose models end before the newest operations and members; and Terraform's AWS
provider 1.60, see below. [Game servers](guide/game-servers.md) has the server SDKs that were measured. The AWS SDKs for Java, .NET, C++, PHP, Rust, Kotlin and Swift have not been tried.

All of them may have an endpoint with a path, with or without a slash at its end, and with an IPv6 address (not the SDK for Ruby, which does not connect to one). The service speaks HTTP/1.1 and no HTTP/2. Settings for dual stack and FIPS
belong to the cloud's own endpoints: the SDK for JavaScript refuses them together with another endpoint, and botocore ignores them.

## Terraform

[Moving from GameLift](guide/from-gamelift.md#terraform) has the provider block and what to change in a configuration. On 2026-11-27 these ran against a service with a host:

- the GameLift resources of release 1.60 of the provider, in a program that set GameLift's endpoint, which this release cannot do by itself;
- those of release 6, rebuilt from their source with the same calls, waits and SDK, under OpenTofu 1.10.10. Release 6 itself was not run.

Everything was created, changed, imported, replaced and destroyed, also a fleet with players. A plan after each of these found no difference, except for the storage location of an imported build and the
runtime configuration of an imported fleet, which the provider does not read.

- ` + "`aws_gamelift_alias`, `aws_gamelift_game_session_queue` and `aws_gamelift_build`" + ` work. ` + "`aws_gamelift_fleet`" + ` works for fleets of builds, without ` + "`ec2_inbound_permission`" + `.
- ` + "`aws_gamelift_game_server_group`" + ` does not work, because the provider asks EC2 Auto Scaling about it. ` + "`aws_gamelift_script` and `aws_gamelift_container_fleet`" + ` are refused.
- The provider has no resources for locations, Anywhere fleets, rule sets and matchmaking configurations. [Moving from GameLift](guide/from-gamelift.md) has the commands.
`

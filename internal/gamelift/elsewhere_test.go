package gamelift

import (
	"strings"
	"testing"
	"time"
)

const someFleet = `"FleetId":"fleet-2b1e0c7a-6a0e-4c0e-8a57-0d9a4d1b7f10"`

// elsewhereCalls is a valid request for each operation that has no meaning on own hosts, and its answer: a code, or the
// body. FLEET stands for a fleet that exists.
var elsewhereCalls = []struct{ operation, body, want string }{
	{"CreateScript", `{}`, codeInvalidRequest},
	{"UpdateScript", `{"ScriptId":"script-1"}`, codeInvalidRequest},
	{"DescribeScript", `{"ScriptId":"script-1"}`, "NotFoundException"},
	{"DeleteScript", `{"ScriptId":"script-1"}`, "NotFoundException"},
	{"ListScripts", `{}`, `{"Scripts":[]}`},
	{"CreateContainerFleet", `{"FleetRoleArn":"arn:aws:iam::123456789012:role/r"}`, "UnsupportedRegionException"},
	{"CreateContainerGroupDefinition", `{"Name":"g","TotalMemoryLimitMebibytes":1024,"TotalVcpuLimit":1,"OperatingSystem":"AMAZON_LINUX_2023"}`, "UnsupportedRegionException"},
	{"DescribeContainerFleet", `{` + someFleet + `}`, "NotFoundException"},
	{"UpdateContainerFleet", `{` + someFleet + `}`, "NotFoundException"},
	{"DeleteContainerFleet", `{` + someFleet + `}`, "NotFoundException"},
	{"DescribeContainerGroupDefinition", `{"Name":"g"}`, "NotFoundException"},
	{"UpdateContainerGroupDefinition", `{"Name":"g"}`, "NotFoundException"},
	{"DeleteContainerGroupDefinition", `{"Name":"g"}`, "NotFoundException"},
	{"DescribeFleetDeployment", `{` + someFleet + `}`, "NotFoundException"},
	{"DescribeContainerGroupPortMappings", `{` + someFleet + `,"ContainerGroupType":"GAME_SERVER"}`, "NotFoundException"},
	{"ListContainerGroupDefinitionVersions", `{"Name":"g"}`, "NotFoundException"},
	{"ListContainerFleets", `{}`, `{"ContainerFleets":[]}`},
	{"ListContainerGroupDefinitions", `{}`, `{"ContainerGroupDefinitions":[]}`},
	{"ListFleetDeployments", `{}`, `{"FleetDeployments":[]}`},
	{"CreateVpcPeeringAuthorization", `{"GameLiftAwsAccountId":"123456789012","PeerVpcId":"vpc-1"}`, codeInvalidRequest},
	{"CreateVpcPeeringConnection", `{` + someFleet + `,"PeerVpcAwsAccountId":"123456789012","PeerVpcId":"vpc-1"}`, codeInvalidRequest},
	{"DeleteVpcPeeringAuthorization", `{"GameLiftAwsAccountId":"123456789012","PeerVpcId":"vpc-1"}`, "NotFoundException"},
	{"DeleteVpcPeeringConnection", `{` + someFleet + `,"VpcPeeringConnectionId":"pcx-1"}`, "NotFoundException"},
	{"DescribeVpcPeeringAuthorizations", `{}`, `{"VpcPeeringAuthorizations":[]}`},
	{"DescribeVpcPeeringConnections", `{}`, `{"VpcPeeringConnections":[]}`},
	{"GetComputeAccess", `{` + someFleet + `,"ComputeName":"c"}`, codeInvalidRequest},
	{"GetInstanceAccess", `{` + someFleet + `,"InstanceId":"i-1"}`, codeInvalidRequest},
	{"DescribeEC2InstanceLimits", `{}`, `{"EC2InstanceLimits":[]}`},
	{"DescribeFleetPortSettings", `{` + someFleet + `}`, "NotFoundException"},
	{"DescribeFleetPortSettings", `{"FleetId":"FLEET"}`, `{"FleetArn":"arn:aws:gamelift:eu-central-1:123456789012:fleet/FLEET","FleetId":"FLEET","InboundPermissions":[]}`},
	{"RequestUploadCredentials", `{"BuildId":"build-2b1e0c7a-6a0e-4c0e-8a57-0d9a4d1b7f10"}`, "NotFoundException"},
	{"UpdateFleetPortSettings", `{` + someFleet + `}`, "NotFoundException"},
	{"UpdateFleetPortSettings", `{"FleetId":"FLEET"}`, codeInvalidRequest},
	{"DescribeInstances", `{` + someFleet + `}`, "NotFoundException"},
	{"DescribeInstances", `{"FleetId":"FLEET"}`, codeInvalidRequest},
}

func TestOperationsWithoutMeaningOnOwnHosts(t *testing.T) {
	h := newHall(t, time.Hour)
	fleetID := h.anywhere()
	called := map[string]bool{}
	for _, each := range elsewhereCalls {
		called[each.operation] = true
		got := h.json.call(t, each.operation, withFleet(each.body, fleetID))
		if each.want[0] == '{' {
			if want := withFleet(each.want, fleetID); got.raw != want {
				t.Errorf("%s: got %d %s, want %s", each.operation, got.status, got.raw, want)
			}
		} else if got.body["__type"] != each.want {
			t.Errorf("%s %s: got %s, want %s", each.operation, each.body, got.raw, each.want)
		}
	}
	for _, op := range operations {
		if op.standing != notOnOwnHardware {
			continue
		}
		if !called[op.name] {
			t.Errorf("%s is not called by this test", op.name)
		}
		if op.note == "" {
			t.Errorf("%s does not say why", op.name)
		}
	}
}

func withFleet(text, fleetID string) string { return strings.ReplaceAll(text, "FLEET", fleetID) }

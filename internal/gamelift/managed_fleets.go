package gamelift

import (
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/fleet"
)

// A fleet of a build is one whose hosts run an agent, which downloads the build and starts its processes.

// member is an optional member of a request.
type member struct {
	name  string
	given bool
}

func givenOf(members []member) (string, bool) {
	for _, m := range members {
		if m.given {
			return m.name, true
		}
	}
	return "", false
}

// checkCompute refuses members that only the cloud supports or that belong to the other type of fleet. Accepting them
// without effect would look like success.
func checkCompute(in *gamelift.CreateFleetInput) error {
	if name, given := givenOf([]member{
		{"EC2InboundPermissions", len(in.EC2InboundPermissions) > 0},
		{"PeerVpcAwsAccountId", in.PeerVpcAwsAccountId != nil},
		{"PeerVpcId", in.PeerVpcId != nil},
		{"PlayerGatewayMode", in.PlayerGatewayMode != "" && in.PlayerGatewayMode != types.PlayerGatewayModeDisabled},
		{"PlayerGatewayConfiguration", in.PlayerGatewayConfiguration != nil},
	}); given {
		return invalid("%s: Muster has no firewall, no player gateway and no VPC of its own; open the ports on the fleet's hosts", name)
	}
	if in.ComputeType == types.ComputeTypeAnywhere {
		if name, given := givenOf([]member{
			{"BuildId", in.BuildId != nil},
			{"ScriptId", in.ScriptId != nil},
			{"EC2InstanceType", in.EC2InstanceType != ""},
			{"FleetType", in.FleetType == types.FleetTypeSpot},
			{"InstanceRoleArn", in.InstanceRoleArn != nil},
			{"InstanceRoleCredentialsProvider", in.InstanceRoleCredentialsProvider != ""},
			{"LogPaths", len(in.LogPaths) > 0},
			{"ServerLaunchPath", in.ServerLaunchPath != nil},
			{"ServerLaunchParameters", in.ServerLaunchParameters != nil},
		}); given {
			return invalid("%s: an ANYWHERE fleet has none; its hosts are registered with RegisterCompute", name)
		}
		return nil
	}
	switch {
	case in.ScriptId != nil && in.BuildId != nil:
		return invalid("BuildId, ScriptId: want exactly one of them")
	case in.ScriptId != nil:
		return domain.Refuse(domain.NotFound, "script %s not found: Realtime scripts are not supported", excerpt.Short(lastPart(*in.ScriptId)))
	case in.BuildId == nil:
		return invalid("BuildId: required; a fleet of hosts that you start yourself has the ComputeType ANYWHERE")
	case in.ServerLaunchPath == nil && in.ServerLaunchParameters != nil:
		return invalid("ServerLaunchParameters: only with ServerLaunchPath")
	case in.ServerLaunchPath != nil && in.RuntimeConfiguration != nil:
		return invalid("ServerLaunchPath: not together with RuntimeConfiguration, which replaces it")
	}
	return nil
}

// managedFromWire reads the fields that only a fleet of a build has.
func managedFromWire(in *gamelift.CreateFleetInput) *fleet.Managed {
	if in.ComputeType == types.ComputeTypeAnywhere {
		return nil
	}
	return &fleet.Managed{
		Build: lastPart(*in.BuildId), InstanceType: string(in.EC2InstanceType), Spot: in.FleetType == types.FleetTypeSpot, LogPaths: in.LogPaths,
		Role: value(in.InstanceRoleArn), RoleCredentials: string(in.InstanceRoleCredentialsProvider),
	}
}

// runtimeOfNewFleet reads the runtime configuration, including its older form.
func runtimeOfNewFleet(in *gamelift.CreateFleetInput) *fleet.Runtime {
	if in.ServerLaunchPath != nil {
		return &fleet.Runtime{Launches: []fleet.Launch{{Path: *in.ServerLaunchPath, Parameters: value(in.ServerLaunchParameters), Copies: 1}}}
	}
	return runtimeFromWire(in.RuntimeConfiguration)
}

// addManaged adds the fields of a fleet of a build to the attributes of a fleet.
func addManaged(a *types.FleetAttributes, f *fleet.Fleet) {
	m := f.Managed
	a.ComputeType, a.FleetType = types.ComputeTypeEc2, types.FleetTypeOnDemand
	if m.Spot {
		a.FleetType = types.FleetTypeSpot
	}
	a.BuildId, a.BuildArn = &m.Build, makeARN(m.BuildRegion, m.BuildAccount, "build/", m.Build)
	a.OperatingSystem, a.InstanceType = types.OperatingSystem(m.OperatingSystem), types.EC2InstanceType(m.InstanceType)
	a.LogPaths, a.InstanceRoleArn = m.LogPaths, text(m.Role)
	a.InstanceRoleCredentialsProvider = types.InstanceRoleCredentialsProvider(m.RoleCredentials)
	a.StoppedActions = stoppedActions(f, f.Home())
}

// stoppedActions returns the suspended actions at a location.
func stoppedActions(f *fleet.Fleet, location string) []types.FleetAction {
	for _, l := range f.Locations {
		if l.Name == location && l.ScalingStopped {
			return []types.FleetAction{types.FleetActionAutoScaling}
		}
	}
	return nil
}

package gamelift

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/identity"
)

// Some operations are meaningful only in the cloud's own data centres. Their input is validated like any other. They
// then return what is true here, an empty list or a refusal, so that tools that list everything keep working.

// The reasons, in the words of docs/compatibility.md.
const (
	noScripts    = "Realtime scripts run on the cloud's own relay servers"
	noContainers = "managed containers run on the cloud's instances; put your containers on the hosts of an ANYWHERE fleet"
	noPeering    = "VPC peering connects networks of cloud accounts"
	noInstances  = "there are no EC2 instances; hosts are the operator's own"
	noAccess     = "sessions on a host go through the cloud's own systems manager; use SSH"
	noFirewall   = "the ports of a host are opened on that host"
)

var (
	errNoScripts = domain.Refuse(domain.Invalid, "Realtime scripts are not supported")
	errNoScript  = domain.Refuse(domain.NotFound, "script not found: Realtime scripts are not supported")
	errNoPeering = domain.Refuse(domain.Invalid, "VPC peering is not supported")
	errNoPeer    = domain.Refuse(domain.NotFound, "peering not found: VPC peering is not supported")
	errNoAccess  = domain.Refuse(domain.Invalid, "remote access is not supported by this installation: the hosts are your own; use SSH, with the address that ListCompute shows")

	errNoContainer = domain.Refuse(domain.NotFound, "not found: managed containers are not supported; use an ANYWHERE fleet")
)

// elsewhere returns an operation that is meaningless on one's own hosts.
func elsewhere[I, O any](name string, a identity.Roles, because string, call func(*Service, context.Context, *I) (*O, error)) operation {
	op := serve(name, a, call)
	op.standing, op.note = notOnOwnHardware, because
	return op
}

// nothing returns an empty list.
func nothing[I, O any](*Service, context.Context, *I) (*O, error) { return new(O), nil }

// always returns a function that returns one error.
func always[I, O any](err error) func(*Service, context.Context, *I) (*O, error) {
	return func(*Service, context.Context, *I) (*O, error) { return nil, err }
}

// noManagedContainers refuses operations that would create managed containers.
func noManagedContainers[I, O any](*Service, context.Context, *I) (*O, error) {
	m := "managed containers are not supported; use an ANYWHERE fleet"
	return nil, &types.UnsupportedRegionException{Message: &m}
}

// DescribeFleetPortSettings returns no open ports: the service configures no firewall.
func (s *Service) DescribeFleetPortSettings(ctx context.Context, in *gamelift.DescribeFleetPortSettingsInput) (*gamelift.DescribeFleetPortSettingsOutput, error) {
	f, err := s.fleetByID(ctx, lastPart(*in.FleetId))
	if err != nil {
		return nil, err
	}
	if in.Location != nil {
		if _, ok := f.HasLocation(*in.Location); !ok {
			return nil, locationNotFound(&f, *in.Location)
		}
	}
	return &gamelift.DescribeFleetPortSettingsOutput{FleetId: &f.ID, FleetArn: fleetARN(&f), Location: in.Location}, nil
}

// UpdateFleetPortSettings refuses, so that an unchanged firewall does not look open.
func (s *Service) UpdateFleetPortSettings(ctx context.Context, in *gamelift.UpdateFleetPortSettingsInput) (*gamelift.UpdateFleetPortSettingsOutput, error) {
	if _, err := s.fleetByID(ctx, lastPart(*in.FleetId)); err != nil {
		return nil, err
	}
	return nil, invalid("Muster configures no firewall: open the ports on the fleet's hosts")
}

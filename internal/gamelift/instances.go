package gamelift

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
)

// instance is a host of a fleet of a build, shown as an instance of the cloud. Its id is the name of its compute.
type instance struct {
	fleet.Compute
	status types.InstanceStatus
}

// DescribeInstances lists the hosts of a fleet of a build. It refuses ANYWHERE fleets, as the cloud does.
func (s *Service) DescribeInstances(ctx context.Context, in *gamelift.DescribeInstancesInput) (*gamelift.DescribeInstancesOutput, error) {
	after, err := pagePlace("DescribeInstances", in, in.NextToken)
	if err != nil {
		return nil, err
	}
	f, err := s.fleetByID(ctx, lastPart(*in.FleetId))
	if err != nil {
		return nil, err
	}
	if f.Managed == nil {
		return nil, invalid("fleet %s has no EC2 instances; ListCompute lists its hosts", f.ID)
	}
	if in.Location != nil {
		if _, ok := f.HasLocation(*in.Location); !ok {
			return nil, locationNotFound(&f, *in.Location)
		}
	}
	size := pageSize(in.Limit, pageMax)
	page, err := read(ctx, s, func(v *cell.View) ([]instance, error) { return instances(v, in, &f, after, size+1) })
	page, next := cutPage("DescribeInstances", in, page, size, func(x *instance) string { return place{int64(x.Created), x.Name}.String() })
	return &gamelift.DescribeInstancesOutput{Instances: wires(page, func(x *instance) types.Instance { return instanceToWire(&f, x) }), NextToken: next}, err
}

func instances(v *cell.View, in *gamelift.DescribeInstancesInput, f *fleet.Fleet, after place, limit int) (all []instance, err error) {
	releasing := map[string]bool{}
	for _, a := range v.Assignments(f.ID, value(in.Location)) {
		releasing[a.Compute] = a.Releasing
	}
	computes := []fleet.Compute{}
	if in.InstanceId == nil {
		computes = v.Computes(f.ID, value(in.Location), domain.Time(after.created), after.id, limit)
	} else if x, ok := v.Compute(f.ID, *in.InstanceId); ok && (in.Location == nil || x.Location == *in.Location) {
		computes = append(computes, x)
	} else {
		return nil, domain.Refuse(domain.NotFound, "instance %s not found in fleet %s", *in.InstanceId, f.ID)
	}
	for _, x := range computes {
		status := types.InstanceStatusPending
		switch {
		case releasing[x.Name]:
			status = types.InstanceStatusTerminating
		case x.Ready > 0:
			status = types.InstanceStatusActive
		}
		all = append(all, instance{x, status})
	}
	return all, nil
}

func instanceToWire(f *fleet.Fleet, x *instance) types.Instance {
	created := x.Created.Std()
	return types.Instance{
		FleetId: &f.ID, FleetArn: fleetARN(f), InstanceId: &x.Name, IpAddress: text(x.IPAddress), DnsName: text(x.DNSName),
		OperatingSystem: types.OperatingSystem(f.Managed.OperatingSystem), Type: types.EC2InstanceType(f.Managed.InstanceType),
		Status: x.status, CreationTime: &created, Location: &x.Location,
	}
}

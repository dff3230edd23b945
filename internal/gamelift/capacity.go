package gamelift

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
)

// Capacity and utilization of an ANYWHERE fleet: it has no home location, so the figures without a location are those
// of all its locations together.

// DescribeFleetCapacity counts the hosts of the fleets that are named, or of all.
func (s *Service) DescribeFleetCapacity(ctx context.Context, in *gamelift.DescribeFleetCapacityInput) (*gamelift.DescribeFleetCapacityOutput, error) {
	fleets, next, err := s.listFleets(ctx, "DescribeFleetCapacity", in, in.FleetIds, in.Limit, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &gamelift.DescribeFleetCapacityOutput{FleetCapacity: []types.FleetCapacity{}, NextToken: next}
	for i := range fleets {
		u, err := s.utilization(ctx, fleets[i].ID, "")
		if err != nil {
			return nil, err
		}
		out.FleetCapacity = append(out.FleetCapacity, capacityToWire(&fleets[i], "", u))
	}
	return out, nil
}

// DescribeFleetLocationCapacity counts the hosts of a fleet in one location.
func (s *Service) DescribeFleetLocationCapacity(ctx context.Context, in *gamelift.DescribeFleetLocationCapacityInput) (*gamelift.DescribeFleetLocationCapacityOutput, error) {
	f, u, err := s.locationUtilization(ctx, *in.FleetId, *in.Location)
	if err != nil {
		return nil, err
	}
	capacity := capacityToWire(&f, *in.Location, u)
	return &gamelift.DescribeFleetLocationCapacityOutput{FleetCapacity: &capacity}, nil
}

// DescribeFleetUtilization shows what the fleets that are named do, or all.
func (s *Service) DescribeFleetUtilization(ctx context.Context, in *gamelift.DescribeFleetUtilizationInput) (*gamelift.DescribeFleetUtilizationOutput, error) {
	fleets, next, err := s.listFleets(ctx, "DescribeFleetUtilization", in, in.FleetIds, in.Limit, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &gamelift.DescribeFleetUtilizationOutput{FleetUtilization: []types.FleetUtilization{}, NextToken: next}
	for i := range fleets {
		u, err := s.utilization(ctx, fleets[i].ID, "")
		if err != nil {
			return nil, err
		}
		out.FleetUtilization = append(out.FleetUtilization, utilizationToWire(&fleets[i], "", u))
	}
	return out, nil
}

// DescribeFleetLocationUtilization shows what a fleet does in one location.
func (s *Service) DescribeFleetLocationUtilization(ctx context.Context, in *gamelift.DescribeFleetLocationUtilizationInput) (*gamelift.DescribeFleetLocationUtilizationOutput, error) {
	f, u, err := s.locationUtilization(ctx, *in.FleetId, *in.Location)
	if err != nil {
		return nil, err
	}
	utilization := utilizationToWire(&f, *in.Location, u)
	return &gamelift.DescribeFleetLocationUtilizationOutput{FleetUtilization: &utilization}, nil
}

// utilization looks at one fleet at a time: counting takes as long as the fleet is large, and writers wait.
func (s *Service) utilization(ctx context.Context, fleetID, location string) (u cell.Utilization, err error) {
	err = s.engine.Read(ctx, func(v *cell.View) error {
		u = v.Utilization(fleetID, location)
		return nil
	})
	return u, err
}

func (s *Service) locationUtilization(ctx context.Context, idOrARN, location string) (f fleet.Fleet, u cell.Utilization, err error) {
	if f, err = s.fleetByID(ctx, lastPart(idOrARN)); err != nil {
		return f, u, err
	}
	if _, ok := f.HasLocation(location); !ok {
		return f, u, locationNotFound(&f, location)
	}
	u, err = s.utilization(ctx, f.ID, location)
	return f, u, err
}

// capacityToWire shows registered hosts as active instances. Nobody starts or stops hosts here, so nothing is desired.
func capacityToWire(f *fleet.Fleet, location string, u cell.Utilization) types.FleetCapacity {
	idle, none := u.Computes-u.ComputesWithGame, int32(0)
	return types.FleetCapacity{
		FleetId: &f.ID, FleetArn: fleetARN(f), Location: text(location),
		InstanceCounts: &types.EC2InstanceCounts{
			ACTIVE: &u.Computes, IDLE: &idle, DESIRED: &none, MINIMUM: &none, MAXIMUM: &none, PENDING: &none, TERMINATING: &none,
		},
	}
}

func utilizationToWire(f *fleet.Fleet, location string, u cell.Utilization) types.FleetUtilization {
	active := u.GameSessions - u.Activating
	return types.FleetUtilization{
		FleetId: &f.ID, FleetArn: fleetARN(f), Location: text(location),
		ActiveServerProcessCount: &u.Processes, ActiveGameSessionCount: &active,
		CurrentPlayerSessionCount: &u.SeatsHeld, MaximumPlayerSessionCount: &u.SeatsMax,
	}
}

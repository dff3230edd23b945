package gamelift

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// Capacity and utilization without a location are those of a fleet's home location. An ANYWHERE fleet has none: then they
// are those of all its locations together.

// DescribeFleetCapacity counts the hosts of the named fleets, or of all.
func (s *Service) DescribeFleetCapacity(ctx context.Context, in *gamelift.DescribeFleetCapacityInput) (*gamelift.DescribeFleetCapacityOutput, error) {
	fleets, next, err := s.listFleets(ctx, "DescribeFleetCapacity", in, in.FleetIds, in.Limit, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &gamelift.DescribeFleetCapacityOutput{FleetCapacity: []types.FleetCapacity{}, NextToken: next}
	for i := range fleets {
		home := fleets[i].Home()
		u, err := s.utilization(ctx, fleets[i].ID, home)
		if err != nil {
			return nil, err
		}
		out.FleetCapacity = append(out.FleetCapacity, capacityToWire(&fleets[i], home, u))
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

// DescribeFleetUtilization shows the utilization of the named fleets, or of all.
func (s *Service) DescribeFleetUtilization(ctx context.Context, in *gamelift.DescribeFleetUtilizationInput) (*gamelift.DescribeFleetUtilizationOutput, error) {
	fleets, next, err := s.listFleets(ctx, "DescribeFleetUtilization", in, in.FleetIds, in.Limit, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &gamelift.DescribeFleetUtilizationOutput{FleetUtilization: []types.FleetUtilization{}, NextToken: next}
	for i := range fleets {
		home := fleets[i].Home()
		u, err := s.utilization(ctx, fleets[i].ID, home)
		if err != nil {
			return nil, err
		}
		out.FleetUtilization = append(out.FleetUtilization, utilizationToWire(&fleets[i], home, u))
	}
	return out, nil
}

// DescribeFleetLocationUtilization shows the utilization of a fleet in one location.
func (s *Service) DescribeFleetLocationUtilization(ctx context.Context, in *gamelift.DescribeFleetLocationUtilizationInput) (*gamelift.DescribeFleetLocationUtilizationOutput, error) {
	f, u, err := s.locationUtilization(ctx, *in.FleetId, *in.Location)
	if err != nil {
		return nil, err
	}
	utilization := utilizationToWire(&f, *in.Location, u)
	return &gamelift.DescribeFleetLocationUtilizationOutput{FleetUtilization: &utilization}, nil
}

// utilization reads one fleet at a time, so that a long list does not delay other callers.
func (s *Service) utilization(ctx context.Context, fleetID, location string) (u hosting.Utilization, err error) {
	err = s.engine.Read(ctx, func(v *cell.View) error {
		u = v.Utilization(fleetID, location)
		return nil
	})
	return u, err
}

func (s *Service) locationUtilization(ctx context.Context, idOrARN, location string) (f fleet.Fleet, u hosting.Utilization, err error) {
	if f, err = s.fleetByID(ctx, lastPart(idOrARN)); err != nil {
		return f, u, err
	}
	if _, ok := f.HasLocation(location); !ok {
		return f, u, locationNotFound(&f, location)
	}
	u, err = s.utilization(ctx, f.ID, location)
	return f, u, err
}

// UpdateFleetCapacity sets the desired number of hosts in a location of a fleet of a build.
func (s *Service) UpdateFleetCapacity(ctx context.Context, in *gamelift.UpdateFleetCapacityInput) (*gamelift.UpdateFleetCapacityOutput, error) {
	cmd := hosting.SetCapacity{
		Fleet: lastPart(*in.FleetId), Location: value(in.Location), Desired: in.DesiredInstances, Min: in.MinSize, Max: in.MaxSize,
	}
	if m := in.ManagedCapacityConfiguration; m != nil {
		if m.ZeroCapacityStrategy != "" {
			fromZero := m.ZeroCapacityStrategy == types.ZeroCapacityStrategyScaleToAndFromZero
			cmd.FromZero = &fromZero
		}
		if m.ScaleInAfterInactivityMinutes != nil {
			inactivity := time.Duration(*m.ScaleInAfterInactivityMinutes) * time.Minute
			cmd.Inactivity = &inactivity
		}
	}
	if err := s.engine.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	return &gamelift.UpdateFleetCapacityOutput{
		FleetId: &cmd.Stored.ID, FleetArn: fleetARN(&cmd.Stored), Location: &cmd.Location,
		ManagedCapacityConfiguration: managedCapacityToWire(&cmd.Capacity),
	}, nil
}

// capacityToWire shows registered hosts as active instances, and the desired number. The service does not start or stop hosts of
// an ANYWHERE fleet, so nothing is desired there.
func capacityToWire(f *fleet.Fleet, location string, u hosting.Utilization) types.FleetCapacity {
	idle, none := u.Computes-u.ComputesWithGame, int32(0)
	c := types.FleetCapacity{
		FleetId: &f.ID, FleetArn: fleetARN(f), Location: text(location),
		InstanceCounts: &types.EC2InstanceCounts{
			ACTIVE: &u.Computes, IDLE: &idle, DESIRED: &none, MINIMUM: &none, MAXIMUM: &none, PENDING: &none, TERMINATING: &none,
		},
	}
	if f.Managed == nil {
		return c
	}
	c.InstanceType = types.EC2InstanceType(f.Managed.InstanceType)
	for _, l := range f.Locations {
		if l.Name == location {
			c.InstanceCounts.DESIRED, c.InstanceCounts.MINIMUM, c.InstanceCounts.MAXIMUM = &l.Capacity.Desired, &l.Capacity.Min, &l.Capacity.Max
			c.ManagedCapacityConfiguration = managedCapacityToWire(&l.Capacity)
		}
	}
	return c
}

func managedCapacityToWire(c *fleet.Capacity) *types.ManagedCapacityConfiguration {
	if !c.FromZero {
		return &types.ManagedCapacityConfiguration{ZeroCapacityStrategy: types.ZeroCapacityStrategyManual}
	}
	minutes := int32(c.Inactivity / time.Minute)
	return &types.ManagedCapacityConfiguration{
		ZeroCapacityStrategy: types.ZeroCapacityStrategyScaleToAndFromZero, ScaleInAfterInactivityMinutes: &minutes,
	}
}

func utilizationToWire(f *fleet.Fleet, location string, u hosting.Utilization) types.FleetUtilization {
	active, players := u.GameSessions-u.Activating, u.SeatsHeld-u.SeatsEmpty
	return types.FleetUtilization{
		FleetId: &f.ID, FleetArn: fleetARN(f), Location: text(location),
		ActiveServerProcessCount: &u.Processes, ActiveGameSessionCount: &active,
		CurrentPlayerSessionCount: &players, MaximumPlayerSessionCount: &u.SeatsMax,
	}
}

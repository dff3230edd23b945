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

// Without a location, capacity and utilization are those of a fleet's home location. An ANYWHERE fleet has none; the figures are then the totals over
// its locations.

// DescribeFleetCapacity counts the hosts of the named fleets, or of all.
func (s *Service) DescribeFleetCapacity(ctx context.Context, in *gamelift.DescribeFleetCapacityInput) (*gamelift.DescribeFleetCapacityOutput, error) {
	all, next, err := ofFleets(ctx, s, "DescribeFleetCapacity", in, in.FleetIds, in.Limit, in.NextToken, capacityToWire)
	return &gamelift.DescribeFleetCapacityOutput{FleetCapacity: all, NextToken: next}, err
}

// DescribeFleetLocationCapacity counts the hosts of a fleet in one location.
func (s *Service) DescribeFleetLocationCapacity(ctx context.Context, in *gamelift.DescribeFleetLocationCapacityInput) (*gamelift.DescribeFleetLocationCapacityOutput, error) {
	f, u, err := s.locationUtilization(ctx, *in.FleetId, *in.Location)
	return &gamelift.DescribeFleetLocationCapacityOutput{FleetCapacity: new(capacityToWire(&f, *in.Location, u))}, err
}

// DescribeFleetUtilization shows the utilization of the named fleets, or of all.
func (s *Service) DescribeFleetUtilization(ctx context.Context, in *gamelift.DescribeFleetUtilizationInput) (*gamelift.DescribeFleetUtilizationOutput, error) {
	all, next, err := ofFleets(ctx, s, "DescribeFleetUtilization", in, in.FleetIds, in.Limit, in.NextToken, utilizationToWire)
	return &gamelift.DescribeFleetUtilizationOutput{FleetUtilization: all, NextToken: next}, err
}

// DescribeFleetLocationUtilization shows the utilization of a fleet in one location.
func (s *Service) DescribeFleetLocationUtilization(ctx context.Context, in *gamelift.DescribeFleetLocationUtilizationInput) (*gamelift.DescribeFleetLocationUtilizationOutput, error) {
	f, u, err := s.locationUtilization(ctx, *in.FleetId, *in.Location)
	return &gamelift.DescribeFleetLocationUtilizationOutput{FleetUtilization: new(utilizationToWire(&f, *in.Location, u))}, err
}

// ofFleets shows the home locations of the named fleets, or of all.
func ofFleets[W any](ctx context.Context, s *Service, operation string, in any, ids []string, limit *int32, token *string,
	toWire func(*fleet.Fleet, string, usage) W) (all []W, next *string, err error) {
	fleets, next, err := s.listFleets(ctx, operation, in, ids, limit, token)
	all = []W{}
	for i := range fleets {
		home := fleets[i].Home()
		u, err := s.usage(ctx, &fleets[i], home)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, toWire(&fleets[i], home, u))
	}
	return all, next, err
}

// usage is what runs in a location of a fleet.
type usage struct {
	hosting.Utilization
	pending, terminating int32 // hosts of a fleet of a build without a ready server process, and hosts that are being released
}

// usage reads one fleet per read of the state, so that a long list does not delay other callers.
func (s *Service) usage(ctx context.Context, f *fleet.Fleet, location string) (usage, error) {
	return read(ctx, s, func(v *cell.View) (usage, error) {
		u := usage{Utilization: v.Utilization(f.ID, location)}
		if f.Managed == nil {
			return u, nil
		}
		for _, a := range v.Assignments(f.ID, location) {
			x, _ := v.Compute(f.ID, a.Compute)
			switch {
			case a.Releasing:
				u.terminating++
				u.ComputesWithGame -= min(x.Hosting, 1)
			case x.Ready == 0:
				u.pending++
			}
		}
		u.Computes -= u.pending + u.terminating
		return u, nil
	})
}

func (s *Service) locationUtilization(ctx context.Context, idOrARN, location string) (f fleet.Fleet, u usage, err error) {
	if f, err = s.fleetByID(ctx, lastPart(idOrARN)); err != nil {
		return f, u, err
	}
	if _, ok := f.HasLocation(location); !ok {
		return f, u, locationNotFound(&f, location)
	}
	u, err = s.usage(ctx, &f, location)
	return f, u, err
}

// UpdateFleetCapacity sets the desired number of hosts in a location of a fleet of a build.
func (s *Service) UpdateFleetCapacity(ctx context.Context, in *gamelift.UpdateFleetCapacityInput) (*gamelift.UpdateFleetCapacityOutput, error) {
	cmd := hosting.SetCapacity{
		Fleet: lastPart(*in.FleetId), Location: value(in.Location), Desired: in.DesiredInstances, Min: in.MinSize, Max: in.MaxSize,
	}
	if m := in.ManagedCapacityConfiguration; m != nil {
		if m.ZeroCapacityStrategy != "" {
			cmd.FromZero = new(m.ZeroCapacityStrategy == types.ZeroCapacityStrategyScaleToAndFromZero)
		}
		if m.ScaleInAfterInactivityMinutes != nil {
			cmd.Inactivity = new(time.Duration(*m.ScaleInAfterInactivityMinutes) * time.Minute)
		}
	}
	err := s.engine.Do(ctx, &cmd)
	return &gamelift.UpdateFleetCapacityOutput{
		FleetId: &cmd.Stored.ID, FleetArn: fleetARN(&cmd.Stored), Location: &cmd.Location,
		ManagedCapacityConfiguration: managedCapacityToWire(&cmd.Capacity),
	}, err
}

// capacityToWire shows hosts as instances. Hosts of an ANYWHERE fleet are active while they are registered, and nothing is desired, because the
// service does not start or stop them.
func capacityToWire(f *fleet.Fleet, location string, u usage) types.FleetCapacity {
	idle, none := u.Computes-u.ComputesWithGame, int32(0)
	c := types.FleetCapacity{
		FleetId: &f.ID, FleetArn: fleetARN(f), Location: text(location),
		InstanceCounts: &types.EC2InstanceCounts{
			ACTIVE: &u.Computes, IDLE: &idle, DESIRED: &none, MINIMUM: &none, MAXIMUM: &none, PENDING: &u.pending, TERMINATING: &u.terminating,
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

func utilizationToWire(f *fleet.Fleet, location string, u usage) types.FleetUtilization {
	active, players := u.Active(), u.SeatsHeld-u.SeatsEmpty
	return types.FleetUtilization{
		FleetId: &f.ID, FleetArn: fleetARN(f), Location: text(location),
		ActiveServerProcessCount: &u.Processes, ActiveGameSessionCount: &active,
		CurrentPlayerSessionCount: &players, MaximumPlayerSessionCount: &u.SeatsMax,
	}
}

package gamelift

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// CreateFleet creates an ANYWHERE fleet, which is ACTIVE at once, see B011, or a fleet of a build, which is NEW until an agent
// joins it.
func (s *Service) CreateFleet(ctx context.Context, in *gamelift.CreateFleetInput) (*gamelift.CreateFleetOutput, error) {
	if err := checkCompute(in); err != nil {
		return nil, err
	}
	limits, err := creationPolicyFromWire(in.ResourceCreationLimitPolicy)
	if err != nil {
		return nil, err
	}
	caller := callerOf(ctx)
	f := fleet.Fleet{
		ID: s.resourceID("fleet"), Region: caller.Region, Account: caller.Account,
		Name: *in.Name, Description: value(in.Description),
		FullProtection:  in.NewGameSessionProtectionPolicy == types.ProtectionPolicyFullProtection,
		CreationPolicy:  limits,
		MetricGroups:    metricGroupsFromWire(in.MetricGroups),
		CertificateType: string(types.CertificateTypeDisabled),
		Tags:            tagsFromWire(in.Tags),
		Runtime:         runtimeOfNewFleet(in),
		Managed:         managedFromWire(in),
	}
	if in.CertificateConfiguration != nil {
		f.CertificateType = string(in.CertificateConfiguration.CertificateType)
	}
	if in.AnywhereConfiguration != nil {
		f.Cost = in.AnywhereConfiguration.Cost
	}
	cmd := hosting.CreateFleet{Fleet: f, Locations: locationNames(in.Locations)}
	err = s.engine.Do(ctx, &cmd)
	return &gamelift.CreateFleetOutput{FleetAttributes: new(fleetToWire(&cmd.Fleet)), LocationStates: locationStates(cmd.Fleet.Locations)}, err
}

// DescribeFleetAttributes shows the named fleets, or all of them in creation order.
func (s *Service) DescribeFleetAttributes(ctx context.Context, in *gamelift.DescribeFleetAttributesInput) (*gamelift.DescribeFleetAttributesOutput, error) {
	fleets, next, err := s.listFleets(ctx, "DescribeFleetAttributes", in, in.FleetIds, in.Limit, in.NextToken)
	return &gamelift.DescribeFleetAttributesOutput{FleetAttributes: wires(fleets, fleetToWire), NextToken: next}, err
}

// ListFleets lists the ids of all fleets, or of the fleets of a build. None of them has a script.
func (s *Service) ListFleets(ctx context.Context, in *gamelift.ListFleetsInput) (*gamelift.ListFleetsOutput, error) {
	if in.ScriptId != nil {
		return &gamelift.ListFleetsOutput{FleetIds: []string{}}, nil
	}
	list := (*cell.View).Fleets
	if in.BuildId != nil {
		list = func(v *cell.View, created domain.Time, id string, limit int) []fleet.Fleet {
			return v.FleetsOfBuild(lastPart(*in.BuildId), created, id, limit)
		}
	}
	fleets, next, err := s.pageOfFleets(ctx, "ListFleets", in, in.Limit, in.NextToken, list)
	return &gamelift.ListFleetsOutput{FleetIds: wires(fleets, func(f *fleet.Fleet) string { return f.ID }), NextToken: next}, err
}

// listFleets returns the named fleets, or else a page of all fleets.
func (s *Service) listFleets(ctx context.Context, operation string, in any, idsOrARNs []string, limit *int32, token *string) (page []fleet.Fleet, next *string, err error) {
	if len(idsOrARNs) > 0 {
		page, err = s.namedFleets(ctx, idsOrARNs)
		return page, nil, err
	}
	return s.pageOfFleets(ctx, operation, in, limit, token, (*cell.View).Fleets)
}

// pageOfFleets returns a page of list's results from a place on.
func (s *Service) pageOfFleets(ctx context.Context, operation string, in any, limit *int32, token *string,
	list func(v *cell.View, created domain.Time, id string, limit int) []fleet.Fleet) (page []fleet.Fleet, next *string, err error) {
	return pageOf(ctx, s, operation, in, limit, token, func(v *cell.View, after place, limit int) []fleet.Fleet {
		return list(v, domain.Time(after.created), after.id, limit)
	}, func(f *fleet.Fleet) place { return place{int64(f.Created), f.ID} })
}

// namedFleets returns the named fleets and skips those that do not exist.
func (s *Service) namedFleets(ctx context.Context, idsOrARNs []string) ([]fleet.Fleet, error) {
	return read(ctx, s, func(v *cell.View) (page []fleet.Fleet, err error) {
		for _, idOrARN := range idsOrARNs {
			if f, ok := v.Fleet(lastPart(idOrARN)); ok {
				page = append(page, f)
			}
		}
		return page, nil
	})
}

// UpdateFleetAttributes changes the given members and keeps the others.
func (s *Service) UpdateFleetAttributes(ctx context.Context, in *gamelift.UpdateFleetAttributesInput) (*gamelift.UpdateFleetAttributesOutput, error) {
	limits, err := creationPolicyFromWire(in.ResourceCreationLimitPolicy)
	if err != nil {
		return nil, err
	}
	cmd := hosting.UpdateFleetAttributes{
		ID: lastPart(*in.FleetId), Name: in.Name, Description: in.Description,
		FullProtection: fullProtection(in.NewGameSessionProtectionPolicy),
		CreationPolicy: limits,
	}
	if in.MetricGroups != nil {
		cmd.MetricGroups = metricGroupsFromWire(in.MetricGroups)
	}
	if in.AnywhereConfiguration != nil {
		cmd.Cost = in.AnywhereConfiguration.Cost
	}
	err = s.engine.Do(ctx, &cmd)
	return &gamelift.UpdateFleetAttributesOutput{FleetId: &cmd.Fleet.ID, FleetArn: fleetARN(&cmd.Fleet)}, err
}

// metricGroupsFromWire reads the metric groups of a fleet. A fleet always has one.
func metricGroupsFromWire(wire []string) []string {
	if len(wire) == 0 {
		return []string{"default"}
	}
	return wire
}

// DeleteFleet starts to remove a fleet with everything that runs in it.
func (s *Service) DeleteFleet(ctx context.Context, in *gamelift.DeleteFleetInput) (*gamelift.DeleteFleetOutput, error) {
	return &gamelift.DeleteFleetOutput{}, s.engine.Do(ctx, &hosting.DeleteFleet{ID: lastPart(*in.FleetId)})
}

func fleetToWire(f *fleet.Fleet) types.FleetAttributes {
	created := f.Created.Std()
	a := types.FleetAttributes{
		FleetId: &f.ID, FleetArn: fleetARN(f), Name: &f.Name, Description: text(f.Description),
		CreationTime: &created, Status: fleetStatus(f.Status), MetricGroups: f.MetricGroups,
		CertificateConfiguration:       &types.CertificateConfiguration{CertificateType: types.CertificateType(f.CertificateType)},
		ComputeType:                    types.ComputeTypeAnywhere,
		NewGameSessionProtectionPolicy: protectionPolicy(f.FullProtection),
	}
	if f.Cost != nil {
		a.AnywhereConfiguration = &types.AnywhereConfiguration{Cost: f.Cost}
	}
	if p := f.CreationPolicy; p != nil {
		minutes := int32(p.Period / time.Minute)
		a.ResourceCreationLimitPolicy = &types.ResourceCreationLimitPolicy{NewGameSessionsPerCreator: &p.Sessions, PolicyPeriodInMinutes: &minutes}
	}
	if f.Managed != nil {
		addManaged(&a, f)
	}
	return a
}

// creationPeriodMax is the longest period of a policy in minutes: a hundred years.
const creationPeriodMax = 100 * 365 * 24 * 60

func creationPolicyFromWire(p *types.ResourceCreationLimitPolicy) (*fleet.CreationPolicy, error) {
	if p == nil {
		return nil, nil
	}
	minutes := value(p.PolicyPeriodInMinutes)
	if minutes > creationPeriodMax {
		return nil, invalid("ResourceCreationLimitPolicy.PolicyPeriodInMinutes: %d; want at most %d", minutes, creationPeriodMax)
	}
	return &fleet.CreationPolicy{Sessions: value(p.NewGameSessionsPerCreator), Period: time.Duration(minutes) * time.Minute}, nil
}

func fleetStatus(s fleet.Status) types.FleetStatus {
	return types.FleetStatus(s.String())
}

func protectionPolicy(full bool) types.ProtectionPolicy {
	if full {
		return types.ProtectionPolicyFullProtection
	}
	return types.ProtectionPolicyNoProtection
}

// fullProtection returns nil if no policy was given.
func fullProtection(p types.ProtectionPolicy) *bool {
	if p == "" {
		return nil
	}
	full := p == types.ProtectionPolicyFullProtection
	return &full
}

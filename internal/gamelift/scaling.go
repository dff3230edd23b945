package gamelift

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// PutScalingPolicy adds a scaling policy to a fleet of a build, or replaces the one with its name.
func (s *Service) PutScalingPolicy(ctx context.Context, in *gamelift.PutScalingPolicyInput) (*gamelift.PutScalingPolicyOutput, error) {
	p, err := policyFromWire(in)
	if err != nil {
		return nil, err
	}
	if err := s.engine.Do(ctx, &hosting.PutScalingPolicy{Fleet: lastPart(*in.FleetId), Policy: p}); err != nil {
		return nil, undeclared(err, domain.WrongFleetStatus)
	}
	return &gamelift.PutScalingPolicyOutput{Name: in.Name}, nil
}

// policyFromWire reads a scaling policy; see B086. It refuses members that the type does not use, because accepting them
// would suggest an effect.
func policyFromWire(in *gamelift.PutScalingPolicyInput) (fleet.ScalingPolicy, error) {
	p := fleet.ScalingPolicy{Name: *in.Name, Metric: string(in.MetricName), TargetBased: in.PolicyType == types.PolicyTypeTargetBased}
	rule := []member{
		{"ComparisonOperator", in.ComparisonOperator != ""}, {"Threshold", in.Threshold != nil}, {"EvaluationPeriods", in.EvaluationPeriods != nil},
		{"ScalingAdjustmentType", in.ScalingAdjustmentType != ""}, {"ScalingAdjustment", in.ScalingAdjustment != nil},
	}
	if p.TargetBased {
		name, given := givenOf(rule)
		switch {
		case given:
			return p, invalid("%s: only a policy of the type RuleBased has one", name)
		case in.MetricName != types.MetricNamePercentAvailableGameSessions:
			return p, invalid("MetricName: %s; a policy of the type TargetBased requires PercentAvailableGameSessions", in.MetricName)
		case in.TargetConfiguration == nil:
			return p, invalid("TargetConfiguration: required with the type TargetBased")
		}
		if p.Target = *in.TargetConfiguration.TargetValue; p.Target < 0 || p.Target > 100 {
			return p, invalid("TargetConfiguration.TargetValue: %g; want a percentage from 0 to 100", p.Target)
		}
		return p, nil
	}
	for _, m := range rule {
		if !m.given {
			return p, invalid("%s: required with the type RuleBased", m.name)
		}
	}
	p.Comparison, p.Threshold, p.Periods = string(in.ComparisonOperator), *in.Threshold, *in.EvaluationPeriods
	p.AdjustmentType, p.Adjustment = string(in.ScalingAdjustmentType), *in.ScalingAdjustment
	switch {
	case in.TargetConfiguration != nil:
		return p, invalid("TargetConfiguration: only a policy of the type TargetBased has one")
	case p.Periods > capacity.PeriodsMax:
		return p, invalid("EvaluationPeriods: %d; want at most %d minutes", p.Periods, capacity.PeriodsMax)
	case in.ScalingAdjustmentType == types.ScalingAdjustmentTypeExactCapacity && p.Adjustment < 0:
		return p, invalid("ScalingAdjustment: %d; want 0 or more instances with ExactCapacity", p.Adjustment)
	}
	return p, nil
}

// DescribeScalingPolicies lists the scaling policies of a fleet in the order in which they were added. They apply in all its
// locations; the answer repeats the location of the request.
func (s *Service) DescribeScalingPolicies(ctx context.Context, in *gamelift.DescribeScalingPoliciesInput) (*gamelift.DescribeScalingPoliciesOutput, error) {
	cursor, err := pageCursor("DescribeScalingPolicies", in, in.NextToken)
	if err != nil {
		return nil, err
	}
	f, err := s.fleetByID(ctx, lastPart(*in.FleetId))
	if err != nil {
		return nil, err
	}
	if in.Location != nil {
		if _, ok := f.HasLocation(*in.Location); !ok {
			return nil, locationNotFound(&f, *in.Location)
		}
	}
	out := &gamelift.DescribeScalingPoliciesOutput{ScalingPolicies: []types.ScalingPolicy{}}
	if f.Managed == nil || in.StatusFilter != "" && in.StatusFilter != types.ScalingStatusTypeActive {
		return out, nil // there are none, or all are in force
	}
	rest := slices.DeleteFunc(slices.Clone(f.Managed.Policies), func(p fleet.ScalingPolicy) bool { return p.Name <= cursor })
	slices.SortFunc(rest, func(a, b fleet.ScalingPolicy) int { return strings.Compare(a.Name, b.Name) })
	page, next := cutPage("DescribeScalingPolicies", in, rest, pageSize(in.Limit, pageMax), func(p *fleet.ScalingPolicy) string { return p.Name })
	out.ScalingPolicies = wires(page, func(p *fleet.ScalingPolicy) types.ScalingPolicy { return policyToWire(&f, p, in.Location) })
	out.NextToken = next
	return out, nil
}

func policyToWire(f *fleet.Fleet, p *fleet.ScalingPolicy, location *string) types.ScalingPolicy {
	wire := types.ScalingPolicy{
		FleetId: &f.ID, FleetArn: fleetARN(f), Name: &p.Name, Status: types.ScalingStatusTypeActive,
		MetricName: types.MetricName(p.Metric), Location: location,
	}
	if p.TargetBased {
		wire.PolicyType, wire.TargetConfiguration = types.PolicyTypeTargetBased, &types.TargetConfiguration{TargetValue: &p.Target}
		return wire
	}
	wire.PolicyType = types.PolicyTypeRuleBased
	wire.ComparisonOperator, wire.Threshold, wire.EvaluationPeriods = types.ComparisonOperatorType(p.Comparison), &p.Threshold, &p.Periods
	wire.ScalingAdjustmentType, wire.ScalingAdjustment = types.ScalingAdjustmentType(p.AdjustmentType), &p.Adjustment
	return wire
}

// DeleteScalingPolicy removes a scaling policy.
func (s *Service) DeleteScalingPolicy(ctx context.Context, in *gamelift.DeleteScalingPolicyInput) (*gamelift.DeleteScalingPolicyOutput, error) {
	return &gamelift.DeleteScalingPolicyOutput{}, s.engine.Do(ctx, &hosting.DeleteScalingPolicy{Fleet: lastPart(*in.FleetId), Name: *in.Name})
}

// StopFleetActions suspends automatic scaling at a location, by default the home location.
func (s *Service) StopFleetActions(ctx context.Context, in *gamelift.StopFleetActionsInput) (*gamelift.StopFleetActionsOutput, error) {
	f, err := s.switchScaling(ctx, *in.FleetId, value(in.Location), true)
	return &gamelift.StopFleetActionsOutput{FleetId: &f.ID, FleetArn: fleetARN(f)}, err
}

// StartFleetActions resumes automatic scaling.
func (s *Service) StartFleetActions(ctx context.Context, in *gamelift.StartFleetActionsInput) (*gamelift.StartFleetActionsOutput, error) {
	f, err := s.switchScaling(ctx, *in.FleetId, value(in.Location), false)
	return &gamelift.StartFleetActionsOutput{FleetId: &f.ID, FleetArn: fleetARN(f)}, err
}

// switchScaling suspends or resumes AUTO_SCALING, the only action.
func (s *Service) switchScaling(ctx context.Context, fleetIDOrARN, location string, stop bool) (*fleet.Fleet, error) {
	cmd := hosting.SwitchScaling{Fleet: lastPart(fleetIDOrARN), Location: location, Stop: stop}
	err := s.engine.Do(ctx, &cmd)
	return &cmd.Stored, undeclared(err, domain.WrongFleetStatus)
}

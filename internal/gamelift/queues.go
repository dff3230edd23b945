package gamelift

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
)

// CreateGameSessionQueue creates a queue, in which placements wait for a game session.
func (s *Service) CreateGameSessionQueue(ctx context.Context, in *gamelift.CreateGameSessionQueueInput) (*gamelift.CreateGameSessionQueueOutput, error) {
	timeout, err := queueTimeout(in.TimeoutInSeconds)
	if err != nil {
		return nil, err
	}
	destinations, err := destinationsFromWire(in.Destinations)
	if err != nil {
		return nil, err
	}
	caller := callerOf(ctx)
	q := placement.Queue{
		Name: *in.Name, Region: caller.Region, Account: caller.Account, Timeout: timeout, Destinations: destinations,
		LatencyPolicies: latencyPoliciesFromWire(in.PlayerLatencyPolicies), CustomEventData: value(in.CustomEventData), NotificationTarget: value(in.NotificationTarget),
		Tags: tagsFromWire(in.Tags),
	}
	if f := in.FilterConfiguration; f != nil {
		q.AllowedLocations = f.AllowedLocations
	}
	if p := in.PriorityConfiguration; p != nil {
		q.PriorityOrder, q.LocationOrder = priorityFromWire(p.PriorityOrder), p.LocationOrder
	}
	cmd := hosting.CreateQueue{Queue: q}
	err = s.engine.Do(ctx, &cmd)
	return &gamelift.CreateGameSessionQueueOutput{GameSessionQueue: new(queueToWire(&cmd.Queue))}, err
}

// UpdateGameSessionQueue changes the given members and keeps the others. A given list or structure replaces the
// previous one, even if it is empty.
func (s *Service) UpdateGameSessionQueue(ctx context.Context, in *gamelift.UpdateGameSessionQueueInput) (*gamelift.UpdateGameSessionQueueOutput, error) {
	cmd := hosting.UpdateQueue{
		Name: lastPart(*in.Name), CustomEventData: in.CustomEventData, NotificationTarget: in.NotificationTarget,
	}
	if in.TimeoutInSeconds != nil {
		timeout, err := queueTimeout(in.TimeoutInSeconds)
		if err != nil {
			return nil, err
		}
		cmd.Timeout = &timeout
	}
	if in.Destinations != nil {
		destinations, err := destinationsFromWire(in.Destinations)
		if err != nil {
			return nil, err
		}
		cmd.Destinations = &destinations
	}
	if in.PlayerLatencyPolicies != nil {
		cmd.LatencyPolicies = new(latencyPoliciesFromWire(in.PlayerLatencyPolicies))
	}
	if f := in.FilterConfiguration; f != nil {
		cmd.AllowedLocations = &f.AllowedLocations
	}
	if p := in.PriorityConfiguration; p != nil {
		cmd.PriorityOrder, cmd.LocationOrder = new(priorityFromWire(p.PriorityOrder)), &p.LocationOrder
	}
	err := s.engine.Do(ctx, &cmd)
	return &gamelift.UpdateGameSessionQueueOutput{GameSessionQueue: new(queueToWire(&cmd.Queue))}, undeclared(err, domain.LimitExceeded)
}

// DeleteGameSessionQueue removes a queue. Placements that wait in it fail.
func (s *Service) DeleteGameSessionQueue(ctx context.Context, in *gamelift.DeleteGameSessionQueueInput) (*gamelift.DeleteGameSessionQueueOutput, error) {
	for {
		cmd := hosting.DeleteQueue{Name: lastPart(*in.Name)}
		if err := s.engine.Do(ctx, &cmd); err != nil || !cmd.Left {
			return &gamelift.DeleteGameSessionQueueOutput{}, err
		}
	}
}

// DescribeGameSessionQueues shows the named queues that exist, or all of them, ordered by name.
func (s *Service) DescribeGameSessionQueues(ctx context.Context, in *gamelift.DescribeGameSessionQueuesInput) (*gamelift.DescribeGameSessionQueuesOutput, error) {
	page, next, err := namedPage(ctx, s, "DescribeGameSessionQueues", in, pageSize(in.Limit, queuePageMax), in.NextToken, in.Names,
		(*cell.View).Queue, (*cell.View).Queues, func(q *placement.Queue) string { return q.Name })
	return &gamelift.DescribeGameSessionQueuesOutput{GameSessionQueues: wires(page, queueToWire), NextToken: next}, err
}

// queueTimeout reads a timeout. To the core, zero means "not given", so a given zero is handled here.
func queueTimeout(seconds *int32) (time.Duration, error) {
	if seconds != nil && *seconds == 0 {
		return 0, invalid("TimeoutInSeconds: 0, want 10 to 600")
	}
	return time.Duration(value(seconds)) * time.Second, nil
}

// latencyPoliciesFromWire reads the latency policies. A duration of zero means none.
func latencyPoliciesFromWire(wire []types.PlayerLatencyPolicy) []placement.LatencyPolicy {
	policies := make([]placement.LatencyPolicy, len(wire))
	for i, p := range wire {
		policies[i] = placement.LatencyPolicy{
			Cap: value(p.MaximumIndividualPlayerLatencyMilliseconds), Duration: time.Duration(value(p.PolicyDurationSeconds)) * time.Second,
		}
	}
	return policies
}

func destinationsFromWire(wire []types.GameSessionQueueDestination) ([]string, error) {
	arns := make([]string, len(wire))
	for i, d := range wire {
		if d.DestinationArn == nil {
			return nil, invalid("Destinations[%d].DestinationArn: required", i)
		}
		arns[i] = *d.DestinationArn
	}
	return arns, nil
}

var criteria = map[types.PriorityType]placement.Criterion{
	types.PriorityTypeLatency: placement.ByLatency, types.PriorityTypeCost: placement.ByCost,
	types.PriorityTypeDestination: placement.ByDestination, types.PriorityTypeLocation: placement.ByLocation,
}

func priorityFromWire(wire []types.PriorityType) []placement.Criterion {
	order := make([]placement.Criterion, len(wire))
	for i, t := range wire {
		order[i] = criteria[t] // the model allows no other value
	}
	return order
}

// priorityToWire omits an empty order, which the model does not allow: clients send an answer back as an update.
func priorityToWire(order []placement.Criterion) []types.PriorityType {
	if len(order) == 0 {
		return nil
	}
	wire := make([]types.PriorityType, len(order))
	for i, by := range order {
		for t, c := range criteria {
			if c == by {
				wire[i] = t
			}
		}
	}
	return wire
}

func queueToWire(q *placement.Queue) types.GameSessionQueue {
	wire := types.GameSessionQueue{
		Name: &q.Name, GameSessionQueueArn: queueARN(q), TimeoutInSeconds: new(int32(q.Timeout / time.Second)),
		CustomEventData: text(q.CustomEventData), NotificationTarget: text(q.NotificationTarget),
	}
	for i := range q.Destinations {
		wire.Destinations = append(wire.Destinations, types.GameSessionQueueDestination{DestinationArn: &q.Destinations[i]})
	}
	for _, p := range q.LatencyPolicies {
		policy := types.PlayerLatencyPolicy{MaximumIndividualPlayerLatencyMilliseconds: new(p.Cap)}
		if p.Duration > 0 {
			policy.PolicyDurationSeconds = new(int32(p.Duration / time.Second))
		}
		wire.PlayerLatencyPolicies = append(wire.PlayerLatencyPolicies, policy)
	}
	if len(q.AllowedLocations) > 0 {
		wire.FilterConfiguration = &types.FilterConfiguration{AllowedLocations: q.AllowedLocations}
	}
	if len(q.PriorityOrder) > 0 || len(q.LocationOrder) > 0 {
		wire.PriorityConfiguration = &types.PriorityConfiguration{PriorityOrder: priorityToWire(q.PriorityOrder), LocationOrder: q.LocationOrder}
	}
	return wire
}

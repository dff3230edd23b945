package gamelift

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// DescribeRuntimeConfiguration shows a fleet's runtime configuration, which is empty if none was ever set.
func (s *Service) DescribeRuntimeConfiguration(ctx context.Context, in *gamelift.DescribeRuntimeConfigurationInput) (*gamelift.DescribeRuntimeConfigurationOutput, error) {
	f, err := s.fleetByID(ctx, lastPart(*in.FleetId))
	return &gamelift.DescribeRuntimeConfigurationOutput{RuntimeConfiguration: runtimeToWire(f.Runtime)}, err
}

// UpdateRuntimeConfiguration replaces a fleet's runtime configuration.
func (s *Service) UpdateRuntimeConfiguration(ctx context.Context, in *gamelift.UpdateRuntimeConfigurationInput) (*gamelift.UpdateRuntimeConfigurationOutput, error) {
	cmd := hosting.UpdateRuntime{Fleet: lastPart(*in.FleetId), Runtime: *runtimeFromWire(in.RuntimeConfiguration)}
	err := s.engine.Do(ctx, &cmd)
	return &gamelift.UpdateRuntimeConfigurationOutput{RuntimeConfiguration: runtimeToWire(&cmd.Runtime)}, err
}

func runtimeFromWire(wire *types.RuntimeConfiguration) *fleet.Runtime {
	if wire == nil {
		return nil
	}
	r := &fleet.Runtime{
		ActivationsMax:    value(wire.MaxConcurrentGameSessionActivations),
		ActivationTimeout: time.Duration(value(wire.GameSessionActivationTimeoutSeconds)) * time.Second,
	}
	for _, p := range wire.ServerProcesses {
		r.Launches = append(r.Launches, fleet.Launch{Path: value(p.LaunchPath), Parameters: value(p.Parameters), Copies: value(p.ConcurrentExecutions)})
	}
	return r
}

func runtimeToWire(r *fleet.Runtime) *types.RuntimeConfiguration {
	wire := &types.RuntimeConfiguration{}
	if r == nil {
		return wire
	}
	if n := r.ActivationsMax; n > 0 {
		wire.MaxConcurrentGameSessionActivations = &n
	}
	if seconds := int32(r.ActivationTimeout / time.Second); seconds > 0 {
		wire.GameSessionActivationTimeoutSeconds = &seconds
	}
	for _, l := range r.Launches {
		wire.ServerProcesses = append(wire.ServerProcesses, types.ServerProcess{
			LaunchPath: &l.Path, Parameters: text(l.Parameters), ConcurrentExecutions: &l.Copies,
		})
	}
	return wire
}

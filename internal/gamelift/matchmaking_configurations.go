package gamelift

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/matchmaking"
)

// CreateMatchmakingConfiguration creates a matchmaker: settings, and a pool of tickets of its own.
func (s *Service) CreateMatchmakingConfiguration(ctx context.Context, in *gamelift.CreateMatchmakingConfigurationInput) (*gamelift.CreateMatchmakingConfigurationOutput, error) {
	caller := callerOf(ctx)
	if in.AcceptanceTimeoutSeconds != nil && *in.AcceptanceTimeoutSeconds == 0 {
		return nil, invalid("AcceptanceTimeoutSeconds: 0, want 1 to 600")
	}
	cmd := matchmaking.CreateConfiguration{Configuration: matchmaking.Configuration{
		Name: *in.Name, Region: caller.Region, Account: caller.Account, Description: value(in.Description), RuleSet: lastPart(*in.RuleSetName),
		RequestTimeout: duration(in.RequestTimeoutSeconds), AcceptanceTimeout: duration(in.AcceptanceTimeoutSeconds), AcceptanceRequired: *in.AcceptanceRequired,
		Standalone: in.FlexMatchMode == types.FlexMatchModeStandalone, Queues: in.GameSessionQueueArns, AdditionalPlayers: value(in.AdditionalPlayerCount),
		AutoBackfill: in.BackfillMode == types.BackfillModeAutomatic, Properties: propertiesFromWire(in.GameProperties), Data: value(in.GameSessionData),
		NotificationTarget: value(in.NotificationTarget), CustomEventData: value(in.CustomEventData), Tags: tagsFromWire(in.Tags),
	}}
	if err := s.engine.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	wire, err := s.configurationToWire(ctx, &cmd.Configuration)
	return &gamelift.CreateMatchmakingConfigurationOutput{Configuration: wire}, err
}

func duration(seconds *int32) time.Duration { return time.Duration(value(seconds)) * time.Second }

// UpdateMatchmakingConfiguration changes the given members and keeps the others. It affects only later matches.
func (s *Service) UpdateMatchmakingConfiguration(ctx context.Context, in *gamelift.UpdateMatchmakingConfigurationInput) (*gamelift.UpdateMatchmakingConfigurationOutput, error) {
	cmd := matchmaking.UpdateConfiguration{
		Name: lastPart(*in.Name), Description: in.Description, AcceptanceRequired: in.AcceptanceRequired, AdditionalPlayers: in.AdditionalPlayerCount,
		Data: in.GameSessionData, NotificationTarget: in.NotificationTarget, CustomEventData: in.CustomEventData,
	}
	if in.RuleSetName != nil {
		cmd.RuleSet = new(lastPart(*in.RuleSetName))
	}
	if in.RequestTimeoutSeconds != nil {
		cmd.RequestTimeout = new(duration(in.RequestTimeoutSeconds))
	}
	if in.AcceptanceTimeoutSeconds != nil {
		cmd.AcceptanceTimeout = new(duration(in.AcceptanceTimeoutSeconds))
	}
	if in.FlexMatchMode != "" {
		cmd.Standalone = new(in.FlexMatchMode == types.FlexMatchModeStandalone)
	}
	if in.BackfillMode != "" {
		cmd.AutoBackfill = new(in.BackfillMode == types.BackfillModeAutomatic)
	}
	if in.GameSessionQueueArns != nil {
		cmd.Queues = &in.GameSessionQueueArns
	}
	if in.GameProperties != nil {
		cmd.Properties = new(propertiesFromWire(in.GameProperties))
	}
	if err := s.engine.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	wire, err := s.configurationToWire(ctx, &cmd.Configuration)
	return &gamelift.UpdateMatchmakingConfigurationOutput{Configuration: wire}, err
}

// DeleteMatchmakingConfiguration removes a configuration without active tickets.
func (s *Service) DeleteMatchmakingConfiguration(ctx context.Context, in *gamelift.DeleteMatchmakingConfigurationInput) (*gamelift.DeleteMatchmakingConfigurationOutput, error) {
	return &gamelift.DeleteMatchmakingConfigurationOutput{}, s.engine.Do(ctx, &matchmaking.DeleteConfiguration{Name: lastPart(*in.Name)})
}

// DescribeMatchmakingConfigurations shows the named configurations that exist, those that use a rule set, or all of them,
// ordered by name.
func (s *Service) DescribeMatchmakingConfigurations(ctx context.Context, in *gamelift.DescribeMatchmakingConfigurationsInput) (*gamelift.DescribeMatchmakingConfigurationsOutput, error) {
	ruleSet := ""
	if in.RuleSetName != nil {
		ruleSet = lastPart(*in.RuleSetName)
	}
	get := func(v *cell.View, name string) (matchmaking.Configuration, bool) {
		x, ok := v.Configuration(name)
		return x, ok && (ruleSet == "" || x.RuleSet == ruleSet)
	}
	list := func(v *cell.View, after string, most int) []matchmaking.Configuration {
		return v.Configurations(after, ruleSet, most)
	}
	page, next, err := namedPage(ctx, s, "DescribeMatchmakingConfigurations", in, pageSize(in.Limit, matchmakingPageMax), in.NextToken, in.Names,
		get, list, func(x *matchmaking.Configuration) string { return x.Name })
	if err != nil {
		return nil, err
	}
	out := &gamelift.DescribeMatchmakingConfigurationsOutput{Configurations: make([]types.MatchmakingConfiguration, len(page)), NextToken: next}
	for i := range page {
		wire, err := s.configurationToWire(ctx, &page[i])
		if err != nil {
			return nil, err
		}
		out.Configurations[i] = *wire
	}
	return out, nil
}

func (s *Service) configurationToWire(ctx context.Context, x *matchmaking.Configuration) (*types.MatchmakingConfiguration, error) {
	rules := matchmaking.RuleSet{Name: x.RuleSet, Region: x.Region, Account: x.Account}
	err := s.engine.Read(ctx, func(v *cell.View) error {
		if found, ok := v.RuleSet(x.RuleSet); ok {
			rules = found
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	wire := types.MatchmakingConfiguration{
		Name: &x.Name, ConfigurationArn: new(x.ARN()), CreationTime: new(x.Created.Std()), Description: text(x.Description),
		RuleSetName: &x.RuleSet, RuleSetArn: ruleSetARN(&rules), RequestTimeoutSeconds: new(int32(x.RequestTimeout / time.Second)),
		AcceptanceRequired: &x.AcceptanceRequired, AdditionalPlayerCount: &x.AdditionalPlayers, GameSessionQueueArns: x.Queues,
		GameSessionData: text(x.Data), NotificationTarget: text(x.NotificationTarget), CustomEventData: text(x.CustomEventData),
		FlexMatchMode: types.FlexMatchModeWithQueue, BackfillMode: types.BackfillModeManual, GameProperties: propertiesToWire(x.Properties),
	}
	if x.AcceptanceTimeout > 0 {
		wire.AcceptanceTimeoutSeconds = new(int32(x.AcceptanceTimeout / time.Second))
	}
	if x.Standalone {
		wire.FlexMatchMode = types.FlexMatchModeStandalone
	}
	if x.AutoBackfill {
		wire.BackfillMode = types.BackfillModeAutomatic
	}
	return &wire, nil
}

package gamelift

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/gameservers"
	"github.com/musterhq/muster/internal/engine"
)

// CreateGameServerGroup creates a group of game servers. It is ACTIVE at once; its members about instances are stored.
func (s *Service) CreateGameServerGroup(ctx context.Context, in *gamelift.CreateGameServerGroupInput) (*gamelift.CreateGameServerGroupOutput, error) {
	caller := callerOf(ctx)
	cmd := gameservers.CreateGameServerGroup{Group: gameservers.Group{
		Name: *in.GameServerGroupName, Region: caller.Region, Account: caller.Account, Role: *in.RoleArn,
		SizeMin: *in.MinSize, SizeMax: *in.MaxSize,
		Template: gameservers.LaunchTemplate{
			ID: value(in.LaunchTemplate.LaunchTemplateId), Name: value(in.LaunchTemplate.LaunchTemplateName), Version: value(in.LaunchTemplate.Version),
		},
		Instances:  instanceTypesFromWire(in.InstanceDefinitions),
		Balancing:  string(cmp.Or(in.BalancingStrategy, types.BalancingStrategySpotPreferred)),
		Protection: string(cmp.Or(in.GameServerProtectionPolicy, types.GameServerProtectionPolicyNoProtection)),
		Tags:       tagsFromWire(in.Tags),
	}}
	err := s.engine.Do(ctx, &cmd)
	return &gamelift.CreateGameServerGroupOutput{GameServerGroup: new(groupToWire(&cmd.Group))}, err
}

// DescribeGameServerGroup shows one group.
func (s *Service) DescribeGameServerGroup(ctx context.Context, in *gamelift.DescribeGameServerGroupInput) (*gamelift.DescribeGameServerGroupOutput, error) {
	g, err := s.gameServerGroup(ctx, *in.GameServerGroupName)
	return &gamelift.DescribeGameServerGroupOutput{GameServerGroup: new(groupToWire(&g))}, err
}

func (s *Service) gameServerGroup(ctx context.Context, nameOrARN string) (gameservers.Group, error) {
	return read(ctx, s, func(v *cell.View) (gameservers.Group, error) { return v.GameServerGroup(lastPart(nameOrARN)) })
}

// ListGameServerGroups lists all groups in creation order.
func (s *Service) ListGameServerGroups(ctx context.Context, in *gamelift.ListGameServerGroupsInput) (*gamelift.ListGameServerGroupsOutput, error) {
	page, next, err := pageOf(ctx, s, "ListGameServerGroups", in, in.Limit, in.NextToken, func(v *cell.View, after place, limit int) []gameservers.Group {
		return v.GameServerGroups(after.catalog(), limit)
	}, func(x *gameservers.Group) place { return place{int64(x.Created), x.Name} })
	return &gamelift.ListGameServerGroupsOutput{GameServerGroups: wires(page, groupToWire), NextToken: next}, err
}

// UpdateGameServerGroup changes the given members and keeps the others.
func (s *Service) UpdateGameServerGroup(ctx context.Context, in *gamelift.UpdateGameServerGroupInput) (*gamelift.UpdateGameServerGroupOutput, error) {
	cmd := gameservers.UpdateGameServerGroup{
		Name: lastPart(*in.GameServerGroupName), Role: in.RoleArn, Instances: instanceTypesFromWire(in.InstanceDefinitions),
		Balancing: given(in.BalancingStrategy), Protection: given(in.GameServerProtectionPolicy),
	}
	err := s.engine.Do(ctx, &cmd)
	return &gamelift.UpdateGameServerGroupOutput{GameServerGroup: new(groupToWire(&cmd.Group))}, err
}

// DeleteGameServerGroup removes a group when its last game server has gone, or at once by force. There is no Auto Scaling
// group to retain, so RETAIN is a safe delete.
func (s *Service) DeleteGameServerGroup(ctx context.Context, in *gamelift.DeleteGameServerGroupInput) (*gamelift.DeleteGameServerGroupOutput, error) {
	cmd := gameservers.DeleteGameServerGroup{
		Name: lastPart(*in.GameServerGroupName), Force: in.DeleteOption == types.GameServerGroupDeleteOptionForceDelete,
	}
	err := s.engine.Do(ctx, &cmd)
	return &gamelift.DeleteGameServerGroupOutput{GameServerGroup: new(groupToWire(&cmd.Group))}, err
}

// SuspendGameServerGroup records that the group's instances are not to be replaced. The service does not replace
// instances in any case.
func (s *Service) SuspendGameServerGroup(ctx context.Context, in *gamelift.SuspendGameServerGroupInput) (*gamelift.SuspendGameServerGroupOutput, error) {
	g, err := suspend(ctx, s.engine, *in.GameServerGroupName, true)
	return &gamelift.SuspendGameServerGroupOutput{GameServerGroup: g}, err
}

// ResumeGameServerGroup reverts SuspendGameServerGroup.
func (s *Service) ResumeGameServerGroup(ctx context.Context, in *gamelift.ResumeGameServerGroupInput) (*gamelift.ResumeGameServerGroupOutput, error) {
	g, err := suspend(ctx, s.engine, *in.GameServerGroupName, false)
	return &gamelift.ResumeGameServerGroupOutput{GameServerGroup: g}, err
}

func suspend(ctx context.Context, e *engine.Engine, nameOrARN string, suspended bool) (*types.GameServerGroup, error) {
	cmd := gameservers.UpdateGameServerGroup{Name: lastPart(nameOrARN), Suspended: &suspended}
	if err := e.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	return new(groupToWire(&cmd.Group)), nil
}

// DescribeGameServerInstances shows the instances from which a group's game servers registered. All are ACTIVE, because
// an instance is known only through its game servers.
func (s *Service) DescribeGameServerInstances(ctx context.Context, in *gamelift.DescribeGameServerInstancesInput) (*gamelift.DescribeGameServerInstancesOutput, error) {
	after, err := pageCursor("DescribeGameServerInstances", in, in.NextToken)
	if err != nil {
		return nil, err
	}
	g, err := s.gameServerGroup(ctx, *in.GameServerGroupName)
	if err != nil {
		return nil, err
	}
	size := pageSize(in.Limit, pageMax)
	page, err := read(ctx, s, func(v *cell.View) ([]string, error) {
		return v.GameServerInstances(g.Name, after, in.InstanceIds, size+1)
	})
	if err != nil {
		return nil, err
	}
	out := &gamelift.DescribeGameServerInstancesOutput{}
	if len(in.InstanceIds) == 0 {
		page, out.NextToken = cutPage("DescribeGameServerInstances", in, page, size, func(id *string) string { return *id })
	}
	out.GameServerInstances = wires(page, func(id *string) types.GameServerInstance {
		return types.GameServerInstance{
			GameServerGroupName: &g.Name, GameServerGroupArn: groupARN(&g), InstanceId: id, InstanceStatus: types.GameServerInstanceStatusActive,
		}
	})
	return out, nil
}

func groupARN(g *gameservers.Group) *string {
	return makeARN(g.Region, g.Account, "gameservergroup/", g.Name)
}

func groupToWire(g *gameservers.Group) types.GameServerGroup {
	created, updated := g.Created.Std(), g.Updated.Std()
	wire := types.GameServerGroup{
		GameServerGroupName: &g.Name, GameServerGroupArn: groupARN(g), RoleArn: &g.Role, Status: types.GameServerGroupStatusActive,
		BalancingStrategy: types.BalancingStrategy(g.Balancing), GameServerProtectionPolicy: types.GameServerProtectionPolicy(g.Protection),
		CreationTime: &created, LastUpdatedTime: &updated,
	}
	if g.Deleting {
		wire.Status = types.GameServerGroupStatusDeleteScheduled
	}
	if g.Suspended {
		wire.SuspendedActions = []types.GameServerGroupAction{types.GameServerGroupActionReplaceInstanceTypes}
	}
	for i := range g.Instances {
		wire.InstanceDefinitions = append(wire.InstanceDefinitions, types.InstanceDefinition{
			InstanceType: types.GameServerGroupInstanceType(g.Instances[i].Name), WeightedCapacity: text(g.Instances[i].Weight),
		})
	}
	return wire
}

func instanceTypesFromWire(wire []types.InstanceDefinition) []gameservers.InstanceType {
	var types []gameservers.InstanceType
	for _, d := range wire {
		types = append(types, gameservers.InstanceType{Name: string(d.InstanceType), Weight: value(d.WeightedCapacity)})
	}
	return types
}

// given returns nil for an absent enum.
func given[T ~string](enum T) *string {
	if enum == "" {
		return nil
	}
	return new(string(enum))
}

package gamelift

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/gameservers"
)

// RegisterGameServer adds a game server to a group; it can be claimed at once.
func (s *Service) RegisterGameServer(ctx context.Context, in *gamelift.RegisterGameServerInput) (*gamelift.RegisterGameServerOutput, error) {
	cmd := gameservers.RegisterGameServer{Server: gameservers.Server{
		ID: *in.GameServerId, Group: lastPart(*in.GameServerGroupName), Instance: *in.InstanceId,
		Connection: value(in.ConnectionInfo), Data: value(in.GameServerData),
	}}
	if err := s.engine.Do(ctx, &cmd); err != nil {
		return nil, undeclared(err, domain.NotFound)
	}
	x, err := s.gameServerToWire(ctx, &cmd.Server)
	return &gamelift.RegisterGameServerOutput{GameServer: x}, undeclared(err, domain.NotFound)
}

// ClaimGameServer reserves a free game server for the caller: the named one, or the one that has waited longest. The
// claim is valid for a minute, in which the game server must report that it is utilized.
func (s *Service) ClaimGameServer(ctx context.Context, in *gamelift.ClaimGameServerInput) (*gamelift.ClaimGameServerOutput, error) {
	cmd := gameservers.ClaimGameServer{Group: lastPart(*in.GameServerGroupName), ID: value(in.GameServerId), Data: in.GameServerData}
	if f := in.FilterOption; f != nil && len(f.InstanceStatuses) > 0 {
		cmd.None = !slices.Contains(f.InstanceStatuses, types.FilterInstanceStatusActive)
	}
	if err := s.engine.Do(ctx, &cmd); err != nil {
		if r, ok := errors.AsType[*domain.Refusal](err); ok && r.Reason == domain.NoCapacity {
			return nil, &types.OutOfCapacityException{Message: &r.Detail} // not a fleet's capacity
		}
		return nil, err
	}
	x, err := s.gameServerToWire(ctx, &cmd.Server)
	return &gamelift.ClaimGameServerOutput{GameServer: x}, err
}

// UpdateGameServer handles a game server's report: that it is healthy or utilized, or has new data.
func (s *Service) UpdateGameServer(ctx context.Context, in *gamelift.UpdateGameServerInput) (*gamelift.UpdateGameServerOutput, error) {
	cmd := gameservers.UpdateGameServer{
		Group: lastPart(*in.GameServerGroupName), ID: *in.GameServerId, Data: in.GameServerData,
		Healthy: in.HealthCheck == types.GameServerHealthCheckHealthy,
	}
	if in.UtilizationStatus != "" {
		cmd.Utilized = new(in.UtilizationStatus == types.GameServerUtilizationStatusUtilized)
	}
	if err := s.engine.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	x, err := s.gameServerToWire(ctx, &cmd.Server)
	return &gamelift.UpdateGameServerOutput{GameServer: x}, err
}

// DeregisterGameServer removes a game server.
func (s *Service) DeregisterGameServer(ctx context.Context, in *gamelift.DeregisterGameServerInput) (*gamelift.DeregisterGameServerOutput, error) {
	return &gamelift.DeregisterGameServerOutput{}, s.engine.Do(ctx, &gameservers.DeregisterGameServer{Group: lastPart(*in.GameServerGroupName), ID: *in.GameServerId})
}

// DescribeGameServer shows one game server.
func (s *Service) DescribeGameServer(ctx context.Context, in *gamelift.DescribeGameServerInput) (*gamelift.DescribeGameServerOutput, error) {
	x, err := read(ctx, s, func(v *cell.View) (gameservers.Server, error) {
		return v.GameServer(lastPart(*in.GameServerGroupName), *in.GameServerId)
	})
	if err != nil {
		return nil, err
	}
	wire, err := s.gameServerToWire(ctx, &x)
	return &gamelift.DescribeGameServerOutput{GameServer: wire}, err
}

// ListGameServers lists the game servers of a group in order of registration.
func (s *Service) ListGameServers(ctx context.Context, in *gamelift.ListGameServersInput) (*gamelift.ListGameServersOutput, error) {
	after, err := pagePlace("ListGameServers", in, in.NextToken)
	if err != nil {
		return nil, err
	}
	g, err := s.gameServerGroup(ctx, *in.GameServerGroupName)
	if err != nil {
		return nil, undeclared(err, domain.NotFound)
	}
	size := pageSize(in.Limit, pageMax)
	page, err := read(ctx, s, func(v *cell.View) ([]gameservers.Server, error) {
		return v.GameServers(g.Name, after.catalog(), in.SortOrder == types.SortOrderDescending, size+1)
	})
	page, next := cutPage("ListGameServers", in, page, size, func(x *gameservers.Server) string { return place{int64(x.Registered), x.ID}.String() })
	servers := wires(page, func(x *gameservers.Server) types.GameServer { return gameServerToWire(&g, x) })
	return &gamelift.ListGameServersOutput{GameServers: servers, NextToken: next}, undeclared(err, domain.NotFound)
}

func (s *Service) gameServerToWire(ctx context.Context, x *gameservers.Server) (*types.GameServer, error) {
	g, err := s.gameServerGroup(ctx, x.Group)
	if err != nil {
		return nil, err
	}
	return new(gameServerToWire(&g, x)), nil
}

func gameServerToWire(g *gameservers.Group, x *gameservers.Server) types.GameServer {
	registered, healthy := x.Registered.Std(), x.Healthy.Std()
	wire := types.GameServer{
		GameServerId: &x.ID, GameServerGroupName: &g.Name, GameServerGroupArn: groupARN(g), InstanceId: &x.Instance,
		ConnectionInfo: text(x.Connection), GameServerData: text(x.Data), UtilizationStatus: types.GameServerUtilizationStatusAvailable,
		RegistrationTime: &registered, LastHealthCheckTime: &healthy,
	}
	if x.Utilized {
		wire.UtilizationStatus = types.GameServerUtilizationStatusUtilized
	}
	if x.Claimed != 0 {
		wire.LastClaimTime = new(x.Claimed.Std())
	}
	if x.ClaimBy != 0 {
		wire.ClaimStatus = types.GameServerClaimStatusClaimed
	}
	return wire
}

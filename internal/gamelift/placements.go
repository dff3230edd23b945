package gamelift

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// StartGameSessionPlacement starts a placement and returns at once; a lack of capacity is not an error.
func (s *Service) StartGameSessionPlacement(ctx context.Context, in *gamelift.StartGameSessionPlacementInput) (*gamelift.StartGameSessionPlacementOutput, error) {
	p := placement.Placement{
		Maker: callerOf(ctx).Maker(),
		ID:    *in.PlacementId, Queue: lastPart(*in.GameSessionQueueName), PlayersMax: *in.MaximumPlayerSessionCount,
		Name: value(in.GameSessionName), Data: value(in.GameSessionData), Properties: propertiesFromWire(in.GameProperties),
	}
	for _, l := range in.PlayerLatencies {
		p.Latencies = append(p.Latencies, placement.Latency{
			Player: value(l.PlayerId), Location: value(l.RegionIdentifier), Milliseconds: value(l.LatencyInMilliseconds),
		})
	}
	for i, d := range in.DesiredPlayerSessions {
		if d.PlayerId == nil {
			return nil, invalid("DesiredPlayerSessions[%d].PlayerId: required", i)
		}
		p.Players = append(p.Players, placement.Player{Player: *d.PlayerId, Data: value(d.PlayerData), ID: domain.PlayerSessionID(newID())})
	}
	if o := in.PriorityConfigurationOverride; o != nil {
		p.Override = &placement.Override{Locations: o.LocationOrder, Only: o.PlacementFallbackStrategy == types.PlacementFallbackStrategyNone}
	}
	cmd := hosting.StartPlacement{Placement: p}
	err := s.engine.Do(ctx, &cmd)
	return &gamelift.StartGameSessionPlacementOutput{GameSessionPlacement: new(placementToWire(&cmd.Placement))}, undeclared(err, domain.TokenMismatch)
}

// DescribeGameSessionPlacement shows a placement, pending or ended.
func (s *Service) DescribeGameSessionPlacement(ctx context.Context, in *gamelift.DescribeGameSessionPlacementInput) (*gamelift.DescribeGameSessionPlacementOutput, error) {
	p, err := s.placement(ctx, *in.PlacementId)
	return &gamelift.DescribeGameSessionPlacementOutput{GameSessionPlacement: new(placementToWire(&p))}, err
}

// placement finds a placement that the caller may see.
func (s *Service) placement(ctx context.Context, id string) (placement.Placement, error) {
	p, err := s.engine.Placement(ctx, id)
	if err == nil && !callerOf(ctx).Maker().MayTouch(p.Maker) {
		return placement.Placement{}, domain.Refuse(domain.NotFound, "placement %s not found", id)
	}
	return p, err
}

// StopGameSessionPlacement cancels a placement that has no game session yet.
func (s *Service) StopGameSessionPlacement(ctx context.Context, in *gamelift.StopGameSessionPlacementInput) (*gamelift.StopGameSessionPlacementOutput, error) {
	cmd := hosting.StopPlacement{ID: *in.PlacementId, By: callerOf(ctx).Maker()}
	if err := s.engine.Do(ctx, &cmd); err != nil {
		return nil, s.placementRefusal(ctx, cmd.ID, err)
	}
	return &gamelift.StopGameSessionPlacementOutput{GameSessionPlacement: new(placementToWire(&cmd.Placement))}, nil
}

// placementRefusal converts NotFound, which the core reports for archived placements, to the error that the placement
// has ended.
func (s *Service) placementRefusal(ctx context.Context, id string, refused error) error {
	if r, ok := errors.AsType[*domain.Refusal](refused); !ok || r.Reason != domain.NotFound {
		return refused
	}
	p, err := s.placement(ctx, id)
	if err != nil {
		return err // also NotFound, or another error
	}
	return domain.Refuse(domain.Invalid, "placement %s is %s; only a PENDING one can be stopped", id, p.Status)
}

// placementToWire shows a placement's game session only if there is one: that of the attempt in progress, or the
// successful one. A failed attempt has no address.
func placementToWire(p *placement.Placement) types.GameSessionPlacement {
	wire := types.GameSessionPlacement{
		PlacementId: &p.ID, GameSessionQueueName: &p.Queue, Status: types.GameSessionPlacementState(p.Status.String()),
		MaximumPlayerSessionCount: &p.PlayersMax, GameSessionName: text(p.Name), GameSessionData: text(p.Data),
		MatchmakerData: text(p.MatchmakerData), GameProperties: propertiesToWire(p.Properties),
		StartTime: new(p.Start.Std()),
	}
	if p.End != 0 {
		wire.EndTime = new(p.End.Std())
	}
	for i := range p.Latencies {
		l := &p.Latencies[i]
		wire.PlayerLatencies = append(wire.PlayerLatencies, types.PlayerLatency{
			PlayerId: text(l.Player), RegionIdentifier: text(l.Location), LatencyInMilliseconds: &l.Milliseconds,
		})
	}
	if o := p.Override; o != nil {
		strategy := types.PlacementFallbackStrategyDefaultAfterSinglePass
		if o.Only {
			strategy = types.PlacementFallbackStrategyNone
		}
		wire.PriorityConfigurationOverride = &types.PriorityConfigurationOverride{LocationOrder: o.Locations, PlacementFallbackStrategy: strategy}
	}
	if p.Game != "" && (p.Status == placement.Pending || p.Status == placement.Fulfilled) {
		arn := gameSessionARN(p.GameRegion, session.ID(p.Game))
		wire.GameSessionId, wire.GameSessionArn, wire.GameSessionRegion = arn, arn, text(p.Location)
		wire.IpAddress, wire.DnsName, wire.Port = text(p.IPAddress), text(p.DNSName), new(int32(p.Port))
	}
	if p.Status == placement.Fulfilled {
		for i := range p.Players {
			id := p.Players[i].ID.String()
			wire.PlacedPlayerSessions = append(wire.PlacedPlayerSessions, types.PlacedPlayerSession{PlayerId: &p.Players[i].Player, PlayerSessionId: &id})
		}
	}
	return wire
}

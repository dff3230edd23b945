package gamelift

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
)

// CreateGameSession places a game session on a free server process. It does not wait until the server has activated it.
func (s *Service) CreateGameSession(ctx context.Context, in *gamelift.CreateGameSessionInput) (*gamelift.CreateGameSessionOutput, error) {
	fleetID, err := s.oneFleet(ctx, in.FleetId, in.AliasId)
	if err != nil {
		return nil, err
	}
	if in.IdempotencyToken != nil && in.GameSessionId != nil {
		return nil, invalid("IdempotencyToken and GameSessionId are both given; want at most one of them")
	}
	location := value(in.Location)
	if location == "" {
		if location, err = homeOf(ctx, s, fleetID); err != nil {
			return nil, err
		}
	}
	cmd := hosting.CreateGameSession{
		Fleet: fleetID, Alias: lastPart(value(in.AliasId)), Location: location, Title: value(in.Name), Data: value(in.GameSessionData),
		Properties: propertiesFromWire(in.GameProperties), Creator: value(in.CreatorId), PlayersMax: *in.MaximumPlayerSessionCount,
	}
	if chosen := cmp.Or(in.IdempotencyToken, in.GameSessionId); chosen != nil {
		cmd.Choose(*chosen)
	} else {
		cmd.Name = session.NameID(newID()).String()
	}
	err = s.engine.Do(ctx, &cmd)
	return &gamelift.CreateGameSessionOutput{GameSession: new(gameSessionToWire(&cmd.Game))}, err
}

// homeOf returns the location for game sessions whose request names none; empty if the fleet has no home location or does not exist.
func homeOf(ctx context.Context, s *Service, fleetID string) (location string, err error) {
	return read(ctx, s, func(v *cell.View) (string, error) {
		f, _ := v.Fleet(fleetID)
		return f.Home(), nil
	})
}

// UpdateGameSession changes the given members and keeps the others.
func (s *Service) UpdateGameSession(ctx context.Context, in *gamelift.UpdateGameSessionInput) (*gamelift.UpdateGameSessionOutput, error) {
	id, err := s.gameSessionID(ctx, *in.GameSessionId)
	if err != nil {
		return nil, err
	}
	cmd := hosting.UpdateGameSession{
		ID: id, Title: in.Name, PlayersMax: in.MaximumPlayerSessionCount, Properties: propertiesFromWire(in.GameProperties),
		FullProtection: fullProtection(in.ProtectionPolicy),
	}
	if in.PlayerSessionCreationPolicy != "" {
		cmd.DenyPlayers = new(in.PlayerSessionCreationPolicy == types.PlayerSessionCreationPolicyDenyAll)
	}
	if err := s.engine.Do(ctx, &cmd); err != nil {
		return nil, s.gameRefusal(ctx, id, err)
	}
	return &gamelift.UpdateGameSessionOutput{GameSession: new(gameSessionToWire(&cmd.Game))}, nil
}

// TerminateGameSession asks the server process to end together with its game session, or has the host's agent kill it; see B033 and B034.
func (s *Service) TerminateGameSession(ctx context.Context, in *gamelift.TerminateGameSessionInput) (*gamelift.TerminateGameSessionOutput, error) {
	id, err := s.gameSessionID(ctx, *in.GameSessionId)
	if err != nil {
		return nil, err
	}
	cmd := hosting.TerminateGameSession{ID: id, Force: in.TerminationMode == types.TerminationModeForceTerminate}
	if cmd.Force && s.Agents != nil {
		if g, err := s.engine.GameSession(ctx, id); err == nil { // the command reports what is wrong with it
			cmd.Agent = s.Agents.Has(g.FleetID, g.ComputeName)
		}
	}
	if err := s.engine.Do(ctx, &cmd); err != nil {
		return nil, s.gameRefusal(ctx, id, err)
	}
	return &gamelift.TerminateGameSessionOutput{GameSession: new(gameSessionToWire(&cmd.Game))}, nil
}

// gameRefusal converts NotFound, which the core reports for archived game sessions, to the error that the game session has ended.
func (s *Service) gameRefusal(ctx context.Context, id session.ID, refused error) error {
	if !domain.IsRefused(refused, domain.NotFound) {
		return refused
	}
	g, err := s.engine.GameSession(ctx, id)
	if err != nil {
		return err // also NotFound, or another error
	}
	return domain.Refuse(domain.WrongGameStatus, "game session %s is %s", id, g.Status)
}

func gameSessionToWire(g *session.GameSession) types.GameSession {
	created, port := g.Created.Std(), int32(g.Port)
	wire := types.GameSession{
		GameSessionId: gameSessionARN(g.Region, g.ID), FleetId: &g.FleetID, FleetArn: makeARN(g.Region, g.Account, "fleet/", g.FleetID),
		Location: &g.Location, Name: text(g.Name), CreatorId: text(g.Creator), ComputeName: text(g.ComputeName),
		GameSessionData: text(g.Data), MatchmakerData: text(g.MatchmakerData), GameProperties: propertiesToWire(g.Properties),
		IpAddress: text(g.IPAddress), DnsName: text(g.DNSName), Port: &port,
		CurrentPlayerSessionCount: new(g.Seated()), MaximumPlayerSessionCount: &g.PlayersMax,
		CreationTime: &created, Status: types.GameSessionStatus(g.Status.String()), StatusReason: statusReason(g.StatusReason),
		PlayerSessionCreationPolicy: types.PlayerSessionCreationPolicyAcceptAll,
	}
	if g.DenyPlayers {
		wire.PlayerSessionCreationPolicy = types.PlayerSessionCreationPolicyDenyAll
	}
	if g.Ended != 0 {
		wire.TerminationTime = new(g.Ended.Std())
	}
	return wire
}

func statusReason(r session.StatusReason) types.GameSessionStatusReason {
	switch r {
	case session.TriggeredOnProcessTerminate:
		return types.GameSessionStatusReasonTriggeredOnProcessTerminate
	case session.ForceTerminated:
		return types.GameSessionStatusReasonForceTerminated
	case session.Interrupted:
		return types.GameSessionStatusReasonInterrupted
	default:
		return ""
	}
}

func propertiesFromWire(wire []types.GameProperty) []session.Property {
	if len(wire) == 0 {
		return nil
	}
	properties := make([]session.Property, len(wire))
	for i, p := range wire {
		properties[i] = session.Property{Key: value(p.Key), Value: value(p.Value)}
	}
	return properties
}

func propertiesToWire(properties []session.Property) []types.GameProperty {
	return wires(properties, func(p *session.Property) types.GameProperty { return types.GameProperty{Key: &p.Key, Value: &p.Value} })
}

package gamelift

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
)

// DescribeGameSessions shows one game session, or those of a fleet in creation order, live and ended.
func (s *Service) DescribeGameSessions(ctx context.Context, in *gamelift.DescribeGameSessionsInput) (*gamelift.DescribeGameSessionsOutput, error) {
	games, next, err := s.listGameSessions(ctx, "DescribeGameSessions", in, in)
	seen := wires(games, func(g *session.GameSession) types.GameSession { return seenGameSession(ctx, g) })
	return &gamelift.DescribeGameSessionsOutput{GameSessions: seen, NextToken: next}, err
}

// DescribeGameSessionDetails is DescribeGameSessions with the protection policy.
func (s *Service) DescribeGameSessionDetails(ctx context.Context, in *gamelift.DescribeGameSessionDetailsInput) (*gamelift.DescribeGameSessionDetailsOutput, error) {
	games, next, err := s.listGameSessions(ctx, "DescribeGameSessionDetails", in, &gamelift.DescribeGameSessionsInput{
		AliasId: in.AliasId, FleetId: in.FleetId, GameSessionId: in.GameSessionId, Limit: in.Limit, Location: in.Location,
		NextToken: in.NextToken, StatusFilter: in.StatusFilter,
	})
	details := wires(games, func(g *session.GameSession) types.GameSessionDetail {
		return types.GameSessionDetail{GameSession: new(seenGameSession(ctx, g)), ProtectionPolicy: protectionPolicy(g.FullProtection)}
	})
	return &gamelift.DescribeGameSessionDetailsOutput{GameSessionDetails: details, NextToken: next}, err
}

// seenGameSession returns a game session as the caller may see it in a list. A client key does not get the matchmaker
// data, which names all players with their attributes.
func seenGameSession(ctx context.Context, g *session.GameSession) types.GameSession {
	wire := gameSessionToWire(g)
	if callerOf(ctx).Maker() != 0 {
		wire.MatchmakerData = nil
	}
	return wire
}

// listGameSessions implements both operations. bound is the input to which page tokens are bound.
func (s *Service) listGameSessions(ctx context.Context, operation string, bound any, in *gamelift.DescribeGameSessionsInput) ([]session.GameSession, *string, error) {
	if in.GameSessionId != nil {
		id, err := s.gameSessionID(ctx, *in.GameSessionId)
		if err != nil {
			return nil, nil, err
		}
		g, err := s.engine.GameSession(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		return []session.GameSession{g}, nil, nil
	}
	fleetID, err := s.oneFleet(ctx, in.FleetId, in.AliasId)
	if err != nil {
		return nil, nil, err
	}
	filter := hosting.GameFilter{Location: value(in.Location)}
	unused := false
	if in.StatusFilter != nil {
		if filter.Status, unused, err = gameStatus(*in.StatusFilter); err != nil {
			return nil, nil, err
		}
	}
	after, err := pagePlace(operation, bound, in.NextToken)
	if err != nil {
		return nil, nil, err
	}
	page, more := []session.GameSession(nil), false
	if !unused {
		page, more, err = s.engine.GameSessions(ctx, fleetID, filter,
			hosting.GamePlace{Created: domain.Time(after.created), ID: session.ID(after.id)}, pageSize(in.Limit, gamePageMax))
		if err != nil {
			return nil, nil, err
		}
	}
	if len(page) == 0 { // a deleted fleet still has its ended sessions
		if _, err := s.fleetByID(ctx, fleetID); err != nil {
			return nil, nil, err
		}
	}
	if n := pageOfBytes(page); n < len(page) {
		page, more = page[:n], true
	}
	if !more {
		return page, nil, nil
	}
	last := page[len(page)-1]
	return page, pageToken(operation, bound, place{int64(last.Created), string(last.ID)}.String()), nil
}

// pageOfBytes returns how many of the game sessions fit into a page; at least one.
func pageOfBytes(page []session.GameSession) int {
	bytes := 0
	for i := range page {
		bytes += len(page[i].Data) + len(page[i].MatchmakerData)
		if bytes > gamePageBytes && i > 0 {
			return i
		}
	}
	return len(page)
}

// gameStatus parses a status filter. ERROR is a status that our sessions never have.
func gameStatus(text string) (status session.Status, unused bool, err error) {
	for s := session.Activating; s <= session.Terminated; s++ {
		if s.String() == text {
			return s, false, nil
		}
	}
	if text == string(types.GameSessionStatusError) {
		return 0, true, nil
	}
	return 0, false, invalid("StatusFilter: '%s' is not one of ACTIVATING, ACTIVE, TERMINATING, TERMINATED, ERROR", excerpt.Short(text))
}

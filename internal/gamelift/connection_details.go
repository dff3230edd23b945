package gamelift

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
)

// GetPlayerConnectionDetails returns the address of a game session for its players. There is no gateway in between, so all of them
// get the game server's own address and no token.
func (s *Service) GetPlayerConnectionDetails(ctx context.Context, in *gamelift.GetPlayerConnectionDetailsInput) (*gamelift.GetPlayerConnectionDetailsOutput, error) {
	id, err := s.gameSessionID(ctx, *in.GameSessionId)
	if err != nil {
		return nil, err
	}
	g, err := s.engine.GameSession(ctx, id)
	if err != nil {
		return nil, err
	}
	if g.Status != session.Active {
		return nil, domain.Refuse(domain.WrongGameStatus, "game session %s is %s", id, g.Status)
	}
	seated, err := seated(ctx, s.engine, id)
	if err != nil {
		return nil, err
	}
	out := &gamelift.GetPlayerConnectionDetailsOutput{GameSessionId: gameSessionARN(g.Region, g.ID)}
	port := int32(g.Port)
	for i := range in.PlayerIds {
		if !seated[in.PlayerIds[i]] {
			return nil, domain.Refuse(domain.NotFound, "PlayerIds[%d]: the player has no reserved or active player session in game session %s", i, id)
		}
		out.PlayerConnectionDetails = append(out.PlayerConnectionDetails, types.PlayerConnectionDetail{
			PlayerId: &in.PlayerIds[i], Endpoints: []types.PlayerConnectionEndpoint{{IpAddress: text(g.IPAddress), Port: &port}},
		})
	}
	return out, nil
}

// seated returns the players in a game session and those with a reserved seat, as far as the caller may see them.
func seated(ctx context.Context, e *engine.Engine, id session.ID) (map[string]bool, error) {
	players, maker := map[string]bool{}, callerOf(ctx).Maker()
	for after := (engine.PlayerPlace{}); ; {
		page, more, err := e.PlayersIn(ctx, id, 0, after, pageMax)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if page[i].Status.Live() && maker.MayTouch(page[i].Maker) {
				players[page[i].Player] = true
			}
			after = engine.PlayerPlace{Created: page[i].Created, ID: page[i].ID}
		}
		if !more {
			return players, nil
		}
	}
}

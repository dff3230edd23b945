package gamelift

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/domain"
)

// Logs has the logs of game sessions.
type Logs interface {
	// URL returns where a game session's log can be downloaded for 15 minutes; false if there is none.
	URL(ctx context.Context, game string) (url string, ok bool, err error)
}

// GetGameSessionLogUrl returns where a game session's log can be downloaded. The agent on its host uploads the log after the session has
// ended.
func (s *Service) GetGameSessionLogUrl(ctx context.Context, in *gamelift.GetGameSessionLogUrlInput) (*gamelift.GetGameSessionLogUrlOutput, error) {
	id, err := s.gameSessionID(ctx, *in.GameSessionId)
	if err != nil {
		return nil, err
	}
	g, err := s.engine.GameSession(ctx, id)
	if err != nil {
		return nil, err
	}
	if s.Logs == nil {
		return nil, domain.Refuse(domain.NotFound, "no log of game session %s: this installation keeps none, because --session-logs-max is 0", id)
	}
	url, ok, err := s.Logs.URL(ctx, string(id))
	if err != nil {
		return nil, err
	}
	if ok {
		return &gamelift.GetGameSessionLogUrlOutput{PreSignedUrl: aws.String(url)}, nil
	}
	if g.Live() {
		return nil, domain.Refuse(domain.NotFound, "no log of game session %s: it has not ended, and `muster agent` uploads the log after the end", id)
	}
	return nil, domain.Refuse(domain.NotFound, "no log of game session %s: the agent of compute %s has uploaded none so far, or it is no longer kept", id, g.ComputeName)
}
